package rackwise.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Standbys for given active tasks: never with their active, apart, even together with the active tasks, and of least
 * cost, in this order.
 *
 * <p>One standby, or several when one tag (or the rack) has values for all copies, are one flow and optimal. Else
 * standbys are placed one by one, each time by a flow: they share as little, and may be less even. The present standbys
 * stay when they are at least as good.
 */
final class StandbyPlacer {

    private final StandbyCase standbys;

    private StandbyPlacer(StandbyCase standbys) {
        this.standbys = standbys;
    }

    /** Returns by stateful task of the case the processes of its standbys, ascending. */
    static int[][] place(StandbyCase standbys) {
        if (standbys.copies == 0) {
            return new int[standbys.tasks.length][0];
        }
        StandbyPlacer placer = new StandbyPlacer(standbys);
        int[][] placed = placer.placeAll();
        int[][] now = placer.present();
        boolean stay = now != null && standbys.quality(now).compareTo(standbys.quality(placed)) <= 0;
        return stay ? now : placed;
    }

    private int[][] placeAll() {
        boolean together = standbys.copies == 1 || standbys.spread.allApart(standbys.copies + 1);
        int perRound = together ? standbys.copies : 1;
        List<List<Integer>> placed = new ArrayList<>();
        for (int number = 0; number < standbys.tasks.length; number++) {
            placed.add(new ArrayList<>());
        }
        int[] load = standbys.load();
        for (int done = 0; done < standbys.copies; done += perRound) {
            StandbyRound round = new StandbyRound(standbys, load, done, perRound);
            List<List<Integer>> more = round.place(placed);
            for (int number = 0; number < placed.size(); number++) {
                placed.get(number).addAll(more.get(number));
                more.get(number).forEach(process -> load[process]++);
            }
        }
        return arrays(placed);
    }

    /** Returns the standbys that there are, or null unless each task has as many as it should. */
    private int[][] present() {
        int[][] now = new int[standbys.tasks.length][];
        for (int number = 0; number < now.length; number++) {
            int task = standbys.tasks[number];
            int owner = standbys.model.tasks().owner()[task];
            now[number] = Arrays.stream(standbys.model.tasks().holders()[task])
                .filter(process -> process != owner && process != standbys.active[task]).toArray();
            if (now[number].length != standbys.copies) {
                return null;
            }
        }
        return now;
    }

    private static int[][] arrays(List<List<Integer>> lists) {
        return lists.stream()
            .map(each -> each.stream().mapToInt(Integer::intValue).sorted().toArray()).toArray(int[][]::new);
    }
}
