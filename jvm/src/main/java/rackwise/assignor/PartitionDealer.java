package rackwise.assignor;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * Gives every partition its member, as a flow says how many of each class leave and arrive.
 *
 * <p>Of a class the last partitions leave. Arrivals are dealt in one of two orders. Spread: by number and then by
 * topic, and to the member that has the same number of a topic of the same size and subscribers where the flow leaves
 * that open; so topics spread over members. In blocks: by topic and then by number; so a member has few topics and a
 * short record.
 */
final class PartitionDealer {

    private final PlacementNetwork placement;
    private final GroupModel model;
    private final boolean inBlocks;
    /** What is left to deal on an arc. */
    private final long[] left;
    private final int[] client;
    /** Partition to its unit: the partitions of one number of topics of the same size and subscribers. */
    private final int[] unit;
    /** Unit to the member that took one of its partitions last, or -1. */
    private final int[] mate;
    /** Audience and rack to the first member that may have room. */
    private final int[][] firstWithRoom;

    private PartitionDealer(PlacementNetwork placement, ResidualFlow flow, boolean inBlocks) {
        this.placement = placement;
        this.model = placement.model;
        this.inBlocks = inBlocks;
        left = new long[placement.network.arcs()];
        for (int arc = 0; arc < left.length; arc++) {
            left[arc] = flow.units(arc);
        }
        client = model.owner().clone();
        unit = new int[client.length];
        mate = new int[numberUnits()];
        Arrays.fill(mate, -1);
        firstWithRoom = new int[model.topics().audiences()][model.members().racks() + 1];
    }

    /** Returns partition to member. */
    static int[] deal(PlacementNetwork placement, ResidualFlow flow, boolean inBlocks) {
        return new PartitionDealer(placement, flow, inBlocks).deal();
    }

    private int numberUnits() {
        Map<Long, Integer> firstUnit = new HashMap<>();
        int count = 0;
        for (int topic = 0; topic < model.topics().count(); topic++) {
            int size = model.topics().partitions(topic);
            long alike = (long) model.topics().audience()[topic] << 32 | size;
            Integer first = firstUnit.putIfAbsent(alike, count);
            if (first == null) {
                first = count;
                count += size;
            }
            for (int number = 0; number < size; number++) {
                unit[model.topics().first()[topic] + number] = first + number;
            }
        }
        return count;
    }

    private int[] deal() {
        dismissLeavers();
        for (int each : arrivals()) {
            int audience = placement.audience[placement.pool[each]];
            int beside = inBlocks ? -1 : mate[unit[each]];
            int rack = exit(placement.pool[each], audience, beside < 0 ? -1 : model.members().rack()[beside]);
            client[each] = take(audience, rack, beside);
            mate[unit[each]] = client[each];
        }
        return client;
    }

    private void dismissLeavers() {
        for (int each = client.length - 1; each >= 0; each--) {
            int leaves = placement.classOf[each];
            if (leaves >= 0 && left[leaves] > 0) {
                left[leaves]--;
                client[each] = -1;
            } else if (client[each] >= 0) {
                mate[unit[each]] = client[each];
            }
        }
    }

    private int[] arrivals() {
        int[] waiting = IntStream.range(0, client.length).filter(each -> client[each] < 0).toArray();
        if (inBlocks) {
            return waiting;
        }
        int[] next = new int[mate.length + 1];
        for (int each : waiting) {
            next[unit[each] + 1]++;
        }
        for (int each = 1; each < next.length; each++) {
            next[each] += next[each - 1];
        }
        int[] sorted = new int[waiting.length];
        for (int each : waiting) {
            sorted[next[unit[each]]++] = each;
        }
        return sorted;
    }

    /** Returns the rack to which a partition of a pool goes, the wished one where it is open. */
    private int exit(int pool, int audience, int wished) {
        int[] direct = placement.toRack[pool];
        if (wished >= 0 && direct[wished] >= 0 && left[direct[wished]] > 0) {
            left[direct[wished]]--;
            return wished;
        }
        for (int rack = 0; rack < direct.length; rack++) {
            if (direct[rack] >= 0 && left[direct[rack]] > 0) {
                left[direct[rack]]--;
                return rack;
            }
        }
        left[placement.toAny[pool]]--;
        int[] any = placement.anyToRack[audience];
        int rack = wished >= 0 && left[any[wished]] > 0 ? wished : 0;
        while (left[any[rack]] == 0) {
            rack++;
        }
        left[any[rack]]--;
        return rack;
    }

    private int take(int audience, int rack, int wished) {
        int[] arcs = placement.toMember[audience];
        boolean open = wished >= 0 && hasRoom(arcs, wished, rack);
        int member = open ? wished : firstWithRoom[audience][rack];
        while (!hasRoom(arcs, member, rack)) {
            member++;
        }
        if (!open) {
            firstWithRoom[audience][rack] = member;
        }
        left[arcs[member]]--;
        return member;
    }

    private boolean hasRoom(int[] arcs, int member, int rack) {
        return model.members().rack()[member] == rack && arcs[member] >= 0 && left[arcs[member]] > 0;
    }
}
