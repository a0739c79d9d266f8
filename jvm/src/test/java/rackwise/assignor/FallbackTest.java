package rackwise.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;

import javax.management.ObjectName;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.junit.jupiter.api.Test;

/** Nothing that goes wrong reaches the coordinator as an exception. */
class FallbackTest {

    private static final GroupCase GROUP = TinyGroups.alike(3, 7, 4, "abc");

    private final AtomicLong clock = new AtomicLong(1_000);
    private final AssignorStatus status = new AssignorStatus(clock::get);

    /** The broker's view of topics with a fault in one of its answers. */
    private record FaultyDescriber(SubscribedTopicDescriber broker, boolean inSize)
            implements SubscribedTopicDescriber {

        @Override
        public int numPartitions(Uuid topic) {
            if (inSize) {
                throw new AssertionError("no size");
            }
            return broker.numPartitions(topic);
        }

        @Override
        public Set<String> racksForPartition(Uuid topic, int partition) {
            throw new IllegalStateException("no racks");
        }
    }

    @Test
    void aGroupAboveTheLimitIsAnsweredAsUniformDoesAndTheCauseIsAnAttributeOfTheBean() throws Exception {
        RackwiseAssignor assignor = new RackwiseAssignor(status);
        assignor.configure(Map.of("node.id", 17, AssignorSettings.MAX_PAIRS, "3"));
        GroupAssignment answer = assignor.assign(GROUP.spec(), GROUP.describer());
        assertEquals(uniform(), GROUP.named(answer));
        ObjectName bean = new ObjectName("rackwise:type=RackwiseAssignor,node=\"17\"");
        assertEquals(1L, ManagementFactory.getPlatformMBeanServer().getAttribute(bean, "Fallbacks"));
        String cause = (String) ManagementFactory.getPlatformMBeanServer().getAttribute(bean, "LastFallbackCause");
        String sentence = "1 sets of subscribers times 4 are more than rackwise.assignor.max.pairs = 3";
        assertTrue(cause.contains(sentence), cause);
        assertEquals(0L, ManagementFactory.getPlatformMBeanServer().getAttribute(bean, "Assignments"));
        assertEquals(1_000L, ManagementFactory.getPlatformMBeanServer().getAttribute(bean, "LastFallbackTimeMs"));
    }

    @Test
    void theBeanCountsWhatTheAssignorInUseDoesAlsoAfterTheBrokerHasMadeAnother() throws Exception {
        RackwiseAssignor used = new RackwiseAssignor();
        used.configure(Map.of("node.id", 18));
        new RackwiseAssignor().configure(Map.of("node.id", 18));
        used.assign(GROUP.spec(), GROUP.describer());
        ObjectName bean = new ObjectName("rackwise:type=RackwiseAssignor,node=\"18\"");
        assertEquals(1L, ManagementFactory.getPlatformMBeanServer().getAttribute(bean, "Assignments"));
    }

    @Test
    void aDynamicChangeReachesTheAssignorInUse() throws Exception {
        RackwiseAssignor used = new RackwiseAssignor();
        used.configure(Map.of("node.id", 19));
        new RackwiseAssignor().configure(Map.of("node.id", 19, "message.max.bytes", "9"));
        new RackwiseAssignor().configure(Map.of("node.id", 20));
        used.assign(GROUP.spec(), GROUP.describer());
        ObjectName bean = new ObjectName("rackwise:type=RackwiseAssignor,node=\"19\"");
        String cause = (String) ManagementFactory.getPlatformMBeanServer().getAttribute(bean, "LastFallbackCause");
        assertTrue(cause.endsWith("message.max.bytes allows 9"), cause);
    }

    @Test
    void anExceptionOfTheBrokerItselfIsAnsweredAsUniformDoes() {
        SubscribedTopicDescriber faulty = new FaultyDescriber(GROUP.describer(), false);
        assertEquals(uniform(), GROUP.named(new RackwiseAssignor(status).assign(GROUP.spec(), faulty)));
        assertEquals("java.lang.IllegalStateException: no racks", status.getLastFallbackCause());
    }

    @Test
    void anErrorInEveryWayLeavesTheGroupAsItIs() {
        GroupCase after = GROUP.after(new RackwiseAssignor(status).assign(GROUP.spec(), GROUP.describer()));
        SubscribedTopicDescriber faulty = new FaultyDescriber(after.describer(), true);
        GroupAssignment answer = new RackwiseAssignor(status).assign(after.spec(), faulty);
        assertEquals(after.figures(answer).moved(), 0);
        assertEquals(1, status.getFallbacks());
        assertEquals(21, after.figures(answer).loads().stream().mapToInt(Integer::intValue).sum());
    }

    @Test
    void withoutUniformEachPartitionStaysOrGoesToAMemberWithFew() {
        GroupAssignment answer =
            new FallbackAssignor("no.such.Assignor").assign(GROUP.spec(), GROUP.describer(), status);
        AnswerCheck.check(GroupReader.read(new BrokerView(GROUP.spec(), GROUP.describer()), AssignorSettings.DEFAULTS), answer);
        GroupCase after = GROUP.after(answer);
        GroupAssignment again =
            new FallbackAssignor("no.such.Assignor").assign(after.spec(), after.describer(), status);
        assertEquals(0, after.figures(again).moved());
        assertEquals(List.of(6, 5, 5, 5), after.figures(again).loads());
    }

    @Test
    void theCauseIsLoggedOnceAMinute() {
        assertTrue(status.report(new IllegalStateException("one")));
        clock.addAndGet(AssignorStatus.LOG_INTERVAL_MS - 1);
        assertFalse(status.report(new IllegalStateException("two")));
        clock.addAndGet(1);
        assertTrue(status.report(new IllegalStateException("three")));
    }

    @Test
    void aWrongAnswerIsFound() {
        GroupModel model = GroupReader.read(new BrokerView(GROUP.spec(), GROUP.describer()), AssignorSettings.DEFAULTS);
        GroupAssignment present = new GroupAssignment(Map.of());
        assertThrows(IllegalStateException.class, () -> AnswerCheck.check(model, present));
        Uuid first = model.topics().ids()[0];
        for (Map<Uuid, Set<Integer>> wrong : List.of(
                Map.of(first, Set.of(0)), Map.of(first, Set.of(7)), Map.of(new Uuid(9, 9), Set.of(0)))) {
            Map<String, MemberAssignment> members = new HashMap<>();
            for (String id : model.members().ids()) {
                members.put(id, new MemberPartitions(wrong));
            }
            assertThrows(IllegalStateException.class, () -> AnswerCheck.check(model, new GroupAssignment(members)));
        }
    }

    @Test
    void aSettingThatIsNoNumberStopsTheBrokerWithItsName() {
        for (String wrong : new String[] {"many", "-1", "1.5", ""}) {
            ConfigException refused = assertThrows(ConfigException.class,
                () -> new RackwiseAssignor(status).configure(Map.of(AssignorSettings.MAX_MOVES, wrong)));
            assertEquals("Invalid value " + wrong + " for configuration rackwise.assignor.max.moves: "
                + "a whole number from 0 up is needed", refused.getMessage());
        }
    }

    @Test
    void aGroupWithoutMembersOrPartitionsIsAnswered() {
        GroupCase empty = new GroupCase(Map.of(), Map.of());
        assertEquals(Map.of(), new RackwiseAssignor(status).assign(empty.spec(), empty.describer()).members());
        GroupCase idle = new GroupCase(Map.of(), Map.of("m", new GroupCase.Member(null, Set.of("gone"), Map.of())));
        GroupAssignment nothing = new RackwiseAssignor(status).assign(idle.spec(), idle.describer());
        assertEquals(Map.of("m", Map.of()), idle.named(nothing));
        assertEquals(0, status.getFallbacks());
    }

    private static Map<String, Map<String, Set<Integer>>> uniform() {
        return GROUP.named(new UniformAssignor().assign(GROUP.spec(), GROUP.describer()));
    }
}
