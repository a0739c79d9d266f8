package rackwise.assignor;

import java.util.Arrays;

import org.apache.kafka.common.Uuid;

/**
 * A consumer group as dense integers: members by id, topics by topic id, partitions by topic and number.
 *
 * @param members the members
 * @param topics the topics with subscribers and partitions
 * @param kind partition to the index of its set of racks in {@code racksOfKind}
 * @param racksOfKind bit r is set when a replica is in rack r; racks without members have no bit
 * @param owner partition to the only member that has it and still subscribes to it, or -1
 */
record GroupModel(Members members, Topics topics, int[] kind, long[] racksOfKind, int[] owner) {

    /**
     * The members of a group.
     *
     * @param ids ascending
     * @param rack member to rack; {@code racks} for a member without a rack
     * @param racks the number of racks with members
     * @param subscription member to the number of its subscription
     * @param subscriptions the number of different subscriptions
     * @param held member to the number of partitions it has now
     */
    record Members(String[] ids, int[] rack, int racks, int[] subscription, int subscriptions, int[] held) {

        int count() {
            return ids.length;
        }
    }

    /**
     * The topics of a group. Topics with the same subscribers are one audience.
     *
     * @param ids ascending
     * @param first topic to its first partition; one entry more than topics
     * @param audience topic to its audience
     * @param reads audience and subscription: do members with this subscription read its topics
     */
    record Topics(Uuid[] ids, int[] first, int[] audience, boolean[][] reads) {

        int count() {
            return ids.length;
        }

        int audiences() {
            return reads.length;
        }

        int partitions(int topic) {
            return first[topic + 1] - first[topic];
        }
    }

    int partitions() {
        return owner.length;
    }

    boolean reads(int member, int audience) {
        return topics.reads[audience][members.subscription[member]];
    }

    boolean local(int kind, int rack) {
        return rack < members.racks && (racksOfKind[kind] >>> rack & 1) == 1;
    }

    /** Returns the topic of each partition. */
    int[] topicOfPartition() {
        int[] topic = new int[partitions()];
        for (int each = 0; each < topics.count(); each++) {
            Arrays.fill(topic, topics.first[each], topics.first[each + 1], each);
        }
        return topic;
    }
}
