package rackwise.workload;

import java.util.Map;

/**
 * A Kafka Streams instance to start.
 *
 * @param id       name of the instance in this JVM; its state directory
 * @param application {@code application.id}
 * @param rack     {@code client.rack}; null sends none
 * @param tags     {@code client.tag.*}
 * @param threads  {@code num.stream.threads}
 * @param settings any further Streams settings, in Kafka's dotted names; they win over the defaults
 * @param topology parts of the topology
 */
record InstanceSpec(String id, String application, String rack, Map<String, String> tags, int threads,
                    Map<String, String> settings, TopologySpec topology) {
    InstanceSpec {
        tags = tags == null ? Map.of() : Map.copyOf(tags);
        settings = settings == null ? Map.of() : Map.copyOf(settings);
        threads = threads == 0 ? 1 : threads;
    }
}
