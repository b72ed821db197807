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

--@test: arithmetic with a null element fails the whole call
CREATE STREAM carts (id STRING KEY, prices ARRAY<INT>, weights ARRAY<DOUBLE>, sums ARRAY<DECIMAL(5, 2)>)
  WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM done AS
  SELECT id, TRANSFORM(prices, p => p + 1) AS a, TRANSFORM(weights, w => -w) AS b, FILTER(sums, s => s * 2 > 3) AS c,
  REDUCE(prices, 1, (s, p) => s * p) AS d
  FROM carts;
INSERT INTO carts VALUES ('c1', ARRAY[1, NULL], ARRAY[NULL, 2.5], ARRAY[1.50, NULL]);
INSERT INTO carts VALUES ('c2', ARRAY[1, 2], ARRAY[1.5, 2.5], ARRAY[1.50, 2.00]);
ASSERT VALUES done VALUES ('c1', NULL, NULL, NULL, NULL);
ASSERT VALUES done VALUES ('c2', ARRAY[2, 3], ARRAY[-1.5, -2.5], ARRAY[2.00], 2);

--@test: a null element is compared, tested and passed on
CREATE STREAM carts (id STRING KEY, prices ARRAY<INT>, names ARRAY<STRING>)
  WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM done AS
  SELECT id, FILTER(prices, p => p > 1) AS a, TRANSFORM(prices, p => COALESCE(p, 0)) AS b,
  TRANSFORM(names, n => UCASE(n)) AS c, TRANSFORM(names, n => n IS NULL) AS d, FILTER(names, n => n IN ('fig')) AS e,
  TRANSFORM(prices, p => CASE WHEN p > 1 THEN 'dear' ELSE 'cheap' END) AS f, TRANSFORM(prices, p => CAST(p AS STRING)) AS g
  FROM carts;
INSERT INTO carts VALUES ('c1', ARRAY[3, NULL], ARRAY['fig', NULL]);
ASSERT VALUES done VALUES ('c1', ARRAY[3], ARRAY[3, 0], ARRAY['FIG', NULL], ARRAY[FALSE, TRUE], ARRAY['fig'],
  ARRAY['dear', 'cheap'], ARRAY['3', NULL]);

--@test: texts are joined with the word null, as Java does it
CREATE STREAM carts (id STRING KEY, names ARRAY<STRING>) WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM done AS SELECT id, TRANSFORM(names, n => '<' + n + '>') AS names FROM carts;
INSERT INTO carts VALUES ('c1', ARRAY['fig', NULL]);
ASSERT VALUES done VALUES ('c1', ARRAY['<fig>', '<null>']);

--@test: conditions of a lambda are true or false, and what they do not need is not asked
CREATE STREAM doors (id STRING KEY, open ARRAY<BOOLEAN>, names ARRAY<STRING>)
  WITH (kafka_topic='doors', value_format='JSON');
CREATE STREAM done AS
  SELECT id, FILTER(open, o => o) AS a, FILTER(open, o => o AND o IS NULL) AS b, TRANSFORM(open, o => NOT o) AS c,
  FILTER(open, o => o IS NULL OR o) AS d, FILTER(open, o => o IS NOT NULL AND o) AS e,
  TRANSFORM(open, o => CASE WHEN o THEN 1 ELSE 2 END) AS f, FILTER(names, n => n LIKE 'a%') AS g
  FROM doors;
INSERT INTO doors VALUES ('d1', ARRAY[TRUE, NULL], ARRAY['ab', NULL]);
INSERT INTO doors VALUES ('d2', ARRAY[TRUE, FALSE], ARRAY['ab', 'b']);
ASSERT VALUES done VALUES ('d1', NULL, NULL, NULL, ARRAY[TRUE, NULL], ARRAY[TRUE], NULL, NULL);
ASSERT VALUES done (id, a, c, d, e, f, g) VALUES ('d2', ARRAY[TRUE], ARRAY[FALSE, TRUE], ARRAY[TRUE], ARRAY[TRUE],
  ARRAY[1, 2], ARRAY['ab']);

--@test: a map that a lambda makes or keeps has no null values
CREATE STREAM shelves (id STRING KEY, stock MAP<STRING, INT>) WITH (kafka_topic='shelves', value_format='JSON');
CREATE STREAM done AS
  SELECT id, TRANSFORM(stock, (k, v) => k, (k, v) => v) AS a, FILTER(stock, (k, v) => k = 'pear') AS b,
  FILTER(stock, (k, v) => k = 'fig') AS c
  FROM shelves;
INSERT INTO shelves VALUES ('s1', MAP('fig' := 1, 'pear' := NULL));
INSERT INTO shelves VALUES ('s2', MAP('fig' := 1, 'pear' := 2));
ASSERT VALUES done VALUES ('s1', NULL, NULL, MAP('fig' := 1));
ASSERT VALUES done VALUES ('s2', MAP('fig' := 1, 'pear' := 2), MAP('pear' := 2), MAP('fig' := 1));

--@test: two entries of a map must not become one, and a key that is null has the name null
CREATE STREAM shelves (id STRING KEY, stock MAP<STRING, STRING>) WITH (kafka_topic='shelves', value_format='JSON');
CREATE STREAM done AS
  SELECT id, TRANSFORM(stock, (k, v) => v, (k, v) => k) AS turned, TRANSFORM(stock, (k, v) => NULLIF(k, 'fig'), (k,
  v) => v) AS named
  FROM shelves;
INSERT INTO shelves VALUES ('s1', MAP('fig' := 'blue', 'plum' := 'blue'));
INSERT INTO shelves VALUES ('s2', MAP('fig' := 'blue', 'pear' := 'green'));
ASSERT VALUES done VALUES ('s1', NULL, MAP('null' := 'blue', 'plum' := 'blue'));
ASSERT VALUES done VALUES ('s2', MAP('blue' := 'fig', 'green' := 'pear'), MAP('null' := 'blue', 'pear' := 'green'));

--@test: a state that becomes null goes on, until something needs it
CREATE STREAM carts (id STRING KEY, prices ARRAY<INT>) WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM done AS
  SELECT id, REDUCE(prices, 0, (s, p) => p) AS last, REDUCE(prices, 0, (s, p) => NULLIF(p, 7) + s) AS sum
  FROM carts;
INSERT INTO carts VALUES ('c1', ARRAY[1, NULL, 3]);
INSERT INTO carts VALUES ('c2', ARRAY[1, NULL]);
INSERT INTO carts VALUES ('c3', ARRAY[1, 2]);
ASSERT VALUES done VALUES ('c1', 3, NULL);
ASSERT VALUES done VALUES ('c2', NULL, NULL);
ASSERT VALUES done VALUES ('c3', 2, 3);

--@test: parts of a lambda that may fail alone are null, and the rest goes on
CREATE STREAM carts (id STRING KEY, texts ARRAY<STRING>, lines ARRAY<STRUCT<item STRING, price INT>>)
  WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM done AS
  SELECT id, TRANSFORM(texts, t => CAST(t AS INT)) AS numbers, TRANSFORM(lines, l => STRUCT(item := l->item,
  twice := l->price * 2)) AS lines, REDUCE(texts, 0, (s, t) => s + COALESCE(CAST(t AS INT), 100)) AS total
  FROM carts;
INSERT INTO carts VALUES ('c1', ARRAY['1', 'many', '3'], ARRAY[STRUCT(item := 'fig', price := 4), STRUCT(item := 'pear',
  price := CAST(NULL AS INT))]);
ASSERT VALUES done VALUES ('c1', ARRAY[1, NULL, 3], ARRAY[STRUCT(item := 'fig', twice := 8), STRUCT(item := 'pear',
  twice := CAST(NULL AS INT))], 104);

--@test: a part of a lambda that fails alone leaves an entry in the processing log
CREATE STREAM log (message STRUCT<recordProcessingError STRUCT<errorMessage STRING>>)
  WITH (kafka_topic='processing-log', value_format='JSON', wrap_single_value=true);
CREATE STREAM carts (id STRING KEY, texts ARRAY<ARRAY<STRING>>) WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM done AS SELECT id, TRANSFORM(texts, row => TRANSFORM(row, t => CAST(t AS INT))) AS numbers FROM carts;
INSERT INTO carts VALUES ('c1', ARRAY[ARRAY['1', 'many'], ARRAY['3']]);
INSERT INTO carts VALUES ('c2', ARRAY[ARRAY['1', '2'], ARRAY['3']]);
ASSERT VALUES log (message) VALUES (STRUCT(recordProcessingError := STRUCT(errorMessage :=
  'Error computing expression TRANSFORM(TEXTS, (ROW) => TRANSFORM(ROW, (T) => CAST(T AS INTEGER))) for column NUMBERS with index 0')));

--@test: a lambda that fails leaves an entry in the processing log
CREATE STREAM log (message STRUCT<recordProcessingError STRUCT<errorMessage STRING>>)
  WITH (kafka_topic='processing-log', value_format='JSON', wrap_single_value=true);
CREATE STREAM carts (id STRING KEY, prices ARRAY<INT>) WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM done AS SELECT id, TRANSFORM(prices, p => p + 1) AS prices FROM carts;
INSERT INTO carts VALUES ('c1', ARRAY[1, NULL]);
INSERT INTO carts VALUES ('c2', ARRAY[1]);
ASSERT VALUES log (message) VALUES (STRUCT(recordProcessingError := STRUCT(errorMessage :=
  'Error computing expression TRANSFORM(PRICES, (P) => (P + 1)) for column PRICES with index 0')));

--@test: a predicate with a lambda that fails skips the row
CREATE STREAM carts (id STRING KEY, texts ARRAY<STRING>) WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM done AS SELECT id, texts FROM carts WHERE ARRAY_CONTAINS(TRANSFORM(texts, t => CAST(t AS INT)), 3);
INSERT INTO carts VALUES ('c1', ARRAY['many', '3']);
INSERT INTO carts VALUES ('c2', ARRAY['2', '3']);
ASSERT VALUES done VALUES ('c2', ARRAY['2', '3']);

--@test: REDUCE visits a map in the order of a Java hash map
CREATE STREAM shelves (id STRING KEY, stock MAP<STRING, INT>) WITH (kafka_topic='shelves', value_format='JSON');
CREATE STREAM done AS SELECT id, REDUCE(stock, '', (s, k, v) => CONCAT(s, k, ' ')) AS names FROM shelves;
INSERT INTO shelves VALUES ('s1', MAP('pear' := 1, 'fig' := 2, 'plum' := 3, 'apple' := 4));
INSERT INTO shelves VALUES ('s2', MAP('pear' := 1, 'fig' := 2, 'plum' := 3));
INSERT INTO shelves VALUES ('s3', MAP('one' := 1, 'two' := 2, 'three' := 3, 'four' := 4, 'five' := 5, 'six' := 6,
  'seven' := 7, 'eight' := 8));
INSERT INTO shelves VALUES ('s4', MAP('café' := 1, '🍐' := 2, '日本' := 3, 'x' := 4));
ASSERT VALUES done VALUES ('s1', 'plum apple pear fig ');
ASSERT VALUES done VALUES ('s2', 'plum fig pear ');
ASSERT VALUES done VALUES ('s3', 'six four one seven two three five eight ');
ASSERT VALUES done VALUES ('s4', 'x 日本 café 🍐 ');
