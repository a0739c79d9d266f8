package rackwise.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import java.util.List;
import java.util.Map;

import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;

/** What holds for every tiny group, by trying all its assignments. */
class TinyGroupsTest {

    private static final String SEED = "848";

    @Property(seed = SEED, tries = 300)
    void noAssignmentIsBetter(@ForAll long seed) {
        GroupCase group = TinyGroups.random(seed);
        GroupCase.Figures best = Collections.min(EveryAssignment.of(group), EveryAssignment.RACKS_FIRST);
        assertEquals(best, group.figures(assign(group, Map.of())));
    }

    @Property(seed = SEED, tries = 150)
    void withoutOptionalMovesNoAssignmentOfFewerMovesReadsLessAcrossRacks(@ForAll long seed) {
        GroupCase group = TinyGroups.random(seed);
        GroupCase.Figures best = Collections.min(EveryAssignment.of(group), EveryAssignment.MOVES_FIRST);
        assertEquals(best, group.figures(assign(group, Map.of(AssignorSettings.MAX_MOVES, "0"))));
    }

    @Property(seed = SEED, tries = 150)
    void aLimitOfMovesHoldsAndCostsNoBalance(@ForAll long seed, @ForAll @IntRange(max = 4) int limit) {
        GroupCase group = TinyGroups.random(seed);
        List<GroupCase.Figures> all = EveryAssignment.of(group);
        GroupCase.Figures fewest = Collections.min(all, EveryAssignment.MOVES_FIRST);
        GroupCase.Figures best = Collections.min(all, EveryAssignment.RACKS_FIRST);
        GroupCase.Figures found = group.figures(assign(group, Map.of(AssignorSettings.MAX_MOVES, limit)));
        assertEquals(best.loads(), found.loads());
        assertTrue(found.moved() <= fewest.moved() + limit, found + " after " + fewest);
        assertTrue(found.crossing() <= fewest.crossing(), found + " after " + fewest);
        if (best.moved() <= fewest.moved() + limit) {
            assertEquals(best, found);
        }
    }

    @Property(seed = SEED, tries = 150)
    void theAnswerToTheAnswerIsTheSame(@ForAll long seed) {
        GroupCase group = TinyGroups.random(seed);
        GroupAssignment first = assign(group, Map.of());
        GroupCase next = group.after(first);
        assertEquals(group.named(first), next.named(assign(next, Map.of())));
    }

    private static GroupAssignment assign(GroupCase group, Map<String, ?> settings) {
        AssignorStatus status = new AssignorStatus(System::currentTimeMillis);
        RackwiseAssignor assignor = new RackwiseAssignor(status);
        assignor.configure(settings);
        GroupAssignment answer = assignor.assign(group.spec(), group.describer());
        assertEquals("", status.getLastFallbackCause());
        return answer;
    }
}
