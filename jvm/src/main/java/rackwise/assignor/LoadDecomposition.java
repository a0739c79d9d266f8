package rackwise.assignor;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The fairest fractional loads of members with different subscriptions, by decomposition (Fujishige): where a maximum
 * flow cannot give every member the average, the minimum cut separates the members into two smaller problems.
 */
final class LoadDecomposition {

    /** What a unit costs that the members of a part cannot take: 1, so that a flow of least cost is a maximum flow. */
    private static final FlowNetwork.Prices SPILL = new FlowNetwork.Prices(0, 1);

    /**
     * Partitions that some members share evenly.
     *
     * @param subscriptions the subscriptions of these members
     * @param partitions the number of partitions
     * @param members the number of members, at least 1
     */
    record Share(int[] subscriptions, long partitions, long members) {

        int low() {
            return (int) (partitions / members);
        }

        int rest() {
            return (int) (partitions % members);
        }
    }

    /** A problem of its own: these audiences have their partitions read by members with these subscriptions. */
    private record Part(int[] audiences, int[] subscriptions) {
    }

    private final boolean[][] reads;
    private final int[] partitions;
    private final int[] members;

    private LoadDecomposition(boolean[][] reads, int[] partitions, int[] members) {
        this.reads = reads;
        this.partitions = partitions;
        this.members = members;
    }

    /**
     * Returns the shares; a subscription without partitions is in none.
     *
     * @param reads (audience, subscription): do its members read these topics
     * @param partitions audience to its partitions
     * @param members subscription to its members
     */
    static List<Share> of(boolean[][] reads, int[] partitions, int[] members) {
        return new LoadDecomposition(reads, partitions, members).shares();
    }

    private List<Share> shares() {
        List<Share> shares = new ArrayList<>();
        Deque<Part> parts = new ArrayDeque<>();
        int[] audiences = IntStream.range(0, partitions.length).toArray();
        parts.push(new Part(audiences, IntStream.range(0, members.length).toArray()));
        while (!parts.isEmpty()) {
            Part part = parts.pop();
            long items = Arrays.stream(part.audiences).asLongStream().map(each -> partitions[(int) each]).sum();
            long clients = Arrays.stream(part.subscriptions).asLongStream().map(each -> members[(int) each]).sum();
            if (items == 0 || clients == 0) {
                continue;
            }
            Part heavy = overloaded(part, items, clients);
            if (heavy.subscriptions.length == 0) {
                shares.add(new Share(part.subscriptions, items, clients));
            } else {
                parts.push(heavy);
                parts.push(new Part(
                    without(part.audiences, heavy.audiences), without(part.subscriptions, heavy.subscriptions)));
            }
        }
        return shares;
    }

    /** Returns the source side of a minimum cut: what does not fit and the members that are full because of it. */
    private Part overloaded(Part part, long items, long clients) {
        if (part.subscriptions.length == 1) {
            return new Part(new int[0], new int[0]);
        }
        FlowNetwork network = new FlowNetwork(part.audiences.length * part.subscriptions.length);
        int audience = network.addNodes(part.audiences.length);
        int subscription = network.addNodes(part.subscriptions.length);
        int sink = network.addNodes(2);
        int aside = sink + 1;
        int[][] across = new int[part.audiences.length][part.subscriptions.length];
        int[] spill = new int[part.audiences.length];
        for (int a = 0; a < spill.length; a++) {
            long supply = partitions[part.audiences[a]] * clients;
            network.addSupply(audience + a, supply);
            network.addSupply(sink, -supply);
            for (int s = 0; s < part.subscriptions.length; s++) {
                boolean may = reads[part.audiences[a]][part.subscriptions[s]];
                across[a][s] = may ? network.addArc(audience + a, subscription + s, supply, 0, 0) : -1;
            }
            spill[a] = network.addArc(audience + a, aside, supply, 0, 1);
        }
        network.addArc(aside, sink, items * clients, 0, 0);
        for (int s = 0; s < part.subscriptions.length; s++) {
            network.addArc(subscription + s, sink, members[part.subscriptions[s]] * items, 0, 0);
        }
        return reachable(part, LeastCostFlow.solve(network, SPILL), across, spill);
    }

    /** Closes the set of audiences that spill: their members are full, and so is what else these members take. */
    private static Part reachable(Part part, ResidualFlow flow, int[][] across, int[] spill) {
        boolean[] audiences = new boolean[spill.length];
        boolean[] subscriptions = new boolean[part.subscriptions.length];
        Deque<Integer> open = new ArrayDeque<>();
        for (int a = 0; a < spill.length; a++) {
            if (flow.units(spill[a]) > 0) {
                audiences[a] = true;
                open.push(a);
            }
        }
        while (!open.isEmpty()) {
            int a = open.pop();
            for (int s = 0; s < subscriptions.length; s++) {
                if (across[a][s] < 0 || subscriptions[s]) {
                    continue;
                }
                subscriptions[s] = true;
                for (int other = 0; other < audiences.length; other++) {
                    if (!audiences[other] && across[other][s] >= 0 && flow.units(across[other][s]) > 0) {
                        audiences[other] = true;
                        open.push(other);
                    }
                }
            }
        }
        return new Part(chosen(part.audiences, audiences), chosen(part.subscriptions, subscriptions));
    }

    private static int[] chosen(int[] all, boolean[] which) {
        return IntStream.range(0, all.length).filter(at -> which[at]).map(at -> all[at]).toArray();
    }

    private static int[] without(int[] all, int[] some) {
        return Arrays.stream(all).filter(each -> Arrays.binarySearch(some, each) < 0).toArray();
    }
}
