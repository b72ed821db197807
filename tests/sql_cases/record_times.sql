-- ROWTIME, ROWPARTITION and ROWOFFSET, and columns that tell a record's time.

--@test: pseudocolumns are selected by name
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM placed AS SELECT id, ROWTIME AS time_ms, ROWPARTITION AS part, ROWOFFSET AS position FROM orders;
ASSERT STREAM placed (id STRING KEY, time_ms BIGINT, part INT, position BIGINT)
  WITH (kafka_topic='PLACED', value_format='JSON');
INSERT INTO orders (ROWTIME, id, item) VALUES (1234, 'o1', 'pear');
INSERT INTO orders (ROWTIME, id, item) VALUES (1200, 'o2', 'fig');
ASSERT VALUES placed (ROWTIME, id, time_ms, part, position) VALUES (1234, 'o1', 1234, 0, 0);
ASSERT VALUES placed (ROWTIME, id, time_ms, part, position) VALUES (1200, 'o2', 1200, 0, 1);

--@test: ROWTIME and ROWOFFSET in WHERE, also as a text that spells a time
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM late AS SELECT id, item FROM orders WHERE ROWTIME >= '1970-01-01T00:00:02' AND ROWOFFSET < 2;
INSERT INTO orders (ROWTIME, id, item) VALUES (1999, 'o1', 'pear');
INSERT INTO orders (ROWTIME, id, item) VALUES (2000, 'o2', 'fig');
INSERT INTO orders (ROWTIME, id, item) VALUES (3000, 'o3', 'plum');
ASSERT VALUES late VALUES ('o2', 'fig');

--@test: each side of a join has a ROWTIME
CREATE STREAM orders (customer STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM placed AS SELECT o.customer AS customer, o.ROWTIME AS ordered, c.ROWTIME AS registered FROM orders o
  JOIN customers c ON o.customer = c.name;
INSERT INTO customers (ROWTIME, name, city, age) VALUES (100, 'ann', 'Bern', 33);
INSERT INTO orders (ROWTIME, customer, item) VALUES (200, 'ann', 'pear');
ASSERT VALUES placed (ROWTIME, customer, ordered, registered) VALUES (200, 'ann', 200, 100);

--@test: a BIGINT column tells the time
CREATE STREAM orders (id STRING KEY, item STRING, placed BIGINT)
  WITH (kafka_topic='orders', value_format='JSON', timestamp='placed');
CREATE STREAM copies AS SELECT id, item, ROWTIME AS time_ms FROM orders;
INSERT INTO orders (ROWTIME, id, item, placed) VALUES (1, 'o1', 'pear', 5000);
ASSERT VALUES copies (ROWTIME, id, item, time_ms) VALUES (5000, 'o1', 'pear', 5000);

--@test: a STRING column tells the time, by a format
CREATE STREAM orders (id STRING KEY, item STRING, placed STRING)
  WITH (kafka_topic='orders', value_format='JSON', timestamp='placed', timestamp_format='dd.MM.yyyy HH:mm:ssX');
CREATE TABLE per_day AS SELECT item, WINDOWSTART AS day_ms, COUNT(*) AS n FROM orders WINDOW TUMBLING (SIZE 1 DAY)
  GROUP BY item;
INSERT INTO orders (ROWTIME, id, item, placed) VALUES (1, 'o1', 'pear', '01.01.1970 23:59:59Z');
INSERT INTO orders (ROWTIME, id, item, placed) VALUES (1, 'o2', 'pear', '02.01.1970 00:00:00Z');
ASSERT VALUES per_day (ROWTIME, item, day_ms, n) VALUES (86399000, 'pear', 0, 1);
ASSERT VALUES per_day (ROWTIME, item, day_ms, n) VALUES (86400000, 'pear', 86400000, 1);

--@test: a TIMESTAMP column tells the time
CREATE STREAM orders (id STRING KEY, item STRING, placed TIMESTAMP)
  WITH (kafka_topic='orders', value_format='JSON', timestamp='placed');
CREATE STREAM copies AS SELECT id, item FROM orders;
INSERT INTO orders (ROWTIME, id, item, placed) VALUES (1, 'o1', 'pear', '1970-01-01T00:00:07');
ASSERT VALUES copies (ROWTIME, id, item) VALUES (7000, 'o1', 'pear');

--@test: a record whose time cannot be told is skipped
CREATE STREAM orders (id STRING KEY, item STRING, placed STRING)
  WITH (kafka_topic='orders', value_format='JSON', timestamp='placed', timestamp_format='yyyy-MM-dd''T''HH:mm:ssX');
CREATE STREAM copies AS SELECT id, item FROM orders;
INSERT INTO orders (id, item, placed) VALUES ('o1', 'pear', 'today');
INSERT INTO orders (id, item) VALUES ('o2', 'fig');
INSERT INTO orders (id, item, placed) VALUES ('o3', 'plum', '1970-01-01T00:00:09Z');
ASSERT VALUES copies (ROWTIME, id, item) VALUES (9000, 'o3', 'plum');

--@test: a query sets the time of what it writes
CREATE STREAM orders (id STRING KEY, item STRING, due BIGINT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM reminders WITH (timestamp='due') AS SELECT id, due, item FROM orders;
INSERT INTO orders (ROWTIME, id, item, due) VALUES (1, 'o1', 'pear', 777);
ASSERT VALUES reminders (ROWTIME, id, due, item) VALUES (777, 'o1', 777, 'pear');
