-- GROUP BY on streams: each record changes the row of its group, and the table says so.

--@test: a row for each group, written anew with each record
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE sold AS SELECT item, COUNT(*) AS orders, SUM(quantity) AS pieces FROM orders GROUP BY item;
ASSERT TABLE sold (item STRING PRIMARY KEY, orders BIGINT, pieces INT) WITH (kafka_topic='SOLD', value_format='JSON');
INSERT INTO orders VALUES ('o1', 'pear', 3);
INSERT INTO orders VALUES ('o2', 'fig', 1);
INSERT INTO orders VALUES ('o3', 'pear', 4);
ASSERT VALUES sold VALUES ('pear', 1, 3);
ASSERT VALUES sold VALUES ('fig', 1, 1);
ASSERT VALUES sold VALUES ('pear', 2, 7);

--@test: state lasts from one batch to the next
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE sold AS SELECT item, COUNT(*) AS orders FROM orders GROUP BY item;
INSERT INTO orders VALUES ('o1', 'pear');
ASSERT VALUES sold VALUES ('pear', 1);
INSERT INTO orders VALUES ('o2', 'pear');
ASSERT VALUES sold VALUES ('pear', 2);

--@test: a group's time is the latest of its records
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE sold AS SELECT item, COUNT(*) AS orders FROM orders GROUP BY item;
INSERT INTO orders (ROWTIME, id, item) VALUES (200, 'o1', 'pear');
INSERT INTO orders (ROWTIME, id, item) VALUES (100, 'o2', 'pear');
INSERT INTO orders (ROWTIME, id, item) VALUES (300, 'o3', 'pear');
ASSERT VALUES sold (ROWTIME, item, orders) VALUES (200, 'pear', 1);
ASSERT VALUES sold (ROWTIME, item, orders) VALUES (200, 'pear', 2);
ASSERT VALUES sold (ROWTIME, item, orders) VALUES (300, 'pear', 3);

--@test: grouping by several columns makes a key of several columns
CREATE STREAM orders (id STRING KEY, item STRING, city STRING, quantity INT)
  WITH (kafka_topic='orders', key_format='JSON', value_format='JSON');
CREATE TABLE sold AS SELECT item, city, SUM(quantity) AS pieces FROM orders GROUP BY item, city;
ASSERT TABLE sold (item STRING PRIMARY KEY, city STRING PRIMARY KEY, pieces INT)
  WITH (kafka_topic='SOLD', key_format='JSON', value_format='JSON');
INSERT INTO orders VALUES ('o1', 'pear', 'Bern', 3);
INSERT INTO orders VALUES ('o2', 'pear', 'Bonn', 1);
INSERT INTO orders VALUES ('o3', 'pear', 'Bern', 4);
ASSERT VALUES sold VALUES ('pear', 'Bern', 3);
ASSERT VALUES sold VALUES ('pear', 'Bonn', 1);
ASSERT VALUES sold VALUES ('pear', 'Bern', 7);

--@test: a row with a null among its groups is in none
CREATE STREAM orders (id STRING KEY, item STRING, city STRING)
  WITH (kafka_topic='orders', key_format='JSON', value_format='JSON');
CREATE TABLE by_item AS SELECT item, COUNT(*) AS n FROM orders GROUP BY item;
CREATE TABLE by_both AS SELECT item, city, COUNT(*) AS n FROM orders GROUP BY item, city;
INSERT INTO orders VALUES ('o1', NULL, 'Bern');
INSERT INTO orders VALUES ('o2', 'pear', NULL);
INSERT INTO orders VALUES ('o3', 'pear', 'Bern');
ASSERT VALUES by_item VALUES ('pear', 1);
ASSERT VALUES by_item VALUES ('pear', 2);
ASSERT VALUES by_both VALUES ('pear', 'Bern', 1);

--@test: grouping by an expression, which the projection repeats
CREATE STREAM readings (sensor STRING KEY, celsius DOUBLE) WITH (kafka_topic='readings', value_format='JSON');
CREATE TABLE buckets AS SELECT FLOOR(celsius / 10) AS bucket, COUNT(*) AS n FROM readings GROUP BY FLOOR(celsius / 10);
ASSERT TABLE buckets (bucket DOUBLE PRIMARY KEY, n BIGINT) WITH (kafka_topic='BUCKETS', value_format='JSON');
INSERT INTO readings VALUES ('s1', 21.5);
INSERT INTO readings VALUES ('s2', -3.0);
INSERT INTO readings VALUES ('s1', 29.9);
ASSERT VALUES buckets VALUES (2.0, 1);
ASSERT VALUES buckets VALUES (-1.0, 1);
ASSERT VALUES buckets VALUES (2.0, 2);

--@test: grouping by a field of a struct, and by a part of a text
CREATE STREAM orders (id STRING KEY, buyer STRUCT<name STRING, city STRING>)
  WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE by_city AS SELECT buyer->city AS city, COUNT(*) AS n FROM orders GROUP BY buyer->city;
CREATE TABLE by_letter AS SELECT SUBSTRING(id, 1, 1) AS letter, COUNT(*) AS n FROM orders GROUP BY SUBSTRING(id, 1, 1);
INSERT INTO orders VALUES ('a1', STRUCT(name := 'ann', city := 'Bern'));
INSERT INTO orders VALUES ('a2', STRUCT(name := 'bob', city := 'Bern'));
ASSERT VALUES by_city VALUES ('Bern', 1);
ASSERT VALUES by_city VALUES ('Bern', 2);
ASSERT VALUES by_letter VALUES ('a', 1);
ASSERT VALUES by_letter VALUES ('a', 2);

--@test: nulls do not count, and add nothing
CREATE STREAM readings (sensor STRING KEY, celsius INT, note STRING) WITH (kafka_topic='readings', value_format='JSON');
CREATE TABLE stats AS
  SELECT sensor, COUNT(*) AS n, COUNT(celsius) AS known, SUM(celsius) AS total, MIN(celsius) AS low,
  MAX(celsius) AS high, AVG(celsius) AS mean
  FROM readings GROUP BY sensor;
INSERT INTO readings VALUES ('s1', NULL, 'off');
INSERT INTO readings VALUES ('s1', 4, 'on');
INSERT INTO readings VALUES ('s1', NULL, 'off');
INSERT INTO readings VALUES ('s1', 8, 'on');
ASSERT VALUES stats VALUES ('s1', 1, 0, 0, NULL, NULL, 0.0);
ASSERT VALUES stats VALUES ('s1', 2, 1, 4, 4, 4, 4.0);
ASSERT VALUES stats VALUES ('s1', 3, 1, 4, 4, 4, 4.0);
ASSERT VALUES stats VALUES ('s1', 4, 2, 12, 4, 8, 6.0);

--@test: sums of each number type, and of decimals in the type of the column
CREATE STREAM items (id STRING KEY, i INT, b BIGINT, d DOUBLE, e DECIMAL(5, 2))
  WITH (kafka_topic='items', value_format='JSON');
CREATE TABLE sums AS SELECT id, SUM(i) AS i, SUM(b) AS b, SUM(d) AS d, SUM(e) AS e FROM items GROUP BY id;
ASSERT TABLE sums (id STRING PRIMARY KEY, i INT, b BIGINT, d DOUBLE, e DECIMAL(5, 2))
  WITH (kafka_topic='SUMS', value_format='JSON');
INSERT INTO items VALUES ('x', 1, 5000000000, 0.5, 1.25);
INSERT INTO items VALUES ('x', 2, 5000000000, 0.25, 2.50);
ASSERT VALUES sums VALUES ('x', 1, 5000000000, 0.5, 1.25);
ASSERT VALUES sums VALUES ('x', 3, 10000000000, 0.75, 3.75);

--@test: least and greatest texts and dates
CREATE STREAM guests (hotel STRING KEY, name STRING, arrives DATE) WITH (kafka_topic='guests', value_format='JSON');
CREATE TABLE bounds AS SELECT hotel, MIN(name) AS first_name, MAX(name) AS last_name, MIN(arrives) AS first_day,
  MAX(arrives) AS last_day
  FROM guests GROUP BY hotel;
INSERT INTO guests VALUES ('h', 'bob', '2024-05-01');
INSERT INTO guests VALUES ('h', 'ann', '2024-06-01');
ASSERT VALUES bounds VALUES ('h', 'bob', 'bob', '2024-05-01', '2024-05-01');
ASSERT VALUES bounds VALUES ('h', 'ann', 'bob', '2024-05-01', '2024-06-01');

--@test: collecting values, all of them or each once
CREATE STREAM visits (who STRING KEY, page STRING, ms INT) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE seen AS SELECT who, COLLECT_LIST(page) AS pages, COLLECT_SET(page) AS once, HISTOGRAM(page) AS counts,
  COUNT_DISTINCT(page) AS n
  FROM visits GROUP BY who;
INSERT INTO visits VALUES ('ann', 'home', 10);
INSERT INTO visits VALUES ('ann', 'shop', 20);
INSERT INTO visits VALUES ('ann', 'home', 30);
ASSERT VALUES seen VALUES ('ann', ARRAY['home'], ARRAY['home'], MAP('home' := 1), 1);
ASSERT VALUES seen VALUES ('ann', ARRAY['home', 'shop'], ARRAY['home', 'shop'], MAP('home' := 1, 'shop' := 1), 2);
ASSERT VALUES seen VALUES ('ann', ARRAY['home', 'shop', 'home'], ARRAY['home', 'shop'], MAP('home' := 2, 'shop' := 1),
  2);

--@test: the first and the last values by offset, with and without nulls
CREATE STREAM visits (who STRING KEY, page STRING, ms INT) WITH (kafka_topic='visits', value_format='JSON');
CREATE TABLE ends AS
  SELECT who, EARLIEST_BY_OFFSET(page) AS first, LATEST_BY_OFFSET(page) AS last, LATEST_BY_OFFSET(page,
  FALSE) AS last_or_null, LATEST_BY_OFFSET(page, 2) AS last_two
  FROM visits GROUP BY who;
INSERT INTO visits VALUES ('ann', 'home', 10);
INSERT INTO visits VALUES ('ann', 'shop', 20);
INSERT INTO visits VALUES ('ann', NULL, 30);
ASSERT VALUES ends VALUES ('ann', 'home', 'home', 'home', ARRAY['home']);
ASSERT VALUES ends VALUES ('ann', 'home', 'shop', 'shop', ARRAY['home', 'shop']);
ASSERT VALUES ends VALUES ('ann', 'home', 'shop', NULL, ARRAY['home', 'shop']);

--@test: the greatest few
CREATE STREAM scores (team STRING KEY, points INT, player STRING) WITH (kafka_topic='scores', value_format='JSON');
CREATE TABLE best AS SELECT team, TOPK(points, 2) AS top, TOPKDISTINCT(points, 2) AS top_distinct FROM scores
  GROUP BY team;
INSERT INTO scores VALUES ('red', 7, 'ann');
INSERT INTO scores VALUES ('red', 9, 'bob');
INSERT INTO scores VALUES ('red', 9, 'cleo');
ASSERT VALUES best VALUES ('red', ARRAY[7], ARRAY[7]);
ASSERT VALUES best VALUES ('red', ARRAY[9, 7], ARRAY[9, 7]);
ASSERT VALUES best VALUES ('red', ARRAY[9, 9], ARRAY[9, 7]);

--@test: expressions in and around aggregates
CREATE STREAM items (id STRING KEY, quantity INT, price INT) WITH (kafka_topic='items', value_format='JSON');
CREATE TABLE totals AS SELECT id, SUM(quantity * price) + 100 AS total, CAST(COUNT(*) AS STRING) AS n,
  MAX(price) - MIN(price) AS spread
  FROM items GROUP BY id;
INSERT INTO items VALUES ('x', 2, 5);
INSERT INTO items VALUES ('x', 1, 9);
ASSERT VALUES totals VALUES ('x', 110, '1', 0);
ASSERT VALUES totals VALUES ('x', 119, '2', 4);

--@test: WHERE decides before the group, HAVING after it
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE popular AS SELECT item, COUNT(*) AS n FROM orders WHERE quantity > 0 GROUP BY item HAVING COUNT(*) > 1;
INSERT INTO orders VALUES ('o1', 'pear', 1);
INSERT INTO orders VALUES ('o2', 'pear', 0);
INSERT INTO orders VALUES ('o3', 'pear', 2);
INSERT INTO orders VALUES ('o4', 'fig', 1);
ASSERT VALUES popular VALUES ('pear', 2);

--@test: a group that HAVING no longer holds for is deleted
CREATE STREAM moves (account STRING KEY, cents INT) WITH (kafka_topic='moves', value_format='JSON');
CREATE TABLE rich AS SELECT account, SUM(cents) AS balance FROM moves GROUP BY account HAVING SUM(cents) > 100;
INSERT INTO moves VALUES ('a', 150);
INSERT INTO moves VALUES ('a', -100);
INSERT INTO moves VALUES ('a', -10);
INSERT INTO moves VALUES ('a', 100);
ASSERT VALUES rich VALUES ('a', 150);
ASSERT NULL VALUES rich (account) KEY ('a');
ASSERT VALUES rich VALUES ('a', 140);

--@test: what fails inside an aggregate adds nothing, and what fails in GROUP BY is in no group
CREATE STREAM trips (id STRING KEY, car STRING, km INT, duration INT) WITH (kafka_topic='trips', value_format='JSON');
CREATE TABLE speeds AS SELECT car, COUNT(*) AS n, SUM(km / duration) AS total FROM trips GROUP BY car;
CREATE TABLE classes AS SELECT km / duration AS speed, COUNT(*) AS n FROM trips GROUP BY km / duration;
INSERT INTO trips VALUES ('t1', 'red', 90, 2);
INSERT INTO trips VALUES ('t2', 'red', 90, 0);
INSERT INTO trips VALUES ('t3', 'red', 90, 1);
ASSERT VALUES speeds VALUES ('red', 1, 45);
ASSERT VALUES speeds VALUES ('red', 2, 45);
ASSERT VALUES speeds VALUES ('red', 3, 135);
ASSERT VALUES classes VALUES (45, 1);
ASSERT VALUES classes VALUES (90, 1);

--@test: a stream's own key, of another type than text
CREATE STREAM readings (sensor INT KEY, celsius DOUBLE) WITH (kafka_topic='readings', value_format='JSON');
CREATE TABLE stats AS SELECT sensor, AS_VALUE(sensor) AS same, STDDEV_SAMPLE(celsius) AS deviation, COUNT(*) AS n
  FROM readings GROUP BY sensor;
ASSERT TABLE stats (sensor INT PRIMARY KEY, same INT, deviation DOUBLE, n BIGINT)
  WITH (kafka_topic='STATS', value_format='JSON');
INSERT INTO readings VALUES (1, 3.0);
INSERT INTO readings VALUES (1, 5.0);
ASSERT VALUES stats VALUES (1, 1, 0.0, 1);
ASSERT VALUES stats VALUES (1, 1, 1.4142135623730951, 2);
