-- Joins of two streams: records of the same key that are near in time.

--@test: an inner join pairs what lies within the time
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM payments (id STRING KEY, cents INT) WITH (kafka_topic='payments', value_format='JSON');
CREATE STREAM paid AS SELECT o.id AS id, item, cents FROM orders o
  JOIN payments p WITHIN 10 SECONDS GRACE PERIOD 1 MINUTE ON o.id = p.id;
ASSERT STREAM paid (id STRING KEY, item STRING, cents INT) WITH (kafka_topic='PAID', value_format='JSON');
INSERT INTO orders (ROWTIME, id, item) VALUES (20000, 'o1', 'pear');
INSERT INTO payments (ROWTIME, id, cents) VALUES (10000, 'o1', 100);
INSERT INTO payments (ROWTIME, id, cents) VALUES (30000, 'o1', 200);
INSERT INTO payments (ROWTIME, id, cents) VALUES (30001, 'o1', 300);
INSERT INTO payments (ROWTIME, id, cents) VALUES (21000, 'o2', 400);
ASSERT VALUES paid (ROWTIME, id, item, cents) VALUES (20000, 'o1', 'pear', 100);
ASSERT VALUES paid (ROWTIME, id, item, cents) VALUES (30000, 'o1', 'pear', 200);

--@test: each pair is a row of its own
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM payments (id STRING KEY, cents INT) WITH (kafka_topic='payments', value_format='JSON');
CREATE STREAM paid AS SELECT o.id AS id, item, cents FROM orders o
  JOIN payments p WITHIN 10 SECONDS GRACE PERIOD 1 MINUTE ON o.id = p.id;
INSERT INTO orders (ROWTIME, id, item) VALUES (1000, 'o1', 'pear');
INSERT INTO orders (ROWTIME, id, item) VALUES (2000, 'o1', 'fig');
INSERT INTO payments (ROWTIME, id, cents) VALUES (3000, 'o1', 100);
ASSERT VALUES paid (ROWTIME, id, item, cents) VALUES (3000, 'o1', 'pear', 100);
ASSERT VALUES paid (ROWTIME, id, item, cents) VALUES (3000, 'o1', 'fig', 100);

--@test: the time before and the time after may differ
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM payments (id STRING KEY, cents INT) WITH (kafka_topic='payments', value_format='JSON');
CREATE STREAM paid AS
  SELECT o.id AS id, item, cents FROM orders o JOIN payments p WITHIN (0 SECONDS, 10 SECONDS) GRACE PERIOD 1 MINUTE
  ON o.id = p.id;
INSERT INTO orders (ROWTIME, id, item) VALUES (20000, 'o1', 'pear');
INSERT INTO payments (ROWTIME, id, cents) VALUES (19999, 'o1', 100);
INSERT INTO payments (ROWTIME, id, cents) VALUES (20000, 'o1', 200);
INSERT INTO payments (ROWTIME, id, cents) VALUES (30000, 'o1', 300);
ASSERT VALUES paid (id, item, cents) VALUES ('o1', 'pear', 200);
ASSERT VALUES paid (id, item, cents) VALUES ('o1', 'pear', 300);

--@test: a left join without a grace period tells at once what has no match yet
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM payments (id STRING KEY, cents INT) WITH (kafka_topic='payments', value_format='JSON');
CREATE STREAM paid AS SELECT o.id AS id, item, cents FROM orders o LEFT JOIN payments p WITHIN 10 SECONDS
  ON o.id = p.id;
INSERT INTO orders (ROWTIME, id, item) VALUES (1000, 'o1', 'pear');
INSERT INTO payments (ROWTIME, id, cents) VALUES (2000, 'o1', 100);
INSERT INTO payments (ROWTIME, id, cents) VALUES (3000, 'o2', 200);
ASSERT VALUES paid (ROWTIME, id, item, cents) VALUES (1000, 'o1', 'pear', NULL);
ASSERT VALUES paid (ROWTIME, id, item, cents) VALUES (2000, 'o1', 'pear', 100);

--@test: a left join with a grace period waits until no match can come
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM payments (id STRING KEY, cents INT) WITH (kafka_topic='payments', value_format='JSON');
CREATE STREAM paid AS SELECT o.id AS id, item, cents FROM orders o
  LEFT JOIN payments p WITHIN 10 SECONDS GRACE PERIOD 5 SECONDS ON o.id = p.id;
INSERT INTO orders (ROWTIME, id, item) VALUES (1000, 'o1', 'pear');
INSERT INTO orders (ROWTIME, id, item) VALUES (2000, 'o2', 'fig');
INSERT INTO payments (ROWTIME, id, cents) VALUES (3000, 'o2', 200);
INSERT INTO orders (ROWTIME, id, item) VALUES (60000, 'o3', 'plum');
ASSERT VALUES paid (ROWTIME, id, item, cents) VALUES (3000, 'o2', 'fig', 200);
ASSERT VALUES paid (ROWTIME, id, item, cents) VALUES (1000, 'o1', 'pear', NULL);

--@test: a right join keeps the right side
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM payments (id STRING KEY, cents INT) WITH (kafka_topic='payments', value_format='JSON');
CREATE STREAM paid AS SELECT p.id AS id, item, cents
  FROM orders o RIGHT JOIN payments p WITHIN 10 SECONDS GRACE PERIOD 0 SECONDS ON o.id = p.id;
INSERT INTO payments (ROWTIME, id, cents) VALUES (1000, 'o1', 100);
INSERT INTO orders (ROWTIME, id, item) VALUES (2000, 'o2', 'fig');
INSERT INTO payments (ROWTIME, id, cents) VALUES (3000, 'o2', 200);
INSERT INTO payments (ROWTIME, id, cents) VALUES (60000, 'o3', 300);
ASSERT VALUES paid (ROWTIME, id, item, cents) VALUES (3000, 'o2', 'fig', 200);
ASSERT VALUES paid (ROWTIME, id, item, cents) VALUES (1000, 'o1', NULL, 100);

--@test: an outer join keeps both sides, under a key of its own
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM payments (id STRING KEY, cents INT) WITH (kafka_topic='payments', value_format='JSON');
CREATE STREAM paid AS SELECT ROWKEY AS id, item, cents
  FROM orders o FULL OUTER JOIN payments p WITHIN 10 SECONDS GRACE PERIOD 0 SECONDS ON o.id = p.id;
INSERT INTO orders (ROWTIME, id, item) VALUES (1000, 'o1', 'pear');
INSERT INTO payments (ROWTIME, id, cents) VALUES (2000, 'o2', 200);
INSERT INTO orders (ROWTIME, id, item) VALUES (3000, 'o2', 'fig');
INSERT INTO payments (ROWTIME, id, cents) VALUES (4000, 'o4', 400);
INSERT INTO orders (ROWTIME, id, item) VALUES (60000, 'o5', 'plum');
ASSERT VALUES paid (ROWTIME, id, item, cents) VALUES (3000, 'o2', 'fig', 200);
ASSERT VALUES paid (ROWTIME, id, item, cents) VALUES (1000, 'o1', 'pear', NULL);
ASSERT VALUES paid (ROWTIME, id, item, cents) VALUES (4000, 'o4', NULL, 400);

--@test: a record that comes after the grace period joins nothing
CREATE STREAM orders (id STRING KEY, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM payments (id STRING KEY, cents INT) WITH (kafka_topic='payments', value_format='JSON');
CREATE STREAM paid AS SELECT o.id AS id, item, cents FROM orders o
  JOIN payments p WITHIN 10 SECONDS GRACE PERIOD 0 SECONDS ON o.id = p.id;
INSERT INTO orders (ROWTIME, id, item) VALUES (1000, 'o1', 'pear');
INSERT INTO orders (ROWTIME, id, item) VALUES (60000, 'o2', 'fig');
INSERT INTO payments (ROWTIME, id, cents) VALUES (2000, 'o1', 100);
INSERT INTO payments (ROWTIME, id, cents) VALUES (60000, 'o2', 200);
ASSERT VALUES paid (id, item, cents) VALUES ('o2', 'fig', 200);

--@test: streams are joined by columns of the value too
CREATE STREAM orders (id STRING KEY, customer STRING, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM calls (id STRING KEY, caller STRING, about STRING) WITH (kafka_topic='calls', value_format='JSON');
CREATE STREAM asked AS
  SELECT o.customer AS customer, o.id AS o_id, c.id AS c_id, item, c.about FROM orders o
  JOIN calls c WITHIN 1 MINUTE GRACE PERIOD 1 MINUTE ON o.customer = c.caller;
ASSERT STREAM asked (customer STRING KEY, o_id STRING, c_id STRING, item STRING, about STRING)
  WITH (kafka_topic='ASKED', value_format='JSON');
INSERT INTO orders (ROWTIME, id, customer, item) VALUES (1000, 'o1', 'ann', 'pear');
INSERT INTO calls (ROWTIME, id, caller, about) VALUES (2000, 'c1', 'ann', 'delay');
INSERT INTO calls (ROWTIME, id, caller, about) VALUES (2000, 'c2', NULL, 'noise');
ASSERT VALUES asked (customer, o_id, c_id, item, about) VALUES ('ann', 'o1', 'c1', 'pear', 'delay');

--@test: the condition of a join may be an expression, and WHERE filters its rows
CREATE STREAM orders (id STRING KEY, customer STRING, item STRING) WITH (kafka_topic='orders', value_format='JSON');
CREATE STREAM calls (id STRING KEY, caller STRING, about STRING) WITH (kafka_topic='calls', value_format='JSON');
CREATE STREAM asked AS
  SELECT ROWKEY AS customer, item, c.about FROM orders o JOIN calls c WITHIN 1 MINUTE GRACE PERIOD 1 MINUTE
  ON UCASE(o.customer) = UCASE(c.caller) WHERE c.about <> 'noise';
INSERT INTO orders (ROWTIME, id, customer, item) VALUES (1000, 'o1', 'Ann', 'pear');
INSERT INTO calls (ROWTIME, id, caller, about) VALUES (2000, 'c1', 'ann', 'noise');
INSERT INTO calls (ROWTIME, id, caller, about) VALUES (2000, 'c2', 'aNN', 'delay');
ASSERT VALUES asked (customer, item, about) VALUES ('ANN', 'pear', 'delay');

--@test: a stream joins itself through a copy
CREATE STREAM clicks (who STRING KEY, page STRING) WITH (kafka_topic='clicks', value_format='JSON');
CREATE STREAM buys AS SELECT who, page FROM clicks WHERE page = 'buy';
CREATE STREAM led AS SELECT c.who AS who, c.page AS page FROM clicks c
  JOIN buys b WITHIN (0 SECONDS, 10 SECONDS) GRACE PERIOD 1 MINUTE ON c.who = b.who
  WHERE c.page <> 'buy';
INSERT INTO clicks (ROWTIME, who, page) VALUES (1000, 'ann', 'home');
INSERT INTO clicks (ROWTIME, who, page) VALUES (2000, 'ann', 'shop');
INSERT INTO clicks (ROWTIME, who, page) VALUES (9000, 'ann', 'buy');
ASSERT VALUES led (ROWTIME, who, page) VALUES (9000, 'ann', 'home');
ASSERT VALUES led (ROWTIME, who, page) VALUES (9000, 'ann', 'shop');
