-- Windows: groups of records by time. The window is part of the row's key.
-- Times are milliseconds; WINDOWSTART and WINDOWEND are selected to be seen.

--@test: a tumbling window includes its start and excludes its end
CREATE STREAM visits (page STRING KEY, who STRING) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE counts AS SELECT page, WINDOWSTART AS opens, WINDOWEND AS closes, COUNT(*) AS n FROM visits
  WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY page;
INSERT INTO visits (ROWTIME, page, who) VALUES (0, 'home', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (9999, 'home', 'bob');
INSERT INTO visits (ROWTIME, page, who) VALUES (10000, 'home', 'cleo');
ASSERT VALUES counts (ROWTIME, page, opens, closes, n) VALUES (0, 'home', 0, 10000, 1);
ASSERT VALUES counts (ROWTIME, page, opens, closes, n) VALUES (9999, 'home', 0, 10000, 2);
ASSERT VALUES counts (ROWTIME, page, opens, closes, n) VALUES (10000, 'home', 10000, 20000, 1);

--@test: a record out of order still finds its window
CREATE STREAM visits (page STRING KEY, who STRING) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE counts AS SELECT page, WINDOWSTART AS opens, COUNT(*) AS n FROM visits WINDOW TUMBLING (SIZE 10 SECONDS)
  GROUP BY page;
INSERT INTO visits (ROWTIME, page, who) VALUES (5000, 'home', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (60000, 'home', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (6000, 'home', 'ann');
ASSERT VALUES counts (page, opens, n) VALUES ('home', 0, 1);
ASSERT VALUES counts (page, opens, n) VALUES ('home', 60000, 1);
ASSERT VALUES counts (page, opens, n) VALUES ('home', 0, 2);

--@test: after the grace period a late record is dropped
CREATE STREAM visits (page STRING KEY, who STRING) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE counts AS
  SELECT page, WINDOWSTART AS opens, COUNT(*) AS n FROM visits
  WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 5 SECONDS) GROUP BY page;
INSERT INTO visits (ROWTIME, page, who) VALUES (1000, 'home', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (14000, 'home', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (2000, 'home', 'within grace');
INSERT INTO visits (ROWTIME, page, who) VALUES (15000, 'home', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (3000, 'home', 'too late');
INSERT INTO visits (ROWTIME, page, who) VALUES (16000, 'home', 'ann');
ASSERT VALUES counts (page, opens, n) VALUES ('home', 0, 1);
ASSERT VALUES counts (page, opens, n) VALUES ('home', 10000, 1);
ASSERT VALUES counts (page, opens, n) VALUES ('home', 0, 2);
ASSERT VALUES counts (page, opens, n) VALUES ('home', 10000, 2);
ASSERT VALUES counts (page, opens, n) VALUES ('home', 10000, 3);

--@test: what is late is told by all records, of whatever key
CREATE STREAM visits (page STRING KEY, who STRING) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE counts AS
  SELECT page, WINDOWSTART AS opens, COUNT(*) AS n FROM visits
  WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY page;
INSERT INTO visits (ROWTIME, page, who) VALUES (1000, 'home', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (10000, 'shop', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (2000, 'home', 'too late');
ASSERT VALUES counts (page, opens, n) VALUES ('home', 0, 1);
ASSERT VALUES counts (page, opens, n) VALUES ('shop', 10000, 1);

--@test: a hopping window counts a record in each window that it lies in
CREATE STREAM visits (page STRING KEY, who STRING) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE counts AS
  SELECT page, WINDOWSTART AS opens, WINDOWEND AS closes, COUNT(*) AS n FROM visits
  WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS) GROUP BY page;
INSERT INTO visits (ROWTIME, page, who) VALUES (7000, 'home', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (12000, 'home', 'bob');
ASSERT VALUES counts (page, opens, closes, n) VALUES ('home', 0, 10000, 1);
ASSERT VALUES counts (page, opens, closes, n) VALUES ('home', 5000, 15000, 1);
ASSERT VALUES counts (page, opens, closes, n) VALUES ('home', 5000, 15000, 2);
ASSERT VALUES counts (page, opens, closes, n) VALUES ('home', 10000, 20000, 1);

--@test: of hopping windows only those that are over drop a late record
CREATE STREAM visits (page STRING KEY, who STRING) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE counts AS
  SELECT page, WINDOWSTART AS opens, COUNT(*) AS n FROM visits
  WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY page;
INSERT INTO visits (ROWTIME, page, who) VALUES (12000, 'home', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (7000, 'home', 'late');
ASSERT VALUES counts (page, opens, n) VALUES ('home', 5000, 1);
ASSERT VALUES counts (page, opens, n) VALUES ('home', 10000, 1);
ASSERT VALUES counts (page, opens, n) VALUES ('home', 5000, 2);

--@test: a session grows as long as the gap is not passed
CREATE STREAM visits (who STRING KEY, page STRING) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE sessions AS SELECT who, WINDOWSTART AS opens, WINDOWEND AS closes, COUNT(*) AS n FROM visits
  WINDOW SESSION (10 SECONDS) GROUP BY who;
INSERT INTO visits (ROWTIME, who, page) VALUES (1000, 'ann', 'home');
INSERT INTO visits (ROWTIME, who, page) VALUES (11000, 'ann', 'shop');
INSERT INTO visits (ROWTIME, who, page) VALUES (21001, 'ann', 'home');
ASSERT VALUES sessions (who, opens, closes, n) VALUES ('ann', 1000, 1000, 1);
ASSERT NULL VALUES sessions (who) KEY ('ann');
ASSERT VALUES sessions (who, opens, closes, n) VALUES ('ann', 1000, 11000, 2);
ASSERT VALUES sessions (who, opens, closes, n) VALUES ('ann', 21001, 21001, 1);

--@test: a record in between makes one session of two
CREATE STREAM visits (who STRING KEY, page STRING) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE sessions AS
  SELECT who, WINDOWSTART AS opens, WINDOWEND AS closes, COUNT(*) AS n, COLLECT_LIST(page) AS pages FROM visits
  WINDOW SESSION (10 SECONDS) GROUP BY who;
INSERT INTO visits (ROWTIME, who, page) VALUES (1000, 'ann', 'home');
INSERT INTO visits (ROWTIME, who, page) VALUES (19000, 'ann', 'shop');
INSERT INTO visits (ROWTIME, who, page) VALUES (10000, 'ann', 'help');
ASSERT VALUES sessions (who, opens, closes, n, pages) VALUES ('ann', 1000, 1000, 1, ARRAY['home']);
ASSERT VALUES sessions (who, opens, closes, n, pages) VALUES ('ann', 19000, 19000, 1, ARRAY['shop']);
ASSERT NULL VALUES sessions (who) KEY ('ann');
ASSERT NULL VALUES sessions (who) KEY ('ann');
ASSERT VALUES sessions (who, opens, closes, n) VALUES ('ann', 1000, 19000, 3);

--@test: a late record is no part of a session that is over
CREATE STREAM visits (who STRING KEY, page STRING) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE sessions AS SELECT who, WINDOWSTART AS opens, COUNT(*) AS n FROM visits
  WINDOW SESSION (10 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY who;
INSERT INTO visits (ROWTIME, who, page) VALUES (1000, 'ann', 'home');
INSERT INTO visits (ROWTIME, who, page) VALUES (60000, 'bob', 'home');
INSERT INTO visits (ROWTIME, who, page) VALUES (2000, 'ann', 'late');
ASSERT VALUES sessions (who, opens, n) VALUES ('ann', 1000, 1);
ASSERT VALUES sessions (who, opens, n) VALUES ('bob', 60000, 1);

--@test: EMIT FINAL writes a window once, when it is over
CREATE STREAM visits (page STRING KEY, who STRING) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE counts AS
  SELECT page, WINDOWSTART AS opens, COUNT(*) AS n FROM visits
  WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY page EMIT FINAL;
INSERT INTO visits (ROWTIME, page, who) VALUES (1000, 'home', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (2000, 'home', 'bob');
INSERT INTO visits (ROWTIME, page, who) VALUES (11000, 'home', 'ann');
ASSERT VALUES counts (ROWTIME, page, opens, n) VALUES (2000, 'home', 0, 2);
INSERT INTO visits (ROWTIME, page, who) VALUES (20000, 'home', 'ann');
ASSERT VALUES counts (ROWTIME, page, opens, n) VALUES (11000, 'home', 10000, 1);

--@test: EMIT FINAL waits for the grace period
CREATE STREAM visits (page STRING KEY, who STRING) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE counts AS
  SELECT page, WINDOWSTART AS opens, COUNT(*) AS n FROM visits
  WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 5 SECONDS) GROUP BY page EMIT FINAL;
INSERT INTO visits (ROWTIME, page, who) VALUES (1000, 'home', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (14000, 'shop', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (2000, 'home', 'within grace');
INSERT INTO visits (ROWTIME, page, who) VALUES (15000, 'shop', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (3000, 'home', 'too late');
ASSERT VALUES counts (page, opens, n) VALUES ('home', 0, 2);

--@test: HAVING in a window
CREATE STREAM visits (page STRING KEY, who STRING) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE busy AS SELECT page, COUNT(*) AS n FROM visits WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY page
  HAVING COUNT(*) = 2;
INSERT INTO visits (ROWTIME, page, who) VALUES (1000, 'home', 'ann');
INSERT INTO visits (ROWTIME, page, who) VALUES (2000, 'home', 'bob');
INSERT INTO visits (ROWTIME, page, who) VALUES (3000, 'home', 'cleo');
ASSERT VALUES busy (page, n) VALUES ('home', 2);
ASSERT NULL VALUES busy (page) KEY ('home');

--@test: a windowed table can be read as a stream of its changes
CREATE STREAM visits (page STRING KEY, who STRING) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE counts WITH (kafka_topic='counts', key_format='KAFKA') AS
  SELECT page, COUNT(*) AS n, MAX(who) AS last FROM visits WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY page;
CREATE STREAM changes (page STRING KEY, n BIGINT, last STRING)
  WITH (kafka_topic='counts', value_format='JSON', window_type='TUMBLING', window_size='10 SECONDS');
CREATE STREAM seen AS SELECT page, WINDOWSTART AS opens, WINDOWEND AS closes, n FROM changes;
INSERT INTO visits (ROWTIME, page, who) VALUES (12000, 'home', 'ann');
ASSERT VALUES seen (ROWTIME, page, opens, closes, n) VALUES (12000, 'home', 10000, 20000, 1);

--@test: grouping by several columns in a window
CREATE STREAM visits (id STRING KEY, page STRING, city STRING)
  WITH (kafka_topic='visits', key_format='JSON', value_format='JSON');
CREATE TABLE counts AS SELECT page, city, WINDOWSTART AS opens, COUNT(*) AS n FROM visits
  WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY page, city;
INSERT INTO visits (ROWTIME, id, page, city) VALUES (59999, 'v1', 'home', 'Bern');
INSERT INTO visits (ROWTIME, id, page, city) VALUES (60000, 'v2', 'home', 'Bern');
INSERT INTO visits (ROWTIME, id, page, city) VALUES (61000, 'v3', 'home', 'Bern');
ASSERT VALUES counts (page, city, opens, n) VALUES ('home', 'Bern', 0, 1);
ASSERT VALUES counts (page, city, opens, n) VALUES ('home', 'Bern', 60000, 1);
ASSERT VALUES counts (page, city, opens, n) VALUES ('home', 'Bern', 60000, 2);
