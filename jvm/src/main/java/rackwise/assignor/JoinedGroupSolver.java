package rackwise.assignor;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Uuid;

/** Solves a group of the classic protocol, without limits: a leader's answer must not depend on its settings. */
final class JoinedGroupSolver {

    private static final AssignorSettings NO_LIMITS =
        new AssignorSettings(AssignorSettings.UNLIMITED, AssignorSettings.UNLIMITED, AssignorSettings.UNLIMITED);

    private JoinedGroupSolver() {
    }

    /**
     * Returns member to the partitions that it reads in the optimum.
     *
     * @throws GroupTooLargeException when members are in more than 63 racks
     * @throws IllegalStateException when the answer is not valid
     */
    static Map<String, Map<Uuid, Set<Integer>>> solve(GroupView group) {
        Map<String, Map<Uuid, Set<Integer>>> answer = new HashMap<>();
        if (group.members().isEmpty()) {
            return answer;
        }
        GroupModel model = GroupReader.read(group, NO_LIMITS);
        PlacementNetwork placement = new PlacementNetwork(model, FairLoads.of(model));
        MoveLimit.Choice choice = new MoveLimit(placement).best(NO_LIMITS.maxMoves());
        int[] client = PartitionDealer.deal(placement, choice.flow(), false);
        int[] topicOf = model.topicOfPartition();
        for (int each = 0; each < client.length; each++) {
            int topic = topicOf[each];
            int number = each - model.topics().first()[topic];
            if (client[each] < 0 || !model.reads(client[each], model.topics().audience()[topic])) {
                throw new IllegalStateException(
                    "partition " + number + " of topic number " + topic + " has no member that subscribes to it");
            }
            answer.computeIfAbsent(model.members().ids()[client[each]], none -> new HashMap<>())
                .computeIfAbsent(model.topics().ids()[topic], none -> new HashSet<>()).add(number);
        }
        return answer;
    }
}
