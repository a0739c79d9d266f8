import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Function;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor.MemberData;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.streams.internals.generated.SubscriptionInfoData;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.processor.internals.assignment.SubscriptionInfo;
import org.apache.kafka.streams.state.HostInfo;

/**
 * Kafka's own readers as the oracle: each line on stdin is a layout's name and hex bytes, each line on stdout is what
 * Kafka reads, as JSON, or {"error": …} where Kafka throws. "again" holds the bytes that Kafka writes for what it read.
 */
public class DecodeOracle {

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            out.write(answer(words[0], HexFormat.of().parseHex(words[1])));
            out.write('\n');
            if (!in.ready()) {
                out.flush();
            }
        }
        out.flush();
    }

    private static String answer(String layout, byte[] bytes) {
        try {
            ByteBuffer data = ByteBuffer.wrap(bytes);
            return switch (layout) {
                case "subscription" -> subscription(ConsumerProtocol.deserializeSubscription(data), bytes);
                case "assignment" -> assignment(ConsumerProtocol.deserializeAssignment(data), bytes);
                case "sticky" -> memberData(new Sticky().read(data));
                case "cooperative-sticky" -> memberData(new CooperativeSticky().read(data));
                case "subscription-info" -> subscriptionInfo(SubscriptionInfo.decode(data), bytes);
                case "assignment-info" -> assignmentInfo(AssignmentInfo.decode(data));
                default -> throw new IllegalStateException("no such layout: " + layout);
            };
        } catch (RuntimeException | OutOfMemoryError e) {
            return "{\"error\":" + text(e.getClass().getSimpleName() + ": " + e.getMessage()) + "}";
        }
    }

    private static final class Sticky extends StickyAssignor {
        MemberData read(ByteBuffer userData) {
            return memberData(new Subscription(List.of("t"), userData));
        }
    }

    private static final class CooperativeSticky extends CooperativeStickyAssignor {
        MemberData read(ByteBuffer userData) {
            return memberData(new Subscription(List.of("t"), userData));
        }
    }

    private static String subscription(Subscription value, byte[] bytes) {
        return object(
            "topics", array(value.topics(), DecodeOracle::text),
            "user_data", hex(value.userData()),
            "owned", array(value.ownedPartitions(), DecodeOracle::partition),
            "generation", number(value.generationId()),
            "rack", value.rackId().map(DecodeOracle::text).orElse("null"),
            "again", again(() -> ConsumerProtocol.serializeSubscription(value, version(bytes))));
    }

    private static String assignment(Assignment value, byte[] bytes) {
        return object(
            "partitions", array(value.partitions(), DecodeOracle::partition),
            "user_data", hex(value.userData()),
            "again", again(() -> ConsumerProtocol.serializeAssignment(value, version(bytes))));
    }

    private static String memberData(MemberData value) {
        return object(
            "owned", array(value.partitions, DecodeOracle::partition),
            "generation", number(value.generation));
    }

    private static String subscriptionInfo(SubscriptionInfo value, byte[] bytes) {
        String version = Integer.toString(value.version());
        String supported = Integer.toString(value.latestSupportedVersion());
        if (value.version() > 11) {
            return object("version", version, "latest_supported", supported);
        }
        SubscriptionInfoData data =
            new SubscriptionInfoData(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), (short) value.version());
        Map<String, String> sums = new TreeMap<>();
        value.taskOffsetSums().forEach((task, sum) -> sums.put(task.toString(), sum.toString()));
        return object(
            "version", version,
            "latest_supported", supported,
            "process_id", text(value.processId().id().toString()),
            "prev_tasks", array(data.prevTasks(), t -> text(new TaskId(t.topicGroupId(), t.partition()).toString())),
            "standby_tasks",
            array(data.standbyTasks(), t -> text(new TaskId(t.topicGroupId(), t.partition()).toString())),
            "endpoint", value.userEndPoint() == null ? "null" : text(value.userEndPoint()),
            "offset_sums", map(sums),
            "unique_field", Byte.toString(data.uniqueField()),
            "error_code", Integer.toString(value.errorCode()),
            "client_tags", array(data.clientTags(), t -> "[" + text(utf8(t.key())) + "," + text(utf8(t.value())) + "]"),
            "again", again(value::encode));
    }

    private static String assignmentInfo(AssignmentInfo value) {
        Map<String, String> standby = new TreeMap<>();
        value.standbyTasks().forEach((task, set) -> standby.put(task.toString(), array(set, DecodeOracle::partition)));
        return object(
            "version", Integer.toString(value.version()),
            "commonly_supported", Integer.toString(value.commonlySupportedVersion()),
            "active", array(value.activeTasks(), task -> text(task.toString())),
            "standby", map(standby),
            "partitions_by_host", hosts(value.partitionsByHost()),
            "standby_partitions_by_host", hosts(value.standbyPartitionByHost()),
            "error_code", Integer.toString(value.errCode()),
            "next_rebalance_ms", Long.toString(value.nextRebalanceMs()),
            "again", again(value::encode));
    }

    private static String hosts(Map<HostInfo, ? extends Collection<TopicPartition>> hosts) {
        Map<String, String> sorted = new TreeMap<>();
        hosts.forEach((host, set) -> sorted.put(host.host() + ":" + host.port(), array(set, DecodeOracle::partition)));
        return map(sorted);
    }

    private static short version(byte[] bytes) {
        return (short) Math.min(3, ByteBuffer.wrap(bytes).getShort());
    }

    private static String again(java.util.function.Supplier<ByteBuffer> write) {
        try {
            return hex(write.get());
        } catch (RuntimeException e) {
            return "null";  // Kafka reads it, but cannot write it
        }
    }

    private static String partition(TopicPartition value) {
        return "[" + (value.topic() == null ? "null" : text(value.topic())) + "," + value.partition() + "]";
    }

    private static String number(Optional<Integer> value) {
        return value.map(Object::toString).orElse("null");
    }

    private static String utf8(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static String hex(ByteBuffer value) {
        if (value == null) {
            return "null";
        }
        byte[] bytes = new byte[value.remaining()];
        value.duplicate().get(bytes);
        return "\"" + HexFormat.of().formatHex(bytes) + "\"";
    }

    private static <T> String array(Collection<T> values, Function<T, String> toJson) {
        List<String> items = new ArrayList<>();
        for (T value : values) {
            items.add(toJson.apply(value));
        }
        return "[" + String.join(",", items) + "]";
    }

    private static String map(Map<String, String> values) {
        List<String> items = new ArrayList<>();
        values.forEach((key, value) -> items.add(text(key) + ":" + value));
        return "{" + String.join(",", items) + "}";
    }

    private static String object(String... keysAndValues) {
        List<String> items = new ArrayList<>();
        for (int i = 0; i < keysAndValues.length; i += 2) {
            items.add("\"" + keysAndValues[i] + "\":" + keysAndValues[i + 1]);
        }
        return "{" + String.join(",", items) + "}";
    }

    private static String text(String value) {
        StringBuilder json = new StringBuilder("\"");
        for (char c : value.toCharArray()) {
            if (c < 0x20 || c > 0x7e || c == '"' || c == '\\') {
                json.append(String.format("\\u%04x", (int) c));
            } else {
                json.append(c);
            }
        }
        return json.append('"').toString();
    }
}
