package rackwise.streams;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;

/**
 * What counts about a placement of active tasks.
 *
 * @param crossing source partitions without a replica in the rack of their process
 * @param moved tasks that are not with the only process that ran them
 */
record TaskFigures(long crossing, long moved) {

    static TaskFigures of(ApplicationModel model, int[] process) {
        long crossing = 0;
        long moved = 0;
        for (int task = 0; task < process.length; task++) {
            crossing += model.tasks().sources().of(task, model.processes().rack()[process[task]]);
            moved += process[task] == model.tasks().owner()[task] ? 0 : 1;
        }
        return new TaskFigures(crossing, moved);
    }

    long cost(ApplicationModel model) {
        return model.settings().trafficCost() * crossing + model.settings().moveCost() * moved;
    }

    /** Asserts floor and ceiling of every share by threads, in total and by subtopology. */
    static void assertFair(ApplicationModel model, int[] process) {
        assertTrue(fair(model, process), () -> "uneven: " + Arrays.toString(process));
    }

    static boolean fair(ApplicationModel model, int[] process) {
        int[] threads = model.processes().capacity();
        double all = Arrays.stream(threads).sum();
        int[] total = new int[threads.length];
        int[][] group = new int[model.tasks().subtopologies()][threads.length];
        int[] size = new int[group.length];
        for (int task = 0; task < process.length; task++) {
            total[process[task]]++;
            group[model.tasks().subtopology()[task]][process[task]]++;
            size[model.tasks().subtopology()[task]]++;
        }
        boolean fair = true;
        for (int each = 0; each < threads.length; each++) {
            fair &= Math.abs(total[each] - threads[each] * process.length / all) < 1;
            for (int subtopology = 0; subtopology < size.length; subtopology++) {
                fair &= Math.abs(group[subtopology][each] - threads[each] * size[subtopology] / all) < 1;
            }
        }
        return fair;
    }
}
