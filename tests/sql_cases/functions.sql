-- Functions in common use, on ordinary values, nulls and edges. Each function has examples of its own
-- beside its declaration.

--@test: case, length and white space
CREATE STREAM names (id STRING KEY, name STRING)
  WITH (kafka_topic='names', value_format='JSON', wrap_single_values=true);
CREATE STREAM done AS
  SELECT id, UCASE(name) AS u, LCASE(name) AS l, INITCAP(name) AS i, LEN(name) AS n, TRIM(name) AS t FROM names;
INSERT INTO names VALUES ('1', 'ada  LOVELACE ');
INSERT INTO names (id) VALUES ('2');
ASSERT VALUES done VALUES ('1', 'ADA  LOVELACE ', 'ada  lovelace ', 'Ada  Lovelace ', 14, 'ada  LOVELACE');
ASSERT VALUES done VALUES ('2', NULL, NULL, NULL, NULL, NULL);

--@test: SUBSTRING counts from 1, and from the end if negative
CREATE STREAM codes (id STRING KEY, code STRING) WITH (kafka_topic='codes', value_format='JSON');
CREATE STREAM done AS
  SELECT id, SUBSTRING(code, 4) AS tail, SUBSTRING(code, 1, 2) AS head, SUBSTRING(code, -3, 2) AS back, SUBSTRING(code,
  6, 99) AS over FROM codes;
INSERT INTO codes VALUES ('1', 'CH-3011');
ASSERT VALUES done VALUES ('1', '3011', 'CH', '01', '11');

--@test: CONCAT passes over nulls, CONCAT_WS puts a separator between values
CREATE STREAM names (id STRING KEY, a STRING, b STRING) WITH (kafka_topic='names', value_format='JSON');
CREATE STREAM done AS SELECT id, CONCAT(a, '-', b) AS c, CONCAT_WS('/', a, b, 'z') AS w FROM names;
INSERT INTO names VALUES ('1', 'x', 'y');
INSERT INTO names VALUES ('2', 'x', NULL);
ASSERT VALUES done VALUES ('1', 'x-y', 'x/y/z');
ASSERT VALUES done VALUES ('2', 'x-', 'x/z');

--@test: REPLACE, LPAD, RPAD, INSTR
CREATE STREAM codes (id STRING KEY, code STRING) WITH (kafka_topic='codes', value_format='JSON');
CREATE STREAM done AS
  SELECT id, REPLACE(code, '-', '') AS bare, LPAD(code, 9, '0') AS l, RPAD(code, 4, '.') AS r, INSTR(code,
  '-') AS first, INSTR(code, '-', 1, 2) AS second
  FROM codes;
INSERT INTO codes VALUES ('1', 'a-b-c');
ASSERT VALUES done VALUES ('1', 'abc', '0000a-b-c', 'a-b-', 2, 4);

--@test: SPLIT and SPLIT_TO_MAP
CREATE STREAM lines (id STRING KEY, line STRING) WITH (kafka_topic='lines', value_format='JSON');
CREATE STREAM done AS SELECT id, SPLIT(line, ';') AS parts, SPLIT_TO_MAP(line, ';', '=') AS fields, SPLIT(line,
  ';')[2] AS second FROM lines;
INSERT INTO lines VALUES ('1', 'a=1;b=2;');
ASSERT VALUES done VALUES ('1', ARRAY['a=1', 'b=2', ''], MAP('a' := '1', 'b' := '2'), 'b=2');

--@test: regular expressions
CREATE STREAM lines (id STRING KEY, line STRING) WITH (kafka_topic='lines', value_format='JSON');
CREATE STREAM done AS
  SELECT id, REGEXP_EXTRACT('([a-z]+)([0-9]+)', line, 2) AS number, REGEXP_REPLACE(line, '[0-9]', '#') AS hidden,
         REGEXP_SPLIT_TO_ARRAY(line, '[0-9]+') AS words, REGEXP_EXTRACT_ALL('[0-9]+', line) AS numbers
  FROM lines;
INSERT INTO lines VALUES ('1', 'ab12cd3');
INSERT INTO lines VALUES ('2', 'none');
ASSERT VALUES done VALUES ('1', '12', 'ab##cd#', ARRAY['ab', 'cd', ''], ARRAY['12', '3']);
ASSERT VALUES done (id, number, hidden, words) VALUES ('2', NULL, 'none', ARRAY['none']);

--@test: masks hide what is personal
CREATE STREAM people (id STRING KEY, phone STRING) WITH (kafka_topic='people', value_format='JSON');
CREATE STREAM done AS SELECT id, MASK(phone) AS m, MASK_KEEP_RIGHT(phone, 2) AS r, MASK_LEFT(phone, 3) AS l FROM people;
INSERT INTO people VALUES ('1', 'Ab-123');
ASSERT VALUES done VALUES ('1', 'Xx-nnn', 'Xx-n23', 'Xx-123');

--@test: COALESCE, IFNULL and NULLIF
CREATE STREAM people (id STRING KEY, nick STRING, name STRING) WITH (kafka_topic='people', value_format='JSON');
CREATE STREAM done AS SELECT id, COALESCE(nick, name, 'nobody') AS c, IFNULL(nick, '-') AS i, NULLIF(name,
  'unknown') AS n FROM people;
INSERT INTO people VALUES ('1', NULL, 'Ada');
INSERT INTO people VALUES ('2', NULL, NULL);
INSERT INTO people VALUES ('3', 'al', 'unknown');
ASSERT VALUES done VALUES ('1', 'Ada', '-', 'Ada');
ASSERT VALUES done VALUES ('2', 'nobody', '-', NULL);
ASSERT VALUES done VALUES ('3', 'al', 'al', NULL);

--@test: rounding and signs
CREATE STREAM numbers (id STRING KEY, x DOUBLE, d DECIMAL(6, 3)) WITH (kafka_topic='numbers', value_format='JSON');
CREATE STREAM done AS
  SELECT id, ROUND(x) AS r, ROUND(x, 1) AS r1, FLOOR(x) AS f, CEIL(x) AS c, ABS(x) AS a, SIGN(x) AS s, ROUND(d,
  2) AS d2, TRUNC(d) AS t FROM numbers;
INSERT INTO numbers VALUES ('1', -2.75, 1.005);
INSERT INTO numbers VALUES ('2', 2.25, -1.999);
ASSERT VALUES done VALUES ('1', -3, -2.7, -3.0, -2.0, 2.75, -1, 1.01, 1);
ASSERT VALUES done VALUES ('2', 2, 2.3, 2.0, 3.0, 2.25, 1, -2.00, -1);

--@test: powers, roots, and the greatest of several
CREATE STREAM numbers (id STRING KEY, x INT, y INT) WITH (kafka_topic='numbers', value_format='JSON');
CREATE STREAM done AS SELECT id, POWER(x, y) AS p, SQRT(x) AS s, EXP(0) AS e, LN(1) AS l, GREATEST(x, y, 5) AS g,
  LEAST(x, y) AS m FROM numbers;
INSERT INTO numbers VALUES ('1', 9, 2);
INSERT INTO numbers VALUES ('2', 4, NULL);
ASSERT VALUES done VALUES ('1', 81.0, 3.0, 1.0, 0.0, 9, 2);
ASSERT VALUES done VALUES ('2', NULL, 2.0, 1.0, 0.0, 5, 4);

--@test: fields of a JSON text
CREATE STREAM events (id STRING KEY, body STRING) WITH (kafka_topic='events', value_format='JSON');
CREATE STREAM done AS
  SELECT id, EXTRACTJSONFIELD(body, '$.user.name') AS name, EXTRACTJSONFIELD(body, '$.tags[1]') AS tag,
  IS_JSON_STRING(body) AS valid,
         JSON_ARRAY_LENGTH(EXTRACTJSONFIELD(body, '$.tags')) AS tags
  FROM events;
INSERT INTO events VALUES ('1', '{"user": {"name": "ada"}, "tags": ["a", "b"]}');
INSERT INTO events VALUES ('2', '{"user": ');
INSERT INTO events VALUES ('3', '{}');
ASSERT VALUES done VALUES ('1', 'ada', 'b', TRUE, 2);
ASSERT VALUES done VALUES ('2', NULL, NULL, FALSE, NULL);
ASSERT VALUES done VALUES ('3', NULL, NULL, TRUE, NULL);

--@test: bytes and their encodings
CREATE STREAM seals (id STRING KEY, hex STRING) WITH (kafka_topic='seals', value_format='JSON');
CREATE STREAM done AS
  SELECT id, FROM_BYTES(TO_BYTES(hex, 'hex'), 'base64') AS b64, FROM_BYTES(TO_BYTES(hex, 'hex'), 'ascii') AS text,
  LEN(TO_BYTES(hex, 'hex')) AS n
  FROM seals;
INSERT INTO seals VALUES ('1', '4D617374');
ASSERT VALUES done VALUES ('1', 'TWFzdA==', 'Mast', 4);

--@test: parts of a URL
CREATE STREAM visits (id STRING KEY, url STRING) WITH (kafka_topic='visits', value_format='JSON');
CREATE STREAM done AS
  SELECT id, URL_EXTRACT_HOST(url) AS host, URL_EXTRACT_PORT(url) AS port, URL_EXTRACT_PATH(url) AS path,
  URL_EXTRACT_PARAMETER(url, 'q') AS q
  FROM visits;
INSERT INTO visits VALUES ('1', 'https://shop.example:8443/find?q=red%20pear&n=5#top');
ASSERT VALUES done VALUES ('1', 'shop.example', 8443, '/find', 'red pear');

--@test: times are formatted and parsed by patterns
CREATE STREAM trains (id STRING KEY, day DATE, leaves TIME, booked TIMESTAMP)
  WITH (kafka_topic='trains', value_format='JSON');
CREATE STREAM done AS
  SELECT id, FORMAT_DATE(day, 'dd.MM.yyyy') AS d, FORMAT_TIME(leaves, 'HH.mm') AS t, FORMAT_TIMESTAMP(booked,
  'yyyy-MM-dd HH:mm:ss', 'Europe/Zurich') AS ts,
         PARSE_DATE('1.3.2024', 'd.M.yyyy') AS pd, PARSE_TIME('7h05', 'H''h''mm') AS pt,
         PARSE_TIMESTAMP('2024-07-01 12:00', 'yyyy-MM-dd HH:mm', 'Europe/Zurich') AS pts
  FROM trains;
INSERT INTO trains VALUES ('1', '2024-02-29', '06:30:15', '2024-02-29T06:30:15');
ASSERT VALUES done VALUES ('1', '29.02.2024', '06.30', '2024-02-29 07:30:15', '2024-03-01', '07:05:00',
  '2024-07-01T10:00:00');

--@test: times are moved by units
CREATE STREAM trains (id STRING KEY, day DATE, leaves TIME, booked TIMESTAMP)
  WITH (kafka_topic='trains', value_format='JSON');
CREATE STREAM done AS
  SELECT id, DATEADD(DAYS, 1, day) AS tomorrow, DATESUB(DAYS, 31, day) AS before, TIMEADD(HOURS, 20, leaves) AS later,
         TIMESTAMPADD(MINUTES, 45, booked) AS due, TIMESTAMPSUB(DAYS, 1, booked) AS earlier
  FROM trains;
INSERT INTO trains VALUES ('1', '2024-02-28', '06:30:00', '2023-12-31T23:30:00');
ASSERT VALUES done VALUES ('1', '2024-02-29', '2024-01-28', '02:30:00', '2024-01-01T00:15:00', '2023-12-30T23:30:00');

--@test: times and numbers
CREATE STREAM trains (id STRING KEY, day DATE, booked TIMESTAMP, ms BIGINT)
  WITH (kafka_topic='trains', value_format='JSON');
CREATE STREAM done AS
  SELECT id, UNIX_DATE(day) AS number, UNIX_TIMESTAMP(booked) AS ms, FROM_UNIXTIME(ms) AS moment,
  FROM_DAYS(1) AS second_day,
         TIMESTAMPTOSTRING(ms, 'yyyy-MM-dd''T''HH:mm', 'UTC') AS text, STRINGTOTIMESTAMP('1970-01-02', 'yyyy-MM-dd',
         'UTC') AS day2
  FROM trains;
INSERT INTO trains VALUES ('1', '1970-01-11', '1970-01-01T00:00:01', 86400000);
ASSERT VALUES done VALUES ('1', 10, 1000, '1970-01-02T00:00:00', '1970-01-02', '1970-01-02T00:00', 86400000);

--@test: a function that fails gives null and an entry in the processing log
CREATE STREAM log (message STRUCT<recordProcessingError STRUCT<errorMessage STRING>>)
  WITH (kafka_topic='processing-log', value_format='JSON', wrap_single_value=true);
CREATE STREAM trains (id STRING KEY, day STRING) WITH (kafka_topic='trains', value_format='JSON');
CREATE STREAM done AS SELECT id, PARSE_DATE(day, 'yyyy-MM-dd') AS day FROM trains;
INSERT INTO trains VALUES ('1', 'soon');
INSERT INTO trains VALUES ('2', '2024-02-29');
ASSERT VALUES log (message) VALUES (STRUCT(recordProcessingError := STRUCT(errorMessage :=
  'Error computing expression PARSE_DATE(DAY, ''yyyy-MM-dd'') for column DAY with index 0')));

--@test: an argument that fails is null, and the function goes on
CREATE STREAM texts (id STRING KEY, t STRING, n INT) WITH (kafka_topic='texts', value_format='JSON');
CREATE STREAM done AS SELECT id, COALESCE(CAST(t AS INT), n, -1) AS number, CONCAT('<', SUBSTRING(t, n), '>') AS tail
  FROM texts;
INSERT INTO texts VALUES ('1', '42', 2);
INSERT INTO texts VALUES ('2', 'pear', 2);
INSERT INTO texts VALUES ('3', 'pear', NULL);
ASSERT VALUES done VALUES ('1', 42, '<2>');
ASSERT VALUES done VALUES ('2', 2, '<ear>');
ASSERT VALUES done VALUES ('3', -1, '<>');
