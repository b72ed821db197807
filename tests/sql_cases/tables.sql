-- Tables: the last row of each key counts, and a record without a value (a tombstone) deletes it.
-- A stream over the table's own topic, with values of another format, is a way to write tombstones.

--@test: each change of a row goes on
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE copies AS SELECT name, UCASE(city) AS city FROM customers;
ASSERT TABLE copies (name STRING PRIMARY KEY, city STRING) WITH (kafka_topic='COPIES', value_format='JSON');
INSERT INTO customers (ROWTIME, name, city, age) VALUES (1, 'ann', 'Bern', 33);
INSERT INTO customers (ROWTIME, name, city, age) VALUES (2, 'ann', 'Bonn', 33);
ASSERT VALUES copies (ROWTIME, name, city) VALUES (1, 'ann', 'BERN');
ASSERT VALUES copies (ROWTIME, name, city) VALUES (2, 'ann', 'BONN');

--@test: a tombstone goes on as a tombstone
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM deletions (name STRING KEY, nothing STRING) WITH (kafka_topic='customers', value_format='KAFKA');
CREATE TABLE copies AS SELECT name, city, age FROM customers;
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO deletions (name) VALUES ('ann');
ASSERT VALUES copies VALUES ('ann', 'Bern', 33);
ASSERT NULL VALUES copies (name) KEY ('ann');

--@test: a row that the filter no longer holds for is deleted, and one it never held for is not
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE in_bern AS SELECT name, age FROM customers WHERE city = 'Bern';
INSERT INTO customers VALUES ('bob', 'Bonn', 20);
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO customers VALUES ('ann', 'Bonn', 33);
INSERT INTO customers VALUES ('ann', 'Basel', 33);
INSERT INTO customers VALUES ('ann', 'Bern', 34);
ASSERT VALUES in_bern VALUES ('ann', 33);
ASSERT NULL VALUES in_bern (name) KEY ('ann');
ASSERT VALUES in_bern VALUES ('ann', 34);

--@test: a record without a key is no row of a table
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM raw (name STRING KEY, city STRING, age INT) WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE copies AS SELECT * FROM customers;
INSERT INTO raw (city, age) VALUES ('Bern', 33);
INSERT INTO raw VALUES ('ann', 'Bern', 33);
ASSERT VALUES copies VALUES ('ann', 'Bern', 33);

--@test: counting a table follows its rows from group to group
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE by_city AS SELECT city, COUNT(*) AS people, SUM(age) AS ages FROM customers GROUP BY city;
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO customers VALUES ('bob', 'Bern', 20);
INSERT INTO customers VALUES ('ann', 'Bonn', 34);
ASSERT VALUES by_city VALUES ('Bern', 1, 33);
ASSERT VALUES by_city VALUES ('Bern', 2, 53);
ASSERT VALUES by_city VALUES ('Bern', 1, 20);
ASSERT VALUES by_city VALUES ('Bonn', 1, 34);

--@test: a tombstone takes its row out of the group
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM deletions (name STRING KEY, nothing STRING) WITH (kafka_topic='customers', value_format='KAFKA');
CREATE TABLE by_city AS SELECT city, COUNT(*) AS people, SUM(age) AS ages, AVG(age) AS mean FROM customers
  GROUP BY city;
INSERT INTO customers VALUES ('ann', 'Bern', 30);
INSERT INTO customers VALUES ('bob', 'Bern', 20);
INSERT INTO deletions (name) VALUES ('ann');
INSERT INTO deletions (name) VALUES ('eve');
ASSERT VALUES by_city VALUES ('Bern', 1, 30, 30.0);
ASSERT VALUES by_city VALUES ('Bern', 2, 50, 25.0);
ASSERT VALUES by_city VALUES ('Bern', 1, 20, 20.0);

--@test: lists and histograms of a table take back what is no longer there
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, pet STRING)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM deletions (name STRING KEY, nothing STRING) WITH (kafka_topic='customers', value_format='KAFKA');
CREATE TABLE pets AS SELECT city, COLLECT_LIST(pet) AS pets, HISTOGRAM(pet) AS counts FROM customers GROUP BY city;
INSERT INTO customers VALUES ('ann', 'Bern', 'cat');
INSERT INTO customers VALUES ('bob', 'Bern', 'dog');
INSERT INTO customers VALUES ('cleo', 'Bern', 'cat');
INSERT INTO deletions (name) VALUES ('bob');
ASSERT VALUES pets VALUES ('Bern', ARRAY['cat'], MAP('cat' := 1));
ASSERT VALUES pets VALUES ('Bern', ARRAY['cat', 'dog'], MAP('cat' := 1, 'dog' := 1));
ASSERT VALUES pets VALUES ('Bern', ARRAY['cat', 'dog', 'cat'], MAP('cat' := 2, 'dog' := 1));
ASSERT VALUES pets (city, pets) VALUES ('Bern', ARRAY['cat', 'cat']);

--@test: HAVING on a table deletes and brings back
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM deletions (name STRING KEY, nothing STRING) WITH (kafka_topic='customers', value_format='KAFKA');
CREATE TABLE crowded AS SELECT city, COUNT(*) AS people FROM customers GROUP BY city HAVING COUNT(*) > 1;
INSERT INTO customers VALUES ('ann', 'Bern', 30);
INSERT INTO customers VALUES ('bob', 'Bern', 20);
INSERT INTO deletions (name) VALUES ('ann');
ASSERT VALUES crowded VALUES ('Bern', 2);
ASSERT NULL VALUES crowded (city) KEY ('Bern');

--@test: a table of a table of a stream
CREATE STREAM orders (id STRING KEY, customer STRING, city STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE last_city AS SELECT customer, LATEST_BY_OFFSET(city) AS city FROM orders GROUP BY customer;
CREATE TABLE by_city AS SELECT city, COUNT(*) AS customers FROM last_city GROUP BY city;
INSERT INTO orders VALUES ('o1', 'ann', 'Bern');
INSERT INTO orders VALUES ('o2', 'bob', 'Bern');
INSERT INTO orders VALUES ('o3', 'ann', 'Bonn');
ASSERT VALUES by_city VALUES ('Bern', 1);
ASSERT VALUES by_city VALUES ('Bern', 2);
ASSERT VALUES by_city VALUES ('Bern', 1);
ASSERT VALUES by_city VALUES ('Bonn', 1);
