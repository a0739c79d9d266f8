package rackwise.assignor;

import java.util.Arrays;

/**
 * The network of a group, in which a flow of least cost is an optimal assignment.
 *
 * <pre>
 * member --leaves--> pool (audience, racks) --> hub (audience, rack) --> member --> one more than the least load
 *                                         \--> any rack (audience) --/
 * </pre>
 *
 * <p>A class is the partitions of one pool that one member has. A partition that leaves saves what it costs to stay, a
 * pool reaches the hubs of racks with a replica directly and all others by "any rack", where the partition is read
 * across racks. The hub after those of all racks is that of members without a rack.
 */
final class PlacementNetwork {

    final GroupModel model;
    final FlowNetwork network;
    /** Partition to its pool. */
    final int[] pool;
    /** Partition to its class, or -1 when no member has it. */
    final int[] classOf;
    /** Pool to its audience, and to its set of racks. */
    final int[] audience;
    final int[] kind;
    /** Class to the arc on which its partitions leave; arcs of classes ascend from 0. */
    final int classes;
    /** Pool and rack to the arc between them, or -1. */
    final int[][] toRack;
    /** Pool to the arc to "any rack". */
    final int[] toAny;
    /** Audience and rack to the arc from "any rack". */
    final int[][] anyToRack;
    /** Audience and member to the arc from the member's hub, or -1. */
    final int[][] toMember;
    private final int firstMember;

    PlacementNetwork(GroupModel model, FairLoads loads) {
        this.model = model;
        int members = model.members().count();
        int audiences = model.topics().audiences();
        int hubs = model.members().racks() + 1;
        pool = new int[model.partitions()];
        int[][] pools = numberPools();
        int count = pools[0].length;
        audience = pools[0];
        kind = pools[1];
        network = new FlowNetwork(4 * members + count * (hubs + 1) + audiences * (members + hubs));
        firstMember = network.addNodes(members);
        int firstPool = network.addNodes(count);
        int firstHub = network.addNodes(audiences * hubs);
        int firstAny = network.addNodes(audiences);
        int firstTier = network.addNodes(loads.raised().length);

        classOf = new int[model.partitions()];
        classes = wireOwners(firstPool);
        toRack = new int[count][hubs];
        toAny = new int[count];
        wirePools(firstPool, firstHub, firstAny);
        anyToRack = new int[audiences][hubs];
        toMember = new int[audiences][members];
        wireHubs(firstHub, firstAny);
        wireLoads(loads, firstTier);
    }

    /** Numbers the pools by first appearance; returns the audience and the racks of each. */
    private int[][] numberPools() {
        int kinds = model.racksOfKind().length;
        int[] number = new int[model.topics().audiences() * kinds];
        Arrays.fill(number, -1);
        int[] audienceOf = new int[number.length];
        int[] kindOf = new int[number.length];
        int count = 0;
        for (int topic = 0; topic < model.topics().count(); topic++) {
            int row = model.topics().audience()[topic] * kinds;
            for (int each = model.topics().first()[topic]; each < model.topics().first()[topic + 1]; each++) {
                int key = row + model.kind()[each];
                if (number[key] < 0) {
                    audienceOf[count] = model.topics().audience()[topic];
                    kindOf[count] = model.kind()[each];
                    number[key] = count++;
                }
                pool[each] = number[key];
            }
        }
        return new int[][] {Arrays.copyOf(audienceOf, count), Arrays.copyOf(kindOf, count)};
    }

    /** Adds one arc for each class, member by member, and the partitions as supplies. */
    private int wireOwners(int firstPool) {
        int[] sorted = partitionsByOwner();
        int[] classOfPool = new int[audience.length];
        int[] ownerOfClass = new int[audience.length];
        Arrays.fill(ownerOfClass, -1);
        int count = 0;
        int[] size = new int[sorted.length];
        int[] from = new int[sorted.length];
        int[] to = new int[sorted.length];
        Arrays.fill(classOf, -1);
        for (int each : sorted) {
            int owner = model.owner()[each];
            int target = pool[each];
            if (ownerOfClass[target] != owner) {
                ownerOfClass[target] = owner;
                classOfPool[target] = count;
                from[count] = owner;
                to[count++] = target;
            }
            classOf[each] = classOfPool[target];
            size[classOf[each]]++;
        }
        for (int each = 0; each < count; each++) {
            boolean local = model.local(kind[to[each]], model.members().rack()[from[each]]);
            network.addSupply(firstMember + from[each], size[each]);
            network.addArc(firstMember + from[each], firstPool + to[each], size[each], local ? 0 : -1, 0);
        }
        for (int each = 0; each < pool.length; each++) {
            if (classOf[each] < 0) {
                network.addSupply(firstPool + pool[each], 1);
            }
        }
        return count;
    }

    private int[] partitionsByOwner() {
        int[] first = new int[model.members().count() + 1];
        for (int owner : model.owner()) {
            if (owner >= 0) {
                first[owner + 1]++;
            }
        }
        for (int member = 1; member < first.length; member++) {
            first[member] += first[member - 1];
        }
        int[] sorted = new int[first[first.length - 1]];
        for (int each = 0; each < pool.length; each++) {
            if (model.owner()[each] >= 0) {
                sorted[first[model.owner()[each]]++] = each;
            }
        }
        return sorted;
    }

    private void wirePools(int firstPool, int firstHub, int firstAny) {
        int hubs = model.members().racks() + 1;
        for (int each = 0; each < audience.length; each++) {
            int hub = firstHub + audience[each] * hubs;
            for (int rack = 0; rack < hubs; rack++) {
                boolean local = model.local(kind[each], rack);
                toRack[each][rack] = local ? network.addArc(firstPool + each, hub + rack, FlowNetwork.MANY, 0, 1) : -1;
            }
            toAny[each] = network.addArc(firstPool + each, firstAny + audience[each], FlowNetwork.MANY, 1, 1);
        }
    }

    private void wireHubs(int firstHub, int firstAny) {
        int hubs = model.members().racks() + 1;
        for (int each = 0; each < anyToRack.length; each++) {
            for (int rack = 0; rack < hubs; rack++) {
                int hub = firstHub + each * hubs + rack;
                anyToRack[each][rack] = network.addArc(firstAny + each, hub, FlowNetwork.MANY, 0, 0);
            }
            for (int member = 0; member < model.members().count(); member++) {
                int hub = firstHub + each * hubs + model.members().rack()[member];
                toMember[each][member] = model.reads(member, each)
                    ? network.addArc(hub, firstMember + member, FlowNetwork.MANY, 0, 0) : -1;
            }
        }
    }

    private void wireLoads(FairLoads loads, int firstTier) {
        for (int tier = 0; tier < loads.raised().length; tier++) {
            network.addSupply(firstTier + tier, -loads.raised()[tier]);
        }
        for (int member = 0; member < loads.low().length; member++) {
            network.addSupply(firstMember + member, -loads.low()[member]);
            if (loads.tier()[member] >= 0) {
                network.addArc(firstMember + member, firstTier + loads.tier()[member], 1, 0, 0);
            }
        }
    }
}
