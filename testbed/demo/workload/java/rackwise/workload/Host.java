package rackwise.workload;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.utils.AppInfoParser;

/** The instances and consumers that run in this JVM, by id; closing stops all of them in parallel. */
final class Host implements AutoCloseable {
    /** Code of resource type GROUP in requests; the enum constant exists from Kafka 3.7 on. */
    private static final byte GROUP_RESOURCE = 32;
    private static final long ADMIN_WITHIN_S = 15;

    private final String bootstrapServers;
    private final Path directory;
    private final EventLog events = new EventLog();
    private final Map<String, StreamsInstance> instances = new ConcurrentSkipListMap<>();
    private final Map<String, JavaConsumer> consumers = new ConcurrentSkipListMap<>();
    private final TaskWatch watch = new TaskWatch(instances.values(), events);
    private Admin admin;

    Host(final String bootstrapServers, final Path directory) {
        this.bootstrapServers = bootstrapServers;
        this.directory = directory;
        watch.start();
    }

    String clientVersion() {
        return AppInfoParser.getVersion();
    }

    EventLog events() {
        return events;
    }

    Collection<StreamsInstance> instances() {
        return instances.values();
    }

    Collection<JavaConsumer> consumers() {
        return consumers.values();
    }

    synchronized StreamsInstance startInstance(final InstanceSpec spec) {
        if (instances.containsKey(spec.id())) {
            throw new IllegalArgumentException("an instance with the id " + spec.id() + " is already running");
        }
        final StreamsInstance instance = new StreamsInstance(spec, bootstrapServers, directory, events);
        instance.start();
        instances.put(spec.id(), instance);
        return instance;
    }

    synchronized JavaConsumer startConsumer(final ConsumerSpec spec) {
        if (consumers.containsKey(spec.id())) {
            throw new IllegalArgumentException("a consumer with the id " + spec.id() + " is already running");
        }
        final JavaConsumer consumer = new JavaConsumer(spec, bootstrapServers, events);
        consumer.start();
        consumers.put(spec.id(), consumer);
        return consumer;
    }

    /** False when there is none with this id. */
    boolean stopInstance(final String id, final boolean leave) {
        final StreamsInstance instance = instances.remove(id);
        if (instance != null) {
            instance.close(leave);
        }
        return instance != null;
    }

    /** False when there is none with this id. */
    boolean stopConsumer(final String id) {
        final JavaConsumer consumer = consumers.remove(id);
        if (consumer != null) {
            consumer.close();
        }
        return consumer != null;
    }

    /** Cluster id, brokers with racks, and the finalized features, among them those of the group protocols. */
    ObjectNode cluster() throws InterruptedException, ExecutionException, TimeoutException {
        final DescribeClusterResult described = admin().describeCluster();
        final ObjectNode answer = Json.object().put("cluster_id", described.clusterId().get(ADMIN_WITHIN_S, TimeUnit.SECONDS));
        final ArrayNode brokers = answer.putArray("brokers");
        for (final Node node : described.nodes().get(ADMIN_WITHIN_S, TimeUnit.SECONDS)) {
            brokers.addObject().put("id", node.id()).put("rack", node.rack());
        }
        final ObjectNode features = answer.putObject("features");
        admin().describeFeatures().featureMetadata().get(ADMIN_WITHIN_S, TimeUnit.SECONDS).finalizedFeatures()
            .forEach((name, range) -> features.put(name, (int) range.maxVersionLevel()));
        return answer;
    }

    /** Sets configs of a group, such as {@code streams.num.standby.replicas}; brokers before 4.0 reject it. */
    void setGroupConfigs(final String group, final Map<String, String> configs)
        throws InterruptedException, ExecutionException, TimeoutException {
        final ConfigResource resource = new ConfigResource(ConfigResource.Type.forId(GROUP_RESOURCE), group);
        final List<AlterConfigOp> operations = configs.entrySet().stream()
            .map(entry -> new AlterConfigOp(new ConfigEntry(entry.getKey(), entry.getValue()), AlterConfigOp.OpType.SET))
            .collect(Collectors.toList());
        admin().incrementalAlterConfigs(Map.of(resource, operations)).all().get(ADMIN_WITHIN_S, TimeUnit.SECONDS);
    }

    @Override
    public void close() {
        watch.close();
        final List<Runnable> closings = new ArrayList<>();
        instances.values().forEach(instance -> closings.add(() -> instance.close(true)));
        consumers.values().forEach(consumer -> closings.add(consumer::close));
        if (closings.isEmpty()) {
            return;
        }
        final ExecutorService closers = Executors.newFixedThreadPool(closings.size());
        Set.copyOf(closings).forEach(closers::execute);
        closers.shutdown();
        try {
            closers.awaitTermination(1, TimeUnit.MINUTES);
        } catch (final InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private synchronized Admin admin() {
        if (admin == null) {
            admin = Admin.create(Map.of(
                AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers,
                AdminClientConfig.CLIENT_ID_CONFIG, "workload-admin"));
        }
        return admin;
    }
}
