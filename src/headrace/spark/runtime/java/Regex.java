package headrace;

import java.io.Serializable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;

/**
 * A regular expression of a user: Java's, in bounds. Java goes back over a text as often as it
 * takes, which for some expressions is as good as for ever, and nothing interrupts it. So its steps
 * are counted: an expression and a text always give the same answer, on any machine. And what Java
 * has no stack for is no reason to fail either.
 *
 * <p>An answer is a row of a value and an error.
 */
abstract class Regex implements Serializable {
    private static final int KEPT_PATTERNS = 1000;
    private static final ConcurrentHashMap PATTERNS = new ConcurrentHashMap();

    /** What is to be done; null is an answer, too. */
    abstract Object apply(Pattern pattern, String text, Object more);

    Row answer(Object pattern, Object text, Object more) {
        if (pattern == null || text == null || more == null) {
            return RowFactory.create(new Object[] {null, null});
        }
        try {
            return value(apply(compiled((String) pattern), (String) text, more));
        } catch (PatternSyntaxException e) {
            return error("Invalid regular expression pattern: " + pattern);
        } catch (BoundedText.Exceeded e) {
            return error("Regular expression takes too many steps with this text: " + pattern);
        } catch (StackOverflowError e) {
            return error("Regular expression takes too much memory with this text: " + pattern);
        } catch (Regex.Refused e) {
            return error(e.getMessage());
        }
    }

    private static Row value(Object found) {
        return RowFactory.create(new Object[] {found, null});
    }

    private static Row error(String message) {
        return RowFactory.create(new Object[] {null, message});
    }

    private static Pattern compiled(String pattern) {
        Pattern known = (Pattern) PATTERNS.get(pattern);
        if (known == null) {
            known = Pattern.compile(pattern);
            if (PATTERNS.size() >= KEPT_PATTERNS) {
                PATTERNS.clear();
            }
            PATTERNS.put(pattern, known);
        }
        return known;
    }

    /** What a group matched; a group that took no part has matched nothing. */
    static String group(Matcher matcher, int index) {
        String found = matcher.group(index);
        return found == null ? "" : found;
    }

    /** Whether there is such a group. A number below all groups is a mistake. */
    static boolean hasGroup(Matcher matcher, int index) {
        if (index < 0) {
            throw new Regex.Refused("No group " + index);
        }
        return index <= matcher.groupCount();
    }

    static class Refused extends RuntimeException {
        Refused(String message) {
            super(message);
        }
    }
}
