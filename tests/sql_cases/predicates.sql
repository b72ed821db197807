-- CASE, BETWEEN, IN, LIKE, IS NULL, IS DISTINCT FROM.

--@test: CASE takes the first condition that holds
CREATE STREAM readings (sensor STRING KEY, celsius DOUBLE) WITH (kafka_topic='readings', value_format='JSON');
CREATE STREAM weather AS
  SELECT sensor, CASE WHEN celsius < 0 THEN 'frost' WHEN celsius < 15 THEN 'cool' ELSE 'warm' END AS feels
  FROM readings;
INSERT INTO readings VALUES ('s1', -2.5);
INSERT INTO readings VALUES ('s1', 14.9);
INSERT INTO readings VALUES ('s1', 15.0);
ASSERT VALUES weather VALUES ('s1', 'frost');
ASSERT VALUES weather VALUES ('s1', 'cool');
ASSERT VALUES weather VALUES ('s1', 'warm');

--@test: CASE without ELSE is null where nothing holds, and a null operand does not hold
CREATE STREAM readings (sensor STRING KEY, celsius DOUBLE, unit STRING)
  WITH (kafka_topic='readings', value_format='JSON');
CREATE STREAM weather AS SELECT sensor, unit, CASE WHEN celsius < 0 THEN 'frost' END AS feels FROM readings;
INSERT INTO readings VALUES ('s1', 3.0, 'C');
INSERT INTO readings (sensor, unit) VALUES ('s2', 'C');
INSERT INTO readings VALUES ('s3', -3.0, 'C');
ASSERT VALUES weather VALUES ('s1', 'C', NULL);
ASSERT VALUES weather VALUES ('s2', 'C', NULL);
ASSERT VALUES weather VALUES ('s3', 'C', 'frost');

--@test: CASE with an operand compares it with each value
CREATE STREAM orders (id STRING KEY, state STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM steps AS SELECT id, CASE state WHEN 'new' THEN 1 WHEN 'paid' THEN 2 ELSE 0 END AS step FROM orders;
INSERT INTO orders VALUES ('o1', 'paid');
INSERT INTO orders VALUES ('o2', 'lost');
INSERT INTO orders VALUES ('o3', 'new');
ASSERT VALUES steps VALUES ('o1', 2);
ASSERT VALUES steps VALUES ('o2', 0);
ASSERT VALUES steps VALUES ('o3', 1);

--@test: CASE evaluates only the result it takes
CREATE STREAM trips (id STRING KEY, km INT, duration INT) WITH (kafka_topic='trips', value_format='JSON');
CREATE STREAM speeds AS SELECT id, CASE WHEN duration = 0 THEN -1 ELSE km / duration END AS speed FROM trips;
INSERT INTO trips VALUES ('t1', 90, 0);
INSERT INTO trips VALUES ('t2', 90, 3);
ASSERT VALUES speeds VALUES ('t1', -1);
ASSERT VALUES speeds VALUES ('t2', 30);

--@test: BETWEEN includes both ends
CREATE STREAM readings (sensor STRING KEY, celsius INT) WITH (kafka_topic='readings', value_format='JSON');
CREATE STREAM mild AS SELECT sensor, celsius FROM readings WHERE celsius BETWEEN 10 AND 20;
INSERT INTO readings VALUES ('s1', 9);
INSERT INTO readings VALUES ('s2', 10);
INSERT INTO readings VALUES ('s3', 20);
INSERT INTO readings VALUES ('s4', 21);
INSERT INTO readings (sensor) VALUES ('s5');
ASSERT VALUES mild VALUES ('s2', 10);
ASSERT VALUES mild VALUES ('s3', 20);

--@test: NOT BETWEEN is what lies outside
CREATE STREAM readings (sensor STRING KEY, celsius DECIMAL(4, 1)) WITH (kafka_topic='readings', value_format='JSON');
CREATE STREAM extreme AS SELECT sensor, celsius FROM readings WHERE celsius NOT BETWEEN 10 AND 20.5;
INSERT INTO readings VALUES ('s1', 9.9);
INSERT INTO readings VALUES ('s2', 20.5);
INSERT INTO readings VALUES ('s3', 20.6);
ASSERT VALUES extreme VALUES ('s1', 9.9);
ASSERT VALUES extreme VALUES ('s3', 20.6);

--@test: BETWEEN on texts and on dates
CREATE STREAM guests (id STRING KEY, name STRING, arrives DATE) WITH (kafka_topic='guests', value_format='JSON');
CREATE STREAM expected AS SELECT id, name BETWEEN 'B' AND 'D' AS early,
  arrives BETWEEN '2024-07-01' AND '2024-07-31' AS july
  FROM guests;
INSERT INTO guests VALUES ('g1', 'Cora', '2024-07-31');
INSERT INTO guests VALUES ('g2', 'Dora', '2024-08-01');
ASSERT VALUES expected VALUES ('g1', TRUE, TRUE);
ASSERT VALUES expected VALUES ('g2', FALSE, FALSE);

--@test: IN holds for any of the values
CREATE STREAM orders (id STRING KEY, state STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM chosen AS SELECT id, state FROM orders WHERE state IN ('new', 'paid') AND quantity NOT IN (0, 99);
INSERT INTO orders VALUES ('o1', 'new', 1);
INSERT INTO orders VALUES ('o2', 'lost', 1);
INSERT INTO orders VALUES ('o3', 'paid', 99);
INSERT INTO orders (id, quantity) VALUES ('o4', 1);
INSERT INTO orders VALUES ('o5', 'paid', 2);
ASSERT VALUES chosen VALUES ('o1', 'new');
ASSERT VALUES chosen VALUES ('o5', 'paid');

--@test: IN compares numbers by value, whatever their types
CREATE STREAM items (id STRING KEY, price DECIMAL(5, 2), stock BIGINT) WITH (kafka_topic='items', value_format='JSON');
CREATE STREAM chosen AS SELECT id, price IN (1, 2.5) AS cheap, stock IN (3, 5000000000) AS known FROM items;
INSERT INTO items VALUES ('i1', 2.50, 5000000000);
INSERT INTO items VALUES ('i2', 1.00, 3);
INSERT INTO items VALUES ('i3', 1.01, 4);
ASSERT VALUES chosen VALUES ('i1', TRUE, TRUE);
ASSERT VALUES chosen VALUES ('i2', TRUE, TRUE);
ASSERT VALUES chosen VALUES ('i3', FALSE, FALSE);

--@test: LIKE has % for any text and _ for one character
CREATE STREAM files (id STRING KEY, name STRING) WITH (kafka_topic='files', value_format='JSON');
CREATE STREAM matched AS
  SELECT id, name LIKE '%.txt' AS text, name LIKE 'r_port%' AS report, name LIKE '%por%' AS por,
  name NOT LIKE 'a%' AS other
  FROM files;
INSERT INTO files VALUES ('f1', 'report.txt');
INSERT INTO files VALUES ('f2', 'airport');
INSERT INTO files VALUES ('f3', 'Report.txt');
ASSERT VALUES matched VALUES ('f1', TRUE, TRUE, TRUE, TRUE);
ASSERT VALUES matched VALUES ('f2', FALSE, FALSE, TRUE, FALSE);
ASSERT VALUES matched VALUES ('f3', TRUE, FALSE, TRUE, TRUE);

--@test: LIKE takes all other characters as they are
CREATE STREAM files (id STRING KEY, name STRING) WITH (kafka_topic='files', value_format='JSON');
CREATE STREAM matched AS SELECT id, name LIKE 'a.b' AS dot, name LIKE '[ab]%' AS brackets, name LIKE '' AS nothing
  FROM files;
INSERT INTO files VALUES ('f1', 'a.b');
INSERT INTO files VALUES ('f2', 'axb');
INSERT INTO files VALUES ('f3', '[ab]!');
INSERT INTO files VALUES ('f4', '');
ASSERT VALUES matched VALUES ('f1', TRUE, FALSE, FALSE);
ASSERT VALUES matched VALUES ('f2', FALSE, FALSE, FALSE);
ASSERT VALUES matched VALUES ('f3', FALSE, TRUE, FALSE);
ASSERT VALUES matched VALUES ('f4', FALSE, FALSE, TRUE);

--@test: ESCAPE makes a wildcard an ordinary character
CREATE STREAM offers (id STRING KEY, text STRING) WITH (kafka_topic='offers', value_format='JSON');
CREATE STREAM matched AS SELECT id, text LIKE '%50!%%' ESCAPE '!' AS half, text LIKE 'a!_b' ESCAPE '!' AS underscore
  FROM offers;
INSERT INTO offers VALUES ('1', 'now 50% off');
INSERT INTO offers VALUES ('2', 'now 500 off');
INSERT INTO offers VALUES ('3', 'a_b');
INSERT INTO offers VALUES ('4', 'axb');
ASSERT VALUES matched VALUES ('1', TRUE, FALSE);
ASSERT VALUES matched VALUES ('2', FALSE, FALSE);
ASSERT VALUES matched VALUES ('3', FALSE, TRUE);
ASSERT VALUES matched VALUES ('4', FALSE, FALSE);

--@test: IS NULL and IS NOT NULL
CREATE STREAM orders (id STRING KEY, customer STRING, tags ARRAY<STRING>)
  WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM known AS SELECT id, customer IS NULL AS anonymous, tags IS NOT NULL AS tagged FROM orders;
INSERT INTO orders VALUES ('o1', 'ann', ARRAY['gift']);
INSERT INTO orders (id) VALUES ('o2');
ASSERT VALUES known VALUES ('o1', FALSE, TRUE);
ASSERT VALUES known VALUES ('o2', TRUE, FALSE);

--@test: IS DISTINCT FROM takes null for a value like any other
CREATE STREAM moves (id STRING KEY, origin STRING, target STRING) WITH (kafka_topic='moves', value_format='JSON');
CREATE STREAM judged AS SELECT id, origin IS DISTINCT FROM target AS moved, origin IS NOT DISTINCT
  FROM target AS stayed FROM moves;
INSERT INTO moves VALUES ('1', 'Bern', 'Bonn');
INSERT INTO moves VALUES ('2', 'Bern', 'Bern');
INSERT INTO moves (id, origin) VALUES ('3', 'Bern');
INSERT INTO moves (id) VALUES ('4');
ASSERT VALUES judged VALUES ('1', TRUE, FALSE);
ASSERT VALUES judged VALUES ('2', FALSE, TRUE);
ASSERT VALUES judged VALUES ('3', TRUE, FALSE);
ASSERT VALUES judged VALUES ('4', FALSE, TRUE);
