-- What the runner itself finds wrong: these cases expect to fail.

--@test: a record with another value
--@expected.error: AssertionError
--@expected.message: Expected record does not match actual.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
INSERT INTO orders VALUES ('o1', 'pear');
ASSERT VALUES orders VALUES ('o1', 'fig');

--@test: a record that is a tombstone, but should not be
--@expected.error: AssertionError
--@expected.message: Expected record does not match actual.
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM deletions (name STRING KEY, nothing STRING) WITH (kafka_topic='customers', value_format='KAFKA');
INSERT INTO deletions (name) VALUES ('ann');
ASSERT VALUES customers (name) VALUES ('ann');

--@test: fewer records than expected
--@expected.error: AssertionError
--@expected.message: Expected another record, but all records have already been read.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
INSERT INTO orders VALUES ('o1', 'pear');
ASSERT VALUES orders VALUES ('o1', 'pear');
ASSERT VALUES orders VALUES ('o2', 'pear');

--@test: more records than expected
--@expected.error: AssertionError
--@expected.message: orders has further records.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
INSERT INTO orders VALUES ('o1', 'pear');
INSERT INTO orders VALUES ('o2', 'pear');
ASSERT VALUES orders VALUES ('o1', 'pear');

--@test: a source with another schema
--@expected.error: AssertionError
--@expected.message: Expected schema does not match actual for source ORDERS.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
ASSERT STREAM orders (id STRING KEY, item INT) WITH (kafka_topic='orders', value_format='JSON');
