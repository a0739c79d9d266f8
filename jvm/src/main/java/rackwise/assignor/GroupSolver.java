package rackwise.assignor;

import java.util.Map;

import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/**
 * Solves one group. When the records of the optimum exceed the limit of a batch, the answer steps down: the same
 * optimum dealt in blocks, then the fewest moves, dealt in blocks.
 */
final class GroupSolver {

    private final AssignorSettings settings;
    private final AssignorStatus status;

    GroupSolver(AssignorSettings settings, AssignorStatus status) {
        this.settings = settings;
        this.status = status;
    }

    /**
     * Returns a validated answer that fits into one batch.
     *
     * @throws GroupTooLargeException when the group or every answer is above its limit
     * @throws IllegalStateException when the answer is not valid
     */
    GroupAssignment solve(GroupSpec group, SubscribedTopicDescriber topics) {
        if (group.memberIds().isEmpty()) {
            return new GroupAssignment(Map.of());
        }
        GroupModel model = GroupReader.read(new BrokerView(group, topics), settings);
        PlacementNetwork placement = new PlacementNetwork(model, FairLoads.of(model));
        MoveLimit limit = new MoveLimit(placement);
        MoveLimit.Choice choice = limit.best(settings.maxMoves());

        GroupAssignment spread = answer(group, placement, choice.flow(), false);
        if (fits(group, spread)) {
            return counted(choice.limited(), spread);
        }
        GroupAssignment blocks = answer(group, placement, choice.flow(), true);
        if (fits(group, blocks)) {
            status.steppedDown();
            return counted(choice.limited(), blocks);
        }
        GroupAssignment fewest = answer(group, placement, limit.fewestMoves(), true);
        if (fits(group, fewest)) {
            status.steppedDown();
            return counted(true, fewest);
        }
        throw new GroupTooLargeException("the records of the smallest answer have " + BatchSize.of(group, fewest)
            + " bytes; " + AssignorSettings.MAX_BATCH_BYTES + " or message.max.bytes allows "
            + settings.maxBatchBytes());
    }

    private static GroupAssignment answer(
            GroupSpec group, PlacementNetwork placement, ResidualFlow flow, boolean inBlocks) {
        int[] client = PartitionDealer.deal(placement, flow, inBlocks);
        GroupAssignment answer = AnswerBuilder.build(group, placement.model, client);
        AnswerCheck.check(placement.model, answer);
        return answer;
    }

    private boolean fits(GroupSpec group, GroupAssignment answer) {
        return BatchSize.of(group, answer) <= settings.maxBatchBytes();
    }

    private GroupAssignment counted(boolean limited, GroupAssignment answer) {
        if (limited) {
            status.limited();
        }
        return answer;
    }
}
