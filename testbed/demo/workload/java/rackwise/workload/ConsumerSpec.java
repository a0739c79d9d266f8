package rackwise.workload;

import java.util.List;
import java.util.Map;

/**
 * A Java consumer to start.
 *
 * @param id       name in this JVM and {@code client.id}
 * @param group    {@code group.id}
 * @param topics   its subscription
 * @param rack     {@code client.rack}; null sends none
 * @param settings any further consumer settings; they win over the defaults
 */
record ConsumerSpec(String id, String group, List<String> topics, String rack, Map<String, String> settings) {
    ConsumerSpec {
        topics = List.copyOf(topics);
        settings = settings == null ? Map.of() : Map.copyOf(settings);
    }
}
