package headrace;

import java.io.IOException;
import java.lang.reflect.Field;
import java.net.ProtocolFamily;
import java.nio.channels.Channel;
import java.nio.channels.DatagramChannel;
import java.nio.channels.Pipe;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.AbstractSelector;
import java.nio.channels.spi.SelectorProvider;
import java.util.ArrayList;
import java.util.Iterator;

/**
 * Java's own selectors, but for those that Spark forgets. For each start of a query with state it
 * starts a Python process, and waits for that with a selector that it never closes: three open files
 * which nobody can close any more, because nobody knows the selector. A thread that looks after idle
 * Python processes, of which there are none, is left as well.
 *
 * <p>Java makes it for us: `-Djava.nio.channels.spi.SelectorProvider`.
 */
public class SweptSelectors extends SelectorProvider {
    private static final String FORGETFUL = "org.apache.spark.api.python.PythonWorkerFactory";
    private static final String FORGETFUL_METHOD = "createSimpleWorker";
    private static final String IDLE_THREAD = "Idle Worker Monitor";
    private static final int LOOK_UP = 8;

    private final SelectorProvider javas;
    private final ArrayList forgotten = new ArrayList();

    public SweptSelectors() throws Exception {
        Class known = Class.forName("sun.nio.ch.DefaultSelectorProvider");
        javas = (SelectorProvider) known.getMethod("get", new Class[0]).invoke(null, new Object[0]);
    }

    public AbstractSelector openSelector() throws IOException {
        sweep();
        AbstractSelector selector = javas.openSelector();
        if (isForgetful()) {
            synchronized (forgotten) {
                forgotten.add(selector);
            }
        }
        return selector;
    }

    private static boolean isForgetful() {
        StackTraceElement[] callers = new Throwable().getStackTrace();
        for (int i = 0; i < callers.length && i < LOOK_UP; i++) {
            if (callers[i].getClassName().equals(FORGETFUL)
                    && callers[i].getMethodName().equals(FORGETFUL_METHOD)) {
                return true;
            }
        }
        return false;
    }

    /** Closes the selectors that were forgotten: those whose channels are closed. */
    private void sweep() throws IOException {
        boolean found = false;
        synchronized (forgotten) {
            for (Iterator each = forgotten.iterator(); each.hasNext(); ) {
                AbstractSelector selector = (AbstractSelector) each.next();
                if (isLeft(selector)) {
                    selector.close();
                    each.remove();
                    found = true;
                }
            }
        }
        if (found) {
            endIdleThreads();
        }
    }

    private static boolean isLeft(AbstractSelector selector) {
        if (!selector.isOpen()) {
            return true;
        }
        Iterator keys = selector.keys().iterator();
        boolean used = keys.hasNext();
        while (keys.hasNext()) {
            if (((SelectionKey) keys.next()).channel().isOpen()) {
                return false;
            }
        }
        return used;
    }

    private static void endIdleThreads() {
        Thread[] threads = new Thread[2 * Thread.activeCount() + 100];
        ThreadGroup group = Thread.currentThread().getThreadGroup();
        while (group.getParent() != null) {
            group = group.getParent();
        }
        int count = group.enumerate(threads);
        for (int i = 0; i < count; i++) {
            if (threads[i].getName().startsWith(IDLE_THREAD) && hasNoPool(threads[i])) {
                threads[i].setUncaughtExceptionHandler(new Silence());
                threads[i].interrupt();
            }
        }
    }

    /** Whether the processes that a thread looks after are started one by one, and never idle. */
    private static boolean hasNoPool(Thread thread) {
        try {
            Field outer = thread.getClass().getDeclaredField("$outer");
            outer.setAccessible(true);
            Object factory = outer.get(thread);
            Object pooled =
                    factory.getClass()
                            .getMethod("useDaemonEnabled", new Class[0])
                            .invoke(factory, new Object[0]);
            return Boolean.FALSE.equals(pooled);
        } catch (Exception e) {
            return false; // Spark is built differently: its thread stays
        }
    }

    private static class Silence implements Thread.UncaughtExceptionHandler {
        public void uncaughtException(Thread thread, Throwable failure) {}
    }

    public DatagramChannel openDatagramChannel() throws IOException {
        return javas.openDatagramChannel();
    }

    public DatagramChannel openDatagramChannel(ProtocolFamily family) throws IOException {
        return javas.openDatagramChannel(family);
    }

    public Pipe openPipe() throws IOException {
        return javas.openPipe();
    }

    public ServerSocketChannel openServerSocketChannel() throws IOException {
        return javas.openServerSocketChannel();
    }

    public ServerSocketChannel openServerSocketChannel(ProtocolFamily family) throws IOException {
        return javas.openServerSocketChannel(family);
    }

    public SocketChannel openSocketChannel() throws IOException {
        return javas.openSocketChannel();
    }

    public SocketChannel openSocketChannel(ProtocolFamily family) throws IOException {
        return javas.openSocketChannel(family);
    }

    public Channel inheritedChannel() throws IOException {
        return javas.inheritedChannel();
    }
}
