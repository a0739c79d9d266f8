package rackwise.workload;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Deletion of directories, which {@link Files} lacks. */
final class FileTree {
    private FileTree() {
    }

    /** Removes a directory with its contents; reports a file that cannot be removed, and leaves it. */
    static void deleteTree(final Path root) {
        if (!Files.exists(root)) {
            return;
        }
        for (final Path path : deepestFirst(root)) {
            try {
                Files.deleteIfExists(path);
            } catch (final IOException failure) {
                System.err.println("left behind: " + path + " (" + failure + ")");
            }
        }
    }

    private static List<Path> deepestFirst(final Path root) {
        try (Stream<Path> paths = Files.walk(root)) {
            return paths.sorted(Comparator.reverseOrder()).collect(Collectors.toList());
        } catch (final IOException failure) {
            System.err.println("cannot list " + root + " (" + failure + ")");
            return List.of();
        }
    }
}
