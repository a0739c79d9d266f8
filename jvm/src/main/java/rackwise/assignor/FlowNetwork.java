package rackwise.assignor;

import java.util.Arrays;

/**
 * A network of nodes and arcs as growing arrays. The cost of an arc has two parts, which {@link Prices} weighs against
 * each other: what is read across racks and what moves.
 */
public final class FlowNetwork {

    /** A capacity that never binds. */
    public static final long MANY = 1L << 40;

    /**
     * What a partition read across racks and a partition that moves cost.
     *
     * @param crossing the price of the first
     * @param move the price of the second
     */
    public record Prices(long crossing, long move) {
    }

    private int nodes;
    private int arcs;
    private int[] tail;
    private int[] head;
    private long[] capacity;
    private long[] crossing;
    private long[] move;
    private long[] supply = new long[16];

    /** Makes a network without nodes and with room for a number of arcs, which it exceeds at need. */
    public FlowNetwork(int expectedArcs) {
        int size = Math.max(16, expectedArcs);
        tail = new int[size];
        head = new int[size];
        capacity = new long[size];
        crossing = new long[size];
        move = new long[size];
    }

    /** Adds nodes and returns the first of them. */
    public int addNodes(int count) {
        nodes += count;
        if (nodes > supply.length) {
            supply = Arrays.copyOf(supply, Math.max(nodes, 2 * supply.length));
        }
        return nodes - count;
    }

    /** Adds units that start at a node, or that it demands when negative. */
    public void addSupply(int node, long units) {
        supply[node] += units;
    }

    /** Adds an arc and returns its number; numbers ascend from 0. */
    public int addArc(int from, int to, long units, long crossings, long moves) {
        if (arcs == tail.length) {
            grow();
        }
        tail[arcs] = from;
        head[arcs] = to;
        capacity[arcs] = units;
        crossing[arcs] = crossings;
        move[arcs] = moves;
        return arcs++;
    }

    private void grow() {
        int size = 2 * arcs;
        tail = Arrays.copyOf(tail, size);
        head = Arrays.copyOf(head, size);
        capacity = Arrays.copyOf(capacity, size);
        crossing = Arrays.copyOf(crossing, size);
        move = Arrays.copyOf(move, size);
    }

    /** Returns the number of nodes. */
    public int nodes() {
        return nodes;
    }

    int arcs() {
        return arcs;
    }

    int tail(int arc) {
        return tail[arc];
    }

    int head(int arc) {
        return head[arc];
    }

    long capacity(int arc) {
        return capacity[arc];
    }

    long moves(int arc) {
        return move[arc];
    }

    long cost(int arc, Prices prices) {
        return crossing[arc] * prices.crossing + move[arc] * prices.move;
    }

    long[] supplies() {
        return Arrays.copyOf(supply, nodes);
    }
}
