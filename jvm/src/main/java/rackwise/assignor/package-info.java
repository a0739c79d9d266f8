/**
 * Assignors that keep reads in the rack of the reader: {@link rackwise.assignor.RackwiseAssignor} for brokers (KIP-848),
 * {@link rackwise.assignor.RackwiseConsumerAssignor} for consumers of the classic protocol.
 *
 * <p>The straight line of a call: {@link rackwise.assignor.GroupReader} reads the group ({@link rackwise.assignor.BrokerView}
 * or {@link rackwise.assignor.JoinedGroup}) into a dense {@link rackwise.assignor.GroupModel},
 * {@link rackwise.assignor.FairLoads} bounds what each member takes, {@link rackwise.assignor.PlacementNetwork} turns the
 * rest into a flow of least cost, {@link rackwise.assignor.PartitionDealer} gives each partition its member. For the
 * broker, {@link rackwise.assignor.MoveLimit} leaves optional moves for later, {@link rackwise.assignor.AnswerBuilder}
 * makes the answer of it, {@link rackwise.assignor.AnswerCheck} validates it, {@link rackwise.assignor.BatchSize} keeps it
 * within a record, and {@link rackwise.assignor.FallbackAssignor} answers where there is no optimum; in a consumer, {@link rackwise.assignor.MemberClaims} holds back what has to be revoked first.
 *
 * <p>A consumer has no classes of {@code kafka-group-coordinator-api}: what it loads must not name them.
 */
package rackwise.assignor;
