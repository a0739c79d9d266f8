package rackwise.workload;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;

/**
 * Logs changes of an instance's tasks.
 *
 * <p>Streams' listeners get states, not tasks; so the tasks are read every {@code EVERY_MS}, and a change is logged
 * at most that much late.
 */
final class TaskWatch extends Thread {
    private static final long EVERY_MS = 200;

    private final Collection<StreamsInstance> instances;
    private final EventLog events;
    private final Map<StreamsInstance, ObjectNode> last = new HashMap<>();
    private volatile boolean watching = true;

    TaskWatch(final Collection<StreamsInstance> instances, final EventLog events) {
        super("task-watch");
        setDaemon(true);
        this.instances = instances;
        this.events = events;
    }

    @Override
    public void run() {
        while (watching) {
            for (final StreamsInstance instance : instances) {
                note(instance);
            }
            last.keySet().retainAll(instances);
            try {
                Thread.sleep(EVERY_MS);
            } catch (final InterruptedException interrupted) {
                return;
            }
        }
    }

    void close() {
        watching = false;
        interrupt();
    }

    private void note(final StreamsInstance instance) {
        final ObjectNode now = instance.tasks();
        if (!now.equals(last.put(instance, now))) {
            events.add(instance.id(), instance.application(), "tasks", now);
        }
    }
}
