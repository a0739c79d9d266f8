package rackwise.streams;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.List;

import rackwise.assignor.FlowNetwork;
import rackwise.assignor.LeastCostFlow;
import rackwise.assignor.ResidualFlow;

/**
 * The network of an application, in which a flow of least cost is an optimal placement of active tasks.
 *
 * <pre>
 * (subtopology, process) --leaves--> pool --> hub (subtopology, rack) --> (subtopology, process) --> process --> +1
 *                                     \--> holder of a copy --/
 *                                      \--> any rack (subtopology) --> hub
 * </pre>
 *
 * <p>The first level of cost is KIP-925's: {@code traffic_cost} for each source partition without a replica in the rack
 * of its process and {@code non_overlap_cost} for each task that moves. Among equals the second level counts moves, and
 * then what has to be restored: nothing where a copy has caught up, less where there is a copy. So a destination that
 * is warming up stays the destination.
 */
final class TaskNetwork {

    /** What a move costs in the second level beyond the move itself, by what there is at its destination. */
    private static final int BEHIND = 1;
    private static final int NO_COPY = 2;
    private static final double MOST_TOTAL = 1L << 60;

    private final ApplicationModel model;
    private final TaskShares shares;
    private final TaskPools pools;
    private final FlowNetwork network;
    private final long move;
    private final long trafficCost;
    private final long moveCost;
    private final int hubs;
    /** Subtopology and process to their node, or -1 when no task starts or arrives there other than by the hub. */
    private final int[][] pair;
    private final int firstProcess;
    private final int firstPool;
    private final int firstHub;
    private final int firstAny;
    private long dearest;
    private final int[] leave;
    private final int[][] toHolder;
    private final int[][] toRack;
    private final int[] toAny;
    private final int[][] anyToRack;
    private final int[][] fromHub;

    TaskNetwork(ApplicationModel model, TaskShares shares) {
        this.model = model;
        this.shares = shares;
        pools = new TaskPools(model);
        int processes = model.processes().count();
        int subtopologies = model.tasks().subtopologies();
        hubs = model.processes().racks() + 1;
        move = 2L * model.tasks().count() + 1;
        BigInteger traffic = BigInteger.valueOf(model.settings().trafficCost());
        long divisor = Math.max(1, traffic.gcd(BigInteger.valueOf(model.settings().moveCost())).longValue());
        trafficCost = model.settings().trafficCost() / divisor;
        moveCost = model.settings().moveCost() / divisor;
        network = new FlowNetwork(pools.classes + pools.pools.size() * (hubs + 2) + subtopologies * (processes + hubs));
        firstProcess = network.addNodes(processes);
        firstPool = network.addNodes(pools.pools.size());
        firstHub = network.addNodes(subtopologies * hubs);
        firstAny = network.addNodes(subtopologies);
        pair = new int[subtopologies][processes];
        leave = new int[pools.classes];
        toHolder = new int[pools.pools.size()][];
        toRack = new int[pools.pools.size()][hubs];
        toAny = new int[pools.pools.size()];
        anyToRack = new int[subtopologies][hubs];
        fromHub = new int[subtopologies][processes];
        addPairs();
        addOwners();
        for (int each = 0; each < pools.pools.size(); each++) {
            addExits(each, pools.pools.get(each));
        }
        addHubs();
        addTotals();
    }

    /** Returns the process of each task. */
    int[] place() {
        // One more than all moves together can cost in the second level.
        long first = model.tasks().count() * (move + NO_COPY) + 1;
        // Where costs are so high that sums would not fit, the first level alone still is exact.
        double longest = 4.0 * Math.max(1, dearest) * first * network.nodes();
        boolean both = longest < MOST_TOTAL;
        FlowNetwork.Prices prices = both ? new FlowNetwork.Prices(first, 1) : new FlowNetwork.Prices(1, 0);
        return new TaskDealer(LeastCostFlow.solve(network, prices)).deal();
    }

    private void addPairs() {
        for (int[] row : pair) {
            Arrays.fill(row, -1);
        }
        for (int each = 0; each < pools.classes; each++) {
            addPair(pools.pools.get(pools.poolOfClass[each]).subtopology(), pools.ownerOfClass[each]);
        }
        pools.pools.forEach(pool -> pool.holders().forEach(holder -> addPair(pool.subtopology(), holder)));
    }

    private void addPair(int subtopology, int process) {
        if (pair[subtopology][process] < 0) {
            int node = network.addNodes(1);
            int low = shares.groupLow()[subtopology][process];
            pair[subtopology][process] = node;
            network.addArc(node, firstProcess + process, shares.groupHigh()[subtopology][process] - low, 0, 0);
            network.addSupply(node, -low);
            network.addSupply(firstProcess + process, low);
        }
    }

    private void addOwners() {
        for (int each = 0; each < pools.classes; each++) {
            int owner = pools.ownerOfClass[each];
            TaskPools.Pool pool = pools.pools.get(pools.poolOfClass[each]);
            int node = pair[pool.subtopology()][owner];
            network.addSupply(node, pools.sizeOfClass[each]);
            long stays = traffic(pool, model.processes().rack()[owner]);
            leave[each] =
                network.addArc(node, firstPool + pools.poolOfClass[each], pools.sizeOfClass[each], -stays, 0);
        }
        for (int task = 0; task < pools.of.length; task++) {
            if (pools.classOf[task] < 0) {
                network.addSupply(firstPool + pools.of[task], 1);
            }
        }
    }

    private long traffic(TaskPools.Pool pool, int rack) {
        long price = trafficCost * model.tasks().sources().misses()[pool.kind()][rack];
        dearest = Math.max(dearest, price + moveCost);
        return price;
    }

    private void addExits(int number, TaskPools.Pool pool) {
        long restore = move + (pool.stateful() ? NO_COPY : 0);
        int node = firstPool + number;
        toHolder[number] = new int[pool.holders().size()];
        for (int each = 0; each < toHolder[number].length; each++) {
            int holder = pool.holders().get(each);
            long price = traffic(pool, model.processes().rack()[holder]) + moveCost;
            long behind = move + (pool.ready().get(each) ? 0 : BEHIND);
            toHolder[number][each] =
                network.addArc(node, pair[pool.subtopology()][holder], FlowNetwork.MANY, price, behind);
        }
        long most = 0;
        for (int rack = 0; rack < hubs; rack++) {
            most = Math.max(most, traffic(pool, rack));
        }
        for (int rack = 0; rack < hubs; rack++) {
            long price = traffic(pool, rack);
            int hub = firstHub + pool.subtopology() * hubs + rack;
            toRack[number][rack] =
                price < most ? network.addArc(node, hub, FlowNetwork.MANY, price + moveCost, restore) : -1;
        }
        toAny[number] = network.addArc(node, firstAny + pool.subtopology(), FlowNetwork.MANY, most + moveCost, restore);
    }

    private void addHubs() {
        for (int subtopology = 0; subtopology < pair.length; subtopology++) {
            for (int rack = 0; rack < hubs; rack++) {
                int hub = firstHub + subtopology * hubs + rack;
                anyToRack[subtopology][rack] = network.addArc(firstAny + subtopology, hub, FlowNetwork.MANY, 0, 0);
            }
            for (int process = 0; process < pair[subtopology].length; process++) {
                int hub = firstHub + subtopology * hubs + model.processes().rack()[process];
                fromHub[subtopology][process] = addEntry(hub, subtopology, process);
            }
        }
    }

    /** A process without a node of its own for the subtopology has its bounds on the arc from the hub. */
    private int addEntry(int hub, int subtopology, int process) {
        if (pair[subtopology][process] >= 0) {
            return network.addArc(hub, pair[subtopology][process], FlowNetwork.MANY, 0, 0);
        }
        int low = shares.groupLow()[subtopology][process];
        network.addSupply(hub, -low);
        network.addSupply(firstProcess + process, low);
        return network.addArc(hub, firstProcess + process, shares.groupHigh()[subtopology][process] - low, 0, 0);
    }

    private void addTotals() {
        int more = network.addNodes(1);
        network.addSupply(more, -shares.raised());
        for (int process = 0; process < shares.low().length; process++) {
            network.addSupply(firstProcess + process, -shares.low()[process]);
            if (shares.uneven()[process]) {
                network.addArc(firstProcess + process, more, 1, 0, 0);
            }
        }
    }

    /** Gives each task its process: of a class the last tasks leave, and arrivals are dealt in the order of tasks. */
    private final class TaskDealer {

        private final ResidualFlow flow;
        private final int[] process = model.tasks().owner().clone();

        TaskDealer(ResidualFlow flow) {
            this.flow = flow;
        }

        int[] deal() {
            TaskQueue[] leaving = leaving();
            TaskQueue[] arriving = TaskQueue.several(pair.length * hubs);
            TaskQueue[] anywhere = TaskQueue.several(pair.length);
            for (int number = 0; number < leaving.length; number++) {
                TaskPools.Pool pool = pools.pools.get(number);
                for (int each = 0; each < toHolder[number].length; each++) {
                    give(leaving[number], flow.units(toHolder[number][each]), pool.holders().get(each));
                }
                for (int rack = 0; rack < hubs; rack++) {
                    if (toRack[number][rack] >= 0) {
                        long units = flow.units(toRack[number][rack]);
                        leaving[number].moveTo(arriving[pool.subtopology() * hubs + rack], units);
                    }
                }
                leaving[number].moveTo(anywhere[pool.subtopology()], flow.units(toAny[number]));
            }
            for (int subtopology = 0; subtopology < pair.length; subtopology++) {
                anywhere[subtopology].sort();
                for (int rack = 0; rack < hubs; rack++) {
                    long units = flow.units(anyToRack[subtopology][rack]);
                    anywhere[subtopology].moveTo(arriving[subtopology * hubs + rack], units);
                }
                enter(subtopology, Arrays.asList(arriving).subList(subtopology * hubs, (subtopology + 1) * hubs));
            }
            return process;
        }

        private TaskQueue[] leaving() {
            long[] units = new long[leave.length];
            for (int each = 0; each < leave.length; each++) {
                units[each] = pools.sizeOfClass[each] - flow.units(leave[each]);
            }
            TaskQueue[] leaving = TaskQueue.several(pools.pools.size());
            for (int task = 0; task < process.length; task++) {
                if (pools.classOf[task] < 0 || units[pools.classOf[task]]-- <= 0) {
                    leaving[pools.of[task]].add(task);
                }
            }
            return leaving;
        }

        private void enter(int subtopology, List<TaskQueue> arriving) {
            arriving.forEach(TaskQueue::sort);
            for (int to = 0; to < pair[subtopology].length; to++) {
                long low = pair[subtopology][to] < 0 ? shares.groupLow()[subtopology][to] : 0;
                long units = flow.units(fromHub[subtopology][to]) + low;
                give(arriving.get(model.processes().rack()[to]), units, to);
            }
        }

        private void give(TaskQueue tasks, long units, int to) {
            for (long unit = 0; unit < units; unit++) {
                process[tasks.next()] = to;
            }
        }
    }
}
