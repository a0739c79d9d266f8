package rackwise.assignor;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;

/**
 * Validates an answer before the coordinator gets it: the coordinator itself accepts one that leaves partitions out,
 * and no member reads these.
 */
final class AnswerCheck {

    private AnswerCheck() {
    }

    /**
     * Checks that every partition of a subscribed topic has exactly one member, and that this member subscribes to it.
     *
     * @throws IllegalStateException with the first partition or member that is wrong
     */
    static void check(GroupModel model, GroupAssignment answer) {
        Map<Uuid, Integer> topics = new HashMap<>();
        for (int topic = 0; topic < model.topics().count(); topic++) {
            topics.put(model.topics().ids()[topic], topic);
        }
        boolean[] seen = new boolean[model.partitions()];
        int assigned = 0;
        for (int member = 0; member < model.members().count(); member++) {
            MemberAssignment given = answer.members().get(model.members().ids()[member]);
            if (given == null) {
                throw new IllegalStateException("member " + model.members().ids()[member] + " is not in the answer");
            }
            for (Map.Entry<Uuid, Set<Integer>> entry : given.partitions().entrySet()) {
                Integer topic = topics.get(entry.getKey());
                if (topic == null || !model.reads(member, model.topics().audience()[topic])) {
                    throw new IllegalStateException("member " + model.members().ids()[member]
                        + " does not subscribe to topic " + entry.getKey());
                }
                assigned += entry.getValue().size();
                mark(model, topic, entry.getValue(), seen);
            }
        }
        if (assigned != seen.length || answer.members().size() != model.members().count()) {
            throw new IllegalStateException(assigned + " of " + seen.length + " partitions are assigned, to "
                + answer.members().size() + " members");
        }
    }

    private static void mark(GroupModel model, int topic, Set<Integer> numbers, boolean[] seen) {
        for (int number : numbers) {
            if (number < 0 || number >= model.topics().partitions(topic)) {
                throw new IllegalStateException("topic " + model.topics().ids()[topic] + " has no partition " + number);
            }
            int partition = model.topics().first()[topic] + number;
            if (seen[partition]) {
                throw new IllegalStateException(
                    "partition " + number + " of topic " + model.topics().ids()[topic] + " is assigned twice");
            }
            seen[partition] = true;
        }
    }
}
