package rackwise.streams;

import java.util.Arrays;

/**
 * How many active tasks each process takes: its share by capacity rounded down or up, of all tasks and of each
 * subtopology. Such an assignment always exists.
 *
 * @param low process to the tasks that it takes at least
 * @param uneven process to whether it may take one more
 * @param raised the number of processes that take one more
 * @param groupLow subtopology and process to the tasks that it takes at least
 * @param groupHigh subtopology and process to the tasks that it takes at most
 */
record TaskShares(int[] low, boolean[] uneven, int raised, int[][] groupLow, int[][] groupHigh) {

    static TaskShares of(ApplicationModel model) {
        int[] capacity = model.processes().capacity();
        long threads = Arrays.stream(capacity).asLongStream().sum();
        long[] sizes = new long[model.tasks().subtopologies()];
        for (int subtopology : model.tasks().subtopology()) {
            sizes[subtopology]++;
        }
        int[] low = down(capacity, model.tasks().count(), threads);
        int[] high = up(capacity, model.tasks().count(), threads);
        boolean[] uneven = new boolean[low.length];
        for (int process = 0; process < low.length; process++) {
            uneven[process] = high[process] > low[process];
        }
        int[][] groupLow = Arrays.stream(sizes).mapToObj(size -> down(capacity, size, threads)).toArray(int[][]::new);
        int[][] groupHigh = Arrays.stream(sizes).mapToObj(size -> up(capacity, size, threads)).toArray(int[][]::new);
        return new TaskShares(low, uneven, model.tasks().count() - Arrays.stream(low).sum(), groupLow, groupHigh);
    }

    /** Returns by process its share of a number of tasks, rounded down. */
    static int[] down(int[] capacity, long tasks, long threads) {
        return Arrays.stream(capacity).map(mine -> (int) (mine * tasks / threads)).toArray();
    }

    /** Returns by process its share of a number of tasks, rounded up. */
    static int[] up(int[] capacity, long tasks, long threads) {
        return Arrays.stream(capacity).map(mine -> (int) ((mine * tasks + threads - 1) / threads)).toArray();
    }
}
