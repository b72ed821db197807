"""Entities have the JSON that ksqlDB's clients read."""

from headrace.model import entities as e
from headrace.model.schema import HEADERS_TYPE, Column, Namespace
from headrace.model.types import STRING, Decimal, Map


def every_subclass(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from every_subclass(sub)


def test_type_first_warnings_last_camel_case():
    entity = e.StreamList(
        "SHOW STREAMS;",
        (e.SourceInfo("STREAM", "S", "s", "KAFKA", "JSON", False),),
        warnings=("w",),
    )
    assert list(entity.to_json()) == ["@type", "statementText", "streams", "warnings"]
    assert entity.to_json() == {
        "@type": "streams",
        "statementText": "SHOW STREAMS;",
        "streams": [
            {
                "type": "STREAM",
                "name": "S",
                "topic": "s",
                "keyFormat": "KAFKA",
                "valueFormat": "JSON",
                "isWindowed": False,
            }
        ],
        "warnings": [{"message": "w"}],
    }


def test_command_status():
    status = e.CommandStatus(e.CommandState.SUCCESS, "Stream created")
    entity = e.CurrentStatus("CREATE …;", e.CommandId("STREAM", "S", "CREATE"), status, 3)
    assert entity.to_json() == {
        "@type": "currentStatus",
        "statementText": "CREATE …;",
        "commandId": "stream/S/create",
        "commandStatus": {"status": "SUCCESS", "message": "Stream created", "queryId": None},
        "commandSequenceNumber": 3,
        "warnings": [],
    }


def test_fields_tell_key_headers_and_parameters():
    key = Column("ID", STRING, Namespace.KEY)
    header = Column("H", HEADERS_TYPE, Namespace.HEADERS)
    value = Column("V", Map(STRING, Decimal(4, 2)))
    plain = {"type": "STRING", "fields": None, "memberSchema": None}
    assert e.FieldInfo.of(key).to_json() == {"name": "ID", "schema": plain, "type": "KEY"}
    assert e.FieldInfo.of(header).to_json()["type"] == "HEADER"
    member = e.FieldInfo.of(value).to_json()["schema"]["memberSchema"]
    assert member["parameters"] == {"precision": 4, "scale": 2}


def test_query_state_follows_the_counts():
    query = e.QueryInfo("q", ("S",), ("s",), "CSAS_S_1", {e.QueryState.ERROR: 1})
    assert query.to_json()["state"] == "ERROR"
    assert query.to_json()["statusCount"] == {"ERROR": 1}


def test_errors():
    error = e.StatementErrorEntity(40001, "no", "SELECT;", (e.WarningEntity("X;", "m"),))
    assert error.status == 400
    assert list(error.to_json()) == [
        "@type",
        "error_code",
        "message",
        "statementText",
        "entities",
    ]
    assert error.to_json()["entities"][0]["@type"] == "warning_entity"


def test_every_entity_has_its_own_type_name():
    names = [cls.type_name for cls in every_subclass(e.Entity)]
    assert len(names) == len(set(names))
    assert {"streams", "currentStatus", "connector_plugins_list", "assert_schema"} <= set(names)
