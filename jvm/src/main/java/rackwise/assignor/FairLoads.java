package rackwise.assignor;

import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;

/**
 * The fairest numbers of partitions per member: sorted descending, they are lexicographically smallest.
 *
 * <p>Every fairest assignment rounds the fractional loads of {@link LoadDecomposition} up or down (Frank and Murota).
 * Members with the same rounded-down load form a tier, of which a fixed number of any members take one more.
 *
 * @param low member to the partitions that it takes at least
 * @param tier member to its tier, or -1 when it takes exactly {@code low}
 * @param raised tier to the number of its members that take one more
 */
record FairLoads(int[] low, int[] tier, int[] raised) {

    /** Returns the bounds that all fairest assignments keep, and only those. */
    static FairLoads of(GroupModel model) {
        int[] partitions = new int[model.topics().audiences()];
        for (int topic = 0; topic < model.topics().count(); topic++) {
            partitions[model.topics().audience()[topic]] += model.topics().partitions(topic);
        }
        int[] members = new int[model.members().subscriptions()];
        for (int subscription : model.members().subscription()) {
            members[subscription]++;
        }
        List<LoadDecomposition.Share> shares =
            LoadDecomposition.of(model.topics().reads(), partitions, members);
        return rounded(shares, model.members());
    }

    private static FairLoads rounded(List<LoadDecomposition.Share> shares, GroupModel.Members members) {
        TreeSet<Integer> lows = new TreeSet<>();
        shares.stream().filter(share -> share.rest() > 0).forEach(share -> lows.add(share.low()));
        int[] tiers = lows.stream().mapToInt(Integer::intValue).toArray();
        int[] raised = new int[tiers.length];
        int[] lowOf = new int[members.subscriptions()];
        int[] tierOf = new int[members.subscriptions()];
        Arrays.fill(tierOf, -1);
        for (LoadDecomposition.Share share : shares) {
            int tier = share.rest() > 0 ? Arrays.binarySearch(tiers, share.low()) : -1;
            if (tier >= 0) {
                raised[tier] += share.rest();
            }
            for (int subscription : share.subscriptions()) {
                lowOf[subscription] = share.low();
                tierOf[subscription] = tier;
            }
        }
        int[] low = Arrays.stream(members.subscription()).map(each -> lowOf[each]).toArray();
        int[] tier = Arrays.stream(members.subscription()).map(each -> tierOf[each]).toArray();
        return new FairLoads(low, tier, raised);
    }
}
