import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's client-side assignors as the oracle. Each line on stdin is a case as in tests/golden (assignor and input), each
 * line on stdout its output, or {"error": …} where Kafka throws or takes longer than "limit_s" seconds. With "rounds" the
 * assignor runs that often and the answer is {"cpu_s": …}, the least CPU time of a round.
 */
public class ConsumerOracle {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Node NO_NODE = Node.noNode();

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
            String name = question.get("assignor").asText();
            JsonNode input = question.get("input");
            Cluster cluster = cluster(input.get("topics"));
            int rounds = question.path("rounds").asInt(0);
            if (rounds > 0) {
                return Map.of("cpu_s", leastCpuSeconds(name, input, cluster, rounds));
            }
            AbstractPartitionAssignor assignor = assignor(name, input);
            Map<String, Assignment> given = assignor.assign(cluster, subscriptions(name, input)).groupAssignment();
            Map<String, Object> output = new LinkedHashMap<>();
            output.put("assignment", byMember(given));
            if (assignor instanceof AbstractStickyAssignor sticky) {
                Map<TopicPartition, String> transferring = sticky.partitionsTransferringOwnership();
                output.put("branch", transferring == null ? "general" : "constrained");
                output.put("partitions_transferring_ownership", transferring == null ? null : named(transferring));
                output.put("max_generation", sticky.maxGeneration());
            }
            return output;
        } catch (Throwable thrown) {
            return Map.of("error", String.valueOf(thrown));
        }
    }

    private static double leastCpuSeconds(String name, JsonNode input, Cluster cluster, int rounds) throws Exception {
        long least = Long.MAX_VALUE;
        for (int round = 0; round < rounds; round++) {
            AbstractPartitionAssignor assignor = assignor(name, input);
            GroupSubscription group = subscriptions(name, input);
            long began = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
            assignor.assign(cluster, group);
            least = Math.min(least, ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - began);
        }
        return least / 1e9;
    }

    private static AbstractPartitionAssignor assignor(String name, JsonNode input) throws Exception {
        AbstractPartitionAssignor assignor = switch (name) {
            case "consumer.range" -> new RangeAssignor();
            case "consumer.roundrobin" -> new RoundRobinAssignor();
            case "consumer.sticky" -> new StickyAssignor();
            case "consumer.cooperative_sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException("no such assignor: " + name);
        };
        if (input.path("prefer_rack_aware_logic").asBoolean(false)) {
            field(AbstractPartitionAssignor.class, "preferRackAwareLogic").setBoolean(assignor, true);
        }
        if (assignor instanceof AbstractStickyAssignor) {
            int before = input.path("max_generation_before").asInt(-1);
            field(AbstractStickyAssignor.class, "maxGeneration").setInt(assignor, before);
        }
        return assignor;
    }

    private static Field field(Class<?> owner, String name) throws NoSuchFieldException {
        Field field = owner.getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    private static Cluster cluster(JsonNode topics) {
        List<PartitionInfo> partitions = new ArrayList<>();
        for (JsonNode topic : topics) {
            for (int number = 0; number < topic.get("partitions").asInt(); number++) {
                JsonNode racks = topic.path("replica_racks").path(number);
                Node[] replicas = new Node[racks.size()];
                for (int at = 0; at < replicas.length; at++) {
                    replicas[at] = new Node(at, "broker", 9092, racks.get(at).isNull() ? null : racks.get(at).asText());
                }
                partitions.add(new PartitionInfo(topic.get("name").asText(), number, NO_NODE, replicas, replicas));
            }
        }
        return new Cluster("cluster", List.of(), partitions, new TreeSet<>(), new TreeSet<>());
    }

    private static GroupSubscription subscriptions(String name, JsonNode input) {
        Map<String, Subscription> members = new LinkedHashMap<>();
        for (JsonNode member : input.get("members")) {
            List<String> topics = new ArrayList<>();
            member.get("topics").forEach(topic -> topics.add(topic.asText()));
            boolean eager = name.equals("consumer.sticky");
            List<TopicPartition> owned = eager ? List.of() : owned(member);
            ByteBuffer data = eager ? stickyData(member) : generationData(member);
            int generation = whole(member, "subscription_generation").orElse(-1);
            Subscription subscription = new Subscription(topics, data, owned, generation, text(member, "rack"));
            subscription.setGroupInstanceId(text(member, "instance_id"));
            members.put(member.get("id").asText(), subscription);
        }
        return new GroupSubscription(members);
    }

    private static List<TopicPartition> owned(JsonNode member) {
        List<TopicPartition> owned = new ArrayList<>();
        for (Iterator<String> topics = member.path("owned").fieldNames(); topics.hasNext();) {
            String topic = topics.next();
            member.get("owned").get(topic).forEach(number -> owned.add(new TopicPartition(topic, number.asInt())));
        }
        return owned;
    }

    /** User data of the sticky assignor: version 1 with a generation, version 0 without, null without both. */
    private static ByteBuffer stickyData(JsonNode member) {
        Optional<Integer> generation = whole(member, "generation");
        JsonNode owned = member.path("owned");
        if (generation.isEmpty() && owned.isEmpty()) {
            return null;
        }
        ByteBuffer data = ByteBuffer.allocate(64 + 4 * owned(member).size() + 300 * owned.size());
        data.putInt(owned.size());
        for (Iterator<String> topics = owned.fieldNames(); topics.hasNext();) {
            String topic = topics.next();
            byte[] name = topic.getBytes(StandardCharsets.UTF_8);
            data.putShort((short) name.length).put(name).putInt(owned.get(topic).size());
            owned.get(topic).forEach(number -> data.putInt(number.asInt()));
        }
        generation.ifPresent(data::putInt);
        return data.flip();
    }

    private static ByteBuffer generationData(JsonNode member) {
        return whole(member, "generation").map(number -> ByteBuffer.allocate(4).putInt(number).flip()).orElse(null);
    }

    private static Optional<Integer> whole(JsonNode member, String name) {
        return member.hasNonNull(name) ? Optional.of(member.get(name).asInt()) : Optional.empty();
    }

    private static Optional<String> text(JsonNode member, String name) {
        return member.hasNonNull(name) ? Optional.of(member.get(name).asText()) : Optional.empty();
    }

    private static Map<String, Map<String, List<Integer>>> byMember(Map<String, Assignment> given) {
        Map<String, Map<String, List<Integer>>> members = new TreeMap<>();
        given.forEach((member, assignment) -> {
            Map<String, List<Integer>> topics = members.computeIfAbsent(member, name -> new TreeMap<>());
            assignment.partitions().forEach(
                each -> topics.computeIfAbsent(each.topic(), name -> new ArrayList<>()).add(each.partition()));
            topics.values().forEach(numbers -> numbers.sort(null));
        });
        return members;
    }

    private static Map<String, String> named(Map<TopicPartition, String> transferring) {
        Map<String, String> named = new TreeMap<>();
        transferring.forEach((partition, member) -> named.put(partition.toString(), member));
        return named;
    }
}
