package headrace;

import java.io.Serializable;
import org.apache.spark.sql.api.java.UDF3;

/**
 * LIKE with a pattern that is known only when a record comes: text, pattern, escape (empty if there
 * is none). Where a part between two `%` is first found is as good as any place after it, so nothing
 * before that is ever tried again.
 */
public class Like implements UDF3, Serializable {
    public Object call(Object text, Object pattern, Object escape) {
        if (text == null || pattern == null) {
            return null;
        }
        String escaping = (String) escape;
        int mark = escaping.isEmpty() ? -1 : escaping.codePointAt(0);
        return Boolean.valueOf(matches((String) text, (String) pattern, mark));
    }

    private static boolean matches(String text, String pattern, int escape) {
        int at = 0, in = 0, afterAny = -1, retry = -1;
        while (at < text.length()) {
            int letter = text.codePointAt(at);
            int wanted = in < pattern.length() ? pattern.codePointAt(in) : -1;
            boolean plain = false;
            int width = wanted < 0 ? 0 : Character.charCount(wanted);
            if (wanted >= 0 && wanted == escape && in + width < pattern.length()) {
                in += width;
                wanted = pattern.codePointAt(in);
                width = Character.charCount(wanted);
                plain = true;
            }
            if (wanted == '%' && !plain) {
                in++;
                afterAny = in;
                retry = at;
            } else if (wanted >= 0 && (wanted == letter || (wanted == '_' && !plain))) {
                in += width;
                at += Character.charCount(letter);
            } else if (afterAny >= 0) {
                retry += Character.charCount(text.codePointAt(retry));
                at = retry;
                in = afterAny;
            } else {
                return false;
            }
        }
        while (in < pattern.length() && pattern.charAt(in) == '%' && escape != '%') {
            in++;
        }
        return in == pattern.length();
    }
}
