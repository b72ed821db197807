-- Joins with tables: of a stream with a table, of two tables, by a foreign key, and of several sources.

--@test: a record of a stream finds the table's row of that moment
CREATE STREAM orders (customer STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM placed AS SELECT o.customer AS customer, item, city FROM orders o JOIN customers c ON o.customer = c.name;
INSERT INTO orders (ROWTIME, customer, item) VALUES (1, 'ann', 'pear');
INSERT INTO customers (ROWTIME, name, city, age) VALUES (5, 'ann', 'Bern', 33);
INSERT INTO orders (ROWTIME, customer, item) VALUES (2, 'ann', 'fig');
INSERT INTO customers (ROWTIME, name, city, age) VALUES (6, 'ann', 'Bonn', 33);
INSERT INTO orders (ROWTIME, customer, item) VALUES (7, 'ann', 'plum');
ASSERT VALUES placed (ROWTIME, customer, item, city) VALUES (2, 'ann', 'fig', 'Bern');
ASSERT VALUES placed (ROWTIME, customer, item, city) VALUES (7, 'ann', 'plum', 'Bonn');

--@test: a left join with a table has nulls where no row is, or is no more
CREATE STREAM orders (customer STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM deletions (name STRING KEY, nothing STRING) WITH (kafka_topic='customers', value_format='KAFKA');
CREATE STREAM placed AS SELECT o.customer AS customer, item, city FROM orders o LEFT JOIN customers c
  ON o.customer = c.name;
INSERT INTO orders VALUES ('ann', 'pear');
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO orders VALUES ('ann', 'fig');
INSERT INTO deletions (name) VALUES ('ann');
INSERT INTO orders VALUES ('ann', 'plum');
ASSERT VALUES placed VALUES ('ann', 'pear', NULL);
ASSERT VALUES placed VALUES ('ann', 'fig', 'Bern');
ASSERT VALUES placed VALUES ('ann', 'plum', NULL);

--@test: a stream joins a table by a column of its value
CREATE STREAM orders (id STRING KEY, customer STRING, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM placed AS SELECT o.customer AS customer, o.id AS id, item, age + 1 AS next_age FROM orders o
  JOIN customers c ON o.customer = c.name WHERE age > 18;
ASSERT STREAM placed (customer STRING KEY, id STRING, item STRING, next_age INT)
  WITH (kafka_topic='PLACED', value_format='JSON');
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO customers VALUES ('kid', 'Bern', 9);
INSERT INTO orders VALUES ('o1', 'kid', 'pear');
INSERT INTO orders VALUES ('o2', 'ann', 'fig');
INSERT INTO orders VALUES ('o3', NULL, 'plum');
ASSERT VALUES placed (customer, id, item, next_age) VALUES ('ann', 'o2', 'fig', 34);

--@test: two tables joined follow each other's changes
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE points (name STRING PRIMARY KEY, n INT, level STRING) WITH (kafka_topic='points', value_format='JSON');
CREATE TABLE cards AS SELECT c.name AS name, city, n FROM customers c JOIN points p ON c.name = p.name;
ASSERT TABLE cards (name STRING PRIMARY KEY, city STRING, n INT) WITH (kafka_topic='CARDS', value_format='JSON');
INSERT INTO customers (ROWTIME, name, city, age) VALUES (10, 'ann', 'Bern', 33);
INSERT INTO points (ROWTIME, name, n, level) VALUES (5, 'ann', 7, 'gold');
INSERT INTO points (ROWTIME, name, n, level) VALUES (20, 'ann', 8, 'gold');
INSERT INTO customers (ROWTIME, name, city, age) VALUES (15, 'ann', 'Bonn', 33);
ASSERT VALUES cards (ROWTIME, name, city, n) VALUES (10, 'ann', 'Bern', 7);
ASSERT VALUES cards (ROWTIME, name, city, n) VALUES (20, 'ann', 'Bern', 8);
ASSERT VALUES cards (ROWTIME, name, city, n) VALUES (20, 'ann', 'Bonn', 8);

--@test: an inner join of tables ends with either row
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE points (name STRING PRIMARY KEY, n INT, level STRING) WITH (kafka_topic='points', value_format='JSON');
CREATE STREAM deletions (name STRING KEY, nothing STRING) WITH (kafka_topic='points', value_format='KAFKA');
CREATE TABLE cards AS SELECT c.name AS name, city, n FROM customers c JOIN points p ON c.name = p.name;
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO points VALUES ('ann', 7, 'gold');
INSERT INTO deletions (name) VALUES ('ann');
INSERT INTO customers VALUES ('ann', 'Bonn', 33);
ASSERT VALUES cards VALUES ('ann', 'Bern', 7);
ASSERT NULL VALUES cards (name) KEY ('ann');

--@test: a left join of tables keeps the left row
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM departures (name STRING KEY, nothing STRING) WITH (kafka_topic='customers', value_format='KAFKA');
CREATE TABLE points (name STRING PRIMARY KEY, n INT, level STRING) WITH (kafka_topic='points', value_format='JSON');
CREATE STREAM deletions (name STRING KEY, nothing STRING) WITH (kafka_topic='points', value_format='KAFKA');
CREATE TABLE cards AS SELECT c.name AS name, city, n FROM customers c LEFT JOIN points p ON c.name = p.name;
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO points VALUES ('ann', 7, 'gold');
INSERT INTO points VALUES ('bob', 1, 'tin');
INSERT INTO deletions (name) VALUES ('ann');
INSERT INTO departures (name) VALUES ('ann');
ASSERT VALUES cards VALUES ('ann', 'Bern', NULL);
ASSERT VALUES cards VALUES ('ann', 'Bern', 7);
ASSERT VALUES cards VALUES ('ann', 'Bern', NULL);
ASSERT NULL VALUES cards (name) KEY ('ann');

--@test: a right join of tables keeps the right row
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE points (name STRING PRIMARY KEY, n INT, level STRING) WITH (kafka_topic='points', value_format='JSON');
CREATE TABLE cards AS SELECT p.name AS name, city, n FROM customers c RIGHT JOIN points p ON c.name = p.name;
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO points VALUES ('bob', 1, 'tin');
INSERT INTO points VALUES ('ann', 7, 'gold');
ASSERT VALUES cards VALUES ('bob', NULL, 1);
ASSERT VALUES cards VALUES ('ann', 'Bern', 7);

--@test: an outer join of tables ends with both rows
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM departures (name STRING KEY, nothing STRING) WITH (kafka_topic='customers', value_format='KAFKA');
CREATE TABLE points (name STRING PRIMARY KEY, n INT, level STRING) WITH (kafka_topic='points', value_format='JSON');
CREATE STREAM deletions (name STRING KEY, nothing STRING) WITH (kafka_topic='points', value_format='KAFKA');
CREATE TABLE cards AS SELECT ROWKEY AS name, city, n FROM customers c FULL OUTER JOIN points p ON c.name = p.name;
INSERT INTO points VALUES ('ann', 7, 'gold');
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO deletions (name) VALUES ('ann');
INSERT INTO departures (name) VALUES ('ann');
ASSERT VALUES cards VALUES ('ann', NULL, 7);
ASSERT VALUES cards VALUES ('ann', 'Bern', 7);
ASSERT VALUES cards VALUES ('ann', 'Bern', NULL);
ASSERT NULL VALUES cards (name) KEY ('ann');

--@test: a foreign key finds the row of another table
CREATE TABLE orders (id STRING PRIMARY KEY, customer STRING, item STRING)
  WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE placed AS SELECT o.id AS id, item, city FROM orders o JOIN customers c ON o.customer = c.name;
ASSERT TABLE placed (id STRING PRIMARY KEY, item STRING, city STRING) WITH (kafka_topic='PLACED', value_format='JSON');
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO orders VALUES ('o1', 'ann', 'pear');
INSERT INTO orders VALUES ('o2', 'bob', 'fig');
INSERT INTO orders VALUES ('o3', 'ann', 'plum');
ASSERT VALUES placed VALUES ('o1', 'pear', 'Bern');
ASSERT VALUES placed VALUES ('o3', 'plum', 'Bern');

--@test: a change of the other table reaches all rows that refer to it
CREATE TABLE orders (id STRING PRIMARY KEY, customer STRING, item STRING)
  WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE placed AS SELECT o.id AS id, item, city FROM orders o JOIN customers c ON o.customer = c.name;
INSERT INTO orders VALUES ('o1', 'ann', 'pear');
INSERT INTO orders VALUES ('o2', 'ann', 'fig');
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO customers VALUES ('ann', 'Bonn', 33);
ASSERT VALUES placed VALUES ('o1', 'pear', 'Bern');
ASSERT VALUES placed VALUES ('o2', 'fig', 'Bern');
ASSERT VALUES placed VALUES ('o1', 'pear', 'Bonn');
ASSERT VALUES placed VALUES ('o2', 'fig', 'Bonn');

--@test: a row whose foreign key changes follows it, and is deleted where that leads nowhere
CREATE TABLE orders (id STRING PRIMARY KEY, customer STRING, item STRING)
  WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE placed AS SELECT o.id AS id, item, city FROM orders o JOIN customers c ON o.customer = c.name;
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO customers VALUES ('bob', 'Bonn', 20);
INSERT INTO orders VALUES ('o1', 'ann', 'pear');
INSERT INTO orders VALUES ('o1', 'bob', 'pear');
INSERT INTO orders VALUES ('o1', 'eve', 'pear');
ASSERT VALUES placed VALUES ('o1', 'pear', 'Bern');
ASSERT VALUES placed VALUES ('o1', 'pear', 'Bonn');
ASSERT NULL VALUES placed (id) KEY ('o1');

--@test: a left join by foreign key keeps the row, and the row's own tombstone deletes it
CREATE TABLE orders (id STRING PRIMARY KEY, customer STRING, item STRING)
  WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM cancellations (id STRING KEY, nothing STRING) WITH (kafka_topic='orders', value_format='KAFKA');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM deletions (name STRING KEY, nothing STRING) WITH (kafka_topic='customers', value_format='KAFKA');
CREATE TABLE placed AS SELECT o.id AS id, item, city FROM orders o LEFT JOIN customers c ON o.customer = c.name;
INSERT INTO orders VALUES ('o1', 'ann', 'pear');
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO deletions (name) VALUES ('ann');
INSERT INTO cancellations (id) VALUES ('o1');
ASSERT VALUES placed VALUES ('o1', 'pear', NULL);
ASSERT VALUES placed VALUES ('o1', 'pear', 'Bern');
ASSERT VALUES placed VALUES ('o1', 'pear', NULL);
ASSERT NULL VALUES placed (id) KEY ('o1');

--@test: a stream joins two tables, one after the other
CREATE STREAM orders (id STRING KEY, customer STRING, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE items (code STRING PRIMARY KEY, price DECIMAL(5, 2), label STRING)
  WITH (kafka_topic='items', value_format='JSON');
CREATE STREAM bills AS
  SELECT o.item AS code, o.id AS id, c.city, i.label, i.price FROM orders o
  JOIN customers c ON o.customer = c.name
  LEFT JOIN items i ON o.item = i.code;
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO items VALUES ('p', 1.25, 'pear');
INSERT INTO orders VALUES ('o1', 'ann', 'p');
INSERT INTO orders VALUES ('o2', 'ann', 'x');
INSERT INTO orders VALUES ('o3', 'bob', 'p');
ASSERT VALUES bills (code, id, city, label, price) VALUES ('p', 'o1', 'Bern', 'pear', 1.25);
ASSERT VALUES bills (code, id, city, label, price) VALUES ('x', 'o2', 'Bern', NULL, NULL);

--@test: two streams and a table
CREATE STREAM orders (id STRING KEY, customer STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM payments (id STRING KEY, cents INT) WITH (kafka_topic='payments', value_format='JSON');
CREATE TABLE clerks (id STRING PRIMARY KEY, clerk STRING, desk INT) WITH (kafka_topic='clerks', value_format='JSON');
CREATE STREAM handled AS
  SELECT o.id AS id, customer, cents, clerk FROM orders o
  JOIN payments p WITHIN 10 SECONDS GRACE PERIOD 1 MINUTE ON o.id = p.id
  JOIN clerks c ON o.id = c.id;
INSERT INTO clerks (ROWTIME, id, clerk, desk) VALUES (0, 'o1', 'cleo', 3);
INSERT INTO orders (ROWTIME, id, customer) VALUES (1000, 'o1', 'ann');
INSERT INTO payments (ROWTIME, id, cents) VALUES (2000, 'o1', 100);
ASSERT VALUES handled (ROWTIME, id, customer, cents, clerk) VALUES (2000, 'o1', 'ann', 100, 'cleo');

--@test: three tables by one key
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE points (name STRING PRIMARY KEY, n INT, level STRING) WITH (kafka_topic='points', value_format='JSON');
CREATE TABLE pets (name STRING PRIMARY KEY, pet STRING, legs INT) WITH (kafka_topic='pets', value_format='JSON');
CREATE TABLE cards AS SELECT c.name AS name, city, n, pet FROM customers c JOIN points p ON c.name = p.name
  LEFT JOIN pets a ON c.name = a.name;
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO points VALUES ('ann', 7, 'gold');
INSERT INTO pets VALUES ('ann', 'cat', 4);
ASSERT VALUES cards VALUES ('ann', 'Bern', 7, NULL);
ASSERT VALUES cards VALUES ('ann', 'Bern', 7, 'cat');

--@test: an aggregate of a join
CREATE STREAM orders (id STRING KEY, customer STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE by_city AS SELECT c.city AS city, SUM(o.quantity) AS pieces FROM orders o JOIN customers c
  ON o.customer = c.name GROUP BY c.city;
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO customers VALUES ('bob', 'Bern', 20);
INSERT INTO orders VALUES ('o1', 'ann', 3);
INSERT INTO orders VALUES ('o2', 'bob', 4);
ASSERT VALUES by_city VALUES ('Bern', 3);
ASSERT VALUES by_city VALUES ('Bern', 7);
