"""What the tests of planning begin with."""

from __future__ import annotations

import pytest

from plan_catalog import Catalog


@pytest.fixture
def catalog() -> Catalog:
    """A stream `S` and a table `T` with a key and a few columns each."""
    made = Catalog()
    made.run(
        """
        CREATE STREAM S (ID BIGINT KEY, NAME STRING, AMOUNT INT, PRICE DECIMAL(10, 2),
                         TAGS ARRAY<STRING>, PLACE STRUCT<CITY STRING, ZIP INT>)
          WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
        CREATE TABLE T (ID BIGINT PRIMARY KEY, TITLE STRING, FK BIGINT)
          WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
        """
    )
    return made
