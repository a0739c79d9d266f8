package rackwise.assignor;

/** A group or its answer is larger than a limit allows; the message names both. */
final class GroupTooLargeException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    GroupTooLargeException(String message) {
        super(message);
    }
}
