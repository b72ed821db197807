"""Windowed sources joined: whose windows meet."""

from __future__ import annotations

import pytest

from scene import record

pytestmark = pytest.mark.heavy


def test_windows_of_different_sizes_meet_by_their_start(scene):
    scene.topic("presses")
    scene.write(
        "presses",
        record({"N": 1, "M": 0}, key="b", at=3000),  # of windows that begin at 0 and at 2000
        record({"N": 2, "M": 0}, key="a", at=1000),  # of windows that both begin at 0
    )
    scene.sql(
        """
        CREATE STREAM PRESSES (K STRING KEY, N INT, M INT)
          WITH (kafka_topic='presses', value_format='JSON');
        CREATE TABLE BY_FIVE WITH (kafka_topic='by_five', key_format='JSON_SR') AS
          SELECT K, SUM(N) AS S, SUM(M) AS Z
          FROM PRESSES WINDOW TUMBLING (SIZE 5 SECONDS) GROUP BY K;
        CREATE TABLE BY_TWO WITH (kafka_topic='by_two', key_format='JSON_SR') AS
          SELECT K, SUM(N) AS S, SUM(M) AS Z
          FROM PRESSES WINDOW TUMBLING (SIZE 2 SECONDS) GROUP BY K;
        CREATE STREAM FIVES (K STRING KEY, S INT, Z INT) WITH (kafka_topic='by_five',
          value_format='JSON', key_format='JSON_SR', window_type='TUMBLING',
          window_size='5 SECONDS');
        CREATE STREAM TWOS (K STRING KEY, S INT, Z INT) WITH (kafka_topic='by_two',
          value_format='JSON', key_format='JSON_SR', window_type='TUMBLING',
          window_size='2 SECONDS');
        CREATE STREAM MET AS
          SELECT F.K AS K, F.S, T.S, F.WINDOWEND AS FIVE, T.WINDOWEND AS TWO
          FROM FIVES F JOIN TWOS T WITHIN 1 MINUTE ON F.K = T.K;
        """
    )
    met = scene.push("SELECT K, FIVE, TWO, WINDOWSTART, WINDOWEND FROM MET EMIT CHANGES;", 1)
    assert met == [("a", 5000, 2000, 0, 5000)]
