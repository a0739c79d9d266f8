package rackwise.streams;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import rackwise.assignor.FlowNetwork;

/**
 * Nodes that are equally good, reached all at once or all but some by few arcs.
 *
 * <p>A hub has one node for all its members and, once a member is barred from some, a balanced tree of ranges. First the
 * members are filled in, then entries are asked for, then the arcs inside.
 */
final class NodeHub {

    final List<Integer> members = new ArrayList<>();
    private int root = -1;
    /** First and end of a range of members to its node, parents before children. */
    private final Map<List<Integer>, Integer> ranges = new LinkedHashMap<>();
    private final Map<Integer, Integer> place = new HashMap<>();

    /** Returns nodes through which exactly the members that are not barred are reached. */
    List<Integer> entries(FlowNetwork network, List<Integer> barred) {
        if (place.isEmpty()) {
            members.forEach(member -> place.put(member, place.size()));
        }
        List<Integer> holes = barred.stream().filter(place::containsKey).map(place::get).sorted().toList();
        if (holes.isEmpty()) {
            if (root < 0) {
                root = members.size() == 1 ? members.get(0) : network.addNodes(1);
            }
            return List.of(root);
        }
        if (ranges.isEmpty()) {
            plant(network, 0, members.size());
        }
        List<Integer> entries = new ArrayList<>();
        int start = 0;
        for (int hole : holes) {
            cover(entries, 0, members.size(), start, hole);
            start = hole + 1;
        }
        cover(entries, 0, members.size(), start, members.size());
        return entries;
    }

    /** Returns the arcs inside the hub as pairs of nodes, parents before children. */
    List<int[]> branches() {
        List<int[]> branches = new ArrayList<>();
        if (root >= 0 && members.size() > 1) {
            members.forEach(member -> branches.add(new int[] {root, member}));
        }
        ranges.forEach((range, node) -> {
            int middle = (range.get(0) + range.get(1)) / 2;
            if (range.get(1) - range.get(0) > 1) {
                branches.add(new int[] {node, ranges.get(List.of(range.get(0), middle))});
                branches.add(new int[] {node, ranges.get(List.of(middle, range.get(1)))});
            }
        });
        return branches;
    }

    private void plant(FlowNetwork network, int low, int high) {
        if (high - low == 1) {
            ranges.put(List.of(low, high), members.get(low));
            return;
        }
        ranges.put(List.of(low, high), network.addNodes(1));
        plant(network, low, (low + high) / 2);
        plant(network, (low + high) / 2, high);
    }

    private void cover(List<Integer> entries, int low, int high, int start, int end) {
        int from = Math.max(low, start);
        int to = Math.min(high, end);
        if (from >= to) {
            return;
        }
        if (from == low && to == high) {
            entries.add(ranges.get(List.of(low, high)));
            return;
        }
        cover(entries, low, (low + high) / 2, start, end);
        cover(entries, (low + high) / 2, high, start, end);
    }
}
