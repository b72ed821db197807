-- Arrays, maps and structs: how to make them, and how to get at what is in them. Whatever is not
-- there is null.

--@test: an array counts from 1, and from -1 backwards
CREATE STREAM routes (id STRING KEY, stops ARRAY<STRING>) WITH (kafka_topic='routes', value_format='JSON');
CREATE STREAM ends AS SELECT id, stops[1] AS first, stops[2] AS second, stops[-1] AS last, stops[-3] AS third_last
  FROM routes;
INSERT INTO routes VALUES ('r1', ARRAY['Bern', 'Basel', 'Bonn']);
ASSERT VALUES ends VALUES ('r1', 'Bern', 'Basel', 'Bonn', 'Bern');

--@test: beyond its ends an array has null
CREATE STREAM routes (id STRING KEY, stops ARRAY<STRING>, n INT) WITH (kafka_topic='routes', value_format='JSON');
CREATE STREAM stops AS SELECT id, stops[n] AS stop, ARRAY_LENGTH(stops) AS length FROM routes;
INSERT INTO routes VALUES ('r1', ARRAY['Bern', 'Basel'], 3);
INSERT INTO routes VALUES ('r2', ARRAY['Bern', 'Basel'], -3);
INSERT INTO routes VALUES ('r3', ARRAY['Bern', 'Basel'], 0);
INSERT INTO routes VALUES ('r4', NULL, 1);
INSERT INTO routes VALUES ('r5', ARRAY['Bern', 'Basel'], 2);
ASSERT VALUES stops VALUES ('r1', NULL, 2);
ASSERT VALUES stops VALUES ('r2', NULL, 2);
ASSERT VALUES stops VALUES ('r3', NULL, 2);
ASSERT VALUES stops VALUES ('r4', NULL, NULL);
ASSERT VALUES stops VALUES ('r5', 'Basel', 2);

--@test: a map has null for a key that it lacks
CREATE STREAM shelves (id STRING KEY, stock MAP<STRING, INT>)
  WITH (kafka_topic='shelves', value_format='JSON', wrap_single_values=true);
CREATE STREAM fruit AS SELECT id, stock['apple'] AS apples, stock['pear'] AS pears FROM shelves;
INSERT INTO shelves VALUES ('s1', MAP('apple' := 3, 'plum' := 4));
INSERT INTO shelves VALUES ('s2', NULL);
ASSERT VALUES fruit VALUES ('s1', 3, NULL);
ASSERT VALUES fruit VALUES ('s2', NULL, NULL);

--@test: the key of a map may be computed
CREATE STREAM shelves (id STRING KEY, wanted STRING, stock MAP<STRING, INT>)
  WITH (kafka_topic='shelves', value_format='JSON');
CREATE STREAM fruit AS SELECT id, stock[LCASE(wanted)] AS pieces FROM shelves;
INSERT INTO shelves VALUES ('s1', 'Apple', MAP('apple' := 3));
ASSERT VALUES fruit VALUES ('s1', 3);

--@test: fields of structs are reached by an arrow
CREATE STREAM people (id STRING KEY, home STRUCT<city STRING, geo STRUCT<lat DOUBLE, lon DOUBLE>>)
  WITH (kafka_topic='people', value_format='JSON', wrap_single_values=true);
CREATE STREAM places AS SELECT id, home->city, home->geo->lat AS lat FROM people;
ASSERT STREAM places (id STRING KEY, city STRING, lat DOUBLE)
  WITH (kafka_topic='PLACES', value_format='JSON', wrap_single_values=true);
INSERT INTO people VALUES ('p1', STRUCT(city := 'Bern', geo := STRUCT(lat := 46.9, lon := 7.4)));
INSERT INTO people VALUES ('p2', STRUCT(city := 'Nowhere'));
INSERT INTO people (id) VALUES ('p3');
ASSERT VALUES places VALUES ('p1', 'Bern', 46.9);
ASSERT VALUES places VALUES ('p2', 'Nowhere', NULL);
ASSERT VALUES places VALUES ('p3', NULL, NULL);

--@test: an arrow and a star take all fields of a struct
CREATE STREAM people (id STRING KEY, home STRUCT<city STRING, zip INT>)
  WITH (kafka_topic='people', value_format='JSON');
CREATE STREAM places AS SELECT id, home->* FROM people;
ASSERT STREAM places (id STRING KEY, city STRING, zip INT) WITH (kafka_topic='PLACES', value_format='JSON');
INSERT INTO people VALUES ('p1', STRUCT(city := 'Bern', zip := 3000));
ASSERT VALUES places VALUES ('p1', 'Bern', 3000);

--@test: structures in structures
CREATE STREAM trips (id STRING KEY, legs ARRAY<STRUCT<stop STRING, fares MAP<STRING, DECIMAL(5, 2)>>>)
  WITH (kafka_topic='trips', value_format='JSON');
CREATE STREAM fares AS SELECT id, legs[1]->stop AS stop, legs[-1]->fares['child'] AS fare, legs[2]->fares AS all_fares
  FROM trips;
INSERT INTO trips VALUES ('t1', ARRAY[STRUCT(stop := 'Bern', fares := MAP('adult' := 5.00, 'child' := 2.50))]);
ASSERT VALUES fares VALUES ('t1', 'Bern', 2.50, NULL);

--@test: arrays, maps and structs are made from expressions
CREATE STREAM items (id STRING KEY, name STRING, price INT) WITH (kafka_topic='items', value_format='JSON');
CREATE STREAM made AS
  SELECT id, ARRAY[price, price * 2] AS prices, MAP(name := price, 'total' := price + 1) AS parts,
  STRUCT(label := UCASE(name), cost := price) AS item
  FROM items;
ASSERT STREAM made (id STRING KEY, prices ARRAY<INT>, parts MAP<STRING, INT>, item STRUCT<label STRING, cost INT>)
  WITH (kafka_topic='MADE', value_format='JSON');
INSERT INTO items VALUES ('i1', 'pear', 4);
ASSERT VALUES made VALUES ('i1', ARRAY[4, 8], MAP('pear' := 4, 'total' := 5), STRUCT(label := 'PEAR', cost := 4));

--@test: the elements of a new array are brought to one type
CREATE STREAM items (id STRING KEY, quantity INT, stock BIGINT) WITH (kafka_topic='items', value_format='JSON');
CREATE STREAM made AS SELECT id, ARRAY[quantity, stock] AS numbers, ARRAY[1, 2.5] AS decimals, ARRAY[NULL,
  'x'] AS texts FROM items;
ASSERT STREAM made (id STRING KEY, numbers ARRAY<BIGINT>, decimals ARRAY<DECIMAL(11, 1)>, texts ARRAY<STRING>)
  WITH (kafka_topic='MADE', value_format='JSON');
INSERT INTO items VALUES ('i1', 1, 5000000000);
ASSERT VALUES made VALUES ('i1', ARRAY[1, 5000000000], ARRAY[1.0, 2.5], ARRAY[NULL, 'x']);

--@test: arrays, structs and maps are compared as a whole
CREATE STREAM pairs (id STRING KEY, a ARRAY<INT>, b ARRAY<INT>, p STRUCT<x INT, y INT>, q STRUCT<x INT, y INT>)
  WITH (kafka_topic='pairs', value_format='JSON');
CREATE STREAM compared AS SELECT id, a = b AS arrays, p = q AS structs, a <> b AS others FROM pairs;
INSERT INTO pairs VALUES ('1', ARRAY[1, 2], ARRAY[1, 2], STRUCT(x := 1, y := 2), STRUCT(x := 1, y := 2));
INSERT INTO pairs VALUES ('2', ARRAY[1, 2], ARRAY[2, 1], STRUCT(x := 1, y := 2), STRUCT(x := 1, y := 3));
ASSERT VALUES compared VALUES ('1', TRUE, TRUE, FALSE);
ASSERT VALUES compared VALUES ('2', FALSE, FALSE, TRUE);

--@test: functions of arrays
CREATE STREAM bags (id STRING KEY, a ARRAY<INT>, b ARRAY<INT>) WITH (kafka_topic='bags', value_format='JSON');
CREATE STREAM done AS
  SELECT id, ARRAY_CONTAINS(a, 3) AS has3, ARRAY_DISTINCT(a) AS once, ARRAY_UNION(a, b) AS both, ARRAY_INTERSECT(a,
  b) AS shared,
         ARRAY_EXCEPT(a, b) AS rest, ARRAY_SORT(a, 'DESC') AS sorted, ARRAY_MAX(a) AS top, SLICE(a, 2, 3) AS mid,
         ARRAY_REMOVE(a, 3) AS no3
  FROM bags;
INSERT INTO bags VALUES ('1', ARRAY[3, 1, 3, 2], ARRAY[2, 5]);
ASSERT VALUES done VALUES ('1', TRUE, ARRAY[3, 1, 2], ARRAY[3, 1, 2, 5], ARRAY[2], ARRAY[3, 1], ARRAY[3, 3, 2, 1], 3,
  ARRAY[1, 3], ARRAY[1, 2]);

--@test: functions of maps
CREATE STREAM shelves (id STRING KEY, stock MAP<STRING, INT>, more MAP<STRING, INT>)
  WITH (kafka_topic='shelves', value_format='JSON');
CREATE STREAM done AS
  SELECT id, ARRAY_SORT(MAP_KEYS(stock)) AS names, ARRAY_SORT(MAP_VALUES(stock)) AS counts, MAP_UNION(stock,
  more) AS all_stock,
         ENTRIES(stock, TRUE) AS entries, AS_MAP(ARRAY['a', 'b'], ARRAY[1, 2]) AS made
  FROM shelves;
INSERT INTO shelves VALUES ('s1', MAP('pear' := 2, 'apple' := 5), MAP('pear' := 3, 'fig' := 1));
ASSERT VALUES done VALUES ('s1', ARRAY['apple', 'pear'], ARRAY[2, 5], MAP('pear' := 3, 'apple' := 5, 'fig' := 1),
  ARRAY[STRUCT(K := 'apple', V := 5), STRUCT(K := 'pear', V := 2)], MAP('a' := 1, 'b' := 2));
