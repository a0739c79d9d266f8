package rackwise.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

import javax.management.ObjectName;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.RebalanceProtocol;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

/** What a consumer gets of its assignor, whatever other members send. */
class ClassicAssignorTest {

    private static final TopicPartition T0 = new TopicPartition("t", 0);
    private static final TopicPartition T1 = new TopicPartition("t", 1);
    private static final String OURS = RackwiseConsumerAssignor.class.getName();

    private final AssignorStatus status = new AssignorStatus(System::currentTimeMillis);

    private static Subscription member(
            List<TopicPartition> held, int generation, List<TopicPartition> noted, String rack) {
        ByteBuffer note = new MemberNote(rack, null, noted, generation, !held.isEmpty()).write();
        return new Subscription(List.of("t"), note, held, generation, Optional.ofNullable(rack));
    }

    private Map<String, List<TopicPartition>> assign(List<List<String>> racks, Map<String, Subscription> members) {
        ClassicCase group = new ClassicCase(Map.of("t", racks), members);
        Map<String, List<TopicPartition>> answer = group.assign(status);
        assertFalse(group.breaksCooperation(answer), answer.toString());
        return answer;
    }

    @Test
    void aPartitionThatAMemberHoldsGoesToNoOtherBeforeItIsRevoked() {
        Map<String, Subscription> members = new TreeMap<>(Map.of(
            "m1", member(List.of(T0, T1), 3, List.of(T0, T1), "a"), "m2", member(List.of(), -1, List.of(), "a")));
        assertEquals(Map.of("m1", List.of(T1), "m2", List.of()), sorted(assign(twoIn("a"), members), T1));
        members.put("m1", member(List.of(T1), 4, List.of(T1), "a"));
        assertEquals(Map.of("m1", List.of(T1), "m2", List.of(T0)), assign(twoIn("a"), members));
    }

    /** Either of two equal partitions may stay. */
    private static Map<String, List<TopicPartition>> sorted(
            Map<String, List<TopicPartition>> answer, TopicPartition like) {
        Map<String, List<TopicPartition>> named = new TreeMap<>();
        answer.forEach((member, given) -> named.put(member, given.size() == 1 ? List.of(like) : given));
        return named;
    }

    private static List<List<String>> twoIn(String rack) {
        return List.of(List.of(rack), List.of(rack));
    }

    @Test
    void aNoteThatNamesWhatWasLostWithTheMembershipHoldsNothingBack() {
        ByteBuffer stale = new MemberNote("a", null, List.of(T0, T1), 3, true).write();
        Map<String, Subscription> members = Map.of(
            "m1", new Subscription(List.of("t"), stale, List.of(), -1, Optional.of("a")),
            "m2", member(List.of(), -1, List.of(), "a"));
        Map<String, List<TopicPartition>> answer = assign(twoIn("a"), members);
        assertEquals(List.of(1, 1), answer.values().stream().map(List::size).toList());
    }

    @Test
    void whatAMemberHoldsThatMissedARebalanceStaysWithItBecauseItsConsumerWouldThrow() {
        Map<String, Subscription> members = Map.of(
            "m1", member(List.of(T0, T1), 3, List.of(T0, T1), "b"), "m2", member(List.of(), 4, List.of(T0, T1), "a"));
        assertEquals(Map.of("m1", List.of(T0, T1), "m2", List.of()), assign(twoIn("a"), members));
    }

    @Test
    void bytesOfOtherClientsAreNoHistoryAndStopNothing() {
        Random random = new Random(7);
        byte[] whole = new MemberNote("a", "i", List.of(T0, new TopicPartition("u", 1)), 2, true).write().array();
        for (int round = 0; round < 2_000; round++) {
            byte[] bytes = random.nextBoolean() ? whole.clone() : new byte[random.nextInt(40)];
            if (bytes.length == whole.length) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
                bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length + 9));
            } else {
                random.nextBytes(bytes);
            }
            TopicPartition odd = new TopicPartition("t", random.nextInt(8) - 2);
            Map<String, Subscription> members = new TreeMap<>(Map.of(
                "m1", new Subscription(List.of("t", "gone", "t"), ByteBuffer.wrap(bytes), List.of(odd, odd)),
                "m2", new Subscription(List.of("t"), null), "m3", new Subscription(List.of())));
            Map<String, List<TopicPartition>> answer = assign(twoIn("a"), members);
            List<TopicPartition> given = new ArrayList<>();
            answer.values().forEach(given::addAll);
            assertEquals(given.size(), new HashSet<>(given).size());
            assertTrue(Set.of(T0, T1).containsAll(given), given.toString());
            assertEquals(members.keySet(), answer.keySet());
        }
        assertEquals("", status.getLastFallbackCause());
    }

    @Test
    void aGroupInTooManyRacksIsAssignedWithoutThemAndTheCauseIsReported() throws Exception {
        Map<String, Subscription> members = new TreeMap<>();
        for (int number = 0; number < 64; number++) {
            members.put("m" + number, member(number == 9 ? List.of(T0) : List.of(), 1, List.of(), "rack-" + number));
        }
        Map<String, List<TopicPartition>> answer = assign(twoIn("rack-3"), members);
        assertEquals(List.of(T0), answer.get("m9"));
        assertEquals(2, answer.values().stream().mapToInt(List::size).sum());
        assertEquals(1, status.getFallbacks());
        assertTrue(status.getLastFallbackCause().endsWith("members are in 64 racks; 63 are the limit"));
        new RackwiseConsumerAssignor().configure(Map.of());
        ObjectName bean = new ObjectName("rackwise:type=RackwiseConsumerAssignor");
        assertEquals("", ManagementFactory.getPlatformMBeanServer().getAttribute(bean, "LastFallbackCause"));
    }

    @Test
    void withoutAnyMetadataMembersKeepWhatTheyHold() {
        Map<String, Subscription> members = Map.of("m1", member(List.of(T0), 1, List.of(T0), "a"));
        Map<String, Assignment> answer = new RackwiseConsumerAssignor(status)
            .assign(null, new GroupSubscription(members)).groupAssignment();
        assertEquals(List.of(T0), answer.get("m1").partitions());
        assertEquals(1, status.getFallbacks());
        assertEquals(List.of(), new RackwiseConsumerAssignor(status)
            .assign(Cluster.empty(), new GroupSubscription(members)).groupAssignment().get("m1").partitions());
        assertEquals(Map.of(), new RackwiseConsumerAssignor(status)
            .assign(Cluster.empty(), new GroupSubscription(Map.of())).groupAssignment());
    }

    @Test
    void aConsumerRevokesCooperativelyUnlessOneOfItsAssignorsCannot() {
        assertEquals(RebalanceProtocol.COOPERATIVE, RebalanceChoice.of(OURS));
        assertEquals(RebalanceProtocol.COOPERATIVE, RebalanceChoice.of(List.of(RackwiseConsumerAssignor.class)));
        assertEquals(RebalanceProtocol.COOPERATIVE,
            RebalanceChoice.of(OURS + ", " + CooperativeStickyAssignor.class.getName()));
        assertEquals(RebalanceProtocol.EAGER, RebalanceChoice.of(List.of(OURS, RangeAssignor.class.getName())));
        for (Object odd : new Object[] {"no.such.Assignor", "", List.of(), String.class, List.of(OURS, 7)}) {
            assertEquals(RebalanceProtocol.EAGER, RebalanceChoice.of(odd), odd.toString());
        }
        assertEquals(RebalanceProtocol.EAGER, RebalanceChoice.of(null));
    }

    @SuppressWarnings({"deprecation", "removal"})
    private static ConsumerGroupMetadata generation(int generation) {
        return new ConsumerGroupMetadata("g", generation, "m", Optional.empty());
    }

    @Test
    void theUserDataSaysWhatTheConsumerWasGivenLast() {
        RackwiseConsumerAssignor assignor = new RackwiseConsumerAssignor(status);
        assignor.configure(Map.of("client.rack", "a", "group.instance.id", "i", "partition.assignment.strategy", OURS));
        assertEquals(new MemberNote("a", "i", List.of(), -1, true),
            MemberNote.read(assignor.subscriptionUserData(Set.of("t"))));
        TopicPartition other = new TopicPartition("u", 0);
        assignor.onAssignment(new Assignment(List.of(T1, other, T0)), generation(5));
        assertEquals(new MemberNote("a", "i", List.of(T0, T1), 5, true),
            MemberNote.read(assignor.subscriptionUserData(Set.of("t"))));
        assertEquals("optimal", assignor.name());
        assertEquals(List.of(RebalanceProtocol.COOPERATIVE), assignor.supportedProtocols());
        assignor.configure(Map.of("client.rack", "", "partition.assignment.strategy", RangeAssignor.class));
        assertEquals(new MemberNote(null, null, List.of(), 5, false),
            MemberNote.read(assignor.subscriptionUserData(Set.of())));
    }
}
