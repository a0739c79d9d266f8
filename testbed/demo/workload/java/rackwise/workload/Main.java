package rackwise.workload;

import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * One JVM that hosts any number of Kafka Streams instances and Java consumers, controlled over HTTP.
 *
 * <p>Prints its port as one JSON line on standard output, and runs as long as its standard input is open: when the
 * parent ends, in any way, the operating system closes the pipe and this process ends.
 *
 * <pre>
 * --bootstrap-servers HOST:PORT,…   the cluster
 * --dir PATH                        state directory; removed at the end, once this process has listened
 * </pre>
 */
public final class Main {
    /** Closing waits for brokers that may have ended; after this time the process ends anyway. */
    private static final long CLOSE_WITHIN_MS = 6_000;

    private static final AtomicBoolean ENDING = new AtomicBoolean();
    /** A start that failed leaves its log to the process that started it. */
    private static volatile boolean listening;

    private Main() {
    }

    public static void main(final String[] arguments) throws IOException {
        final Map<String, String> options = options(arguments);
        final Path directory = Path.of(required(options, "--dir"));
        final Host host = new Host(required(options, "--bootstrap-servers"), directory.resolve("state"));

        Runtime.getRuntime().addShutdownHook(new Thread(() -> end(host, directory)));
        final ControlServer control = new ControlServer(host);
        System.out.println(Json.object().put("port", control.port()).put("pid", ProcessHandle.current().pid())
            .put("client_version", host.clientVersion()));
        System.out.flush();
        listening = true;
        // Standard output is not read after this line: prints of libraries must not fill the pipe.
        System.setOut(System.err);

        waitForParent();
        System.exit(0);
    }

    private static void waitForParent() throws IOException {
        final byte[] ignored = new byte[64];
        while (System.in.read(ignored) >= 0) {
            continue;
        }
    }

    private static void end(final Host host, final Path directory) {
        if (!ENDING.compareAndSet(false, true)) {
            return;
        }
        final Thread closing = new Thread(host::close, "closing");
        closing.setDaemon(true);
        closing.start();
        try {
            closing.join(CLOSE_WITHIN_MS);
        } catch (final InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        if (listening) {
            FileTree.deleteTree(directory);
        }
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, String> options(final String[] arguments) {
        final Map<String, String> options = new HashMap<>();
        for (int at = 0; at + 1 < arguments.length; at += 2) {
            options.put(arguments[at], arguments[at + 1]);
        }
        return options;
    }

    private static String required(final Map<String, String> options, final String name) {
        final String value = options.get(name);
        if (value == null) {
            System.err.println("The option " + name + " is missing; give it with a value.");
            System.exit(2);
        }
        return value;
    }
}
