package rackwise.workload;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.streams.LagInfo;
import org.apache.kafka.streams.TaskMetadata;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.processor.TaskId;

/**
 * The lags that the application reports, version 1.
 *
 * <pre>
 * {"v": 1, "application": ID, "observed_ms": EPOCH_MS, "instances": [
 *   {"id": NAME, "process_id": UUID|null, "client_id": STRING|null, "rack": STRING|null, "state": "RUNNING"|…,
 *    "error": STRING|null, "tasks": [
 *      {"task": "0_1", "role": "active"|"standby", "lag": N|null, "stores": {
 *         "customers": {"partition": 1, "current": N|null, "end": N|null}, …}}, …]}, …]}
 * </pre>
 *
 * <p>A task's lag is the sum over its stores that have a changelog. It is null where it is unknown: no
 * store of the task has a changelog, or the brokers did not answer (then {@code error} is set). A task without any
 * store has an empty {@code stores} and a null lag as well, which is not the same as caught up.
 * A store without a changelog has null offsets. A warm-up has the {@code role} standby, because a classic Streams client
 * does not know the difference.
 */
final class Lags {
    static final int VERSION = 1;
    private static final long ANSWER_WITHIN_MS = 4_000;

    /** Reading lags blocks while brokers are down; these threads keep other requests from waiting. */
    private static final ExecutorService LAG_READERS = Executors.newCachedThreadPool(work -> {
        final Thread thread = new Thread(work, "lags");
        thread.setDaemon(true);
        return thread;
    });

    private Lags() {
    }

    static ObjectNode of(final String application, final Collection<StreamsInstance> instances) {
        final ObjectNode answer = Json.object().put("v", VERSION).put("application", application);
        final ArrayNode list = answer.putArray("instances");
        for (final StreamsInstance instance : instances) {
            if (instance.application().equals(application)) {
                list.add(describe(instance));
            }
        }
        return answer.put("observed_ms", System.currentTimeMillis());
    }

    private static ObjectNode describe(final StreamsInstance instance) {
        final ObjectNode node = Json.object().put("id", instance.id()).put("process_id", instance.processId())
            .put("client_id", instance.clientId()).put("rack", instance.rack()).put("state", instance.state())
            .putNull("error");
        Map<String, Map<Integer, LagInfo>> lags = Map.of();
        final Future<Map<String, Map<Integer, LagInfo>>> pending = LAG_READERS.submit(instance::storeLags);
        try {
            lags = pending.get(ANSWER_WITHIN_MS, TimeUnit.MILLISECONDS);
        } catch (final TimeoutException late) {
            pending.cancel(true);
            node.put("error", "the end offsets did not come within " + ANSWER_WITHIN_MS + " ms");
        } catch (final ExecutionException failed) {
            node.put("error", failed.getCause().toString());
        } catch (final InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            node.put("error", "interrupted");
        }
        final ArrayNode tasks = node.putArray("tasks");
        for (final ThreadMetadata thread : instance.threads()) {
            addTasks(tasks, "active", thread.activeTasks(), instance, lags);
            addTasks(tasks, "standby", thread.standbyTasks(), instance, lags);
        }
        return node;
    }

    private static void addTasks(final ArrayNode tasks, final String role, final Set<TaskMetadata> held,
                                 final StreamsInstance instance, final Map<String, Map<Integer, LagInfo>> lags) {
        held.stream().map(TaskMetadata::taskId).sorted().forEach(id -> tasks.add(task(id, role, instance, lags)));
    }

    private static ObjectNode task(final TaskId id, final String role, final StreamsInstance instance,
                                   final Map<String, Map<Integer, LagInfo>> lags) {
        final ObjectNode node = Json.object().put("task", id.toString()).put("role", role).putNull("lag");
        final ObjectNode stores = node.putObject("stores");
        Long total = null;
        for (final String store : instance.storesBySubtopology().getOrDefault(id.subtopology(), Set.of())) {
            final LagInfo lag = lags.getOrDefault(store, Map.of()).get(id.partition());
            final ObjectNode offsets = stores.putObject(store).put("partition", id.partition());
            if (lag == null) {
                offsets.putNull("current").putNull("end");
            } else {
                offsets.put("current", lag.currentOffsetPosition()).put("end", lag.endOffsetPosition());
                total = (total == null ? 0 : total) + lag.offsetLag();
            }
        }
        if (total != null) {
            node.put("lag", total.longValue());
        }
        return node;
    }
}
