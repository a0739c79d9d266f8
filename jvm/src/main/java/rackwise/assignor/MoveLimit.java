package rackwise.assignor;

/**
 * The best flow of a {@link PlacementNetwork}, and the best within a limit of moves.
 *
 * <p>The limit counts moves beyond the fewest that balance needs. Within it the flow starts from the fewest moves and
 * takes improvements in the order of what they gain per move; one that no longer fits ends the search.
 */
final class MoveLimit {

    /**
     * A flow, and whether the limit kept it from the optimum.
     *
     * @param flow the flow
     * @param limited true when more moves would bring fewer reads across racks
     */
    record Choice(ResidualFlow flow, boolean limited) {
    }

    private final FlowNetwork network;
    /** More than all partitions together can cost in the lesser of two prices. */
    private final long many;
    /** Partitions that no member has: they move in any case. */
    private final long loose;

    MoveLimit(PlacementNetwork placement) {
        network = placement.network;
        many = placement.model.partitions() + 1L;
        long free = 0;
        for (int owner : placement.model.owner()) {
            free += owner < 0 ? 1 : 0;
        }
        loose = free;
    }

    /** Returns the flow with the fewest reads across racks and then the fewest moves, within a limit of moves. */
    Choice best(long limit) {
        ResidualFlow optimum = LeastCostFlow.solve(network, new FlowNetwork.Prices(many, 1));
        if (optimum.moves() - loose <= limit) {
            return new Choice(optimum, false);
        }
        ResidualFlow fewest = fewestMoves();
        long allowed = fewest.moves() + limit;
        if (optimum.moves() <= allowed) {
            return new Choice(optimum, false);
        }
        improve(fewest, allowed);
        return new Choice(fewest, true);
    }

    /** Returns the flow with the fewest moves and then the fewest reads across racks. */
    ResidualFlow fewestMoves() {
        return LeastCostFlow.solve(network, new FlowNetwork.Prices(1, many));
    }

    /** Raises the price of a read across racks step by step and follows what that makes worth while. */
    private void improve(ResidualFlow flow, long allowed) {
        CycleSearch cycles = new CycleSearch(flow);
        for (long worth = 1; worth < 2 * many; worth = 2 * worth + 1) {
            flow.setPrices(new FlowNetwork.Prices(worth, 2));
            if (!cycles.cancelAll(allowed)) {
                return;
            }
        }
    }
}
