-- Custom types, variables, settings, and statements that replace or drop.

--@test: a custom type is a name for a type
CREATE TYPE address AS STRUCT<city STRING, zip INT>;
CREATE TYPE book AS MAP<STRING, address>;
CREATE STREAM people (id STRING KEY, home address, others book) WITH (kafka_topic='people', value_format='JSON');
CREATE STREAM places AS SELECT id, home->city AS city, others['work']->zip AS zip, CAST(NULL AS address) AS unknown
  FROM people;
ASSERT STREAM places (id STRING KEY, city STRING, zip INT, unknown STRUCT<city STRING, zip INT>)
  WITH (kafka_topic='PLACES', value_format='JSON');
INSERT INTO people VALUES ('p1', STRUCT(city := 'Bern', zip := 3000), MAP('work' := STRUCT(city := 'Bonn',
  zip := 53111)));
ASSERT VALUES places (id, city, zip) VALUES ('p1', 'Bern', 53111);

--@test: a source keeps the type when its name is dropped
CREATE TYPE money AS DECIMAL(6, 2);
CREATE STREAM orders (id STRING KEY, price money, item STRING) WITH (kafka_topic='orders', value_format='JSON');
DROP TYPE money;
CREATE STREAM copies AS SELECT id, price FROM orders;
ASSERT STREAM copies (id STRING KEY, price DECIMAL(6, 2)) WITH (kafka_topic='COPIES', value_format='JSON');
INSERT INTO orders VALUES ('o1', 1.25, 'pear');
ASSERT VALUES copies VALUES ('o1', 1.25);

--@test: a type that does not exist
--@expected.error: KsqlException
--@expected.message: Cannot resolve unknown type: MONEY
CREATE STREAM orders (id STRING KEY, price money) WITH (kafka_topic='orders', value_format='JSON');

--@test: variables stand for names and literals, and for parts of texts
DEFINE format = 'JSON';
DEFINE shop = 'corner';
DEFINE limit_ = '5';
DEFINE sink = 'large';
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT)
  WITH (kafka_topic='orders_${shop}', value_format='${format}');
CREATE STREAM ${sink} AS SELECT id, 'from ${shop}' AS origin, quantity FROM orders WHERE quantity > ${limit_};
INSERT INTO orders VALUES ('o1', '${shop}', 6);
INSERT INTO orders VALUES ('o2', 'pear', 5);
ASSERT VALUES orders VALUES ('o1', 'corner', 6);
ASSERT VALUES orders VALUES ('o2', 'pear', 5);
ASSERT VALUES large VALUES ('o1', 'from corner', 6);

--@test: a setting holds for the statements behind it
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
SET 'ksql.persistence.default.format.value' = 'DELIMITED';
CREATE STREAM csv (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='csv');
UNSET 'ksql.persistence.default.format.value';
ASSERT STREAM csv (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='csv', value_format='DELIMITED');

--@test: CREATE OR REPLACE changes the projection and the filter of a running query
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM chosen AS SELECT id, item FROM orders WHERE quantity > 5;
INSERT INTO orders VALUES ('o1', 'pear', 6);
INSERT INTO orders VALUES ('o2', 'fig', 1);
CREATE OR REPLACE STREAM chosen WITH (wrap_single_values=false) AS SELECT id, UCASE(item) AS item FROM orders
  WHERE quantity < 5;
INSERT INTO orders VALUES ('o3', 'plum', 2);
INSERT INTO orders VALUES ('o4', 'pear', 7);
ASSERT VALUES chosen (id, item) VALUES ('o1', 'pear');
ASSERT VALUES chosen (id, item) VALUES ('o3', 'PLUM');

--@test: CREATE OR REPLACE adds a column
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, item, quantity FROM orders;
INSERT INTO orders VALUES ('o1', 'pear', 6);
CREATE OR REPLACE STREAM copies AS SELECT id, item, quantity, quantity * 2 AS twice FROM orders;
INSERT INTO orders VALUES ('o2', 'fig', 1);
ASSERT STREAM copies (id STRING KEY, item STRING, quantity INT, twice INT)
  WITH (kafka_topic='COPIES', value_format='JSON');
ASSERT VALUES copies VALUES ('o1', 'pear', 6, NULL);
ASSERT VALUES copies VALUES ('o2', 'fig', 1, 2);

--@test: CREATE OR REPLACE of an aggregate goes on with its state where only the filter changes
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE sold AS SELECT item, COUNT(*) AS n FROM orders GROUP BY item;
INSERT INTO orders VALUES ('o1', 'pear', 6);
CREATE OR REPLACE TABLE sold AS SELECT item, COUNT(*) AS n FROM orders WHERE item <> 'fig' GROUP BY item;
INSERT INTO orders VALUES ('o2', 'fig', 1);
INSERT INTO orders VALUES ('o3', 'pear', 1);
ASSERT VALUES sold VALUES ('pear', 1);
ASSERT VALUES sold VALUES ('pear', 2);

--@test: CREATE OR REPLACE cannot remove a column
--@expected.error: KsqlException
--@expected.message: The following columns are changed, missing or reordered
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, item, quantity FROM orders;
CREATE OR REPLACE STREAM copies AS SELECT id, quantity FROM orders;

--@test: CREATE OR REPLACE may be forbidden to replace a query
--@expected.error: KsqlException
--@expected.message: Cannot add stream 'COPIES': A stream with the same name already exists
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, item FROM orders;
SET 'ksql.create.or.replace.enabled' = 'false';
CREATE OR REPLACE STREAM copies AS SELECT id, item, quantity FROM orders;

--@test: IF NOT EXISTS leaves what is there
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM IF NOT EXISTS orders (id STRING KEY, other INT) WITH (kafka_topic='elsewhere', value_format='DELIMITED');
ASSERT STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');

--@test: a dropped source makes room for another of its name
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
DROP STREAM orders;
DROP STREAM IF EXISTS orders;
CREATE TABLE orders (id INT PRIMARY KEY, price DOUBLE) WITH (kafka_topic='other', value_format='JSON');
ASSERT TABLE orders (id INT PRIMARY KEY, price DOUBLE) WITH (kafka_topic='other', value_format='JSON');

--@test: a column can be added to a source
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
ALTER STREAM orders ADD COLUMN price DOUBLE, ADD COLUMN note STRING;
CREATE STREAM prices AS SELECT id, price, note FROM orders;
INSERT INTO orders VALUES ('o1', 'pear', 3, 1.5, 'ripe');
ASSERT VALUES prices VALUES ('o1', 1.5, 'ripe');
