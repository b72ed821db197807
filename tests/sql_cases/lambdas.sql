-- TRANSFORM, FILTER and REDUCE: functions that take a lambda, x => …

--@test: TRANSFORM changes each element of an array
CREATE STREAM readings (sensor STRING KEY, celsius ARRAY<INT>) WITH (kafka_topic='readings', value_format='JSON');
CREATE STREAM warmer AS SELECT sensor, TRANSFORM(celsius, c => c * 9 / 5 + 32) AS fahrenheit FROM readings;
INSERT INTO readings VALUES ('s1', ARRAY[0, 100, -40]);
INSERT INTO readings VALUES ('s2', ARRAY[10]);
ASSERT VALUES warmer VALUES ('s1', ARRAY[32, 212, -40]);
ASSERT VALUES warmer VALUES ('s2', ARRAY[50]);

--@test: TRANSFORM changes keys and values of a map
CREATE STREAM shelves (id STRING KEY, stock MAP<STRING, INT>) WITH (kafka_topic='shelves', value_format='JSON');
CREATE STREAM changed AS SELECT id, TRANSFORM(stock, (k, v) => UCASE(k), (k, v) => v + LEN(k)) AS stock FROM shelves;
INSERT INTO shelves VALUES ('s1', MAP('fig' := 1, 'pear' := 2));
ASSERT VALUES changed VALUES ('s1', MAP('FIG' := 4, 'PEAR' := 6));

--@test: FILTER keeps the elements for which the lambda holds
CREATE STREAM readings (sensor STRING KEY, celsius ARRAY<INT>, few MAP<STRING, INT>)
  WITH (kafka_topic='readings', value_format='JSON');
CREATE STREAM frost AS SELECT sensor, FILTER(celsius, c => c < 0) AS cold, FILTER(few, (k,
  v) => k LIKE 'a%' AND v > 1) AS a FROM readings;
INSERT INTO readings VALUES ('s1', ARRAY[3, -1, 0, -7], MAP('ab' := 2, 'ac' := 1, 'b' := 9));
INSERT INTO readings VALUES ('s2', ARRAY[3], MAP('b' := 9));
ASSERT VALUES frost VALUES ('s1', ARRAY[-1, -7], MAP('ab' := 2));
ASSERT VALUES frost (sensor, cold) VALUES ('s2', FILTER(ARRAY[3], x => x < 0));

--@test: REDUCE folds an array or a map into one value
CREATE STREAM carts (id STRING KEY, prices ARRAY<INT>, stock MAP<STRING, INT>)
  WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM totals AS
  SELECT id, REDUCE(prices, 0, (sum, p) => sum + p) AS total, REDUCE(stock, 100, (s, k, v) => s - v) AS free,
         REDUCE(prices, '', (text, p) => CONCAT(text, CAST(p AS STRING))) AS digits
  FROM carts;
INSERT INTO carts VALUES ('c1', ARRAY[1, 2, 3], MAP('a' := 10, 'b' := 20));
ASSERT VALUES totals VALUES ('c1', 6, 70, '123');

--@test: lambdas see the columns of the row, and nest
CREATE STREAM carts (id STRING KEY, rate INT, rows ARRAY<ARRAY<INT>>) WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM scaled AS SELECT id, TRANSFORM(rows, r => TRANSFORM(r, x => x * rate)) AS rows FROM carts;
INSERT INTO carts VALUES ('c1', 10, ARRAY[ARRAY[1, 2], ARRAY[3]]);
ASSERT VALUES scaled VALUES ('c1', ARRAY[ARRAY[10, 20], ARRAY[30]]);

--@test: lambdas on structs
CREATE STREAM carts (id STRING KEY, lines ARRAY<STRUCT<item STRING, price DECIMAL(5, 2)>>)
  WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM names AS SELECT id, TRANSFORM(FILTER(lines, l => l->price > 1.00), l => l->item) AS names FROM carts;
INSERT INTO carts VALUES ('c1', ARRAY[STRUCT(item := 'pear', price := 0.50), STRUCT(item := 'melon', price := 2.75)]);
ASSERT VALUES names VALUES ('c1', ARRAY['melon']);

--@test: a lambda over null is null
CREATE STREAM carts (id STRING KEY, prices ARRAY<INT>)
  WITH (kafka_topic='carts', value_format='JSON', wrap_single_values=true);
CREATE STREAM done AS SELECT id, TRANSFORM(prices, p => p + 1) AS a, FILTER(prices, p => p > 0) AS b, REDUCE(prices, 5,
  (s, p) => s + p) AS c
  FROM carts;
INSERT INTO carts (id) VALUES ('c1');
ASSERT VALUES done VALUES ('c1', NULL, NULL, 5);
