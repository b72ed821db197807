-- Orders come in with a trace id in a Kafka header; shipments follow.
SET 'auto.offset.reset' = 'earliest';

CREATE STREAM orders (
    order_id INT KEY,
    customer STRING,
    item STRING,
    amount DOUBLE,
    trace BYTES HEADER('trace-id')
  ) WITH (kafka_topic = 'orders', value_format = 'JSON', partitions = 1);

CREATE STREAM shipments (
    order_id INT KEY,
    carrier STRING
  ) WITH (kafka_topic = 'shipments', value_format = 'JSON', partitions = 1,
          wrap_single_values = true);

-- The header as a column, and the record's own time: ROWTIME is in no schema, but can be asked for.
CREATE STREAM large_orders AS
  SELECT order_id, customer, amount,
         FROM_BYTES(trace, 'utf8') AS trace_id,
         ROWTIME AS ordered_at
  FROM orders
  WHERE amount >= 100
  EMIT CHANGES;

-- One value column: it is written as a bare JSON string, not as {"ITEM": …}.
CREATE STREAM items AS
  SELECT order_id, item FROM orders EMIT CHANGES;

CREATE TABLE spending AS
  SELECT customer, COUNT(*) AS orders, SUM(amount) AS total
  FROM orders
  GROUP BY customer
  EMIT CHANGES;

CREATE STREAM shipped AS
  SELECT o.order_id AS order_id, o.customer AS customer, s.carrier AS carrier
  FROM orders o
  JOIN shipments s WITHIN 1 HOUR ON o.order_id = s.order_id
  EMIT CHANGES;
