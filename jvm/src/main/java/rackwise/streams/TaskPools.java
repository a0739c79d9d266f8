package rackwise.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Tasks that are equal but for their owner: same subtopology, same racks of their source partitions, copies of their
 * state on the same processes.
 */
final class TaskPools {

    /**
     * One pool.
     *
     * @param subtopology the subtopology of its tasks
     * @param kind the kind of their source partitions
     * @param stateful whether they have state
     * @param holders processes with a copy, other than the owner
     * @param ready by holder, whether the copies have caught up there
     */
    record Pool(int subtopology, int kind, boolean stateful, List<Integer> holders, List<Boolean> ready) {
    }

    final List<Pool> pools = new ArrayList<>();
    /** Task to its pool. */
    final int[] of;
    /** Task to its class, the tasks of one pool and one owner; -1 without an owner. */
    final int[] classOf;
    /** Class to its pool, its owner, and the number of its tasks. */
    final int[] poolOfClass;
    final int[] ownerOfClass;
    final int[] sizeOfClass;
    final int classes;

    TaskPools(ApplicationModel model) {
        ApplicationModel.Tasks tasks = model.tasks();
        of = new int[tasks.count()];
        classOf = new int[tasks.count()];
        poolOfClass = new int[tasks.count()];
        ownerOfClass = new int[tasks.count()];
        sizeOfClass = new int[tasks.count()];
        Map<Pool, Integer> numbers = new HashMap<>();
        Map<List<Integer>, Integer> classNumbers = new HashMap<>();
        for (int task = 0; task < of.length; task++) {
            Pool pool = pool(model, task);
            if (numbers.putIfAbsent(pool, pools.size()) == null) {
                pools.add(pool);
            }
            of[task] = numbers.get(pool);
            classOf[task] = -1;
            if (tasks.owner()[task] >= 0) {
                List<Integer> key = List.of(of[task], tasks.owner()[task]);
                classNumbers.putIfAbsent(key, classNumbers.size());
                int number = classNumbers.get(key);
                classOf[task] = number;
                poolOfClass[number] = of[task];
                ownerOfClass[number] = tasks.owner()[task];
                sizeOfClass[number]++;
            }
        }
        classes = classNumbers.size();
    }

    private static Pool pool(ApplicationModel model, int task) {
        ApplicationModel.Tasks tasks = model.tasks();
        boolean stateful = tasks.stateful()[task];
        List<Integer> holders = stateful ? Arrays.stream(tasks.holders()[task])
            .filter(holder -> holder != tasks.owner()[task]).boxed().toList() : List.of();
        List<Boolean> ready = holders.stream().map(holder -> model.lags().caughtUp(task, holder)).toList();
        return new Pool(tasks.subtopology()[task], tasks.sources().kind()[task], stateful, holders, ready);
    }
}
