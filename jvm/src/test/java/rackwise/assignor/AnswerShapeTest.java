package rackwise.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;

import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.junit.jupiter.api.Test;

/** What an answer looks like beyond its figures: equal for equal groups, and no more of it new than must be. */
class AnswerShapeTest {

    private final RackwiseAssignor assignor = new RackwiseAssignor(new AssignorStatus(System::currentTimeMillis));

    @Test
    void theOrderOfMembersAndTopicsLeavesNoTrace() {
        for (long seed = 0; seed < 200; seed++) {
            GroupCase group = TinyGroups.random(seed);
            List<String> ids = new ArrayList<>(group.members().keySet());
            Collections.shuffle(ids, new Random(seed));
            Map<String, GroupCase.Member> members = new LinkedHashMap<>();
            ids.forEach(id -> members.put(id, group.members().get(id)));
            GroupCase other = new GroupCase(group.topics(), members);
            assertEquals(answer(group), answer(other));
        }
    }

    @Test
    void oneInstanceAnswersManyThreadsAlike() {
        Map<String, Map<String, Set<Integer>>> alone = answer(TinyGroups.alike(5, 40, 30, "abc"));
        assertTrue(IntStream.range(0, 64).parallel()
            .allMatch(each -> answer(TinyGroups.alike(5, 40, 30, "abc")).equals(alone)));
    }

    @Test
    void aMemberThatKeepsAllGetsItsPresentAssignmentBack() {
        GroupCase group = TinyGroups.alike(2, 12, 6, "abc");
        GroupCase after = group.after(assignor.assign(group.spec(), group.describer()));
        GroupSpec spec = after.spec();
        Map<String, MemberAssignment> again = assignor.assign(spec, after.describer()).members();
        assertEquals(6, again.size());
        again.forEach((id, given) -> assertSame(spec.memberAssignment(id), given));

        Map<String, GroupCase.Member> fewer = new LinkedHashMap<>(after.members());
        fewer.remove("m0");
        GroupSpec left = new GroupCase(after.topics(), fewer).spec();
        Map<String, MemberAssignment> taken = assignor.assign(left, after.describer()).members();
        taken.forEach((id, given) -> {
            if (given.partitions().equals(left.memberAssignment(id).partitions())) {
                assertSame(left.memberAssignment(id), given);
            } else {
                assertNotSame(left.memberAssignment(id), given);
            }
        });
    }

    @Test
    void equalNumbersOfCoPartitionedTopicsGoToOneMember() {
        GroupCase group = TinyGroups.alike(3, 24, 6, "abc");
        Map<String, Map<String, Set<Integer>>> answer = answer(group);
        answer.values().forEach(topics -> assertEquals(1, Set.copyOf(topics.values()).size(), topics.toString()));
        assertEquals(0, group.figures(assignor.assign(group.spec(), group.describer())).crossing());
    }

    @Test
    void theyComeTogetherAgainWhenAMemberLeaves() {
        GroupCase group = TinyGroups.alike(2, 24, 6, "abc");
        GroupCase after = group.after(assignor.assign(group.spec(), group.describer()));
        Map<String, GroupCase.Member> fewer = new LinkedHashMap<>(after.members());
        fewer.remove("m0");
        fewer.remove("m3");
        // Both members of a rack are gone: four members take twelve partitions each, six numbers of both topics.
        answer(new GroupCase(after.topics(), fewer)).values()
            .forEach(topics -> assertEquals(1, Set.copyOf(topics.values()).size(), topics.toString()));
    }

    @Test
    void rotatedRacksFollowInStepsOfTheLimit() {
        GroupCase group = TinyGroups.alike(2, 24, 6, "abc");
        group = TinyGroups.rotated(group.after(assignor.assign(group.spec(), group.describer())), "abc");
        GroupAssignment whole = assignor.assign(group.spec(), group.describer());
        assertEquals(0, group.figures(whole).crossing());
        assertTrue(group.figures(whole).moved() > 6, group.figures(whole).toString());

        RackwiseAssignor limited = new RackwiseAssignor(new AssignorStatus(System::currentTimeMillis));
        limited.configure(Map.of(AssignorSettings.MAX_MOVES, "6"));
        int crossing = Integer.MAX_VALUE;
        int steps = 0;
        while (crossing > 0) {
            GroupAssignment step = limited.assign(group.spec(), group.describer());
            assertTrue(group.figures(step).moved() <= 6, group.figures(step).toString());
            assertTrue(group.figures(step).crossing() < crossing, "step " + steps + " gains nothing");
            crossing = group.figures(step).crossing();
            group = group.after(step);
            steps++;
        }
        assertTrue(steps > 1);
    }

    private Map<String, Map<String, Set<Integer>>> answer(GroupCase group) {
        return group.named(assignor.assign(group.spec(), group.describer()));
    }
}
