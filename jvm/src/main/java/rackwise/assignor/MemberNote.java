package rackwise.assignor;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

import org.apache.kafka.common.TopicPartition;

/**
 * What a member says of itself in the user data of its subscription, byte for byte as Python's members write it.
 *
 * <p>Magic number, version (int8), flags (int8; bit 0: the partitions are still held), generation (int32), rack and
 * instance id (nullable strings), owned partitions (array of topic and array of int32). Newer versions only append.
 *
 * @param rack null for none
 * @param instanceId {@code group.instance.id}, null for none
 * @param owned the partitions of its latest assignment
 * @param generation the generation of that assignment, or {@link #NO_GENERATION}
 * @param held true when it reads them until they are revoked, false when it has revoked them
 */
record MemberNote(String rack, String instanceId, List<TopicPartition> owned, int generation, boolean held) {

    static final int NO_GENERATION = -1;
    /** The note of a member that sends none, or none that can be read. */
    static final MemberNote NONE = new MemberNote(null, null, List.of(), NO_GENERATION, false);

    private static final int MAGIC = 0xfa52434b;
    private static final int VERSION = 1;
    private static final int HELD = 1;

    /** Returns the bytes of the note. */
    ByteBuffer write() {
        Map<String, TreeSet<Integer>> topics = new TreeMap<>();
        for (TopicPartition each : owned) {
            topics.computeIfAbsent(each.topic(), topic -> new TreeSet<>()).add(each.partition());
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeInt(MAGIC);
            out.writeByte(VERSION);
            out.writeByte(held ? HELD : 0);
            out.writeInt(generation);
            writeString(out, rack);
            writeString(out, instanceId);
            out.writeInt(topics.size());
            for (Map.Entry<String, TreeSet<Integer>> topic : topics.entrySet()) {
                writeString(out, topic.getKey());
                out.writeInt(topic.getValue().size());
                for (int number : topic.getValue()) {
                    out.writeInt(number);
                }
            }
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return ByteBuffer.wrap(bytes.toByteArray());
    }

    /** Returns the note in a member's user data; {@link #NONE} for null and for other clients' bytes. */
    static MemberNote read(ByteBuffer userData) {
        if (userData == null) {
            return NONE;
        }
        ByteBuffer in = userData.duplicate();
        try {
            if (in.getInt() != MAGIC || in.get() < VERSION) {
                return NONE;
            }
            boolean held = (in.get() & HELD) == HELD;
            int generation = Math.max(NO_GENERATION, in.getInt());
            String rack = readString(in);
            String instanceId = readString(in);
            List<TopicPartition> owned = readPartitions(in);
            return new MemberNote("".equals(rack) ? null : rack, instanceId, owned, generation, held);
        } catch (BufferUnderflowException | CharacterCodingException unreadable) {
            return NONE;
        }
    }

    private static void writeString(DataOutputStream out, String text) throws IOException {
        byte[] bytes = text == null ? null : text.getBytes(StandardCharsets.UTF_8);
        if (bytes == null || bytes.length > Short.MAX_VALUE) {
            out.writeShort(-1);
            return;
        }
        out.writeShort(bytes.length);
        out.write(bytes);
    }

    private static List<TopicPartition> readPartitions(ByteBuffer in) throws CharacterCodingException {
        List<TopicPartition> partitions = new ArrayList<>();
        for (int topics = readCount(in, Short.BYTES + Integer.BYTES); topics > 0; topics--) {
            String topic = readString(in);
            if (topic == null) {
                throw new BufferUnderflowException();
            }
            for (int left = readCount(in, Integer.BYTES); left > 0; left--) {
                partitions.add(new TopicPartition(topic, in.getInt()));
            }
        }
        return partitions;
    }

    /** Reads a count that the bytes behind it can hold. */
    private static int readCount(ByteBuffer in, int smallest) {
        int count = in.getInt();
        if (count < 0 || (long) count * smallest > in.remaining()) {
            throw new BufferUnderflowException();
        }
        return count;
    }

    private static String readString(ByteBuffer in) throws CharacterCodingException {
        int length = in.getShort();
        if (length < 0) {
            return null;
        }
        if (length > in.remaining()) {
            throw new BufferUnderflowException();
        }
        ByteBuffer text = in.slice(in.position(), length);
        in.position(in.position() + length);
        // A new decoder reports bytes that are no text.
        return StandardCharsets.UTF_8.newDecoder().decode(text).toString();
    }
}
