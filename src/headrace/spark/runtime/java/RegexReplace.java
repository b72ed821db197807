package headrace;

import java.util.regex.Pattern;
import org.apache.spark.sql.api.java.UDF3;

/** A text with all matches replaced: text, pattern, replacement. */
public class RegexReplace extends Regex implements UDF3 {
    public Object call(Object text, Object pattern, Object replacement) {
        return answer(pattern, text, replacement);
    }

    Object apply(Pattern pattern, String text, Object more) {
        String replacement = (String) more;
        try {
            return pattern.matcher(new BoundedText(text)).replaceAll(replacement);
        } catch (IllegalArgumentException e) {
            throw illegal(replacement);
        } catch (IndexOutOfBoundsException e) {
            throw illegal(replacement);
        }
    }

    private static Regex.Refused illegal(String replacement) {
        return new Regex.Refused("Illegal group reference in replacement: " + replacement);
    }
}
