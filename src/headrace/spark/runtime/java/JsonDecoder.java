package headrace;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.io.Serializable;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Decodes JSON records to rows as the format's row codec in Python does, in one pass. What is not
 * in its usual form (a number in quotes, a field twice, a broken record) is null here: then the row
 * codec decides.
 */
public final class JsonDecoder implements Serializable {
    private static final JsonFactory FACTORY = factory();
    private static final int LARGEST_EXPONENT = 400;
    private static final long MILLIS_PER_DAY = 86400000L;
    private static final Undecided UNDECIDED = new Undecided();

    private final JsonType type;

    JsonDecoder(JsonType type) {
        this.type = type;
    }

    private static JsonFactory factory() {
        JsonFactory factory = new JsonFactory();
        factory.disable(JsonFactory.Feature.INTERN_FIELD_NAMES); // writers choose them
        return factory;
    }

    /** The row, or a row of the one bare value; null where it is undecided. */
    public InternalRow decode(byte[] data) {
        if (!isText(data)) {
            return null;
        }
        try {
            JsonParser parser = FACTORY.createParser(data);
            try {
                parser.nextToken();
                if (type.kind == JsonType.STRUCT) {
                    return struct(parser, type);
                }
                Object value = value(parser, type);
                if (parser.nextToken() != null) {
                    return null;
                }
                return new GenericInternalRow(new Object[] {value});
            } finally {
                parser.close(); // gives its buffers back
            }
        } catch (IOException e) {
            return null;
        } catch (Undecided e) {
            return null;
        }
    }

    /** Whether the data is UTF-8; the parser would take other encodings as well. */
    private static boolean isText(byte[] data) {
        int bits = 0;
        for (int i = 0; i < data.length; i++) {
            bits |= data[i];
        }
        for (int i = 0; i < 4 && i < data.length; i++) {
            if (data[i] == 0) {
                return false;
            }
        }
        return bits >= 0 || UTF8String.fromBytes(data).isValid();
    }

    private static Object value(JsonParser parser, JsonType type) throws IOException {
        JsonToken token = parser.currentToken();
        if (token == JsonToken.VALUE_NULL) {
            return null;
        }
        switch (type.kind) {
            case JsonType.BOOLEAN:
                return truth(token);
            case JsonType.INTEGER:
                return Integer.valueOf(
                        between(integer(parser, token), Integer.MIN_VALUE, Integer.MAX_VALUE));
            case JsonType.BIGINT:
                return Long.valueOf(integer(parser, token));
            case JsonType.TIME:
                return Integer.valueOf(between(integer(parser, token), 0, MILLIS_PER_DAY));
            case JsonType.DOUBLE:
                return Double.valueOf(number(parser, token));
            case JsonType.DECIMAL:
                return decimal(parser, token, type);
            case JsonType.STRING:
                return text(parser, token);
            case JsonType.BYTES:
                return bytes(parser, token);
            case JsonType.ARRAY:
                return array(parser, token, type.element);
            case JsonType.MAP:
                return map(parser, token, type.element);
            case JsonType.STRUCT:
                return struct(parser, type);
            default:
                throw UNDECIDED;
        }
    }

    private static Boolean truth(JsonToken token) {
        if (token == JsonToken.VALUE_TRUE) {
            return Boolean.TRUE;
        }
        require(token == JsonToken.VALUE_FALSE);
        return Boolean.FALSE;
    }

    private static long integer(JsonParser parser, JsonToken token) throws IOException {
        require(token == JsonToken.VALUE_NUMBER_INT && isLong(parser));
        return parser.getLongValue();
    }

    private static int between(long value, long least, long most) {
        require(value >= least && value <= most);
        return (int) value;
    }

    private static boolean isLong(JsonParser parser) throws IOException {
        return parser.getNumberType() != JsonParser.NumberType.BIG_INTEGER;
    }

    /** How many digits there are before the point. */
    private static long digits(BigDecimal number) {
        return (long) number.precision() - number.scale();
    }

    private static double number(JsonParser parser, JsonToken token) throws IOException {
        if (token == JsonToken.VALUE_NUMBER_FLOAT) {
            return parser.getDoubleValue();
        }
        require(token == JsonToken.VALUE_NUMBER_INT && isLong(parser));
        return (double) parser.getLongValue();
    }

    private static Decimal decimal(JsonParser parser, JsonToken token, JsonType type)
            throws IOException {
        require(token == JsonToken.VALUE_NUMBER_INT || token == JsonToken.VALUE_NUMBER_FLOAT);
        require(type.precision <= DecimalType.MAX_PRECISION());
        BigDecimal number = parser.getDecimalValue();
        if (number.signum() == 0) {
            number = BigDecimal.ZERO;
        }
        require(number.signum() == 0 || digits(number) <= type.precision - type.scale);
        require(number.scale() <= LARGEST_EXPONENT);
        BigDecimal fitted;
        try {
            fitted = number.setScale(type.scale);
        } catch (ArithmeticException e) {
            throw UNDECIDED; // digits would be lost
        }
        return Decimal.apply(fitted, type.precision, type.scale);
    }

    private static UTF8String text(JsonParser parser, JsonToken token) throws IOException {
        if (token == JsonToken.VALUE_STRING
                || token == JsonToken.VALUE_TRUE
                || token == JsonToken.VALUE_FALSE) {
            return UTF8String.fromString(parser.getText());
        }
        require(token == JsonToken.VALUE_NUMBER_INT);
        String digits = parser.getText();
        require(!digits.equals("-0"));
        return UTF8String.fromString(digits);
    }

    private static byte[] bytes(JsonParser parser, JsonToken token) throws IOException {
        require(token == JsonToken.VALUE_STRING);
        String text = parser.getText();
        require(text.length() % 4 == 0); // Java takes what is not padded as well
        try {
            return Base64.getDecoder().decode(text);
        } catch (IllegalArgumentException e) {
            throw UNDECIDED;
        }
    }

    private static GenericArrayData array(JsonParser parser, JsonToken token, JsonType element)
            throws IOException {
        require(token == JsonToken.START_ARRAY);
        ArrayList items = new ArrayList();
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            items.add(value(parser, element));
        }
        return new GenericArrayData(items.toArray());
    }

    private static ArrayBasedMapData map(JsonParser parser, JsonToken token, JsonType element)
            throws IOException {
        require(token == JsonToken.START_OBJECT);
        ArrayList keys = new ArrayList();
        ArrayList values = new ArrayList();
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            keys.add(UTF8String.fromString(parser.currentName()));
            parser.nextToken();
            values.add(value(parser, element));
        }
        require(new HashSet(keys).size() == keys.size());
        return new ArrayBasedMapData(
                new GenericArrayData(keys.toArray()), new GenericArrayData(values.toArray()));
    }

    private static InternalRow struct(JsonParser parser, JsonType type) throws IOException {
        require(parser.currentToken() == JsonToken.START_OBJECT);
        Object[] values = new Object[type.fields.length];
        boolean[] seen = new boolean[values.length];
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            int index = type.indexOf(parser.currentName());
            parser.nextToken();
            if (index < 0 || type.fields[index].kind == JsonType.UNREAD) {
                parser.skipChildren();
            } else {
                require(!seen[index]);
                seen[index] = true;
                values[index] = value(parser, type.fields[index]);
            }
        }
        for (int i = 0; i < type.ambiguous.length; i++) {
            require(values[type.ambiguous[i]] != null);
        }
        return new GenericInternalRow(values);
    }

    private static void require(boolean usual) {
        if (!usual) {
            throw UNDECIDED;
        }
    }

    public String toString() {
        return "json " + type;
    }

    static class Undecided extends RuntimeException {
        Undecided() {
            super(null, null, false, false);
        }
    }
}
