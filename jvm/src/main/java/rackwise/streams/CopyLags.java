package rackwise.streams;

import java.util.Arrays;

/**
 * How far the copies of each task's state are behind, by process. A lag that is not known is never acceptable.
 *
 * <p>Invariant: lags compare as restoring does: what runs, then known lags, then a copy of unknown lag, then none.
 */
final class CopyLags {

    /** The task runs there and is up to date. */
    static final long RUNNING = -1;
    /** There is a copy, and how far it is behind is not known. */
    static final long UNKNOWN_COPY = Long.MAX_VALUE - 1;
    /** There is no copy, and how much there is to restore is not known. */
    static final long UNKNOWN = Long.MAX_VALUE;

    /** Kafka's word for a running task that is up to date. */
    private static final long LATEST_OFFSET = -2;

    private final long acceptable;
    private final int processes;
    /** Task to the processes with a copy, ascending, and to their lags; null for a task without state. */
    private final int[][] holders;
    private final long[][] held;
    /** Task to the lag of a process without a copy. */
    private final long[] elsewhere;

    CopyLags(long acceptable, int processes, int[][] holders, long[][] held, long[] elsewhere) {
        this.acceptable = acceptable;
        this.processes = processes;
        this.holders = holders;
        this.held = held;
        this.elsewhere = elsewhere;
    }

    /** Returns a lag of this order from Kafka's; null means that Kafka gives none. */
    static long of(Long kafkas, boolean copy) {
        if (kafkas == null || kafkas < 0) {
            return kafkas != null && kafkas == LATEST_OFFSET ? RUNNING : copy ? UNKNOWN_COPY : UNKNOWN;
        }
        return Math.min(kafkas, UNKNOWN_COPY - 1);
    }

    /** Returns whether the task can start on the process at once. */
    boolean caughtUp(int task, int process) {
        if (held[task] == null || acceptable == Long.MAX_VALUE) {
            return true;
        }
        long lag = lag(task, process);
        return lag <= acceptable && lag < UNKNOWN_COPY;
    }

    /** Returns whether a process other than this one can start the task sooner. */
    boolean soonerElsewhere(int task, int process) {
        if (caughtUp(task, process)) {
            return false;
        }
        for (int other = 0; other < processes; other++) {
            if (sooner(task, other, process)) {
                return true;
            }
        }
        return false;
    }

    /** Returns whether the first process can start the task sooner than the second, which has not caught up. */
    boolean sooner(int task, int process, int than) {
        if (caughtUp(task, process)) {
            return true;
        }
        long later = lag(task, than);
        return later != UNKNOWN_COPY && lag(task, process) < later;
    }

    long lag(int task, int process) {
        if (held[task] == null) {
            return 0;
        }
        int place = Arrays.binarySearch(holders[task], process);
        return place < 0 ? elsewhere[task] : held[task][place];
    }
}
