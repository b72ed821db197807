-- CAST between all types that have one. What cannot be converted is null, and leaves an entry in
-- the processing log; a cast that does not exist is refused with the statement.

--@test: integers to other types
CREATE STREAM counts (id STRING KEY, n INT)
  WITH (kafka_topic='counts', value_format='JSON', wrap_single_values=true);
CREATE STREAM converted AS
  SELECT id, CAST(n AS BIGINT) AS b, CAST(n AS DOUBLE) AS d, CAST(n AS DECIMAL(6, 2)) AS e, CAST(n AS STRING) AS s
  FROM counts;
ASSERT STREAM converted (id STRING KEY, b BIGINT, d DOUBLE, e DECIMAL(6, 2), s STRING)
  WITH (kafka_topic='CONVERTED', value_format='JSON', wrap_single_values=true);
INSERT INTO counts VALUES ('1', -42);
INSERT INTO counts (id) VALUES ('2');
ASSERT VALUES converted VALUES ('1', -42, -42.0, -42.00, '-42');
ASSERT VALUES converted VALUES ('2', NULL, NULL, NULL, NULL);

--@test: a number with more digits than the decimal has is null
CREATE STREAM counts (id STRING KEY, n INT, x DOUBLE, e DECIMAL(8, 3), t STRING)
  WITH (kafka_topic='counts', value_format='JSON');
CREATE STREAM converted AS
  SELECT id, CAST(n AS DECIMAL(4, 2)) AS a, CAST(x AS DECIMAL(4, 2)) AS b, CAST(e AS DECIMAL(4, 2)) AS c,
  CAST(t AS DECIMAL(4, 2)) AS d
  FROM counts;
INSERT INTO counts VALUES ('1', 99, 99.994, 99.990, '99.99');
INSERT INTO counts VALUES ('2', 100, 100.0, 100.000, '100');
ASSERT VALUES converted VALUES ('1', 99.00, 99.99, 99.99, 99.99);
ASSERT VALUES converted VALUES ('2', NULL, NULL, NULL, NULL);

--@test: decimals are rounded half up to the scale they are cast to
CREATE STREAM prices (id STRING KEY, p DECIMAL(6, 3)) WITH (kafka_topic='prices', value_format='JSON');
CREATE STREAM converted AS SELECT id, CAST(p AS DECIMAL(6, 2)) AS cents, CAST(p AS DECIMAL(6, 0)) AS whole FROM prices;
INSERT INTO prices VALUES ('1', 1.005);
INSERT INTO prices VALUES ('2', -2.500);
ASSERT VALUES converted VALUES ('1', 1.01, 1);
ASSERT VALUES converted VALUES ('2', -2.50, -3);

--@test: a BIGINT keeps its lowest 32 bits as an INTEGER
CREATE STREAM counts (id STRING KEY, n BIGINT) WITH (kafka_topic='counts', value_format='JSON');
CREATE STREAM converted AS SELECT id, CAST(n AS INT) AS i, CAST(n AS DOUBLE) AS d, CAST(n AS DECIMAL(12, 1)) AS e,
  CAST(n AS STRING) AS s
  FROM counts;
INSERT INTO counts VALUES ('1', 7);
INSERT INTO counts VALUES ('2', 4294967297);
ASSERT VALUES converted VALUES ('1', 7, 7.0, 7.0, '7');
ASSERT VALUES converted VALUES ('2', 1, 4294967297.0, 4294967297.0, '4294967297');

--@test: a double loses its fraction as an integer, and stops at the integer's ends
CREATE STREAM readings (id STRING KEY, x DOUBLE) WITH (kafka_topic='readings', value_format='JSON');
CREATE STREAM converted AS SELECT id, CAST(x AS INT) AS i, CAST(x AS BIGINT) AS b FROM readings;
INSERT INTO readings VALUES ('1', 2.9);
INSERT INTO readings VALUES ('2', -2.9);
INSERT INTO readings VALUES ('3', 1E10);
INSERT INTO readings VALUES ('4', -1E300);
ASSERT VALUES converted VALUES ('1', 2, 2);
ASSERT VALUES converted VALUES ('2', -2, -2);
ASSERT VALUES converted VALUES ('3', 2147483647, 10000000000);
ASSERT VALUES converted VALUES ('4', -2147483648, -9223372036854775808);

--@test: doubles as text, with an exponent where they are large or small
CREATE STREAM readings (id STRING KEY, x DOUBLE) WITH (kafka_topic='readings', value_format='JSON');
CREATE STREAM converted AS SELECT id, CAST(x AS STRING) AS s FROM readings;
INSERT INTO readings VALUES ('1', 2.50);
INSERT INTO readings VALUES ('2', 12345678.0);
INSERT INTO readings VALUES ('3', 0.0001);
ASSERT VALUES converted VALUES ('1', '2.5');
ASSERT VALUES converted VALUES ('2', '1.2345678E7');
ASSERT VALUES converted VALUES ('3', '1.0E-4');

--@test: decimals to other types
CREATE STREAM prices (id STRING KEY, p DECIMAL(10, 2)) WITH (kafka_topic='prices', value_format='JSON');
CREATE STREAM converted AS SELECT id, CAST(p AS INT) AS i, CAST(p AS BIGINT) AS b, CAST(p AS DOUBLE) AS d,
  CAST(p AS STRING) AS s FROM prices;
INSERT INTO prices VALUES ('1', 19.99);
INSERT INTO prices VALUES ('2', -0.50);
ASSERT VALUES converted VALUES ('1', 19, 19, 19.99, '19.99');
ASSERT VALUES converted VALUES ('2', 0, 0, -0.5, '-0.50');

--@test: booleans to text, and text to booleans
CREATE STREAM answers (id STRING KEY, yes BOOLEAN, text STRING) WITH (kafka_topic='answers', value_format='JSON');
CREATE STREAM converted AS SELECT id, CAST(yes AS STRING) AS s, CAST(text AS BOOLEAN) AS b FROM answers;
INSERT INTO answers VALUES ('1', TRUE, 'yes');
INSERT INTO answers VALUES ('2', FALSE, ' TRUE ');
INSERT INTO answers VALUES ('3', NULL, 'no');
INSERT INTO answers VALUES ('4', NULL, 'certainly');
ASSERT VALUES converted VALUES ('1', 'true', TRUE);
ASSERT VALUES converted VALUES ('2', 'false', TRUE);
ASSERT VALUES converted VALUES ('3', NULL, FALSE);
ASSERT VALUES converted VALUES ('4', NULL, FALSE);

--@test: text to numbers, with white space around it
CREATE STREAM texts (id STRING KEY, t STRING) WITH (kafka_topic='texts', value_format='JSON');
CREATE STREAM converted AS SELECT id, CAST(t AS INT) AS i, CAST(t AS BIGINT) AS b, CAST(t AS DOUBLE) AS d,
  CAST(t AS DECIMAL(5, 2)) AS e FROM texts;
INSERT INTO texts VALUES ('1', ' 12 ');
INSERT INTO texts VALUES ('2', '12.5');
INSERT INTO texts VALUES ('3', '3000000000');
INSERT INTO texts VALUES ('4', 'twelve');
INSERT INTO texts VALUES ('5', '');
ASSERT VALUES converted VALUES ('1', 12, 12, 12.0, 12.00);
ASSERT VALUES converted VALUES ('2', NULL, NULL, 12.5, 12.50);
ASSERT VALUES converted VALUES ('3', NULL, 3000000000, 3000000000.0, NULL);
ASSERT VALUES converted VALUES ('4', NULL, NULL, NULL, NULL);
ASSERT VALUES converted VALUES ('5', NULL, NULL, NULL, NULL);

--@test: text to DATE, TIME and TIMESTAMP
CREATE STREAM texts (id STRING KEY, d STRING, t STRING, ts STRING) WITH (kafka_topic='texts', value_format='JSON');
CREATE STREAM converted AS SELECT id, CAST(d AS DATE) AS d, CAST(t AS TIME) AS t, CAST(ts AS TIMESTAMP) AS ts
  FROM texts;
INSERT INTO texts VALUES ('1', '2024-02-29', '06:30:15', '2024-02-29T06:30:15.250');
INSERT INTO texts VALUES ('2', '29.02.2024', '25:00:00', 'yesterday');
ASSERT VALUES converted VALUES ('1', '2024-02-29', '06:30:15', '2024-02-29T06:30:15.250');
ASSERT VALUES converted VALUES ('2', NULL, NULL, NULL);

--@test: DATE, TIME and TIMESTAMP to text and to each other
CREATE STREAM trains (id STRING KEY, day DATE, leaves TIME, booked TIMESTAMP)
  WITH (kafka_topic='trains', value_format='JSON');
CREATE STREAM converted AS
  SELECT id, CAST(day AS STRING) AS d, CAST(leaves AS STRING) AS t, CAST(booked AS STRING) AS ts,
         CAST(day AS TIMESTAMP) AS midnight, CAST(booked AS DATE) AS on_day, CAST(booked AS TIME) AS at_time
  FROM trains;
INSERT INTO trains VALUES ('1', '2024-02-29', '06:30:15', '2023-12-31T23:59:58.007');
ASSERT VALUES converted VALUES ('1', '2024-02-29', '06:30:15', '2023-12-31T23:59:58.007', '2024-02-29T00:00:00',
  '2023-12-31', '23:59:58.007');

--@test: text to BYTES is read as base64
CREATE STREAM texts (id STRING KEY, t STRING) WITH (kafka_topic='texts', value_format='JSON');
CREATE STREAM converted AS SELECT id, FROM_BYTES(CAST(t AS BYTES), 'utf8') AS s FROM texts;
INSERT INTO texts VALUES ('1', 'bWFzdA==');
ASSERT VALUES converted VALUES ('1', 'mast');

--@test: arrays, maps and structs are cast element by element
CREATE STREAM boxes (id STRING KEY, n ARRAY<INT>, m MAP<STRING, INT>, s STRUCT<a INT, b STRING>)
  WITH (kafka_topic='boxes', value_format='JSON');
CREATE STREAM converted AS
  SELECT id, CAST(n AS ARRAY<STRING>) AS n, CAST(m AS MAP<STRING, DOUBLE>) AS m, CAST(s AS STRUCT<a BIGINT,
  b STRING>) AS s FROM boxes;
ASSERT STREAM converted (id STRING KEY, n ARRAY<STRING>, m MAP<STRING, DOUBLE>, s STRUCT<a BIGINT, b STRING>)
  WITH (kafka_topic='CONVERTED', value_format='JSON');
INSERT INTO boxes VALUES ('1', ARRAY[1, NULL, 3], MAP('x' := 7), STRUCT(a := 5, b := 'five'));
ASSERT VALUES converted VALUES ('1', ARRAY['1', NULL, '3'], MAP('x' := 7.0), STRUCT(a := 5, b := 'five'));

--@test: what cannot be cast leaves an entry in the processing log
CREATE STREAM log (message STRUCT<`type` INT, recordProcessingError STRUCT<errorMessage STRING>>)
  WITH (kafka_topic='processing-log', value_format='JSON', wrap_single_value=true);
CREATE STREAM texts (id STRING KEY, t STRING) WITH (kafka_topic='texts', value_format='JSON');
CREATE STREAM converted AS SELECT id, CAST(t AS INT) AS i FROM texts;
INSERT INTO texts VALUES ('1', 'twelve');
INSERT INTO texts VALUES ('2', '12');
ASSERT VALUES log (message) VALUES (STRUCT(`type` := 1,
  recordProcessingError := STRUCT(errorMessage := 'Error computing expression CAST(T AS INTEGER) for column I with index 0')));

--@test: there is no cast from INTEGER to BOOLEAN
--@expected.error: KsqlException
--@expected.message: Cast of INTEGER to BOOLEAN is not supported
CREATE STREAM counts (id STRING KEY, n INT) WITH (kafka_topic='counts', value_format='JSON');
CREATE STREAM converted AS SELECT id, CAST(n AS BOOLEAN) AS b FROM counts;

--@test: there is no cast from TIME to TIMESTAMP
--@expected.error: KsqlException
--@expected.message: Cast of TIME to TIMESTAMP is not supported
CREATE STREAM trains (id STRING KEY, leaves TIME) WITH (kafka_topic='trains', value_format='JSON');
CREATE STREAM converted AS SELECT id, CAST(leaves AS TIMESTAMP) AS ts FROM trains;

--@test: there is no cast from BYTES to STRING
--@expected.error: KsqlException
--@expected.message: Cast of BYTES to STRING is not supported
CREATE STREAM seals (id STRING KEY, seal BYTES) WITH (kafka_topic='seals', value_format='JSON');
CREATE STREAM converted AS SELECT id, CAST(seal AS STRING) AS s FROM seals;

--@test: there is no cast from an array to one whose elements have none
--@expected.error: KsqlException
--@expected.message: Cast of ARRAY<BOOLEAN> to ARRAY<INTEGER> is not supported
CREATE STREAM flags (id STRING KEY, f ARRAY<BOOLEAN>) WITH (kafka_topic='flags', value_format='JSON');
CREATE STREAM converted AS SELECT id, CAST(f AS ARRAY<INT>) AS n FROM flags;

--@test: a null may become the text null, but for decimals and times
CREATE STREAM nulls (id STRING KEY, b BOOLEAN, i INT, l BIGINT, d DOUBLE, a ARRAY<INT>, m MAP<STRING, INT>,
  s STRUCT<i INT>, e DECIMAL(4, 2), t TIMESTAMP, x STRING)
  WITH (kafka_topic='nulls', value_format='JSON');
SET 'ksql.cast.strings.preserve.nulls' = 'false';
CREATE STREAM texts AS
  SELECT id, CAST(b AS STRING) AS b, CAST(i AS STRING) AS i, CAST(l AS STRING) AS l, CAST(d AS STRING) AS d,
    CAST(a AS STRING) AS a, CAST(m AS STRING) AS m, CAST(s AS STRING) AS s, CAST(e AS STRING) AS e,
    CAST(t AS STRING) AS t, CAST(x AS STRING) AS x, CAST(NULL AS STRING) AS n
  FROM nulls;
INSERT INTO nulls (id) VALUES ('1');
INSERT INTO nulls VALUES ('2', true, 1, 2, 3.0, ARRAY[4], MAP('k' := 5), STRUCT(i := 6), 7.00, '1970-01-01T00:00:00.000', 'x');
ASSERT VALUES texts VALUES ('1', 'null', 'null', 'null', 'null', 'null', 'null', 'null', NULL, NULL, NULL, NULL);
ASSERT VALUES texts VALUES ('2', 'true', '1', '2', '3.0', '[4]', '{k=5}', 'Struct{I=6}', '7.00',
  '1970-01-01T00:00:00.000', 'x', NULL);

--@test: a null inside of an array, a map or a struct may become the text null
CREATE STREAM nulls (id STRING KEY, a ARRAY<INT>, m MAP<STRING, INT>, s STRUCT<i INT>)
  WITH (kafka_topic='nulls', value_format='JSON');
CREATE STREAM kept AS
  SELECT id, CAST(a AS ARRAY<STRING>) AS a, CAST(m AS MAP<STRING, STRING>) AS m, CAST(s AS STRUCT<i STRING>) AS s
  FROM nulls;
SET 'ksql.cast.strings.preserve.nulls' = 'false';
CREATE STREAM texts AS
  SELECT id, CAST(a AS ARRAY<STRING>) AS a, CAST(m AS MAP<STRING, STRING>) AS m, CAST(s AS STRUCT<i STRING>) AS s
  FROM nulls;
UNSET 'ksql.cast.strings.preserve.nulls';
INSERT INTO nulls VALUES ('1', ARRAY[1, NULL], MAP('k' := CAST(NULL AS INT)), STRUCT(i := CAST(NULL AS INT)));
INSERT INTO nulls (id) VALUES ('2');
ASSERT VALUES kept VALUES ('1', ARRAY['1', NULL], MAP('k' := CAST(NULL AS STRING)), STRUCT(i := CAST(NULL AS STRING)));
ASSERT VALUES kept VALUES ('2', NULL, NULL, NULL);
ASSERT VALUES texts VALUES ('1', ARRAY['1', 'null'], MAP('k' := 'null'), STRUCT(i := 'null'));
ASSERT VALUES texts VALUES ('2', NULL, NULL, NULL);
