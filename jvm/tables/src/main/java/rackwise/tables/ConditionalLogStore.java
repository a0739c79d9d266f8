package rackwise.tables;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Log of Delta tables in S3 that several drivers write: a version's file is put on condition that there is none.
 *
 * <p>Delta's own store for S3 looks first and writes then, so of two drivers that do so at once the first loses its
 * commit. Here the store decides (If-None-Match). Where it refuses, or no answer arrives, the file is read back: its
 * writer may be this one, as requests are sent again. Each commit names its transaction, so no other has the same bytes.
 */
public final class ConditionalLogStore extends HadoopFileSystemLogStore {
    private static final String IF_NONE = "fs.option.create.conditional.overwrite";

    /** As Delta makes its stores. */
    public ConditionalLogStore(Configuration conf) {
        super(conf);
    }

    @Override
    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration conf) throws IOException {
        StringBuilder lines = new StringBuilder();
        actions.forEachRemaining(line -> lines.append(line).append('\n'));
        byte[] content = lines.toString().getBytes(StandardCharsets.UTF_8);
        FileSystem files = path.getFileSystem(conf);
        try {
            put(files, path, content, overwrite);
        } catch (IOException refused) {
            byte[] there = overwrite ? null : read(files, path);
            if (there == null) {
                throw refused;
            }
            if (!Arrays.equals(there, content)) {
                throw new FileAlreadyExistsException(path.toString());
            }
        }
    }

    private static void put(FileSystem files, Path path, byte[] content, boolean overwrite) throws IOException {
        var creating = files.createFile(path).overwrite(overwrite);
        if (!overwrite) {
            creating.must(IF_NONE, true);
        }
        // Nothing of it is there before it is closed.
        try (FSDataOutputStream out = creating.build()) {
            out.write(content);
        }
    }

    private static byte[] read(FileSystem files, Path path) throws IOException {
        try (FSDataInputStream in = files.open(path)) {
            return in.readAllBytes();
        } catch (FileNotFoundException none) {
            return null;
        }
    }

    @Override
    public Boolean isPartialWriteVisible(Path path, Configuration conf) {
        return false;
    }
}
