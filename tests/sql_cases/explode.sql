-- EXPLODE and other table functions: one row becomes several.

--@test: EXPLODE makes a row of each element
CREATE STREAM carts (id STRING KEY, customer STRING, items ARRAY<STRING>)
  WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM lines AS SELECT id, customer, EXPLODE(items) AS item FROM carts;
INSERT INTO carts (ROWTIME, id, customer, items) VALUES (7, 'c1', 'ann', ARRAY['pear', 'fig', NULL]);
ASSERT VALUES lines (ROWTIME, id, customer, item) VALUES (7, 'c1', 'ann', 'pear');
ASSERT VALUES lines (ROWTIME, id, customer, item) VALUES (7, 'c1', 'ann', 'fig');
ASSERT VALUES lines (ROWTIME, id, customer, item) VALUES (7, 'c1', 'ann', NULL);

--@test: an empty array and a null make no row
CREATE STREAM carts (id STRING KEY, customer STRING, items ARRAY<STRING>)
  WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM lines AS SELECT id, customer, EXPLODE(items) AS item FROM carts;
INSERT INTO carts VALUES ('c1', 'ann', NULL);
INSERT INTO carts VALUES ('c2', 'ann', FILTER(ARRAY['x'], x => x = 'y'));
INSERT INTO carts VALUES ('c3', 'bob', ARRAY['pear']);
ASSERT VALUES lines VALUES ('c3', 'bob', 'pear');

--@test: two at once go side by side, the shorter one padded with null
CREATE STREAM carts (id STRING KEY, items ARRAY<STRING>, prices ARRAY<INT>)
  WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM lines AS SELECT id, EXPLODE(items) AS item, EXPLODE(prices) AS price FROM carts;
INSERT INTO carts VALUES ('c1', ARRAY['pear', 'fig'], ARRAY[4]);
ASSERT VALUES lines VALUES ('c1', 'pear', 4);
ASSERT VALUES lines VALUES ('c1', 'fig', NULL);

--@test: expressions inside and around EXPLODE
CREATE STREAM carts (id STRING KEY, text STRING) WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM words AS SELECT id, UCASE(EXPLODE(SPLIT(text, ' '))) AS word FROM carts WHERE LEN(text) > 3;
INSERT INTO carts VALUES ('c1', 'red pear');
INSERT INTO carts VALUES ('c2', 'fig');
ASSERT VALUES words VALUES ('c1', 'RED');
ASSERT VALUES words VALUES ('c1', 'PEAR');

--@test: structs are exploded and taken apart
CREATE STREAM carts (id STRING KEY, lines ARRAY<STRUCT<item STRING, price INT>>)
  WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM prices AS SELECT id, EXPLODE(lines)->item AS item, EXPLODE(lines)->price + 1 AS price FROM carts;
INSERT INTO carts VALUES ('c1', ARRAY[STRUCT(item := 'pear', price := 4), STRUCT(item := 'fig', price := 1)]);
ASSERT VALUES prices VALUES ('c1', 'pear', 5);
ASSERT VALUES prices VALUES ('c1', 'fig', 2);

--@test: CUBE_EXPLODE makes all combinations of values and nulls
CREATE STREAM sales (id STRING KEY, city STRING, item STRING) WITH (kafka_topic='sales', value_format='JSON');
CREATE STREAM cubes AS SELECT id, CUBE_EXPLODE(ARRAY[city, item]) AS cell FROM sales;
INSERT INTO sales VALUES ('s1', 'Bern', 'fig');
ASSERT VALUES cubes VALUES ('s1', ARRAY[CAST(NULL AS STRING), NULL]);
ASSERT VALUES cubes VALUES ('s1', ARRAY[NULL, 'fig']);
ASSERT VALUES cubes VALUES ('s1', ARRAY['Bern', NULL]);
ASSERT VALUES cubes VALUES ('s1', ARRAY['Bern', 'fig']);
