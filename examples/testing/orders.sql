-- Statements, rows that go in, rows that must come out.
-- Run it:  headrace test examples/testing/orders.sql

--@test: large orders are picked out
CREATE STREAM orders (id INT KEY, customer STRING, amount DOUBLE)
  WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM large_orders AS SELECT id, customer, amount FROM orders WHERE amount > 100;

INSERT INTO orders (rowtime, id, customer, amount) VALUES (1, 1, 'ann', 50.0);
INSERT INTO orders (rowtime, id, customer, amount) VALUES (2, 2, 'bob', 150.0);

ASSERT VALUES large_orders (rowtime, id, customer, amount) VALUES (2, 2, 'bob', 150.0);

--@test: each customer's orders are counted
CREATE STREAM orders (id INT KEY, customer STRING, amount DOUBLE)
  WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE counts AS SELECT customer, COUNT(*) AS orders FROM orders GROUP BY customer;

ASSERT TABLE counts (customer STRING PRIMARY KEY, orders BIGINT)
  WITH (kafka_topic='COUNTS', value_format='JSON');

INSERT INTO orders (id, customer, amount) VALUES (1, 'ann', 50.0);
INSERT INTO orders (id, customer, amount) VALUES (2, 'ann', 150.0);

ASSERT VALUES counts (customer, orders) VALUES ('ann', 1);
ASSERT VALUES counts (customer, orders) VALUES ('ann', 2);

--@test: a column that is not there
--@expected.error: io.confluent.ksql.util.KsqlException
--@expected.message: column 'PRICE' cannot be resolved.
CREATE STREAM orders (id INT KEY, amount DOUBLE) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM broken AS SELECT id, price FROM orders;
