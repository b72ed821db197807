-- Statements that are refused, and what they are told. Most begin with two streams and a table.

--@test: a source that does not exist
--@expected.error: KsqlException
--@expected.message: NOWHERE does not exist.
CREATE STREAM copies AS SELECT * FROM nowhere;

--@test: a source of that name exists
--@expected.error: KsqlException
--@expected.message: Cannot add stream 'ORDERS': A stream with the same name already exists
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');

--@test: a table of that name is no stream
--@expected.error: KsqlException
--@expected.message: Cannot add stream 'ORDERS': A table with the same name already exists
CREATE TABLE orders (id STRING PRIMARY KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');

--@test: a column that does not exist
--@expected.error: KsqlException
--@expected.message: SELECT column 'PRICE' cannot be resolved.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, price FROM orders;

--@test: a field that the struct does not have
--@expected.error: KsqlException
--@expected.message: Could not find field 'STREET' in 'HOME'
CREATE STREAM people (id STRING KEY, home STRUCT<city STRING>) WITH (kafka_topic='people', value_format='JSON');
CREATE STREAM copies AS SELECT id, home->street AS street FROM people;

--@test: the key is missing from the projection
--@expected.error: KsqlException
--@expected.message: Key missing from projection
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT item FROM orders;

--@test: nothing but the key is selected twice
--@expected.error: KsqlException
--@expected.message: The projection contains a key column (`ID`) more than once, aliased as: A and B.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id AS a, id AS b, item FROM orders;

--@test: an aggregate is no stream
--@expected.error: KsqlException
--@expected.message: Invalid result type. Your SELECT query produces a TABLE. Please use CREATE TABLE AS SELECT statement instead.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM counts AS SELECT id, COUNT(*) AS n FROM orders GROUP BY id;

--@test: a projection of a stream is no table
--@expected.error: KsqlException
--@expected.message: Invalid result type. Your SELECT query produces a STREAM. Please use CREATE STREAM AS SELECT statement instead.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE copies AS SELECT id, item FROM orders;

--@test: a column that is neither grouped by nor aggregated
--@expected.error: KsqlException
--@expected.message: Non-aggregate SELECT expression(s) not part of GROUP BY: ITEM
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE counts AS SELECT id, item, COUNT(*) AS n FROM orders GROUP BY id;

--@test: GROUP BY without an aggregate
--@expected.error: KsqlException
--@expected.message: GROUP BY requires aggregate functions in either the SELECT or HAVING clause.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE counts AS SELECT id FROM orders GROUP BY id;

--@test: an aggregate without GROUP BY
--@expected.error: KsqlException
--@expected.message: Non-aggregate SELECT expression(s) not part of GROUP BY: ID
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE counts AS SELECT id, COUNT(*) AS n FROM orders;

--@test: an aggregate in an aggregate
--@expected.error: KsqlException
--@expected.message: Aggregate functions can not be nested: SUM(COUNT())
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE counts AS SELECT id, SUM(COUNT(item)) AS n FROM orders GROUP BY id;

--@test: an error beside an aggregate names the aggregate as it was written
--@expected.error: KsqlException
--@expected.message: Error processing expression: (COUNT(*) + 'x'). Unsupported arithmetic types. BIGINT STRING
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE counts AS SELECT id, COUNT(*) + 'x' AS n FROM orders GROUP BY id;

--@test: an error in HAVING names the aggregate as it was written
--@expected.error: KsqlException
--@expected.message: Error in HAVING expression: Cannot compare MAX(ITEM) (STRING) to 3 (INTEGER) with GREATER_THAN.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE counts AS SELECT id, COUNT(*) AS n FROM orders GROUP BY id HAVING MAX(item) > 3;

--@test: an error beside a table function names the function as it was written
--@expected.error: KsqlException
--@expected.message: Cast of INTEGER to BOOLEAN is not supported. expression: CAST(EXPLODE(PRICES) AS BOOLEAN)
CREATE STREAM orders (id STRING KEY, prices ARRAY<INT>) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM each AS SELECT id, CAST(EXPLODE(prices) AS BOOLEAN) AS price FROM orders;

--@test: an aggregate in WHERE
--@expected.error: KsqlException
--@expected.message: Error in WHERE expression: Can't find any functions with the name 'COUNT'
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE counts AS SELECT id, COUNT(*) AS n FROM orders WHERE COUNT(*) > 1 GROUP BY id;

--@test: an aggregate that cannot take back, on a table
--@expected.error: KsqlException
--@expected.message: The aggregation function MAX cannot be applied to a table source, only to a stream source.
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE oldest AS SELECT city, MAX(age) AS age FROM customers GROUP BY city;

--@test: a window without GROUP BY
--@expected.error: KsqlException
--@expected.message: WINDOW clause requires a GROUP BY clause.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, item FROM orders WINDOW TUMBLING (SIZE 1 MINUTE);

--@test: a window on a table
--@expected.error: KsqlException
--@expected.message: Windowing not supported for table aggregations.
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING, age INT)
  WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE counts AS SELECT city, COUNT(*) AS n FROM customers WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY city;

--@test: EMIT FINAL without a window
--@expected.error: KsqlException
--@expected.message: EMIT FINAL is only supported for windowed aggregations.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE counts AS SELECT id, COUNT(*) AS n FROM orders GROUP BY id EMIT FINAL;

--@test: WHERE with something that is no condition
--@expected.error: KsqlException
--@expected.message: Type error in WHERE expression: Should evaluate to boolean but is ID (STRING) instead.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, item FROM orders WHERE id;

--@test: types that cannot be compared
--@expected.error: KsqlException
--@expected.message: Cannot compare QUANTITY (INTEGER) to true (BOOLEAN) with GREATER_THAN.
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, quantity FROM orders WHERE quantity > TRUE;

--@test: a comparison with NULL
--@expected.error: KsqlException
--@expected.message: Comparison with NULL not supported: INTEGER = NULL
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, quantity FROM orders WHERE quantity = NULL;

--@test: arithmetic with what is no number
--@expected.error: KsqlException
--@expected.message: Unsupported arithmetic types. INTEGER BOOLEAN
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, quantity + TRUE AS n FROM orders;

--@test: a CASE whose results differ in type
--@expected.error: KsqlException
--@expected.message: Invalid Case expression. Type for all 'THEN' clauses should be the same.
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, CASE WHEN quantity > 1 THEN 'many' WHEN quantity > 0 THEN 1 END AS n FROM orders;

--@test: a function that does not exist
--@expected.error: KsqlException
--@expected.message: Can't find any functions with the name 'SHOUT'
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, SHOUT(item) AS n FROM orders;

--@test: a function with other parameters than it has
--@expected.error: KsqlException
--@expected.message: Function 'len' does not accept parameters (INTEGER).
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, LEN(quantity) AS n FROM orders;

--@test: streams are joined within a time
--@expected.error: KsqlException
--@expected.message: Stream-Stream joins must have a WITHIN clause specified. None was provided.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM payments (id STRING KEY, cents INT) WITH (kafka_topic='payments', value_format='JSON');
CREATE STREAM paid AS SELECT o.id, item, cents FROM orders o JOIN payments p ON o.id = p.id;

--@test: a stream and a table are not
--@expected.error: KsqlException
--@expected.message: A window definition was provided for a Stream-Table join.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING) WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM placed AS SELECT o.id, item, city FROM orders o JOIN customers c WITHIN 1 HOUR ON o.id = c.name;

--@test: a table cannot be joined with a stream
--@expected.error: KsqlException
--@expected.message: Invalid join order: table-stream joins are not supported; only stream-table joins. Got CUSTOMERS [INNER] JOIN ORDERS.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING) WITH (kafka_topic='customers', value_format='JSON');
CREATE STREAM placed AS SELECT o.id, item, city FROM customers c JOIN orders o ON o.id = c.name;

--@test: a join by types that differ
--@expected.error: KsqlException
--@expected.message: Invalid join. Key types differ: STRING vs INTEGER
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM payments (id INT KEY, cents INT) WITH (kafka_topic='payments', value_format='JSON');
CREATE STREAM paid AS SELECT o.id, item, cents FROM orders o JOIN payments p WITHIN 1 HOUR ON o.id = p.id;

--@test: a column that both sides of a join have
--@expected.error: KsqlException
--@expected.message: Column 'ID' is ambiguous. Could be O.ID or P.ID.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM payments (id STRING KEY, cents INT) WITH (kafka_topic='payments', value_format='JSON');
CREATE STREAM paid AS SELECT id, item, cents FROM orders o JOIN payments p WITHIN 1 HOUR ON o.id = p.id;

--@test: PARTITION BY on a table
--@expected.error: KsqlException
--@expected.message: Cannot repartition a TABLE source.
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING) WITH (kafka_topic='customers', value_format='JSON');
CREATE TABLE by_city AS SELECT * FROM customers PARTITION BY city;

--@test: a topic must be named
--@expected.error: KsqlException
--@expected.message: Missing required property "KAFKA_TOPIC" which has no default value.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (value_format='JSON');

--@test: a format must be named
--@expected.error: KsqlException
--@expected.message: Statement is missing the 'VALUE_FORMAT' property from the WITH clause.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders');

--@test: a format that does not exist
--@expected.error: KsqlException
--@expected.message: Unknown format: YAML
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='YAML');

--@test: a property that does not exist
--@expected.error: KsqlException
--@expected.message: Invalid config variable(s) in the WITH clause: COLOUR
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON', colour='blue');

--@test: a format that lacks a type
--@expected.error: KsqlException
--@expected.message: The 'DELIMITED' format does not support type 'ARRAY', column: `TAGS`
CREATE STREAM orders (id STRING KEY, tags ARRAY<STRING>) WITH (kafka_topic='orders', value_format='DELIMITED');

--@test: KAFKA has a single value
--@expected.error: KsqlException
--@expected.message: The 'KAFKA' format only supports a single field. Got: [`ITEM` STRING, `QUANTITY` INTEGER]
CREATE STREAM orders (id STRING KEY, item STRING, quantity INT) WITH (kafka_topic='orders', value_format='KAFKA');

--@test: a table needs a primary key
--@expected.error: KsqlException
--@expected.message: Tables require a PRIMARY KEY.
CREATE TABLE customers (name STRING, city STRING) WITH (kafka_topic='customers', value_format='JSON');

--@test: a stream has no primary key
--@expected.error: ParseFailedException
--@expected.message: Column `ID` is a 'PRIMARY KEY' column: please use 'KEY' for streams.
CREATE STREAM orders (id STRING PRIMARY KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');

--@test: a name that is used twice
--@expected.error: KsqlException
--@expected.message: Duplicate
CREATE STREAM orders (id STRING KEY, item STRING, item INT) WITH (kafka_topic='orders', value_format='JSON');

--@test: a name that is reserved
--@expected.error: KsqlException
--@expected.message: 'ROWTIME' is a reserved column name.
CREATE STREAM orders (id STRING KEY, rowtime BIGINT) WITH (kafka_topic='orders', value_format='JSON');

--@test: a source that a query reads cannot be dropped
--@expected.error: KsqlException
--@expected.message: Cannot drop ORDERS.
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT * FROM orders;
DROP STREAM orders;

--@test: a source that is not there cannot be dropped
--@expected.error: KsqlException
--@expected.message: Stream ORDERS does not exist.
DROP STREAM orders;

--@test: a table is not dropped as a stream
--@expected.error: KsqlException
--@expected.message: Incompatible data source type is table, but statement was DROP stream
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING) WITH (kafka_topic='customers', value_format='JSON');
DROP STREAM customers;

--@test: a value of another type
--@expected.error: KsqlException
--@expected.message: Expected type INTEGER for field `QUANTITY` but got STRING(three)
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
INSERT INTO orders VALUES ('o1', 'three');

--@test: a value for a column that is not there
--@expected.error: KsqlException
--@expected.message: Column name `PRICE` does not exist.
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
INSERT INTO orders (id, price) VALUES ('o1', 3);

--@test: a table takes no row without its key
--@expected.error: KsqlException
--@expected.message: Value for primary key column(s) NAME is required for tables
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING) WITH (kafka_topic='customers', value_format='JSON');
INSERT INTO customers (city) VALUES ('Bern');

--@test: what is no statement
--@expected.error: ParseFailedException
--@expected.message: Syntax error at or near 'STREM'
CREATE STREM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');

--@test: a lambda for a function that takes none
--@expected.error: KsqlException
--@expected.message: Function 'len' does not accept parameters (STRING, LAMBDA).
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, LEN(item, x => x) AS n FROM orders;

--@test: EXPLODE in WHERE
--@expected.error: KsqlException
--@expected.message: Error in WHERE expression: Can't find any functions with the name 'EXPLODE'
CREATE STREAM carts (id STRING KEY, items ARRAY<STRING>) WITH (kafka_topic='carts', value_format='JSON');
CREATE STREAM copies AS SELECT id, items FROM carts WHERE EXPLODE(items) = 'pear';

--@test: a column of a timestamp that is a text needs a format
--@expected.error: KsqlException
--@expected.message: A String timestamp field has been specified without also specifying the timestamp_format
CREATE STREAM orders (id STRING KEY, placed STRING)
  WITH (kafka_topic='orders', value_format='JSON', timestamp='placed');
CREATE STREAM copies AS SELECT * FROM orders;

--@test: a source table is read-only
--@expected.error: KsqlException
--@expected.message: Cannot insert values into read-only table: CUSTOMERS
CREATE SOURCE TABLE customers (name STRING PRIMARY KEY, city STRING)
  WITH (kafka_topic='customers', value_format='JSON');
INSERT INTO customers VALUES ('ann', 'Bern');

--@test: no row can be inserted into a window
--@expected.error: KsqlException
--@expected.message: Cannot insert values into windowed stream/table!
CREATE STREAM counts (page STRING KEY, n INT) WITH (kafka_topic='counts', value_format='JSON', window_type='SESSION');
INSERT INTO counts VALUES ('home', 3);

--@test: INSERT INTO SELECT needs the same key
--@expected.error: KsqlException
--@expected.message: Incompatible schema between results and sink.
CREATE STREAM web (id INT KEY, item STRING) WITH (kafka_topic='web', value_format='JSON');
CREATE STREAM sales (id STRING KEY, item STRING) WITH (kafka_topic='sales', value_format='JSON');
INSERT INTO sales SELECT * FROM web;

--@test: a table takes no rows of a query
--@expected.error: KsqlException
--@expected.message: INSERT INTO can only be used to insert into a stream. CUSTOMERS is a table.
CREATE STREAM arrivals (name STRING KEY, city STRING) WITH (kafka_topic='arrivals', value_format='JSON');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING) WITH (kafka_topic='customers', value_format='JSON');
INSERT INTO customers SELECT * FROM arrivals;

--@test: a window that advances by more than its size
--@expected.error: KsqlException
--@expected.message: Window advancement interval should be more than zero and less than window duration which is 10000 ms, but given advancement interval is: 20000 ms
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE counts AS SELECT id, COUNT(*) AS n FROM orders WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 20 SECONDS)
  GROUP BY id;

--@test: an array of types that do not mix
--@expected.error: KsqlException
--@expected.message: operator does not exist: INTEGER = STRUCT<`X` INTEGER> (STRUCT(X:=1))
CREATE STREAM orders (id STRING KEY, quantity INT) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM copies AS SELECT id, ARRAY[quantity, STRUCT(x := 1)] AS n FROM orders;
