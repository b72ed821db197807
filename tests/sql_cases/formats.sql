-- How rows lie in their topics. A stream of format KAFKA over the same topic shows the text of a
-- record, and is a way to write records that another format cannot read.

--@test: JSON, as it is written
CREATE STREAM samples (id STRING KEY, b BOOLEAN, i INT, l BIGINT, d DOUBLE, e DECIMAL(5, 2), s STRING, y BYTES)
  WITH (kafka_topic='samples', value_format='JSON');
CREATE STREAM copies AS SELECT * FROM samples;
CREATE STREAM raw (id STRING KEY, line STRING) WITH (kafka_topic='COPIES', value_format='KAFKA');
INSERT INTO samples VALUES ('1', TRUE, -1, 5000000000, 0.5, 12.50, 'say "hi"', TO_BYTES('4D61', 'hex'));
INSERT INTO samples (id) VALUES ('2');
ASSERT VALUES raw VALUES ('1', '{"B":true,"I":-1,"L":5000000000,"D":0.5,"E":12.50,"S":"say \"hi\"","Y":"TWE="}');
ASSERT VALUES raw VALUES ('2', '{"B":null,"I":null,"L":null,"D":null,"E":null,"S":null,"Y":null}');

--@test: JSON has dates and times as numbers
CREATE STREAM trains (id STRING KEY, day DATE, leaves TIME, booked TIMESTAMP)
  WITH (kafka_topic='trains', value_format='JSON');
CREATE STREAM copies AS SELECT * FROM trains;
CREATE STREAM raw (id STRING KEY, line STRING) WITH (kafka_topic='COPIES', value_format='KAFKA');
INSERT INTO trains VALUES ('1', '1970-01-11', '00:01:00', '1970-01-01T00:00:01.500');
ASSERT VALUES raw VALUES ('1', '{"DAY":10,"LEAVES":60000,"BOOKED":1500}');

--@test: JSON has arrays, maps and structs
CREATE STREAM boxes (id STRING KEY, a ARRAY<INT>, m MAP<STRING, BOOLEAN>, s STRUCT<x INT, y ARRAY<STRING>>)
  WITH (kafka_topic='boxes', value_format='JSON');
CREATE STREAM copies AS SELECT * FROM boxes;
CREATE STREAM raw (id STRING KEY, line STRING) WITH (kafka_topic='COPIES', value_format='KAFKA');
INSERT INTO boxes VALUES ('1', ARRAY[1, NULL], MAP('k' := TRUE), STRUCT(x := 5, y := ARRAY['z']));
ASSERT VALUES raw VALUES ('1', '{"A":[1,null],"M":{"k":true},"S":{"X":5,"Y":["z"]}}');

--@test: JSON is read in any order and case, with fields missing or unknown
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM raw (id STRING KEY, line STRING) WITH (kafka_topic='orders', value_format='KAFKA');
CREATE STREAM copies AS SELECT * FROM orders;
INSERT INTO raw VALUES ('o1', '{"quantity": 3, "Item": "pear"}');
INSERT INTO raw VALUES ('o2', '{"ITEM": "fig", "colour": "blue"}');
INSERT INTO raw VALUES ('o3', '{"QUANTITY": "4", "ITEM": 7}');
ASSERT VALUES copies VALUES ('o1', 'pear', 3);
ASSERT VALUES copies VALUES ('o2', 'fig', NULL);
ASSERT VALUES copies VALUES ('o3', '7', 4);

--@test: what is no JSON, or of another type, is skipped and told in the processing log
CREATE STREAM log (message STRUCT<`type` INT, deserializationError STRUCT<`target` STRING, `topic` STRING,
  `offset` BIGINT>>)
  WITH (kafka_topic='processing-log', value_format='JSON', wrap_single_value=true);
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM raw (id STRING KEY, line STRING) WITH (kafka_topic='orders', value_format='KAFKA');
CREATE STREAM copies AS SELECT * FROM orders;
INSERT INTO raw VALUES ('o1', '{"ITEM": "pear", ');
INSERT INTO raw VALUES ('o2', '{"ITEM": "pear", "QUANTITY": "many"}');
INSERT INTO raw VALUES ('o3', '{"ITEM": "pear", "QUANTITY": 3}');
ASSERT VALUES copies VALUES ('o3', 'pear', 3);
ASSERT VALUES log (message) VALUES (STRUCT(`type` := 0, deserializationError := STRUCT(`target` := 'value',
  `topic` := 'orders', `offset` := 0)));
ASSERT VALUES log (message) VALUES (STRUCT(`type` := 0, deserializationError := STRUCT(`target` := 'value',
  `topic` := 'orders', `offset` := 1)));

--@test: a single value is bare, unless it is wrapped
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM bare AS SELECT id, quantity FROM orders;
CREATE STREAM wrapped WITH (wrap_single_values=true) AS SELECT id, quantity FROM orders;
CREATE STREAM raw_bare (id STRING KEY, line STRING) WITH (kafka_topic='BARE', value_format='KAFKA');
CREATE STREAM raw_wrapped (id STRING KEY, line STRING) WITH (kafka_topic='WRAPPED', value_format='KAFKA');
INSERT INTO orders VALUES ('o1', 'pear', 3);
ASSERT VALUES raw_bare VALUES ('o1', '3');
ASSERT VALUES raw_wrapped VALUES ('o1', '{"QUANTITY":3}');

--@test: single values are read as they are declared
CREATE STREAM bare (id STRING KEY, n ARRAY<INT>) WITH (kafka_topic='bare', value_format='JSON');
CREATE STREAM raw_bare (id STRING KEY, line STRING) WITH (kafka_topic='bare', value_format='KAFKA');
CREATE STREAM wrapped (id STRING KEY, n ARRAY<INT>)
  WITH (kafka_topic='wrapped', value_format='JSON', wrap_single_value=true);
CREATE STREAM raw_wrapped (id STRING KEY, line STRING) WITH (kafka_topic='wrapped', value_format='KAFKA');
CREATE STREAM sums AS SELECT id, n[1] + n[2] AS sum, 'bare' AS kind FROM bare;
INSERT INTO sums SELECT id, n[1] + n[2] AS sum, 'wrapped' AS kind FROM wrapped;
INSERT INTO raw_bare VALUES ('1', '[1, 2]');
INSERT INTO raw_wrapped VALUES ('2', '{"N": [3, 4]}');
ASSERT VALUES sums VALUES ('1', 3, 'bare');
ASSERT VALUES sums VALUES ('2', 7, 'wrapped');

--@test: DELIMITED is a line of values
CREATE STREAM lines (id STRING KEY, item STRING, quantity INT, price DECIMAL(5, 2), paid BOOLEAN)
  WITH (kafka_topic='lines', value_format='DELIMITED');
CREATE STREAM raw (id STRING KEY, line STRING) WITH (kafka_topic='lines', value_format='KAFKA');
CREATE STREAM copies WITH (value_format='JSON') AS SELECT * FROM lines;
INSERT INTO raw VALUES ('1', 'pear,3,1.25,true');
INSERT INTO raw VALUES ('2', '"a, b",,,');
ASSERT VALUES copies VALUES ('1', 'pear', 3, 1.25, TRUE);
ASSERT VALUES copies VALUES ('2', 'a, b', NULL, NULL, NULL);

--@test: DELIMITED with another delimiter, written with quotes where needed
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM piped WITH (value_format='DELIMITED', value_delimiter='|') AS SELECT * FROM orders;
CREATE STREAM raw (id STRING KEY, line STRING) WITH (kafka_topic='PIPED', value_format='KAFKA');
INSERT INTO orders VALUES ('o1', 'pear', 3);
INSERT INTO orders VALUES ('o2', 'a|b', NULL);
ASSERT VALUES raw VALUES ('o1', 'pear|3');
ASSERT VALUES raw VALUES ('o2', '"a|b"|');

--@test: a DELIMITED line with another number of values is skipped
CREATE STREAM lines (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='lines', value_format='DELIMITED');
CREATE STREAM raw (id STRING KEY, line STRING) WITH (kafka_topic='lines', value_format='KAFKA');
CREATE STREAM copies AS SELECT * FROM lines;
INSERT INTO raw VALUES ('1', 'pear');
INSERT INTO raw VALUES ('2', 'pear,3,4');
INSERT INTO raw VALUES ('3', 'pear,many');
INSERT INTO raw VALUES ('4', 'pear,3');
ASSERT VALUES copies VALUES ('4', 'pear', 3);

--@test: KAFKA has single values of simple types
CREATE STREAM counters (id INT KEY, n BIGINT) WITH (kafka_topic='counters', format='KAFKA');
CREATE STREAM doubled AS SELECT id, n * 2 AS n FROM counters;
CREATE STREAM halves WITH (format='KAFKA') AS SELECT CAST(id AS BIGINT) AS id, CAST(n AS DOUBLE) / 2 AS n FROM counters
  PARTITION BY CAST(id AS BIGINT);
ASSERT STREAM doubled (id INT KEY, n BIGINT) WITH (kafka_topic='DOUBLED', format='KAFKA');
INSERT INTO counters VALUES (7, 5);
ASSERT VALUES doubled VALUES (7, 10);
ASSERT VALUES halves VALUES (7, 2.5);

--@test: AVRO
CREATE STREAM samples (id STRING KEY, b BOOLEAN, i INT, l BIGINT, d DOUBLE, e DECIMAL(5, 2), s STRING, a ARRAY<INT>,
  m MAP<STRING, INT>, r STRUCT<x INT>)
  WITH (kafka_topic='samples', value_format='AVRO');
CREATE STREAM copies AS SELECT * FROM samples;
CREATE STREAM json WITH (value_format='JSON') AS SELECT * FROM copies;
INSERT INTO samples VALUES ('1', TRUE, -1, 5000000000, 0.5, 12.50, 'x', ARRAY[1, 2], MAP('k' := 1), STRUCT(x := 5));
INSERT INTO samples (id) VALUES ('2');
ASSERT VALUES json VALUES ('1', TRUE, -1, 5000000000, 0.5, 12.50, 'x', ARRAY[1, 2], MAP('k' := 1), STRUCT(x := 5));
ASSERT VALUES json VALUES ('2', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

--@test: AVRO has dates and times
CREATE STREAM trains (id STRING KEY, day DATE, leaves TIME, booked TIMESTAMP, y BYTES)
  WITH (kafka_topic='trains', value_format='AVRO');
CREATE STREAM copies AS SELECT * FROM trains;
INSERT INTO trains VALUES ('1', '2024-02-29', '06:30:00', '2024-02-29T06:30:00', TO_BYTES('FF', 'hex'));
ASSERT VALUES copies VALUES ('1', '2024-02-29', '06:30:00', '2024-02-29T06:30:00', TO_BYTES('FF', 'hex'));

--@test: what is no AVRO is skipped
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='AVRO');
CREATE STREAM raw (id STRING KEY, line STRING) WITH (kafka_topic='orders', value_format='KAFKA');
CREATE STREAM copies AS SELECT * FROM orders;
INSERT INTO raw VALUES ('o1', '{"ITEM": "pear", "QUANTITY": 3}');
INSERT INTO orders VALUES ('o2', 'pear', 3);
ASSERT VALUES copies VALUES ('o2', 'pear', 3);

--@test: PROTOBUF, where bytes that are missing are empty, unless its schema knows nulls
CREATE STREAM seals (id STRING KEY, seal BYTES, n INT) WITH (kafka_topic='seals', value_format='PROTOBUF');
CREATE STREAM signed (id STRING KEY, seal BYTES, n INT)
  WITH (kafka_topic='signed', value_format='PROTOBUF', value_protobuf_nullable_representation='OPTIONAL');
CREATE STREAM plain WITH (value_format='JSON') AS SELECT id, seal, LEN(seal) AS length FROM seals;
CREATE STREAM optional WITH (value_format='JSON') AS SELECT id, seal, LEN(seal) AS length FROM signed;
INSERT INTO seals (id, n) VALUES ('s1', 1);
INSERT INTO seals VALUES ('s2', TO_BYTES('', 'utf8'), 2);
INSERT INTO signed (id, n) VALUES ('s1', 1);
INSERT INTO signed VALUES ('s2', TO_BYTES('', 'utf8'), 2);
ASSERT VALUES plain VALUES ('s1', TO_BYTES('', 'utf8'), 0);
ASSERT VALUES plain VALUES ('s2', TO_BYTES('', 'utf8'), 0);
ASSERT VALUES optional VALUES ('s1', NULL, NULL);
ASSERT VALUES optional VALUES ('s2', TO_BYTES('', 'utf8'), 0);

--@test: PROTOBUF, where a number that is missing is 0 and a text empty
CREATE STREAM samples (id STRING KEY, b BOOLEAN, i INT, l BIGINT, d DOUBLE, s STRING, a ARRAY<INT>, r STRUCT<x INT>)
  WITH (kafka_topic='samples', value_format='PROTOBUF');
CREATE STREAM copies AS SELECT * FROM samples;
INSERT INTO samples VALUES ('1', TRUE, -1, 5000000000, 0.5, 'x', ARRAY[1, 2], STRUCT(x := 5));
INSERT INTO samples (id, s) VALUES ('2', 'only');
ASSERT VALUES copies VALUES ('1', TRUE, -1, 5000000000, 0.5, 'x', ARRAY[1, 2], STRUCT(x := 5));
ASSERT VALUES copies (id, b, i, l, d, s) VALUES ('2', FALSE, 0, 0, 0.0, 'only');

--@test: JSON_SR
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT, price DECIMAL(5, 2))
  WITH (kafka_topic='orders', value_format='JSON_SR');
CREATE STREAM copies AS SELECT * FROM orders;
ASSERT STREAM copies (id STRING KEY, item STRING, quantity INT, price DECIMAL(5, 2))
  WITH (kafka_topic='COPIES', value_format='JSON_SR');
INSERT INTO orders VALUES ('o1', 'pear', 3, 1.25);
INSERT INTO orders (id) VALUES ('o2');
ASSERT VALUES copies VALUES ('o1', 'pear', 3, 1.25);
ASSERT VALUES copies VALUES ('o2', NULL, NULL, NULL);

--@test: columns that are left out come from the schema in the registry
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='AVRO');
CREATE STREAM again (id STRING KEY) WITH (kafka_topic='orders', value_format='AVRO');
CREATE STREAM copies AS SELECT id, quantity + 1 AS more, item FROM again;
INSERT INTO orders VALUES ('o1', 'pear', 3);
ASSERT VALUES copies VALUES ('o1', 4, 'pear');

--@test: keys in JSON, one or several
CREATE STREAM orders (id INT KEY, shop STRING KEY, item STRING, quantity INT)
  WITH (kafka_topic='orders', format='JSON');
CREATE STREAM copies AS SELECT id, shop, quantity, item FROM orders;
CREATE STREAM by_item AS SELECT item, quantity, id FROM orders PARTITION BY item;
CREATE STREAM raw (k STRING KEY, line STRING) WITH (kafka_topic='COPIES', format='KAFKA');
CREATE STREAM raw_by_item (k STRING KEY, line STRING) WITH (kafka_topic='BY_ITEM', format='KAFKA');
INSERT INTO orders VALUES (1, 'web', 'pear', 3);
ASSERT VALUES raw VALUES ('{"ID":1,"SHOP":"web"}', '{"QUANTITY":3,"ITEM":"pear"}');
ASSERT VALUES raw_by_item VALUES ('"pear"', '{"QUANTITY":3,"ID":1}');

--@test: keys in AVRO and DELIMITED
CREATE STREAM orders (id INT KEY, item STRING, quantity INT)
  WITH (kafka_topic='orders', key_format='AVRO', value_format='JSON');
CREATE STREAM csv WITH (key_format='DELIMITED') AS SELECT id, item, quantity FROM orders PARTITION BY id, item;
CREATE STREAM raw (k STRING KEY, line STRING) WITH (kafka_topic='CSV', format='KAFKA', wrap_single_value=false);
INSERT INTO orders VALUES (1, 'pear', 3);
ASSERT VALUES raw VALUES ('1,pear', '3');

--@test: from one format to another
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='DELIMITED');
CREATE STREAM avro WITH (value_format='AVRO') AS SELECT * FROM orders;
CREATE STREAM proto WITH (value_format='PROTOBUF') AS SELECT * FROM avro;
CREATE STREAM json_sr WITH (value_format='JSON_SR') AS SELECT * FROM proto;
CREATE STREAM json WITH (value_format='JSON') AS SELECT * FROM json_sr;
INSERT INTO orders VALUES ('o1', 'pear', 3);
ASSERT VALUES json VALUES ('o1', 'pear', 3);
