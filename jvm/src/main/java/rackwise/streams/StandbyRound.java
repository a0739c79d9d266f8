package rackwise.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

import rackwise.assignor.FlowNetwork;
import rackwise.assignor.LeastCostFlow;
import rackwise.assignor.ResidualFlow;

/**
 * One round of standbys by one flow: each seat (a task that needs standbys) gets as many different processes.
 *
 * <pre>
 * seats of one kind --> profile --> holder, or hub (profile, rack) --> process --> sink
 * </pre>
 *
 * <p>The first level of cost is imbalance, the second the price. Equal seats are one node, and at most as many of its
 * units enter a profile as it has seats, so none gets a process twice.
 */
final class StandbyRound {

    /**
     * What a task that needs standbys may have.
     *
     * @param profiles where they may go
     * @param barred processes in those profiles that have a copy already, ascending
     * @param holders processes in those profiles that held the task before, not barred
     * @param kind the kind of its changelogs
     */
    private record Seat(List<Integer> profiles, List<Integer> barred, List<Integer> holders, int kind) {
    }

    private final StandbyCase standbys;
    private final int copies;
    private final int done;
    private final int[] low;
    private final int[] high;
    private final FlowNetwork network = new FlowNetwork(64);
    private final List<int[]> arcs = new ArrayList<>();
    /** Profile and rack to their hub. */
    private final Map<List<Integer>, NodeHub> hubs = new LinkedHashMap<>();
    private long dearest;

    /**
     * Makes a round.
     *
     * @param load the active tasks and standbys so far by process
     * @param done the standbys so far of each task
     * @param copies the standbys that each task gets in this round; more than one only where copies are all apart
     */
    StandbyRound(StandbyCase standbys, int[] load, int done, int copies) {
        this.standbys = standbys;
        this.copies = copies;
        this.done = done;
        low = standbys.low(done + copies);
        high = standbys.high(done + copies);
        for (int process = 0; process < load.length; process++) {
            low[process] -= load[process];
            high[process] -= load[process];
            hubs.computeIfAbsent(List.of(profile(process), rack(process)), each -> new NodeHub()).members.add(process);
        }
        network.addNodes(load.length);
    }

    /** Returns the processes of each seat, given those that it has. */
    List<List<Integer>> place(List<List<Integer>> placed) {
        Map<Seat, List<Integer>> kinds = new LinkedHashMap<>();
        for (int number = 0; number < placed.size(); number++) {
            kinds.computeIfAbsent(seat(number, placed.get(number)), each -> new ArrayList<>()).add(number);
        }
        int firstKind = network.addNodes(kinds.size());
        int node = firstKind;
        for (Map.Entry<Seat, List<Integer>> kind : kinds.entrySet()) {
            network.addSupply(node, (long) kind.getValue().size() * copies);
            addGates(node++, kind.getKey(), kind.getValue().size());
        }
        hubs.values().forEach(hub -> hub.branches().forEach(branch -> addArc(branch[0], branch[1], 0)));
        int inner = arcs.size();
        addSink((long) placed.size() * copies);
        long first = dearest * placed.size() * copies + 1;
        ResidualFlow flow = LeastCostFlow.solve(network, new FlowNetwork.Prices(first, 1));
        return deal(flow, inner, firstKind, List.copyOf(kinds.values()), placed.size());
    }

    private int profile(int process) {
        return standbys.spread.profileOf(process);
    }

    private int rack(int process) {
        return standbys.model.processes().rack()[process];
    }

    private Seat seat(int number, List<Integer> placed) {
        int task = standbys.tasks[number];
        List<Integer> used = new ArrayList<>(List.of(standbys.active[task]));
        used.addAll(placed);
        List<Integer> copied = used.stream().map(this::profile).toList();
        List<Integer> profiles = standbys.spread.nextProfiles(copied, standbys.copies - done);
        List<Integer> barred = used.stream().filter(each -> profiles.contains(profile(each))).sorted().toList();
        List<Integer> holders = Arrays.stream(standbys.model.tasks().holders()[task]).boxed()
            .filter(each -> !used.contains(each) && profiles.contains(profile(each))).collect(Collectors.toList());
        return new Seat(profiles, barred, holders, standbys.model.tasks().changelogs().kind()[task]);
    }

    /** Seats that need one copy enter their profiles from their own node. */
    private void addGates(int node, Seat seat, int seats) {
        for (int profile : seat.profiles) {
            int gate = node;
            if (copies > 1) {
                gate = network.addNodes(1);
                arcs.add(new int[] {node, gate, network.addArc(node, gate, seats, 0, 0)});
            }
            for (int holder : seat.holders) {
                if (profile(holder) == profile) {
                    addArc(gate, holder, price(seat, rack(holder)));
                }
            }
            int from = gate;
            hubs.forEach((place, hub) -> {
                if (place.get(0) == profile) {
                    long price = price(seat, place.get(1)) + standbys.model.settings().moveCost();
                    hub.entries(network, seat.barred).forEach(entry -> addArc(from, entry, price));
                }
            });
        }
    }

    private long price(Seat seat, int rack) {
        return standbys.model.settings().trafficCost() * standbys.model.tasks().changelogs().misses()[seat.kind][rack];
    }

    private void addArc(int from, int to, long price) {
        dearest = Math.max(dearest, price);
        arcs.add(new int[] {from, to, network.addArc(from, to, FlowNetwork.MANY, 0, price)});
    }

    /**
     * The unit between the shares costs 1 and units above cost 1 more than they are off, because together with what is
     * missing elsewhere that adds up to a constant and all that is off.
     */
    private void addSink(long total) {
        int sink = network.addNodes(1);
        network.addSupply(sink, -total);
        for (int process = 0; process < low.length; process++) {
            int down = Math.max(0, low[process]);
            long over = Math.max(0, -high[process]);
            network.addArc(process, sink, down, 0, 0);
            network.addArc(process, sink, Math.max(0, high[process]) - down, 1, 0);
            int steps = 64 - Long.numberOfLeadingZeros(total) + 2 + 64 - Long.numberOfLeadingZeros(over);
            for (int step = 0; step < steps; step++) {
                long width = (2L << step) - 1 - Math.max(over, (1L << step) - 1);
                network.addArc(process, sink, Math.max(0, width), 2 + step, 0);
            }
        }
    }

    /** Seats walk along the arcs that carry units, layer by layer, until they reach a process. */
    private List<List<Integer>> deal(
            ResidualFlow flow, int inner, int firstKind, List<List<Integer>> kinds, int seats) {
        List<List<Integer>> at = new ArrayList<>();
        for (int node = 0; node < network.nodes(); node++) {
            at.add(new ArrayList<>());
        }
        for (int kind = 0; kind < kinds.size(); kind++) {
            for (int copy = 0; copy < copies; copy++) {
                at.get(firstKind + kind).addAll(kinds.get(kind));
            }
        }
        for (int[] arc : arcs.subList(0, inner)) {
            List<Integer> waiting = at.get(arc[0]);
            // A kind with several copies lists its seats that often; no run as long as the seats repeats one.
            List<Integer> last = waiting.subList(waiting.size() - (int) flow.units(arc[2]), waiting.size());
            at.get(arc[1]).addAll(last);
            last.clear();
        }
        List<List<Integer>> taken = new ArrayList<>();
        for (int seat = 0; seat < seats; seat++) {
            taken.add(new ArrayList<>());
        }
        for (int process = 0; process < low.length; process++) {
            for (int seat : at.get(process)) {
                taken.get(seat).add(process);
            }
        }
        return taken;
    }
}
