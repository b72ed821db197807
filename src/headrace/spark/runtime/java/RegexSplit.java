package headrace;

import java.util.ArrayList;
import java.util.regex.Pattern;
import org.apache.spark.sql.api.java.UDF2;

/**
 * The pieces of a text between the matches: text, pattern. An expression that matches nothing at
 * all leaves no empty pieces at the end.
 */
public class RegexSplit extends Regex implements UDF2 {
    public Object call(Object text, Object pattern) {
        return answer(pattern, text, "");
    }

    Object apply(Pattern pattern, String text, Object more) {
        String[] pieces = pattern.split(new BoundedText(text), -1);
        int count = pieces.length;
        if (pattern.matcher("").find()) {
            while (count > 1 && pieces[count - 1].isEmpty()) {
                count--;
            }
        }
        ArrayList kept = new ArrayList();
        for (int i = 0; i < count; i++) {
            kept.add(pieces[i]);
        }
        return kept;
    }
}
