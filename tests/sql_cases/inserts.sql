-- INSERT INTO … VALUES and INSERT INTO … SELECT.

--@test: values without a list of columns are those of all columns, keys first
CREATE STREAM orders (item STRING, id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
INSERT INTO orders VALUES ('o1', 'pear', 3);
ASSERT VALUES orders (id, item, quantity) VALUES ('o1', 'pear', 3);

--@test: columns that are not named are null
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
INSERT INTO orders (quantity) VALUES (3);
INSERT INTO orders (id, item) VALUES ('o2', 'pear');
ASSERT VALUES orders VALUES (NULL, NULL, 3);
ASSERT VALUES orders VALUES ('o2', 'pear', NULL);

--@test: values are brought to the types of their columns
CREATE STREAM samples (id STRING KEY, b BIGINT, d DOUBLE, e DECIMAL(5, 2), day DATE, sent TIMESTAMP)
  WITH (kafka_topic='samples', value_format='JSON');
INSERT INTO samples VALUES ('1', 7, 7, 7.5, '2024-02-29', '2024-02-29T12:00:00');
CREATE STREAM copies AS SELECT id, b, d, e, FORMAT_DATE(day, 'd.M.yy') AS day, UNIX_TIMESTAMP(sent) AS ms FROM samples;
INSERT INTO samples VALUES ('2', -7, -7, -7.25, '1970-01-02', '1970-01-01T00:00:00.001');
ASSERT VALUES samples VALUES ('1', 7, 7.0, 7.50, '2024-02-29', '2024-02-29T12:00:00');
ASSERT VALUES samples VALUES ('2', -7, -7.0, -7.25, '1970-01-02', '1970-01-01T00:00:00.001');
ASSERT VALUES copies VALUES ('1', 7, 7.0, 7.50, '29.2.24', 1709208000000);
ASSERT VALUES copies VALUES ('2', -7, -7.0, -7.25, '2.1.70', 1);

--@test: values may be expressions without columns
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
INSERT INTO orders VALUES (CONCAT('o', '1'), UCASE('pear'), ABS(-3) + 1);
ASSERT VALUES orders VALUES ('o1', 'PEAR', 4);

--@test: INSERT INTO SELECT adds the rows of another stream
CREATE STREAM web (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='web', value_format='JSON');
CREATE STREAM shop (id STRING KEY, item STRING, quantity INT, clerk STRING)
  WITH (kafka_topic='shop', value_format='JSON');
CREATE STREAM sales AS SELECT id, item, quantity FROM web;
INSERT INTO sales SELECT id, item, quantity FROM shop WHERE quantity > 0;
INSERT INTO web VALUES ('w1', 'pear', 3);
INSERT INTO shop VALUES ('s1', 'fig', 0, 'bob');
INSERT INTO shop VALUES ('s2', 'fig', 2, 'bob');
INSERT INTO web VALUES ('w2', 'plum', 1);
ASSERT VALUES sales VALUES ('w1', 'pear', 3);
ASSERT VALUES sales VALUES ('s2', 'fig', 2);
ASSERT VALUES sales VALUES ('w2', 'plum', 1);

--@test: INSERT INTO SELECT widens numbers
CREATE STREAM web (id STRING KEY, quantity INT, price INT) WITH (kafka_topic='web', value_format='JSON');
CREATE STREAM sales (id STRING KEY, quantity BIGINT, price DECIMAL(12, 2))
  WITH (kafka_topic='sales', value_format='JSON');
INSERT INTO sales SELECT id, quantity, price FROM web;
INSERT INTO web VALUES ('w1', 3, 19);
ASSERT VALUES sales VALUES ('w1', 3, 19.00);

--@test: INSERT INTO SELECT needs a value for each column
--@expected.error: KsqlException
--@expected.message: Incompatible schema between results and sink.
CREATE STREAM web (id STRING KEY, item STRING) WITH (kafka_topic='web', value_format='JSON');
CREATE STREAM sales (id STRING KEY, item STRING, clerk STRING) WITH (kafka_topic='sales', value_format='JSON');
INSERT INTO sales SELECT id, item FROM web;

--@test: INSERT INTO SELECT partitions anew
CREATE STREAM web (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='web', value_format='JSON');
CREATE STREAM by_item (item STRING KEY, quantity INT) WITH (kafka_topic='by_item', value_format='JSON');
INSERT INTO by_item SELECT item, quantity FROM web PARTITION BY item;
INSERT INTO web VALUES ('w1', 'pear', 3);
ASSERT VALUES by_item VALUES ('pear', 3);

--@test: a table takes rows by their primary key
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE adults AS SELECT name, city FROM customers WHERE age >= 18;
INSERT INTO customers VALUES ('ann', 'Bern', 33);
INSERT INTO customers VALUES ('ann', 'Bonn', 33);
ASSERT VALUES adults VALUES ('ann', 'Bern');
ASSERT VALUES adults VALUES ('ann', 'Bonn');
