package rackwise.assignor;

import java.util.Arrays;

/**
 * Improves a flow along cycles of negative cost (Bellman and Ford), as far as a limit of moves allows. Each step leaves
 * a flow that carries all supplies, so that it can end at any time.
 */
final class CycleSearch {

    /** Bounds the time of a call; what is left follows with the next assignment. */
    private static final int MOST_CYCLES = 5_000;

    private final ResidualFlow flow;
    private final int[] moves;
    private final long[] distance;
    /** Node to the slot on which its distance came. */
    private final int[] reachedBy;
    private final int[] seenIn;
    private int cycles;

    CycleSearch(ResidualFlow flow) {
        this.flow = flow;
        moves = flow.movesBySlot();
        distance = new long[flow.nodes()];
        reachedBy = new int[flow.nodes()];
        seenIn = new int[flow.nodes()];
    }

    /** Cancels all negative cycles; returns false when the limit of moves is reached before. */
    boolean cancelAll(long allowed) {
        for (int node = findCycle(); node >= 0; node = findCycle()) {
            if (cycles++ == MOST_CYCLES || !cancel(node, allowed)) {
                return false;
            }
        }
        return true;
    }

    private boolean cancel(int node, long allowed) {
        long units = Long.MAX_VALUE;
        long more = 0;
        int each = node;
        do {
            units = Math.min(units, flow.room[reachedBy[each]]);
            more += moves[reachedBy[each]];
            each = flow.from(reachedBy[each]);
        } while (each != node);
        if (more > 0) {
            units = Math.min(units, (allowed - flow.moves()) / more);
        }
        if (units <= 0) {
            return false;
        }
        do {
            int at = reachedBy[each];
            flow.carry(at, units);
            each = flow.from(at);
        } while (each != node);
        return true;
    }

    /** Returns a node of a negative cycle, whose slots {@code reachedBy} has, or -1 when there is none. */
    private int findCycle() {
        Arrays.fill(distance, 0);
        Arrays.fill(reachedBy, -1);
        boolean nearer = true;
        while (nearer) {
            nearer = false;
            for (int node = 0; node < distance.length; node++) {
                for (int at = flow.first[node]; at < flow.first[node + 1]; at++) {
                    if (flow.room[at] > 0 && distance[node] + flow.cost[at] < distance[flow.to[at]]) {
                        distance[flow.to[at]] = distance[node] + flow.cost[at];
                        reachedBy[flow.to[at]] = at;
                        nearer = true;
                    }
                }
            }
            int found = nearer ? nodeOnCycle() : -1;
            if (found >= 0) {
                return found;
            }
        }
        return -1;
    }

    private int nodeOnCycle() {
        Arrays.fill(seenIn, -1);
        for (int start = 0; start < seenIn.length; start++) {
            int node = start;
            while (node >= 0 && seenIn[node] < 0) {
                seenIn[node] = start;
                node = reachedBy[node] < 0 ? -1 : flow.from(reachedBy[node]);
            }
            if (node >= 0 && seenIn[node] == start) {
                return node;
            }
        }
        return -1;
    }
}
