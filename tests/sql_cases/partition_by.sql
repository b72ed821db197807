-- PARTITION BY gives a stream another key.

--@test: a column of the value becomes the key, and the old key a column
CREATE STREAM orders (id STRING KEY, customer STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM by_customer AS SELECT * FROM orders PARTITION BY customer;
ASSERT STREAM by_customer (customer STRING KEY, quantity INT, id STRING)
  WITH (kafka_topic='BY_CUSTOMER', value_format='JSON');
INSERT INTO orders (ROWTIME, id, customer, quantity) VALUES (5, 'o1', 'ann', 3);
ASSERT VALUES by_customer (ROWTIME, customer, quantity, id) VALUES (5, 'ann', 3, 'o1');

--@test: an expression becomes the key
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM by_size AS SELECT quantity / 10 AS amount, id, quantity FROM orders PARTITION BY quantity / 10;
ASSERT STREAM by_size (amount INT KEY, id STRING, quantity INT) WITH (kafka_topic='BY_SIZE', value_format='JSON');
INSERT INTO orders VALUES ('o1', 37);
ASSERT VALUES by_size (amount, id, quantity) VALUES (3, 'o1', 37);

--@test: a null or a failed expression becomes a null key
CREATE STREAM orders (id STRING KEY, customer STRING, quantity INT, boxes INT)
  WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM by_customer AS SELECT customer, id FROM orders PARTITION BY customer;
CREATE STREAM by_size AS SELECT quantity / boxes AS amount, id FROM orders PARTITION BY quantity / boxes;
INSERT INTO orders VALUES ('o1', NULL, 6, 0);
INSERT INTO orders VALUES ('o2', 'ann', 6, 2);
ASSERT VALUES by_customer (customer, id) VALUES (NULL, 'o1');
ASSERT VALUES by_customer (customer, id) VALUES ('ann', 'o2');
ASSERT VALUES by_size (amount, id) VALUES (NULL, 'o1');
ASSERT VALUES by_size (amount, id) VALUES (3, 'o2');

--@test: several columns make a key of several columns
CREATE STREAM orders (id STRING KEY, customer STRING, item STRING, quantity INT)
  WITH (kafka_topic='orders', key_format='JSON', value_format='JSON');
CREATE STREAM by_both AS SELECT customer, item, quantity FROM orders PARTITION BY customer, item;
ASSERT STREAM by_both (customer STRING KEY, item STRING KEY, quantity INT)
  WITH (kafka_topic='BY_BOTH', key_format='JSON', value_format='JSON');
INSERT INTO orders VALUES ('o1', 'ann', 'pear', 3);
INSERT INTO orders VALUES ('o2', 'ann', NULL, 4);
ASSERT VALUES by_both (customer, item, quantity) VALUES ('ann', 'pear', 3);
ASSERT VALUES by_both (customer, item, quantity) VALUES ('ann', NULL, 4);

--@test: a field of a struct becomes the key
CREATE STREAM orders (id STRING KEY, buyer STRUCT<name STRING, age INT>)
  WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM by_name AS SELECT buyer->name AS name, buyer->age AS age FROM orders PARTITION BY buyer->name;
INSERT INTO orders VALUES ('o1', STRUCT(name := 'ann', age := 33));
ASSERT VALUES by_name (name, age) VALUES ('ann', 33);

--@test: PARTITION BY NULL takes the key away
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM keyless AS SELECT quantity, id FROM orders PARTITION BY NULL;
ASSERT STREAM keyless (quantity INT, id STRING) WITH (kafka_topic='KEYLESS', value_format='JSON');
INSERT INTO orders VALUES ('o1', 3);
ASSERT VALUES keyless VALUES (3, 'o1');

--@test: a key that is not a column of the value is given a name of its own
CREATE STREAM orders (id STRING KEY, ids ARRAY<STRING>, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM by_first AS SELECT ids[1], quantity FROM orders PARTITION BY ids[1];
ASSERT STREAM by_first (KSQL_COL_0 STRING KEY, quantity INT) WITH (kafka_topic='BY_FIRST', value_format='JSON');
INSERT INTO orders VALUES ('o1', ARRAY['a', 'b'], 3);
ASSERT VALUES by_first VALUES ('a', 3);

--@test: the new key decides what a join finds
CREATE STREAM orders (id STRING KEY, customer STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM by_customer AS SELECT * FROM orders PARTITION BY customer;
CREATE STREAM placed AS SELECT o.customer, o.quantity, c.city FROM by_customer o JOIN customers c
  ON o.customer = c.name;
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO orders VALUES ('o1', 'ann', 3);
ASSERT VALUES placed (customer, quantity, city) VALUES ('ann', 3, 'Bern');
