/**
 * An assignor of consumer groups for the broker (KIP-848) that keeps reads in the rack of the reader.
 *
 * <p>The straight line of a call: {@link rackwise.assignor.GroupReader} reads the group into a dense
 * {@link rackwise.assignor.GroupModel}, {@link rackwise.assignor.FairLoads} bounds what each member takes,
 * {@link rackwise.assignor.PlacementNetwork} turns the rest into a flow of least cost,
 * {@link rackwise.assignor.PartitionDealer} gives each partition its member, {@link rackwise.assignor.AnswerBuilder}
 * makes the answer of it and {@link rackwise.assignor.AnswerCheck} validates it.
 */
package rackwise.assignor;
