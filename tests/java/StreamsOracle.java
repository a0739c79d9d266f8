import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.InternalTopicManager;
import org.apache.kafka.streams.processor.internals.TopologyMetadata.Subtopology;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.LegacyStickyTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.LegacyTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;

/**
 * Kafka's task assignors as the oracle. Each line on stdin is a case as in tests/golden (assignor and input), each line on
 * stdout its output with the CPU seconds of the assignment ("cpu_s"), or {"error": …} where Kafka throws or takes longer
 * than "limit_s" seconds. With "rounds" the assignment is made that often and the quickest counts.
 */
public class StreamsOracle {

    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(JSON.writeValueAsString(withinLimit(JSON.readTree(line))));
        }
        System.exit(0);  // daemon threads may still run
    }

    private static Object withinLimit(JsonNode question) throws InterruptedException {
        Object[] answer = {Map.of("error", "no answer in time")};
        Thread worker = new Thread(() -> answer[0] = answer(question));
        worker.setDaemon(true);
        worker.start();
        worker.join(1000L * question.path("limit_s").asInt(60));
        return answer[0];
    }

    private static Object answer(JsonNode question) {
        try {
            Map<String, Object> best = null;
            for (int round = 0; round < question.path("rounds").asInt(1); round++) {
                Map<String, Object> output = output(question.get("assignor").asText(), question.get("input"));
                if (best == null || (double) output.get("cpu_s") < (double) best.get("cpu_s")) {
                    best = output;
                }
            }
            return best;
        } catch (Throwable thrown) {
            return Map.of("error", String.valueOf(thrown));
        }
    }

    private static Map<String, Object> output(String name, JsonNode input) {
        AssignmentConfigs configs = configs(input.get("configs"));
        Collection<TaskId> all = fill(new ArrayList<>(), input.get("tasks").get("all"));
        RackAwareTaskAssignor racks = racks(input.path("rack"), configs, all);
        String iteration = name.equals("streams.rack_optimize") ? "sorted" : input.path("iteration").asText("listed");
        Map<ProcessId, ClientState> clients = map(iteration);
        for (JsonNode client : input.get("clients")) {
            clients.put(process(client.get("id").asText()), state(client));
        }
        Set<TaskId> tasks = set(iteration);
        tasks.addAll(all);
        Set<TaskId> stateful = set(iteration);
        fill(stateful, input.get("tasks").get("stateful"));
        Map<String, Object> output = new LinkedHashMap<>();
        long began = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        if (name.equals("streams.rack_optimize")) {
            optimize(input, racks, (TreeMap<ProcessId, ClientState>) clients, output);
        } else {
            LegacyTaskAssignor assignor = switch (name) {
                case "streams.ha" -> new HighAvailabilityTaskAssignor();
                case "streams.sticky_legacy" -> new LegacyStickyTaskAssignor();
                default -> throw new IllegalArgumentException("no such assignor: " + name);
            };
            output.put("followup_rebalance", assignor.assign(clients, tasks, stateful, racks, configs));
        }
        output.put("cpu_s", (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - began) / 1e9);
        output.put("can_enable_rack_aware", racks.canEnableRackAwareAssignor());
        output.put("valid_client_rack", racks.validClientRack());
        Map<String, Object> placed = new LinkedHashMap<>();
        clients.forEach((id, state) -> placed.put(id.id().toString(), Map.of(
            "active", named(state.activeTasks()), "standby", named(state.standbyTasks()))));
        output.put("clients", placed);
        return output;
    }

    private static void optimize(JsonNode input, RackAwareTaskAssignor racks, TreeMap<ProcessId, ClientState> clients,
                                 Map<String, Object> output) {
        if (!racks.canEnableRackAwareAssignor()) {
            return;
        }
        int traffic = input.get("traffic_cost").asInt();
        int nonOverlap = input.get("non_overlap_cost").asInt();
        if (input.get("mode").asText().equals("active")) {
            TreeSet<TaskId> tasks = fill(new TreeSet<>(), input.get("optimize_tasks"));
            output.put("returned_cost", racks.optimizeActiveTasks(tasks, clients, traffic, nonOverlap));
        } else {
            output.put("returned_cost", racks.optimizeStandbyTasks(clients, traffic, nonOverlap, (a, b, c, d) -> true));
        }
    }

    private static AssignmentConfigs configs(JsonNode configs) {
        List<String> tags = new ArrayList<>();
        configs.get("rack_aware_assignment_tags").forEach(tag -> tags.add(tag.asText()));
        return new AssignmentConfigs(
            configs.get("acceptable_recovery_lag").asLong(),
            configs.get("max_warmup_replicas").asInt(),
            configs.get("num_standby_replicas").asInt(),
            configs.get("probing_rebalance_interval_ms").asLong(),
            tags,
            cost(configs.get("rack_aware_assignment_traffic_cost")),
            cost(configs.get("rack_aware_assignment_non_overlap_cost")),
            configs.get("rack_aware_assignment_strategy").asText());
    }

    private static OptionalInt cost(JsonNode cost) {
        return cost.isNull() ? OptionalInt.empty() : OptionalInt.of(cost.asInt());
    }

    private static ClientState state(JsonNode client) {
        Map<TaskId, Long> lags = new TreeMap<>();
        client.path("lags").properties().forEach(lag -> lags.put(TaskId.parse(lag.getKey()), lag.getValue().asLong()));
        Map<String, String> tags = new TreeMap<>();
        client.path("tags").properties().forEach(tag -> tags.put(tag.getKey(), tag.getValue().asText()));
        ClientState state = new ClientState(
            fill(new TreeSet<>(), client.path("prev_active")), fill(new TreeSet<>(), client.path("prev_standby")), lags,
            tags, client.get("capacity").asInt(), process(client.get("id").asText()));
        fill(new ArrayList<>(), client.path("assigned_active")).forEach(state::assignActive);
        fill(new ArrayList<>(), client.path("assigned_standby")).forEach(state::assignStandby);
        return state;
    }

    private static RackAwareTaskAssignor racks(JsonNode rack, AssignmentConfigs configs, Collection<TaskId> tasks) {
        Map<Subtopology, Set<TaskId>> subtopologies = new HashMap<>();
        for (TaskId task : tasks) {
            subtopologies.computeIfAbsent(new Subtopology(task.subtopology(), null), id -> new HashSet<>()).add(task);
        }
        Map<ProcessId, Map<String, Optional<String>>> consumers = rack.path("consumer_racks").isObject() ? new HashMap<>() : null;
        rack.path("consumer_racks").properties().forEach(ofProcess -> {
            Map<String, Optional<String>> byConsumer = new HashMap<>();
            ofProcess.getValue().properties().forEach(consumer -> byConsumer.put(
                consumer.getKey(), Optional.ofNullable(text(consumer.getValue()))));
            consumers.put(process(ofProcess.getKey()), byConsumer);
        });
        List<PartitionInfo> partitions = new ArrayList<>();
        rack.path("cluster").properties().forEach(topic -> {
            for (int number = 0; number < topic.getValue().size(); number++) {
                Node[] replicas = replicas(topic.getValue().get(number)).toArray(Node[]::new);
                partitions.add(new PartitionInfo(topic.getKey(), number, Node.noNode(), replicas, replicas));
            }
        });
        return new RackAwareTaskAssignor(
            new Cluster("cluster", List.of(), partitions, Set.of(), Set.of()), partitions(rack.path("task_partitions")),
            partitions(rack.path("changelog_partitions")), subtopologies, consumers, new Described(rack.path("described")),
            configs, Time.SYSTEM);
    }

    /** The answer of a describe-topics call; a topic that is not listed could not be described. */
    private static final class Described extends InternalTopicManager {
        private final JsonNode topics;

        Described(JsonNode topics) {
            super(Time.SYSTEM, null, new StreamsConfig(Map.of("application.id", "judge", "bootstrap.servers", "127.0.0.1:1")));
            this.topics = topics;
        }

        @Override
        public Map<String, List<TopicPartitionInfo>> getTopicPartitionInfo(Set<String> names) {
            Map<String, List<TopicPartitionInfo>> described = new HashMap<>();
            for (String topic : names) {
                if (topics.has(topic)) {
                    List<TopicPartitionInfo> partitions = new ArrayList<>();
                    for (int number = 0; number < topics.get(topic).size(); number++) {
                        List<Node> replicas = replicas(topics.get(topic).get(number));
                        partitions.add(new TopicPartitionInfo(number, Node.noNode(), replicas, replicas));
                    }
                    described.put(topic, partitions);
                }
            }
            return described;
        }
    }

    private static List<Node> replicas(JsonNode racks) {
        List<Node> replicas = new ArrayList<>();
        for (JsonNode rack : racks) {
            replicas.add(new Node(replicas.size(), "broker", 9092, text(rack)));
        }
        return replicas;
    }

    private static Map<TaskId, Set<TopicPartition>> partitions(JsonNode tasks) {
        Map<TaskId, Set<TopicPartition>> partitions = new HashMap<>();
        tasks.properties().forEach(task -> {
            Set<TopicPartition> ofTask = new HashSet<>();
            for (JsonNode name : task.getValue()) {
                int dash = name.asText().lastIndexOf('-');
                ofTask.add(new TopicPartition(
                    name.asText().substring(0, dash), Integer.parseInt(name.asText().substring(dash + 1))));
            }
            partitions.put(TaskId.parse(task.getKey()), ofTask);
        });
        return partitions;
    }

    private static <T> Map<ProcessId, T> map(String iteration) {
        return switch (iteration) {
            case "sorted" -> new TreeMap<>();
            case "java_hash" -> new HashMap<>();
            default -> new LinkedHashMap<>();
        };
    }

    private static Set<TaskId> set(String iteration) {
        return switch (iteration) {
            case "sorted" -> new TreeSet<>();
            case "java_hash" -> new HashSet<>();
            default -> new LinkedHashSet<>();
        };
    }

    private static <C extends Collection<TaskId>> C fill(C tasks, JsonNode names) {
        names.forEach(name -> tasks.add(TaskId.parse(name.asText())));
        return tasks;
    }

    private static List<String> named(Collection<TaskId> tasks) {
        return new TreeSet<>(tasks).stream().map(TaskId::toString).toList();
    }

    private static ProcessId process(String id) {
        return new ProcessId(UUID.fromString(id));
    }

    private static String text(JsonNode value) {
        return value.isNull() ? null : value.asText();
    }
}
