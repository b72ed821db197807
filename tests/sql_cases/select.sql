-- Projections and filters on streams.

--@test: SELECT * takes all columns, and keeps the record's time
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT * FROM orders;
ASSERT STREAM copies (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='COPIES', value_format='JSON');
INSERT INTO orders (ROWTIME, id, item, quantity) VALUES (1234, 'o1', 'pear', 3);
ASSERT VALUES copies (ROWTIME, id, item, quantity) VALUES (1234, 'o1', 'pear', 3);

--@test: columns in another order, twice, and under other names
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM renamed AS SELECT quantity AS pieces, id AS order_id, item, quantity * 2 AS twice, quantity again
  FROM orders;
ASSERT STREAM renamed (order_id STRING KEY, pieces INT, item STRING, twice INT, again INT)
  WITH (kafka_topic='RENAMED', value_format='JSON');
INSERT INTO orders VALUES ('o1', 'pear', 3);
ASSERT VALUES renamed (order_id, pieces, item, twice, again) VALUES ('o1', 3, 'pear', 6, 3);

--@test: an expression without a name is KSQL_COL_0, and so on
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM computed AS SELECT id, quantity + 1, UCASE(id) FROM orders;
ASSERT STREAM computed (id STRING KEY, KSQL_COL_0 INT, KSQL_COL_1 STRING)
  WITH (kafka_topic='COMPUTED', value_format='JSON');
INSERT INTO orders VALUES ('o1', 3);
ASSERT VALUES computed VALUES ('o1', 4, 'O1');

--@test: names in backticks keep their case
CREATE STREAM orders (`Id` STRING KEY, `the item` STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT `Id`, `the item` AS `Item`, LEN(`the item`) AS len FROM orders;
ASSERT STREAM copies (`Id` STRING KEY, `Item` STRING, LEN INT) WITH (kafka_topic='COPIES', value_format='JSON');
INSERT INTO orders (`Id`, `the item`) VALUES ('o1', 'pear');
ASSERT VALUES copies (`Id`, `Item`, len) VALUES ('o1', 'pear', 4);

--@test: a source may have an alias
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM large AS SELECT o.id AS id, o.quantity FROM orders AS o WHERE o.quantity > 2;
INSERT INTO orders VALUES ('o1', 3);
INSERT INTO orders VALUES ('o2', 2);
ASSERT VALUES large (id, quantity) VALUES ('o1', 3);

--@test: AS_VALUE copies the key into the value
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, AS_VALUE(id) AS same, quantity FROM orders;
ASSERT STREAM copies (id STRING KEY, same STRING, quantity INT) WITH (kafka_topic='COPIES', value_format='JSON');
INSERT INTO orders VALUES ('o1', 3);
ASSERT VALUES copies VALUES ('o1', 'o1', 3);

--@test: WHERE keeps the rows for which the condition is true
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM pears AS SELECT id, quantity FROM orders WHERE item = 'pear' AND (quantity > 5 OR id = 'vip');
INSERT INTO orders VALUES ('o1', 'pear', 6);
INSERT INTO orders VALUES ('o2', 'fig', 6);
INSERT INTO orders VALUES ('o3', 'pear', 5);
INSERT INTO orders VALUES ('vip', 'pear', 1);
INSERT INTO orders VALUES ('o5', 'pear', NULL);
ASSERT VALUES pears VALUES ('o1', 6);
ASSERT VALUES pears VALUES ('vip', 1);

--@test: a condition that fails skips the row
CREATE STREAM trips (id STRING KEY, km INT, duration INT) WITH (kafka_topic='trips', value_format='JSON');
CREATE STREAM fast AS SELECT id, km FROM trips WHERE km / duration > 50;
INSERT INTO trips VALUES ('t1', 90, 0);
INSERT INTO trips VALUES ('t2', 120, 2);
ASSERT VALUES fast VALUES ('t2', 120);

--@test: a query reads what another wrote
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM pears AS SELECT id, quantity FROM orders WHERE item = 'pear';
CREATE STREAM many_pears AS SELECT id, quantity * 10 AS grams FROM pears WHERE quantity > 5;
INSERT INTO orders VALUES ('o1', 'pear', 6);
INSERT INTO orders VALUES ('o2', 'pear', 2);
INSERT INTO orders VALUES ('o3', 'fig', 9);
ASSERT VALUES pears VALUES ('o1', 6);
ASSERT VALUES pears VALUES ('o2', 2);
ASSERT VALUES many_pears VALUES ('o1', 60);

--@test: a stream without a key
CREATE STREAM notes (text STRING, stars INT) WITH (kafka_topic='notes', value_format='JSON');
CREATE STREAM good AS SELECT text FROM notes WHERE stars > 3;
ASSERT STREAM good (text STRING) WITH (kafka_topic='GOOD', value_format='JSON');
INSERT INTO notes VALUES ('fine', 4);
INSERT INTO notes VALUES ('poor', 1);
ASSERT VALUES good VALUES ('fine');

--@test: the sink's topic, formats and names are chosen in WITH
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM csv WITH (kafka_topic='orders-csv', value_format='DELIMITED', partitions=2) AS SELECT * FROM orders;
CREATE STREAM raw (id STRING KEY, line STRING) WITH (kafka_topic='orders-csv', value_format='KAFKA');
ASSERT STREAM csv (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders-csv', value_format='DELIMITED');
INSERT INTO orders VALUES ('o1', 'pear', 3);
ASSERT VALUES raw VALUES ('o1', 'pear,3');

--@test: a record without a value passes a projection as it is, and no filter
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM raw (id STRING KEY, line STRING) WITH (kafka_topic='orders', value_format='KAFKA');
CREATE STREAM copies AS SELECT * FROM orders;
CREATE STREAM chosen AS SELECT * FROM orders WHERE quantity IS NULL OR quantity > 0;
INSERT INTO raw (id) VALUES ('o1');
INSERT INTO orders VALUES ('o2', 'pear', 3);
ASSERT NULL VALUES copies (id) KEY ('o1');
ASSERT VALUES copies VALUES ('o2', 'pear', 3);
ASSERT VALUES chosen VALUES ('o2', 'pear', 3);

--@test: AND and OR do not evaluate what cannot change the result
CREATE STREAM trips (id STRING KEY, km INT, duration INT) WITH (kafka_topic='trips', value_format='JSON');
CREATE STREAM fast AS SELECT id, duration = 0 OR km / duration > 50 AS odd FROM trips
  WHERE duration <> 9 AND km / (duration - 9) < 99;
INSERT INTO trips VALUES ('t1', 90, 0);
INSERT INTO trips VALUES ('t2', 90, 9);
INSERT INTO trips VALUES ('t3', 90, 2);
ASSERT VALUES fast VALUES ('t1', TRUE);
ASSERT VALUES fast VALUES ('t3', FALSE);
