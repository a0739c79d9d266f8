package rackwise.assignor;

import java.util.Arrays;

/**
 * A flow of least cost by maximum flows along the cheapest slots (primal-dual).
 *
 * <p>Arcs that earn something start full. While units are where they must not stay, each node is priced by its distance
 * from them, and a maximum flow (Dinic) carries them along slots of reduced cost 0. Invariant: no slot with room has a
 * negative reduced cost, so the prices prove that the flow is optimal. Costs with few values need few rounds.
 */
public final class LeastCostFlow {

    private static final long FAR = Long.MAX_VALUE / 4;

    private final ResidualFlow flow;
    private final long[] excess;
    private final long[] price;
    private final long[] distance;
    private final int[] queue;
    private final boolean[] queued;
    private final int[] level;
    private final int[] next;
    private final int[] path;

    private LeastCostFlow(FlowNetwork network, FlowNetwork.Prices prices) {
        flow = new ResidualFlow(network, prices);
        excess = network.supplies();
        int nodes = flow.nodes();
        price = new long[nodes];
        distance = new long[nodes];
        queue = new int[nodes + 1];
        queued = new boolean[nodes];
        level = new int[nodes];
        next = new int[nodes];
        path = new int[nodes];
    }

    /**
     * Returns a flow of least cost that carries all supplies.
     *
     * @throws IllegalStateException when the capacities do not allow any
     */
    public static ResidualFlow solve(FlowNetwork network, FlowNetwork.Prices prices) {
        LeastCostFlow solver = new LeastCostFlow(network, prices);
        solver.fillEarningArcs();
        while (solver.waiting()) {
            solver.raisePrices();
            while (solver.findLevels()) {
                solver.push();
            }
        }
        return solver.flow;
    }

    private void fillEarningArcs() {
        for (int at = 0; at < flow.slots(); at++) {
            long units = flow.room[at];
            if (flow.cost[at] < 0 && units > 0) {
                excess[flow.from(at)] -= units;
                excess[flow.to[at]] += units;
                flow.carry(at, units);
            }
        }
    }

    private boolean waiting() {
        for (long units : excess) {
            if (units > 0) {
                return true;
            }
        }
        return false;
    }

    private long reduced(int at, int from) {
        return flow.cost[at] + price[from] - price[flow.to[at]];
    }

    private void raisePrices() {
        findDistances();
        long farthest = -1;
        for (int node = 0; node < excess.length; node++) {
            if (excess[node] < 0 && distance[node] < FAR) {
                farthest = Math.max(farthest, distance[node]);
            }
        }
        if (farthest < 0) {
            throw new IllegalStateException("the capacities of the network do not allow any flow");
        }
        for (int node = 0; node < price.length; node++) {
            price[node] += Math.min(distance[node], farthest);
        }
    }

    /** Distances by reduced cost from nodes with units that wait; nodes that came nearer wait in a ring. */
    private void findDistances() {
        Arrays.fill(distance, FAR);
        int start = 0;
        int end = 0;
        for (int node = 0; node < excess.length; node++) {
            if (excess[node] > 0) {
                distance[node] = 0;
                queued[node] = true;
                queue[end++] = node;
            }
        }
        while (start != end) {
            int node = queue[start];
            start = start + 1 == queue.length ? 0 : start + 1;
            queued[node] = false;
            long way = distance[node] + price[node];
            for (int at = flow.first[node]; at < flow.first[node + 1]; at++) {
                int head = flow.to[at];
                if (flow.room[at] > 0 && way + flow.cost[at] - price[head] < distance[head]) {
                    distance[head] = way + flow.cost[at] - price[head];
                    if (!queued[head]) {
                        queued[head] = true;
                        queue[end] = head;
                        end = end + 1 == queue.length ? 0 : end + 1;
                    }
                }
            }
        }
    }

    /** Levels by breadth first along slots of reduced cost 0; returns whether a node with a demand is reached. */
    private boolean findLevels() {
        Arrays.fill(level, -1);
        int end = 0;
        for (int node = 0; node < excess.length; node++) {
            if (excess[node] > 0) {
                level[node] = 0;
                queue[end++] = node;
            }
        }
        boolean reached = false;
        for (int start = 0; start < end; start++) {
            int node = queue[start];
            reached |= excess[node] < 0;
            for (int at = flow.first[node]; at < flow.first[node + 1]; at++) {
                int head = flow.to[at];
                if (level[head] < 0 && flow.room[at] > 0 && reduced(at, node) == 0) {
                    level[head] = level[node] + 1;
                    queue[end++] = head;
                }
            }
        }
        return reached;
    }

    private void push() {
        System.arraycopy(flow.first, 0, next, 0, next.length);
        for (int node = 0; node < excess.length; node++) {
            if (level[node] == 0) {
                pushFrom(node);
            }
        }
    }

    /** Sends what waits at a node level by level; a slot that leads nowhere is not looked at again. */
    private void pushFrom(int source) {
        int node = source;
        int depth = 0;
        while (excess[source] > 0) {
            if (excess[node] < 0) {
                deliver(source, node, depth);
                node = source;
                depth = 0;
            } else if (advance(node)) {
                path[depth++] = next[node];
                node = flow.to[next[node]];
            } else if (depth == 0) {
                return;
            } else {
                node = flow.from(path[--depth]);
                next[node]++;
            }
        }
    }

    private boolean advance(int node) {
        int last = flow.first[node + 1];
        int at = next[node];
        while (at < last && (flow.room[at] == 0 || level[flow.to[at]] != level[node] + 1 || reduced(at, node) != 0)) {
            at++;
        }
        next[node] = at;
        return at < last;
    }

    private void deliver(int source, int sink, int depth) {
        long units = Math.min(excess[source], -excess[sink]);
        for (int step = 0; step < depth; step++) {
            units = Math.min(units, flow.room[path[step]]);
        }
        for (int step = 0; step < depth; step++) {
            flow.carry(path[step], units);
        }
        excess[source] -= units;
        excess[sink] += units;
    }
}
