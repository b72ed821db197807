-- Columns of a record's headers. `--@header: name=text` gives one to the record that is inserted next.

--@test: one header by its name, the last of several
CREATE STREAM orders (id STRING KEY, item STRING, trace BYTES HEADER('trace'))
  WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM traced AS SELECT id, item, FROM_BYTES(trace, 'utf8') AS trace FROM orders;
--@header: trace=a1
--@header: source=web
--@header: trace=a2
INSERT INTO orders (id, item) VALUES ('o1', 'pear');
INSERT INTO orders (id, item) VALUES ('o2', 'fig');
ASSERT VALUES traced VALUES ('o1', 'pear', 'a2');
ASSERT VALUES traced VALUES ('o2', 'fig', NULL);

--@test: all headers, in their order
CREATE STREAM orders (id STRING KEY, item STRING, h ARRAY<STRUCT<key STRING, value BYTES>> HEADERS)
  WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM traced AS SELECT id, TRANSFORM(h, x => x->key) AS names, FROM_BYTES(h[1]->value, 'utf8') AS first,
  ARRAY_LENGTH(h) AS n FROM orders;
--@header: trace=a1
--@header: empty
--@header: trace=a2
INSERT INTO orders (id, item) VALUES ('o1', 'pear');
INSERT INTO orders (id, item) VALUES ('o2', 'fig');
ASSERT VALUES traced VALUES ('o1', ARRAY['trace', 'empty', 'trace'], 'a1', 3);
ASSERT VALUES traced (id, first, n) VALUES ('o2', NULL, 0);

--@test: headers in WHERE, GROUP BY and SELECT *
CREATE STREAM orders (id STRING KEY, item STRING, trace BYTES HEADER('trace'))
  WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT * FROM orders WHERE FROM_BYTES(trace, 'utf8') <> 'test';
CREATE TABLE by_trace AS SELECT FROM_BYTES(trace, 'utf8') AS trace, COUNT(*) AS n FROM orders
  GROUP BY FROM_BYTES(trace, 'utf8');
ASSERT STREAM copies (id STRING KEY, item STRING, trace BYTES) WITH (kafka_topic='COPIES', value_format='JSON');
--@header: trace=test
INSERT INTO orders (id, item) VALUES ('o1', 'pear');
--@header: trace=live
INSERT INTO orders (id, item) VALUES ('o2', 'fig');
--@header: trace=test
INSERT INTO orders (id, item) VALUES ('o3', 'plum');
ASSERT VALUES copies VALUES ('o2', 'fig', TO_BYTES('live', 'utf8'));
ASSERT VALUES by_trace VALUES ('test', 1);
ASSERT VALUES by_trace VALUES ('live', 1);
ASSERT VALUES by_trace VALUES ('test', 2);

--@test: a header cannot be inserted
--@expected.error: KsqlException
--@expected.message: Cannot insert into HEADER columns: TRACE
CREATE STREAM orders (id STRING KEY, item STRING, trace BYTES HEADER('trace'))
  WITH (kafka_topic='orders', value_format='JSON');
INSERT INTO orders (id, item, trace) VALUES ('o1', 'pear', TO_BYTES('ff', 'hex'));
