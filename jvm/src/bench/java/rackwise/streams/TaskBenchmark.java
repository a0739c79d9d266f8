package rackwise.streams;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.TopologyMetadata.Subtopology;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * A process joins an application that {@code rackwise} has placed: three racks, two replicas, tasks with state,
 * subtopologies of 100 tasks. Beside it Kafka's default, without racks and with {@code balance_subtopology}, which takes
 * minutes from 300 tasks on: larger applications are for {@code -p assignor=rackwise,none}.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 3)
@Measurement(iterations = 5, time = 3)
public class TaskBenchmark {

    private static final String[] RACKS = {"a", "b", "c"};

    @Param({"rackwise", "none", "balance_subtopology"})
    private String assignor;

    @Param({"120"})
    private int tasks;

    @Param({"12"})
    private int processes;

    private ApplicationCase application;
    private ApplicationState state;
    private RackwiseTaskAssignor ours;
    private AssignmentConfigs configs;
    private RackAwareTaskAssignor racks;
    private Set<TaskId> ids;
    private final Map<ProcessId, Map<TaskId, Long>> lags = new HashMap<>();

    /** Makes the application, places its tasks and lets one process join. */
    @Setup
    public void makeApplication() {
        ours = new RackwiseTaskAssignor();
        Map<String, ApplicationCase.Task> all = new LinkedHashMap<>();
        for (int number = 0; number < tasks; number++) {
            Set<String> rack = Set.of(RACKS[number % 3], RACKS[(number + 1 + number / 3 % 2) % 3]);
            all.put(number / 100 + "_" + number % 100, new ApplicationCase.Task(true, List.of(rack), List.of(rack)));
        }
        Map<String, ApplicationCase.Process> running = new LinkedHashMap<>();
        for (int number = 0; number < processes - 1; number++) {
            running.put(TinyApplications.id(number), process(number, Set.of()));
        }
        ApplicationCase before = new ApplicationCase(all, running, settings());
        Map<String, Set<String>> given =
            ApplicationCase.given(ours.assign(before.state()), AssignedTask.Type.ACTIVE);
        for (int number = 0; number < processes - 1; number++) {
            running.put(TinyApplications.id(number), process(number, given.get(TinyApplications.id(number))));
        }
        running.put(TinyApplications.id(processes), process(processes, Set.of()));
        application = new ApplicationCase(all, running, settings());
        state = application.state();
        makeKafkas();
    }

    private static ApplicationCase.Process process(int number, Set<String> active) {
        Map<String, Long> running = new HashMap<>();
        active.forEach(task -> running.put(task, -2L));
        return new ApplicationCase.Process(RACKS[number % 3], 1, Map.of(), active, Set.of(), running);
    }

    private static Map<String, JsonNode> settings() {
        JsonNodeFactory json = JsonNodeFactory.instance;
        return Map.of("traffic_cost", json.numberNode(10), "move_cost", json.numberNode(1),
            "standbys", json.numberNode(0), "warmups", json.numberNode(2),
            "acceptable_lag", json.numberNode(10_000), "end", json.numberNode(TinyApplications.END),
            "tags", json.arrayNode());
    }

    private void makeKafkas() {
        configs = new AssignmentConfigs(10_000L, 2, 0, 60_000L, List.of(), OptionalInt.of(10), OptionalInt.of(1),
            assignor.equals("rackwise") ? "none" : assignor);
        ids = new HashSet<>(state.allTasks().keySet());
        Map<String, Node> nodes = new HashMap<>();
        for (String rack : RACKS) {
            nodes.put(rack, new Node(nodes.size(), "broker", 9092, rack));
        }
        List<PartitionInfo> partitions = new ArrayList<>();
        Map<TaskId, Set<TopicPartition>> sources = new HashMap<>();
        Map<Subtopology, Set<TaskId>> groups = new HashMap<>();
        application.tasks().forEach((name, task) -> {
            TaskId id = TaskId.parse(name);
            Node[] replicas = task.sources().get(0).stream().map(nodes::get).toArray(Node[]::new);
            partitions.add(
                new PartitionInfo("in-" + id.subtopology(), id.partition(), replicas[0], replicas, replicas));
            sources.put(id, Set.of(new TopicPartition("in-" + id.subtopology(), id.partition())));
            groups.computeIfAbsent(new Subtopology(id.subtopology(), null), each -> new TreeSet<>()).add(id);
        });
        Map<ProcessId, Map<String, Optional<String>>> consumers = new HashMap<>();
        state.kafkaStreamsStates(true).forEach((id, process) -> {
            consumers.put(id, Map.of("consumer", process.rackId()));
            lags.put(id, process.statefulTasksToLagSums());
        });
        Cluster cluster = new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
        racks = new RackAwareTaskAssignor(
            cluster, sources, sources, groups, consumers, null, configs, Time.SYSTEM);
    }

    /** One call, as a rebalance after the join makes it. */
    @Benchmark
    public Object assign() {
        if (assignor.equals("rackwise")) {
            return ours.assign(state);
        }
        Map<ProcessId, ClientState> clients = new HashMap<>();
        state.kafkaStreamsStates(true).forEach((id, process) -> clients.put(id, new ClientState(
            process.previousActiveTasks(), Set.of(), lags.get(id), Map.of(), process.numProcessingThreads(), id)));
        new HighAvailabilityTaskAssignor().assign(clients, ids, ids, racks, configs);
        return clients;
    }
}
