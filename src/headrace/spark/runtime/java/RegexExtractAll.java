package headrace;

import java.util.ArrayList;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.api.java.UDF3;

/** What all matches of an expression, or one of its groups, are: pattern, text, group. */
public class RegexExtractAll extends Regex implements UDF3 {
    public Object call(Object pattern, Object text, Object group) {
        return answer(pattern, text, group);
    }

    Object apply(Pattern pattern, String text, Object more) {
        Matcher matcher = pattern.matcher(new BoundedText(text));
        int index = ((Integer) more).intValue();
        if (!hasGroup(matcher, index)) {
            return null;
        }
        ArrayList found = new ArrayList();
        while (matcher.find()) {
            found.add(group(matcher, index));
        }
        return found;
    }
}
