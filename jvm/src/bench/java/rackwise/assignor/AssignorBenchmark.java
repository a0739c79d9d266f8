package rackwise.assignor;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;

import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
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
 * A member joins a group that the assignor itself has balanced, on the broker's own classes: three racks, two replicas,
 * topics of 100 partitions. Equal subscriptions, or five that overlap.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Fork(1)
@Warmup(iterations = 5, time = 2)
@Measurement(iterations = 5, time = 2)
public class AssignorBenchmark {

    private static final String[] RACKS = {"a", "b", "c"};

    @Param({"rackwise", "uniform", "range"})
    private String assignor;

    @Param({"10000", "100000"})
    private int partitions;

    @Param({"1000"})
    private int members;

    @Param({"equal", "five"})
    private String subscriptions;

    private ConsumerGroupPartitionAssignor tested;
    private GroupSpec spec;
    private SubscribedTopicDescriber describer;

    /** Makes the group, balances it with the assignor and lets one member join. */
    @Setup
    public void makeGroup() {
        tested = switch (assignor) {
            case "uniform" -> new UniformAssignor();
            case "range" -> new RangeAssignor();
            default -> new RackwiseAssignor();
        };
        Map<String, List<List<String>>> topics = new LinkedHashMap<>();
        for (int topic = 0; topic < partitions / 100; topic++) {
            List<List<String>> rows = new ArrayList<>();
            for (int number = 0; number < 100; number++) {
                int rack = (topic * 7 + number) % 3;
                rows.add(List.of(RACKS[rack], RACKS[(rack + 1 + (topic + number) / 3 % 2) % 3]));
            }
            topics.put("topic-" + topic, rows);
        }
        Map<String, GroupCase.Member> group = new LinkedHashMap<>();
        for (int number = 0; number < members - 1; number++) {
            group.put("member-" + number + "-0f3e5c1a-8f7a-4c55-9c0f", member(topics, number));
        }
        GroupCase before = new GroupCase(topics, group);
        GroupAssignment balanced = tested.assign(before.spec(), before.describer());
        Map<String, GroupCase.Member> joined = new HashMap<>(before.after(balanced).members());
        joined.put("member-" + members + "-0f3e5c1a-8f7a-4c55-9c0f", member(topics, members));
        GroupCase after = new GroupCase(topics, joined);
        spec = after.spec();
        describer = after.describer();
    }

    private GroupCase.Member member(Map<String, ?> topics, int number) {
        TreeSet<String> subscribed = new TreeSet<>();
        int place = 0;
        for (String topic : topics.keySet()) {
            // Members of each fifth leaves out one fifth of the topics.
            if (subscriptions.equals("equal") || place++ % 5 != number % 5) {
                subscribed.add(topic);
            }
        }
        return new GroupCase.Member(RACKS[number % 3], subscribed, Map.of());
    }

    /** One call, as a heartbeat after the join makes it. */
    @Benchmark
    public GroupAssignment assign() {
        return tested.assign(spec, describer);
    }
}
