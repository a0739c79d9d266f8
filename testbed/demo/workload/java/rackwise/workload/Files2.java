package rackwise.workload;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What {@link Files} lacks. */
final class Files2 {
    private Files2() {
    }

    /** Removes a directory and all below it; what cannot be removed is said and left. */
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
