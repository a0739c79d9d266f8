package rackwise.streams;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.IntPredicate;

/**
 * The way to a target (KIP-441): where a task's destination has not caught up and another process has, that process runs
 * the task, and the destination has a copy that warms up. Warm-ups are at most {@code max.warmup.replicas} at a time;
 * the others wait for a later rebalance.
 *
 * <p>Where the process that keeps a task is one of its standbys of the target, the two swap roles, which is no warm-up.
 * Standbys that have not caught up are treated the same: a copy elsewhere stays until they have.
 */
final class WarmupPlan {

    static final byte NONE = 0;
    static final byte ACTIVE = 1;
    static final byte STANDBY = 2;

    /** A task that cannot start at its destination yet. */
    private record Movement(int task, int destination, boolean begun, int ready) {
    }

    private static final Comparator<Movement> ORDER = Comparator.comparing((Movement each) -> !each.begun)
        .thenComparingInt(Movement::ready).thenComparingInt(Movement::task).thenComparingInt(Movement::destination);

    private final ApplicationModel model;
    /** Task and process to the role that the process has. */
    final byte[][] role;
    private final long[] load;
    private final boolean[][] warming;
    private int left;
    private int waiting;
    private int warmups;

    private WarmupPlan(ApplicationModel model) {
        this.model = model;
        role = new byte[model.tasks().count()][model.processes().count()];
        warming = new boolean[role.length][];
        load = new long[model.processes().count()];
        left = model.settings().warmups();
    }

    /** Returns the way from what runs now to these active tasks and standbys. */
    static WarmupPlan of(StandbyCase standbys, int[][] placed) {
        WarmupPlan plan = new WarmupPlan(standbys.model);
        for (int task = 0; task < plan.role.length; task++) {
            plan.give(task, standbys.active[task], ACTIVE);
        }
        for (int number = 0; number < placed.length; number++) {
            for (int process : placed[number]) {
                plan.give(standbys.tasks[number], process, STANDBY);
            }
        }
        plan.movements(ACTIVE).forEach(plan::keepActive);
        plan.movements(STANDBY).forEach(plan::keepStandby);
        return plan;
    }

    /** Returns whether a later rebalance has to finish what this one begins. */
    boolean unfinished() {
        return waiting > 0;
    }

    /** Returns the number of copies that warm up. */
    int warmups() {
        return warmups;
    }

    private void give(int task, int process, byte to) {
        load[process] += (to == NONE ? 0 : 1) - (role[task][process] == NONE ? 0 : 1);
        role[task][process] = to;
    }

    private List<Movement> movements(byte of) {
        List<Movement> movements = new ArrayList<>();
        for (int task = 0; task < role.length; task++) {
            for (int process = 0; process < role[task].length; process++) {
                boolean warmup = warming[task] != null && warming[task][process];
                if (role[task][process] == of && !warmup && model.lags().soonerElsewhere(task, process)) {
                    movements.add(new Movement(task, process, holds(task, process), ready(task)));
                }
            }
        }
        movements.sort(ORDER);
        return movements;
    }

    private boolean holds(int task, int process) {
        for (int holder : model.tasks().holders()[task]) {
            if (holder == process) {
                return true;
            }
        }
        return false;
    }

    private int ready(int task) {
        int ready = 0;
        for (int process = 0; process < load.length; process++) {
            ready += model.lags().caughtUp(task, process) ? 1 : 0;
        }
        return ready;
    }

    private void keepActive(Movement movement) {
        int task = movement.task;
        int owner = model.tasks().owner()[task];
        int keeper = owner >= 0 && model.lags().caughtUp(task, owner) ? owner : -1;
        keeper = keeper >= 0 ? keeper : leastLoaded(task, process -> role[task][process] == STANDBY);
        keeper = keeper >= 0 ? keeper : leastLoaded(task, process -> true);
        keeper = keeper >= 0 ? keeper : soonest(task, movement.destination, process -> true);
        waiting++;
        boolean swap = role[task][keeper] == STANDBY;
        give(task, keeper, ACTIVE);
        give(task, movement.destination, NONE);
        if (swap) {
            give(task, movement.destination, STANDBY);
        } else if (takeWarmup()) {
            give(task, movement.destination, STANDBY);
            warming[task] = new boolean[load.length];
            warming[task][movement.destination] = true;
        }
    }

    private void keepStandby(Movement movement) {
        int task = movement.task;
        int keeper = leastLoaded(task, process -> role[task][process] == NONE);
        keeper = keeper >= 0 ? keeper : soonest(task, movement.destination, process -> role[task][process] == NONE);
        if (keeper < 0) {
            return;
        }
        waiting++;
        give(task, keeper, STANDBY);
        if (!takeWarmup()) {
            give(task, movement.destination, NONE);
        }
    }

    private boolean takeWarmup() {
        boolean taken = left > 0;
        left -= taken ? 1 : 0;
        warmups += taken ? 1 : 0;
        return taken;
    }

    /** Returns the process with the least load per thread of those that have caught up, or -1. */
    private int leastLoaded(int task, IntPredicate may) {
        int best = -1;
        for (int process = 0; process < load.length; process++) {
            if (may.test(process) && model.lags().caughtUp(task, process) && (best < 0 || lighter(process, best))) {
                best = process;
            }
        }
        return best;
    }

    private boolean lighter(int one, int other) {
        int[] capacity = model.processes().capacity();
        return load[one] * capacity[other] < load[other] * capacity[one];
    }

    /** Returns the process that can start the task first, sooner than the destination, or -1. */
    private int soonest(int task, int destination, IntPredicate may) {
        int best = -1;
        for (int process = 0; process < load.length; process++) {
            if (may.test(process) && model.lags().sooner(task, process, destination)
                    && (best < 0 || model.lags().lag(task, process) < model.lags().lag(task, best))) {
                best = process;
            }
        }
        return best;
    }
}
