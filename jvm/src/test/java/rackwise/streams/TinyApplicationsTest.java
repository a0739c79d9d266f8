package rackwise.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;

import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/** What holds for every tiny application, by trying all its assignments. */
class TinyApplicationsTest {

    private static final String SEED = "924";

    @Property(seed = SEED, tries = 300)
    void noFairPlacementOfActiveTasksCostsLess(@ForAll long seed) {
        ApplicationModel model = TinyApplications.random(seed).model();
        int[] found = new TaskNetwork(model, TaskShares.of(model)).place();
        TaskFigures.assertFair(model, found);
        List<Long> costs = new ArrayList<>();
        List<Long> movesOfTheCheapest = new ArrayList<>();
        everyPlacement(model, new int[found.length], 0, each -> {
            if (TaskFigures.fair(model, each)) {
                costs.add(TaskFigures.of(model, each).cost(model));
            }
        });
        long best = Collections.min(costs);
        everyPlacement(model, new int[found.length], 0, each -> {
            TaskFigures figures = TaskFigures.of(model, each);
            if (figures.cost(model) == best && TaskFigures.fair(model, each)) {
                movesOfTheCheapest.add(figures.moved());
            }
        });
        assertEquals(best, TaskFigures.of(model, found).cost(model));
        assertEquals(Collections.min(movesOfTheCheapest), TaskFigures.of(model, found).moved());
    }

    private static void everyPlacement(ApplicationModel model, int[] process, int task, Consumer<int[]> seen) {
        if (task == process.length) {
            seen.accept(process);
            return;
        }
        for (int each = 0; each < model.processes().count(); each++) {
            process[task] = each;
            everyPlacement(model, process, task + 1, seen);
        }
    }

    @Property(seed = SEED, tries = 300)
    void noStandbysForTheseActiveTasksAreBetter(@ForAll long seed) {
        ApplicationModel model = TinyApplications.random(seed).model();
        StandbyCase standbys = new StandbyCase(model, new TaskNetwork(model, TaskShares.of(model)).place());
        int[][] found = StandbyPlacer.place(standbys);
        List<StandbyCase.Quality> all = new ArrayList<>();
        everyStandby(standbys, new int[found.length][standbys.copies], 0, each -> all.add(standbys.quality(each)));
        StandbyCase.Quality best = Collections.min(all);
        if (standbys.copies == 1 || standbys.spread.allApart(standbys.copies + 1)) {
            assertEquals(best, standbys.quality(found));
        }
        assertEquals(best.shared(), standbys.quality(found).shared());
        for (int number = 0; number < found.length; number++) {
            assertEquals(standbys.copies, found[number].length);
            for (int process : found[number]) {
                assertTrue(process != standbys.active[standbys.tasks[number]], "a standby with its active task");
            }
        }
    }

    /** With three processes at most, a task has its standbys on all others or on one of them. */
    private static void everyStandby(StandbyCase standbys, int[][] placed, int number, Consumer<int[][]> seen) {
        if (number == placed.length) {
            seen.accept(placed);
            return;
        }
        int active = standbys.active[standbys.tasks[number]];
        int processes = standbys.model.processes().count();
        for (int first = 0; first < processes; first++) {
            int[] others = new int[standbys.copies];
            for (int copy = 0, process = first; copy < others.length; process++) {
                if (process % processes != active) {
                    others[copy++] = process % processes;
                }
            }
            if (first != active || others.length == 0) {
                placed[number] = others;
                everyStandby(standbys, placed, number + 1, seen);
            }
            if (others.length == 0) {
                return;
            }
        }
    }
}
