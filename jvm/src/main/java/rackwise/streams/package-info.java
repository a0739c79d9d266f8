/**
 * An assignor of Streams tasks (KIP-924) that keeps reads in the rack of the reader.
 *
 * <p>The straight line of a call: {@link rackwise.streams.ApplicationReader} reads the application into a dense
 * {@link rackwise.streams.ApplicationModel}, {@link rackwise.streams.TaskNetwork} places active tasks within
 * {@link rackwise.streams.TaskShares} as a flow of least cost, {@link rackwise.streams.StandbyPlacer} adds standbys,
 * {@link rackwise.streams.WarmupPlan} keeps active tasks where they have caught up while their destinations warm up, and
 * {@link rackwise.streams.TaskAnswer} makes the answer of it and validates it.
 */
package rackwise.streams;
