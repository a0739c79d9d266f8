package rackwise.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The standbys that an application is to have for given active tasks, and how good a placement of them is. */
final class StandbyCase {

    /**
     * What counts about standbys, in this order.
     *
     * @param shared copies that share a rack or a tag with another copy of their task
     * @param imbalance how far processes are off their shares of active tasks and standbys: a task short of the
     *     rounded-down share counts 1; above the rounded-up share the first counts 1, the next two 2, the next four 3
     * @param cost KIP-925's costs of standbys
     */
    record Quality(long shared, long imbalance, long cost) implements Comparable<Quality> {

        @Override
        public int compareTo(Quality other) {
            int sign = Long.compare(shared, other.shared);
            sign = sign == 0 ? Long.compare(imbalance, other.imbalance) : sign;
            return sign == 0 ? Long.compare(cost, other.cost) : sign;
        }
    }

    final ApplicationModel model;
    final CopySpread spread;
    /** The stateful tasks. */
    final int[] tasks;
    /** Standbys of each of them. */
    final int copies;
    /** Task to the process of its active task, for all tasks. */
    final int[] active;

    StandbyCase(ApplicationModel model, int[] active) {
        this.model = model;
        this.active = active;
        spread = new CopySpread(model.processes().profile());
        boolean[] stateful = model.tasks().stateful();
        int[] found = new int[stateful.length];
        int count = 0;
        for (int task = 0; task < stateful.length; task++) {
            found[count] = task;
            count += stateful[task] ? 1 : 0;
        }
        tasks = Arrays.copyOf(found, count);
        copies = Math.max(0, Math.min(model.settings().standbys(), model.processes().count() - 1));
    }

    /** Returns the active tasks by process. */
    int[] load() {
        int[] load = new int[model.processes().count()];
        Arrays.stream(active).forEach(process -> load[process]++);
        return load;
    }

    /** Returns by process its rounded-down share when each stateful task has so many standbys. */
    int[] low(int standbys) {
        return TaskShares.down(model.processes().capacity(), total(standbys), threads());
    }

    /** Returns by process its rounded-up share when each stateful task has so many standbys. */
    int[] high(int standbys) {
        return TaskShares.up(model.processes().capacity(), total(standbys), threads());
    }

    private long total(int standbys) {
        return model.tasks().count() + (long) tasks.length * standbys;
    }

    private long threads() {
        return Arrays.stream(model.processes().capacity()).asLongStream().sum();
    }

    boolean holds(int task, int process) {
        return Arrays.binarySearch(model.tasks().holders()[task], process) >= 0;
    }

    long price(int task, int process) {
        int misses = model.tasks().changelogs().of(task, model.processes().rack()[process]);
        return model.settings().trafficCost() * misses + (holds(task, process) ? 0 : model.settings().moveCost());
    }

    /** Judges a placement: by stateful task, the processes of its standbys. */
    Quality quality(int[][] placed) {
        int[] load = load();
        long shared = 0;
        long cost = 0;
        for (int number = 0; number < tasks.length; number++) {
            List<Integer> profiles = new ArrayList<>();
            profiles.add(spread.profileOf(active[tasks[number]]));
            for (int process : placed[number]) {
                load[process]++;
                profiles.add(spread.profileOf(process));
                cost += price(tasks[number], process);
            }
            shared += spread.shared(profiles);
        }
        int[] low = low(copies);
        int[] high = high(copies);
        long imbalance = 0;
        for (int process = 0; process < load.length; process++) {
            imbalance += offShare(load[process], low[process], high[process]);
        }
        return new Quality(shared, imbalance, cost);
    }

    private static long offShare(long count, int low, int high) {
        long off = Math.max(0, low - count);
        long over = count - high;
        for (int step = 1; over > 0; step++) {
            off += step * Math.min(over, 1L << (step - 1));
            over -= 1L << (step - 1);
        }
        return off;
    }
}
