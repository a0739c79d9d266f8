package rackwise.assignor;

/**
 * A flow in a {@link FlowNetwork} and what may still change in it: for each arc a slot ahead with the room left and a
 * slot back with the units carried, ordered by the node that they leave.
 */
public final class ResidualFlow {

    final FlowNetwork network;
    /** Node to its first slot; one entry more than nodes. */
    final int[] first;
    /** Slot to the node it leads to. */
    final int[] to;
    /** Slot to the units that can still pass. */
    final long[] room;
    /** Slot to the cost of a unit. */
    final long[] cost;
    /** Slot to the slot of the same arc in the other direction. */
    final int[] twin;
    private final int[] slot;

    ResidualFlow(FlowNetwork network, FlowNetwork.Prices prices) {
        this.network = network;
        int arcs = network.arcs();
        first = new int[network.nodes() + 2];
        for (int arc = 0; arc < arcs; arc++) {
            first[network.tail(arc) + 2]++;
            first[network.head(arc) + 2]++;
        }
        for (int node = 2; node < first.length; node++) {
            first[node] += first[node - 1];
        }
        to = new int[2 * arcs];
        room = new long[2 * arcs];
        cost = new long[2 * arcs];
        twin = new int[2 * arcs];
        slot = new int[arcs];
        for (int arc = 0; arc < arcs; arc++) {
            int ahead = first[network.tail(arc) + 1]++;
            int back = first[network.head(arc) + 1]++;
            to[ahead] = network.head(arc);
            to[back] = network.tail(arc);
            twin[ahead] = back;
            twin[back] = ahead;
            room[ahead] = network.capacity(arc);
            slot[arc] = ahead;
        }
        setPrices(prices);
    }

    /** Prices all arcs anew; units stay where they are. */
    void setPrices(FlowNetwork.Prices prices) {
        for (int arc = 0; arc < slot.length; arc++) {
            cost[slot[arc]] = network.cost(arc, prices);
            cost[twin[slot[arc]]] = -cost[slot[arc]];
        }
    }

    int nodes() {
        return first.length - 2;
    }

    int slots() {
        return to.length;
    }

    /** Returns the node that a slot leaves. */
    int from(int at) {
        return to[twin[at]];
    }

    /** Sends units along a slot. */
    void carry(int at, long units) {
        room[at] -= units;
        room[twin[at]] += units;
    }

    /** Returns the units on an arc. */
    public long units(int arc) {
        return room[twin[slot[arc]]];
    }

    /** Returns the partitions that move, those that had no member among them. */
    long moves() {
        long moves = 0;
        for (int arc = 0; arc < slot.length; arc++) {
            moves += network.moves(arc) * units(arc);
        }
        return moves;
    }

    /** Returns for each slot the change of the number of moves when one more unit passes. */
    int[] movesBySlot() {
        int[] moves = new int[slots()];
        for (int arc = 0; arc < slot.length; arc++) {
            moves[slot[arc]] = (int) network.moves(arc);
            moves[twin[slot[arc]]] = -moves[slot[arc]];
        }
        return moves;
    }
}
