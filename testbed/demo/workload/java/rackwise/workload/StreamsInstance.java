package rackwise.workload;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.LagInfo;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TaskMetadata;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.TaskId;

/** One KafkaStreams object: one process id, one state directory. */
final class StreamsInstance {
    /** Written by Streams next to the task directories as soon as the topology has a persistent store. */
    private static final String PROCESS_FILE = "kafka-streams-process-metadata";
    private static final Duration CLOSE_WITHIN = Duration.ofSeconds(5);

    private final InstanceSpec spec;
    private final Path stateDirectory;
    private final Map<Integer, Set<String>> storesBySubtopology;
    private final KafkaStreams streams;

    StreamsInstance(final InstanceSpec spec, final String bootstrapServers, final Path directory, final EventLog events) {
        this.spec = spec;
        this.stateDirectory = directory.resolve(spec.id());
        final Properties settings = settings(bootstrapServers);
        final Topology topology = ShopTopology.build(spec.topology(), settings);
        this.storesBySubtopology = ShopTopology.storesBySubtopology(topology);
        this.streams = new KafkaStreams(topology, settings);
        streams.setStateListener((now, before) -> events.add(spec.id(), spec.application(), "state",
            Json.object().put("from", before.name()).put("to", now.name())));
    }

    void start() {
        streams.start();
    }

    String id() {
        return spec.id();
    }

    String application() {
        return spec.application();
    }

    String rack() {
        return spec.rack();
    }

    String state() {
        return streams.state().name();
    }

    Map<Integer, Set<String>> storesBySubtopology() {
        return storesBySubtopology;
    }

    Set<ThreadMetadata> threads() {
        return streams.metadataForLocalThreads();
    }

    /** Store → partition → lag; requests the end offsets of all changelogs from the brokers. */
    Map<String, Map<Integer, LagInfo>> storeLags() {
        return streams.allLocalStorePartitionLags();
    }

    /** The process id of SubscriptionInfo and of KIP-1071 heartbeats; null until Streams has written it. */
    String processId() {
        final Path file = stateDirectory.resolve(spec.application()).resolve(PROCESS_FILE);
        if (!Files.exists(file)) {
            return null;
        }
        try {
            return Json.MAPPER.readTree(file.toFile()).path("processId").asText(null);
        } catch (final IOException unreadable) {
            return null;
        }
    }

    /** {@code client.id} of its threads; null before the first thread exists. */
    String clientId() {
        final String suffix = "-admin";
        return threads().stream().map(ThreadMetadata::adminClientId).filter(name -> name.endsWith(suffix))
            .map(name -> name.substring(0, name.length() - suffix.length())).findFirst().orElse(null);
    }

    /** Active and standby tasks, sorted. */
    ObjectNode tasks() {
        final Set<TaskId> active = new TreeSet<>();
        final Set<TaskId> standby = new TreeSet<>();
        for (final ThreadMetadata thread : threads()) {
            thread.activeTasks().stream().map(TaskMetadata::taskId).forEach(active::add);
            thread.standbyTasks().stream().map(TaskMetadata::taskId).forEach(standby::add);
        }
        final ObjectNode tasks = Json.object();
        final var actives = tasks.putArray("active");
        active.forEach(task -> actives.add(task.toString()));
        final var standbys = tasks.putArray("standby");
        standby.forEach(task -> standbys.add(task.toString()));
        return tasks;
    }

    /** With {@code leave} the others take over at once where the client supports it; else after the session timeout. */
    void close(final boolean leave) {
        streams.close(new KafkaStreams.CloseOptions().leaveGroup(leave).timeout(CLOSE_WITHIN));
        FileTree.deleteTree(stateDirectory);
    }

    private Properties settings(final String bootstrapServers) {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, spec.application());
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, stateDirectory.toString());
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, Integer.toString(spec.threads()));
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "1000");
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, SmallRocks.class.getName());
        // A dynamic member of an older client does not leave when closed: the session timeout is short instead.
        settings.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, "10000");
        settings.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, "500");
        settings.put(ConsumerConfig.FETCH_MIN_BYTES_CONFIG, "4096");
        settings.put(StreamsConfig.producerPrefix("linger.ms"), "500");
        if (spec.rack() != null) {
            settings.put(ConsumerConfig.CLIENT_RACK_CONFIG, spec.rack());
        }
        spec.tags().forEach((key, value) -> settings.put(StreamsConfig.clientTagPrefix(key), value));
        settings.putAll(spec.settings());
        return settings;
    }
}
