package rackwise.assignor;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.modern.SubscribedTopicDescriberImpl;
import org.apache.kafka.coordinator.group.modern.TopicIds;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;

/**
 * The broker's own view of topics: an image of metadata with one broker per rack and one without a rack. What is around
 * the image has another constructor in Kafka 4.1 than later; these are found by what they take.
 */
final class BrokerClasses {

    private static final int WITHOUT_RACK = 0;

    private final MetadataImage image;
    private final Map<String, Uuid> ids = new LinkedHashMap<>();

    /** Makes topics, each a list of partitions, each a list of racks with a replica. */
    BrokerClasses(Map<String, List<List<String>>> topics) {
        Map<String, Integer> brokers = new LinkedHashMap<>();
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        delta.replay(new RegisterBrokerRecord().setBrokerId(WITHOUT_RACK).setRack(null));
        topics.values().forEach(partitions -> partitions.forEach(racks -> racks.forEach(rack -> {
            if (!brokers.containsKey(rack)) {
                brokers.put(rack, brokers.size() + 1);
                delta.replay(new RegisterBrokerRecord().setBrokerId(brokers.get(rack)).setRack(rack));
            }
        })));
        for (Map.Entry<String, List<List<String>>> topic : topics.entrySet()) {
            if (topic.getValue().isEmpty()) {
                continue;
            }
            Uuid id = new Uuid(7, ids.size());
            ids.put(topic.getKey(), id);
            delta.replay(new TopicRecord().setName(topic.getKey()).setTopicId(id));
            for (int number = 0; number < topic.getValue().size(); number++) {
                List<Integer> replicas = new ArrayList<>();
                topic.getValue().get(number).forEach(rack -> replicas.add(brokers.get(rack)));
                if (replicas.isEmpty()) {
                    replicas.add(WITHOUT_RACK);
                }
                delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(number).setReplicas(replicas)
                    .setIsr(replicas).setLeader(replicas.get(0)));
            }
        }
        image = delta.apply(MetadataProvenance.EMPTY);
    }

    /** Returns the id of a topic; one that does not exist has one that no topic has. */
    Uuid id(String topic) {
        return ids.getOrDefault(topic, new Uuid(8, topic.hashCode()));
    }

    String name(Uuid id) {
        return ids.entrySet().stream().filter(each -> each.getValue().equals(id)).findFirst().orElseThrow().getKey();
    }

    SubscribedTopicDescriber describer() {
        return make(SubscribedTopicDescriberImpl.class);
    }

    /** Returns the topics of a subscription as the coordinator passes them; the resolver is shared by a group. */
    Set<Uuid> subscription(Iterable<String> topics, TopicIds.TopicResolver resolver) {
        Set<String> names = new LinkedHashSet<>();
        topics.forEach(names::add);
        return new TopicIds(names, resolver);
    }

    TopicIds.TopicResolver resolver() {
        return make(TopicIds.CachedTopicResolver.class);
    }

    private <T> T make(Class<T> type) {
        try {
            for (Constructor<?> constructor : type.getConstructors()) {
                Object argument = imageAs(constructor.getParameterTypes()[0]);
                if (constructor.getParameterCount() == 1 && argument != null) {
                    return type.cast(constructor.newInstance(argument));
                }
            }
        } catch (ReflectiveOperationException changed) {
            throw new IllegalStateException(changed);
        }
        String known = Arrays.toString(type.getConstructors());
        throw new IllegalStateException("no constructor of " + type + " fits: " + known);
    }

    private Object imageAs(Class<?> wanted) throws ReflectiveOperationException {
        if (wanted.isInstance(image)) {
            return image;
        }
        if (wanted.isInstance(image.topics())) {
            return image.topics();
        }
        if (wanted.getSimpleName().equals("CoordinatorMetadataImage")) {
            Class<?> wrapper = Class.forName(wanted.getPackageName() + ".KRaftCoordinatorMetadataImage");
            return wrapper.getConstructor(MetadataImage.class).newInstance(image);
        }
        return null;
    }
}
