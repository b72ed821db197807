package headrace;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.api.java.UDF3;

/** What the first match of an expression, or one of its groups, is: pattern, text, group. */
public class RegexExtract extends Regex implements UDF3 {
    public Object call(Object pattern, Object text, Object group) {
        return answer(pattern, text, group);
    }

    Object apply(Pattern pattern, String text, Object more) {
        Matcher matcher = pattern.matcher(new BoundedText(text));
        int index = ((Integer) more).intValue();
        return hasGroup(matcher, index) && matcher.find() ? group(matcher, index) : null;
    }
}
