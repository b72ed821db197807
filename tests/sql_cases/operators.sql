-- Literals and operators: what type an expression has, and what it gives at the edges of it.
-- Arithmetic is Java's, as in ksqlDB: integers wrap around, and divide without a remainder.

--@test: a literal has the smallest type that holds it
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM literals AS
  SELECT id, 7 AS small, 3000000000 AS large, 1.50 AS price, 1.5E0 AS weight, 'it''s' AS note, TRUE AS paid
  FROM orders;
ASSERT STREAM literals (id STRING KEY, small INT, large BIGINT, price DECIMAL(3, 2), weight DOUBLE, note STRING,
  paid BOOLEAN)
  WITH (kafka_topic='LITERALS', value_format='JSON');
INSERT INTO orders VALUES ('o1', 1);
ASSERT VALUES literals VALUES ('o1', 7, 3000000000, 1.50, 1.5, 'it''s', TRUE);

--@test: integers are added, subtracted, multiplied and negated
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM sums AS SELECT id, quantity + 2 AS more, quantity - 10 AS less, quantity * quantity AS square,
  -quantity AS minus
  FROM orders;
INSERT INTO orders VALUES ('o1', 7);
INSERT INTO orders VALUES ('o2', -3);
ASSERT VALUES sums VALUES ('o1', 9, -3, 49, -7);
ASSERT VALUES sums VALUES ('o2', -1, -13, 9, 3);

--@test: integers are divided towards zero, and the remainder has the dividend's sign
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM boxes AS SELECT id, quantity / 4 AS boxes, quantity % 4 AS rest, quantity / -4 AS owed FROM orders;
INSERT INTO orders VALUES ('o1', 7);
INSERT INTO orders VALUES ('o2', -7);
ASSERT VALUES boxes VALUES ('o1', 1, 3, -1);
ASSERT VALUES boxes VALUES ('o2', -1, -3, 1);

--@test: multiplication binds before addition, and parentheses before both
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM sums AS SELECT id, 1 + quantity * 3 AS a, (1 + quantity) * 3 AS b, 10 - quantity - 1 AS c,
  -quantity * 2 AS d
  FROM orders;
INSERT INTO orders VALUES ('o1', 2);
ASSERT VALUES sums VALUES ('o1', 7, 9, 7, -4);

--@test: an INTEGER wraps around at its end
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM wrapped AS SELECT id, quantity + 1 AS next, quantity * 2 AS twice FROM orders;
INSERT INTO orders VALUES ('o1', 2147483647);
ASSERT VALUES wrapped VALUES ('o1', -2147483648, -2);

--@test: a BIGINT wraps around at its end
CREATE STREAM ledgers (id STRING KEY, cents BIGINT) WITH (kafka_topic='ledgers', value_format='JSON');
CREATE STREAM wrapped AS SELECT id, cents + 1 AS next FROM ledgers;
INSERT INTO ledgers VALUES ('l1', 9223372036854775807);
ASSERT VALUES wrapped VALUES ('l1', -9223372036854775808);

--@test: the wider of two number types wins
CREATE STREAM orders (id STRING KEY, quantity INT, stock BIGINT, weight DOUBLE)
  WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM mixed AS SELECT id, stock - quantity AS remaining, quantity * weight AS total, stock / weight AS ratio
  FROM orders;
ASSERT STREAM mixed (id STRING KEY, remaining BIGINT, total DOUBLE, ratio DOUBLE)
  WITH (kafka_topic='MIXED', value_format='JSON');
INSERT INTO orders VALUES ('o1', 3, 5000000000, 2.5);
ASSERT VALUES mixed VALUES ('o1', 4999999997, 7.5, 2000000000.0);

--@test: decimals get as many digits as the result may have
CREATE STREAM prices (id STRING KEY, net DECIMAL(6, 2), rate DECIMAL(3, 2))
  WITH (kafka_topic='prices', value_format='JSON');
CREATE STREAM taxed AS SELECT id, net + rate AS added, net - rate AS reduced, net * rate AS tax, net / rate AS ratio,
  net % rate AS rest
  FROM prices;
ASSERT STREAM taxed (id STRING KEY, added DECIMAL(7, 2), reduced DECIMAL(7, 2), tax DECIMAL(10, 4), ratio DECIMAL(12,
  6), rest DECIMAL(3, 2))
  WITH (kafka_topic='TAXED', value_format='JSON');
INSERT INTO prices VALUES ('p1', 100.00, 0.19);
ASSERT VALUES taxed VALUES ('p1', 100.19, 99.81, 19.0000, 526.315789, 0.06);

--@test: an integer beside a decimal becomes a decimal, beside a double a double
CREATE STREAM items (id STRING KEY, quantity INT, price DECIMAL(6, 2), weight DOUBLE)
  WITH (kafka_topic='items', value_format='JSON');
CREATE STREAM totals AS SELECT id, quantity * price AS total, price + quantity AS more, price * weight AS odd
  FROM items;
ASSERT STREAM totals (id STRING KEY, total DECIMAL(17, 2), more DECIMAL(13, 2), odd DOUBLE)
  WITH (kafka_topic='TOTALS', value_format='JSON');
INSERT INTO items VALUES ('i1', 3, 19.99, 0.5);
ASSERT VALUES totals VALUES ('i1', 59.97, 22.99, 9.995);

--@test: what is divided by zero is null, and the rest of the row stays
CREATE STREAM trips (id STRING KEY, km INT, duration INT, toll DECIMAL(5, 2))
  WITH (kafka_topic='trips', value_format='JSON');
CREATE STREAM speeds AS SELECT id, km / duration AS speed, km % duration AS rest, toll / duration AS share, km
  FROM trips;
INSERT INTO trips VALUES ('t1', 90, 0, 2.50);
INSERT INTO trips VALUES ('t2', 90, 2, 2.50);
ASSERT VALUES speeds VALUES ('t1', NULL, NULL, NULL, 90);
ASSERT VALUES speeds VALUES ('t2', 45, 0, 1.25, 90);

--@test: a double divided by zero is infinite
CREATE STREAM trips (id STRING KEY, km DOUBLE, duration DOUBLE) WITH (kafka_topic='trips', value_format='JSON');
CREATE STREAM speeds AS SELECT id, km / duration > 1.7E308 AS beyond FROM trips;
INSERT INTO trips VALUES ('t1', 90, 0);
INSERT INTO trips VALUES ('t2', 90, 1);
ASSERT VALUES speeds VALUES ('t1', TRUE);
ASSERT VALUES speeds VALUES ('t2', FALSE);

--@test: arithmetic with null is null
CREATE STREAM items (id STRING KEY, quantity INT, price DECIMAL(6, 2), weight DOUBLE)
  WITH (kafka_topic='items', value_format='JSON');
CREATE STREAM totals AS SELECT id, quantity + 1 AS a, price * 2 AS b, weight / 2 AS c, -quantity AS d FROM items;
INSERT INTO items (id) VALUES ('i1');
ASSERT VALUES totals VALUES ('i1', NULL, NULL, NULL, NULL);

--@test: numbers of different types are compared by their value
CREATE STREAM items (id STRING KEY, quantity INT, stock BIGINT, price DECIMAL(6, 2), weight DOUBLE)
  WITH (kafka_topic='items', value_format='JSON');
CREATE STREAM compared AS SELECT id, quantity = stock AS a, quantity < price AS b, price >= weight AS c,
  stock <> weight AS d, quantity != 2 AS e
  FROM items;
INSERT INTO items VALUES ('i1', 2, 2, 2.00, 2.0);
INSERT INTO items VALUES ('i2', 1, 3, 1.01, 1.5);
ASSERT VALUES compared VALUES ('i1', TRUE, FALSE, TRUE, FALSE, FALSE);
ASSERT VALUES compared VALUES ('i2', FALSE, TRUE, FALSE, TRUE, TRUE);

--@test: a comparison with null is false, and its negation true
CREATE STREAM orders (id STRING KEY, quantity INT)
  WITH (kafka_topic='orders', value_format='JSON', wrap_single_values=true);
CREATE STREAM compared AS SELECT id, quantity > 5 AS large, NOT (quantity > 5) AS other FROM orders;
INSERT INTO orders (id) VALUES ('o1');
INSERT INTO orders VALUES ('o2', 6);
ASSERT VALUES compared VALUES ('o1', FALSE, TRUE);
ASSERT VALUES compared VALUES ('o2', TRUE, FALSE);

--@test: strings are compared letter by letter, capitals first
CREATE STREAM cities (id STRING KEY, a STRING, b STRING) WITH (kafka_topic='cities', value_format='JSON');
CREATE STREAM compared AS SELECT id, a < b AS before, a = b AS same, a >= b AS behind FROM cities;
INSERT INTO cities VALUES ('1', 'Bern', 'Bonn');
INSERT INTO cities VALUES ('2', 'bern', 'Bonn');
INSERT INTO cities VALUES ('3', 'Bern', 'Bern');
ASSERT VALUES compared VALUES ('1', TRUE, FALSE, FALSE);
ASSERT VALUES compared VALUES ('2', FALSE, FALSE, TRUE);
ASSERT VALUES compared VALUES ('3', FALSE, TRUE, TRUE);

--@test: strings are joined by plus
CREATE STREAM people (id STRING KEY, first STRING, last STRING) WITH (kafka_topic='people', value_format='JSON');
CREATE STREAM named AS SELECT id, first + ' ' + last AS name FROM people;
INSERT INTO people VALUES ('1', 'Ada', 'Lovelace');
ASSERT VALUES named VALUES ('1', 'Ada Lovelace');

--@test: AND, OR and NOT, with AND before OR
CREATE STREAM doors (id STRING KEY, open BOOLEAN, locked BOOLEAN, broken BOOLEAN)
  WITH (kafka_topic='doors', value_format='JSON');
CREATE STREAM judged AS SELECT id, open AND locked AS odd, open OR locked AS known, NOT open AS closed,
  open OR locked AND broken AS c
  FROM doors;
INSERT INTO doors VALUES ('d1', TRUE, FALSE, FALSE);
INSERT INTO doors VALUES ('d2', FALSE, TRUE, FALSE);
INSERT INTO doors VALUES ('d3', TRUE, TRUE, TRUE);
ASSERT VALUES judged VALUES ('d1', FALSE, TRUE, FALSE, TRUE);
ASSERT VALUES judged VALUES ('d2', FALSE, TRUE, TRUE, FALSE);
ASSERT VALUES judged VALUES ('d3', TRUE, TRUE, FALSE, TRUE);

--@test: dates and times are compared with texts that spell one
CREATE STREAM trains (id STRING KEY, day DATE, leaves TIME, booked TIMESTAMP)
  WITH (kafka_topic='trains', value_format='JSON');
CREATE STREAM early AS SELECT id, day < '2024-03-01' AS winter, leaves <= '06:30:00' AS early,
  booked > '2024-02-28T23:59:59' AS late
  FROM trains;
INSERT INTO trains VALUES ('t1', '2024-02-29', '06:30:00', '2024-02-29T00:00:00');
INSERT INTO trains VALUES ('t2', '2024-03-01', '06:30:01', '2024-02-01T12:00:00');
ASSERT VALUES early VALUES ('t1', TRUE, TRUE, TRUE);
ASSERT VALUES early VALUES ('t2', FALSE, FALSE, FALSE);

--@test: bytes are compared as numbers without a sign
CREATE STREAM seals (id STRING KEY, seal BYTES) WITH (kafka_topic='seals', value_format='JSON');
CREATE STREAM compared AS SELECT id, seal > TO_BYTES('7F', 'hex') AS high, seal = TO_BYTES('80', 'hex') AS same
  FROM seals;
INSERT INTO seals VALUES ('s1', TO_BYTES('80', 'hex'));
INSERT INTO seals VALUES ('s2', TO_BYTES('01', 'hex'));
ASSERT VALUES compared VALUES ('s1', TRUE, TRUE);
ASSERT VALUES compared VALUES ('s2', FALSE, FALSE);
