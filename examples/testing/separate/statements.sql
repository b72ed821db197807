-- headrace test -s statements.sql -i input.json -o output.json
CREATE STREAM clicks (user STRING KEY, page STRING) WITH (kafka_topic='clicks', value_format='JSON');
CREATE TABLE clicks_by_minute AS
  SELECT user, COUNT(*) AS clicks FROM clicks WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY user;
