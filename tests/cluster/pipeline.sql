-- What runs in local mode and on a cluster, and has to give the same topics. It goes with the demo.
SET 'auto.offset.reset' = 'earliest';
SET 'max.offsets.per.trigger' = '1500';

CREATE STREAM clicks (user_id STRING KEY, page STRING, ms BIGINT)
  WITH (kafka_topic = 'clicks', value_format = 'JSON', partitions = 3);

CREATE TABLE users (user_id STRING PRIMARY KEY, name STRING)
  WITH (kafka_topic = 'users', value_format = 'JSON', partitions = 3, wrap_single_values = true);

-- A stream-table join: a kernel.
CREATE STREAM named AS
  SELECT c.user_id AS user_id, u.name AS name, c.page AS page
  FROM clicks c LEFT JOIN users u ON c.user_id = u.user_id
  EMIT CHANGES;

-- A function of the user's own.
CREATE STREAM spoken AS SELECT user_id, SHOUT(page) AS page, ms FROM clicks EMIT CHANGES;

-- Where an executor works, and where it has the package from.
CREATE STREAM places AS
  SELECT user_id, WORKPLACE(page) AS place, ORIGIN(page) AS origin FROM clicks EMIT CHANGES;

-- Spark's own aggregate.
CREATE TABLE per_user AS
  SELECT user_id, COUNT(*) AS clicks, SUM(ms) AS ms FROM clicks GROUP BY user_id EMIT CHANGES;

-- A kernel's, of whose every input row there is an output row.
SET 'cache.max.bytes.buffering' = '0';

CREATE TABLE per_minute AS
  SELECT user_id, COUNT(*) AS clicks, COLLECT_SET(page) AS pages
  FROM clicks WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY user_id EMIT CHANGES;
