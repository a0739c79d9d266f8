-- The ten usual questions, over the views that `rackwise spark sql` writes before these:
-- SQL that Spark and Trino have in common.
-- Hours and days are UTC; null is unknown, never 0; what is copied (by reassignments, by replicas that catch up) is paid
-- once and is never avoidable.

-- Owners of names: the first rule of gold.owners that fits.
CREATE OR REPLACE VIEW group_owners COMMENT 'Team and cost centre of each group; groups without a rule are missing.' AS
SELECT cluster, group_id, team, cost_centre FROM (
  SELECT seen.cluster, seen.group_id, owners.team, owners.cost_centre,
         row_number() OVER (PARTITION BY seen.cluster, seen.group_id ORDER BY owners.rule_rank) AS place
  FROM (SELECT DISTINCT cluster, group_id FROM ledger WHERE group_id <> '') AS seen
  JOIN owners ON owners.kind = 'group' AND regexp_like(seen.group_id, owners.matches)
) WHERE place = 1;

CREATE OR REPLACE VIEW topic_owners COMMENT 'Team and cost centre of each topic; topics without a rule are missing.' AS
SELECT cluster, topic, team, cost_centre FROM (
  SELECT seen.cluster, seen.topic, owners.team, owners.cost_centre,
         row_number() OVER (PARTITION BY seen.cluster, seen.topic ORDER BY owners.rule_rank) AS place
  FROM (SELECT DISTINCT cluster, topic FROM ledger) AS seen
  JOIN owners ON owners.kind = 'topic' AND regexp_like(seen.topic, owners.matches)
) WHERE place = 1;

CREATE OR REPLACE VIEW owned_ledger COMMENT 'The ledger with owners, and with what of it can be avoided.' AS
SELECT ledger.*,
       CASE WHEN group_owners.team IS NOT NULL THEN group_owners.team ELSE topic_owners.team END AS team,
       CASE WHEN group_owners.team IS NOT NULL THEN group_owners.cost_centre ELSE topic_owners.cost_centre END
         AS cost_centre,
       CASE WHEN ledger.traffic_path NOT IN ('produce', 'replicate', 'consume') OR ledger.zone = 'SAME_ZONE' THEN 0e0
            WHEN ledger.zone = 'CROSS_ZONE' AND ledger.unavoidable_bytes IS NOT NULL
            THEN greatest(ledger.bytes - ledger.unavoidable_bytes, 0e0) END AS avoidable_bytes,
       CASE WHEN ledger.traffic_path NOT IN ('produce', 'replicate', 'consume') OR ledger.zone = 'SAME_ZONE' OR ledger.bytes = 0 THEN 0e0
            WHEN ledger.zone = 'CROSS_ZONE' AND ledger.unavoidable_bytes IS NOT NULL
            THEN ledger.usd * greatest(ledger.bytes - ledger.unavoidable_bytes, 0e0) / ledger.bytes END AS avoidable_usd
FROM ledger
LEFT JOIN group_owners ON group_owners.cluster = ledger.cluster AND group_owners.group_id = ledger.group_id
LEFT JOIN topic_owners ON topic_owners.cluster = ledger.cluster AND topic_owners.topic = ledger.topic;

-- 1. What could be saved, by day, group and topic?
CREATE OR REPLACE VIEW avoidable_cost_by_day
COMMENT 'Dollars across racks that another placement or setting avoids, by day, path, group and topic.' AS
SELECT utc_day, cluster, traffic_path, group_id, topic, team, cost_centre,
       sum(avoidable_usd) AS avoidable_usd, sum(avoidable_bytes) AS avoidable_bytes
FROM owned_ledger WHERE avoidable_bytes > 0
GROUP BY utc_day, cluster, traffic_path, group_id, topic, team, cost_centre;

-- 2. Who pays?
CREATE OR REPLACE VIEW cost_by_owner
COMMENT 'Dollars across racks by month, team and cost centre; a null team has no rule.' AS
SELECT CAST(concat(substr(utc_day, 1, 7), '-01') AS date) AS utc_month, team, cost_centre, cluster,
       sum(usd) AS usd, sum(avoidable_usd) AS avoidable_usd,
       sum(CASE WHEN zone = 'CROSS_ZONE' THEN bytes END) AS cross_bytes
FROM owned_ledger GROUP BY CAST(concat(substr(utc_day, 1, 7), '-01') AS date), team, cost_centre, cluster;

-- 3. What does each path cost on each day?
CREATE OR REPLACE VIEW cost_by_path COMMENT 'Dollars and bytes across racks by day and path.' AS
SELECT utc_day, cluster, traffic_path, sum(usd) AS usd,
       sum(CASE WHEN zone = 'CROSS_ZONE' THEN bytes END) AS cross_bytes,
       sum(CASE WHEN zone = 'SAME_ZONE' THEN bytes END) AS local_bytes,
       sum(CASE WHEN zone = 'UNKNOWN' THEN bytes END) AS unknown_bytes
FROM ledger GROUP BY utc_day, cluster, traffic_path;

-- 4. Between which racks does it flow?
CREATE OR REPLACE VIEW cost_by_rack_pair COMMENT 'Dollars and bytes from rack to rack by day.' AS
SELECT utc_day, cluster, source_rack, target_rack, zone, sum(bytes) AS bytes, sum(usd) AS usd
FROM ledger GROUP BY utc_day, cluster, source_rack, target_rack, zone;

-- 5. Which groups are the dearest?
CREATE OR REPLACE VIEW cost_by_group COMMENT 'Dollars and bytes across racks that each group read, by day.' AS
SELECT utc_day, cluster, group_id, team, sum(usd) AS usd, sum(avoidable_usd) AS avoidable_usd,
       sum(CASE WHEN zone = 'CROSS_ZONE' THEN bytes END) AS cross_bytes
FROM owned_ledger WHERE traffic_path = 'consume' GROUP BY utc_day, cluster, group_id, team;

-- 6. Which groups read near their data?
CREATE OR REPLACE VIEW locality_by_group COMMENT 'Share of partitions and of bytes that each group read within its rack, by day.' AS
SELECT utc_day, cluster, group_id,
       sum(1e0 * local_partitions) / nullif(sum(assigned_partitions - unknown_partitions), 0) AS local_share,
       sum(CASE WHEN total_bytes IS NOT NULL THEN local_bytes END) / nullif(sum(total_bytes), 0) AS local_bytes_share
FROM locality GROUP BY utc_day, cluster, group_id;

-- 7. What is unknown, and why?
CREATE OR REPLACE VIEW unknown_traffic COMMENT 'Bytes that may or may not have crossed racks, by reason and day.' AS
SELECT utc_day, cluster, traffic_path, why_unknown, sum(bytes) AS bytes, count_if(bytes IS NULL) AS rows_of_unknown_size
FROM ledger WHERE zone = 'UNKNOWN' GROUP BY utc_day, cluster, traffic_path, why_unknown;

-- 8. How much of the time is covered?
CREATE OR REPLACE VIEW coverage_by_day COMMENT 'Seconds that looks cover, by day; never more than its hours have.' AS
SELECT utc_day, cluster, count(*) AS hours, sum(least(seconds, 3600e0)) AS seconds
FROM (SELECT utc_day, cluster, hour, max(seconds) AS seconds FROM partition_traffic GROUP BY utc_day, cluster, hour)
GROUP BY utc_day, cluster;

-- 9. Which groups fall behind?
CREATE OR REPLACE VIEW lag_by_group COMMENT 'Largest lag of each group and topic, by day.' AS
SELECT utc_day, cluster, group_id, topic, max(lag_max) AS lag_max, max_by(lag_last, hour) AS lag_last
FROM lags GROUP BY utc_day, cluster, group_id, topic;

-- 10. Did proposals bring what was predicted?
CREATE OR REPLACE VIEW proposal_results COMMENT 'Proposals that were carried out: predicted and measured.' AS
SELECT utc_day, cluster, proposal, kind, reason, subject, state, predicted_usd_per_day, measured_usd_per_day,
       measured_usd_per_day - predicted_usd_per_day AS difference_usd_per_day, error_share
FROM proposal_outcomes WHERE applied_ms IS NOT NULL;
