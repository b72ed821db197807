package headrace;

/** A text that can be looked at only so often. */
final class BoundedText implements CharSequence {
    private static final long STEPS = 10000000L;
    private static final long STEPS_PER_LETTER = 100L;

    private final String text;
    private long left;

    BoundedText(String text) {
        this.text = text;
        this.left = STEPS + STEPS_PER_LETTER * text.length();
    }

    public char charAt(int index) {
        left--;
        if (left < 0) {
            throw new Exceeded();
        }
        return text.charAt(index);
    }

    public int length() {
        return text.length();
    }

    public CharSequence subSequence(int start, int end) {
        return text.substring(start, end);
    }

    public String toString() {
        return text;
    }

    static class Exceeded extends RuntimeException {
        Exceeded() {
            super(null, null, false, false);
        }
    }
}
