package headrace;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Locale;
import java.util.concurrent.ConcurrentHashMap;

/** The type of a value in a JSON record, as `formats/json/columns.py` describes it. */
final class JsonType implements Serializable {
    static final int BOOLEAN = 0;
    static final int INTEGER = 1;
    static final int BIGINT = 2;
    static final int TIME = 3;
    static final int DOUBLE = 4;
    static final int DECIMAL = 5;
    static final int STRING = 6;
    static final int BYTES = 7;
    static final int ARRAY = 8;
    static final int MAP = 9;
    static final int STRUCT = 10;
    static final int UNREAD = 11; // a text that nobody reads

    private static final String[] KINDS = {
        "BOOLEAN", "INTEGER", "BIGINT", "TIME", "DOUBLE", "DECIMAL", "STRING", "BYTES", "ARRAY",
        "MAP", "STRUCT", "UNREAD"
    };
    private static final int KEPT_NAMES = 10000;
    private static final Integer NONE = Integer.valueOf(-1);

    final int kind;
    final int precision;
    final int scale;
    final JsonType element; // of an array, or the values of a map
    final JsonType[] fields;
    /** Fields whose names differ from another's only in case, if they match in any case. */
    final int[] ambiguous;

    private final String[] names;
    private final HashMap inCapitals = new HashMap(); // names that match in any case
    private final ConcurrentHashMap known = new ConcurrentHashMap();

    JsonType(JsonNode described) {
        kind = kindOf(described.get("kind").asText());
        precision = kind == DECIMAL ? described.get("precision").asInt() : 0;
        scale = kind == DECIMAL ? described.get("scale").asInt() : 0;
        element = kind == ARRAY || kind == MAP ? new JsonType(described.get("element")) : null;
        int count = kind == STRUCT ? described.get("fields").size() : 0;
        fields = new JsonType[count];
        names = new String[count];
        boolean[] anyCase = new boolean[count];
        HashMap spellings = new HashMap();
        for (int i = 0; i < count; i++) {
            JsonNode field = (JsonNode) described.get("fields").get(i);
            fields[i] = new JsonType(field);
            names[i] = field.get("name").asText();
            anyCase[i] = field.get("anyCase").asBoolean();
            known.put(names[i], Integer.valueOf(i));
            String capitals = capitals(names[i]);
            spellings.put(capitals, Boolean.valueOf(spellings.containsKey(capitals)));
        }
        ArrayList doubtful = new ArrayList();
        for (int i = 0; i < count; i++) {
            if (anyCase[i] && Boolean.TRUE.equals(spellings.get(capitals(names[i])))) {
                doubtful.add(Integer.valueOf(i));
            } else if (anyCase[i]) {
                inCapitals.put(names[i], Integer.valueOf(i));
            }
        }
        ambiguous = new int[doubtful.size()];
        for (int i = 0; i < ambiguous.length; i++) {
            ambiguous[i] = ((Integer) doubtful.get(i)).intValue();
        }
    }

    private static int kindOf(String name) {
        for (int i = 0; i < KINDS.length; i++) {
            if (KINDS[i].equals(name)) {
                return i;
            }
        }
        throw new IllegalArgumentException(name);
    }

    /** The place of the field that a record calls so; negative if there is none. */
    int indexOf(String name) {
        Integer index = (Integer) known.get(name);
        if (index == null) {
            index = (Integer) inCapitals.get(capitals(name));
            if (index == null) {
                index = NONE;
            }
            if (known.size() < KEPT_NAMES) {
                known.put(name, index);
            }
        }
        return index.intValue();
    }

    private static String capitals(String name) {
        return name.toUpperCase(Locale.ROOT);
    }

    public String toString() {
        if (kind != STRUCT) {
            return element == null ? KINDS[kind] : KINDS[kind] + "<" + element + ">";
        }
        StringBuilder text = new StringBuilder("STRUCT<");
        for (int i = 0; i < fields.length; i++) {
            text.append(i == 0 ? "" : ", ").append(names[i]).append(' ').append(fields[i]);
        }
        return text.append('>').toString();
    }
}
