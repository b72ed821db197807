"""The registry in memory, through the client and the REST API's answers."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from headrace.registry.api import RegistryApi
from headrace.registry.client import InMemoryRegistry
from headrace.registry.core import SchemaRegistry
from headrace.registry.log import MemoryLog
from headrace.registry.schema import Reference, RegistryError, Schema

ONE = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
TWO = (
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},'
    '{"name":"b","type":"string","default":""}]}'
)
BAD = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}'


class Http:
    """The REST API without a socket."""

    def __init__(self, log: MemoryLog | None = None) -> None:
        self.log = log or MemoryLog()
        self.registry = SchemaRegistry(self.log)
        self._api = RegistryApi(self.registry)

    def ask(self, method: str, target: str, body: Any = None) -> tuple[int, Any]:
        content = body if isinstance(body, bytes) else b"" if body is None else _bytes(body)
        answer = self._api.answer(method, target, content)
        return answer.status, json.loads(answer.body)

    def register(self, subject: str, text: str, **more: Any) -> Any:
        status, answer = self.ask("POST", f"/subjects/{subject}/versions", {"schema": text} | more)
        return answer["id"] if status == 200 else (status, answer["error_code"])


def _bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.fixture
def http() -> Http:
    return Http()


def test_versions_and_ids(http: Http) -> None:
    assert http.register("s", ONE) == 1
    assert http.register("s", TWO) == 2
    assert http.register("s", ONE.replace(",", ", ")) == 1  # layout is not part of a schema
    assert http.register("other", TWO) == 2  # ids are shared by all subjects
    assert http.ask("GET", "/subjects") == (200, ["other", "s"])
    assert http.ask("GET", "/subjects?subjectPrefix=o") == (200, ["other"])
    assert http.ask("GET", "/subjects/s/versions") == (200, [1, 2])
    second = {"subject": "s", "version": 2, "id": 2, "schema": TWO}
    assert http.ask("GET", "/subjects/s/versions/2") == (200, second)
    assert http.ask("GET", "/subjects/s/versions/latest") == (200, second)
    assert http.ask("GET", "/subjects/s/versions/-1") == (200, second)
    assert http.ask("GET", "/subjects/s/versions/1/schema") == (200, json.loads(ONE))
    assert http.ask("POST", "/subjects/s", {"schema": TWO}) == (200, second)
    assert http.ask("GET", "/schemas/ids/2") == (200, {"schema": TWO})
    assert http.ask("GET", "/schemas/ids/1?fetchMaxId=true") == (200, {"schema": ONE, "maxId": 2})
    assert http.ask("GET", "/schemas/ids/2/schema") == (200, json.loads(TWO))
    assert http.ask("GET", "/schemas/ids/2/subjects") == (200, ["other", "s"])
    assert http.ask("GET", "/schemas/ids/2/versions") == (
        200,
        [{"subject": "s", "version": 2}, {"subject": "other", "version": 1}],
    )
    assert http.ask("GET", "/schemas?latestOnly=true&limit=1")[1][0]["subject"] == "other"
    assert http.ask("GET", "/schemas/types") == (200, ["JSON", "PROTOBUF", "AVRO"])
    assert http.ask("GET", "/contexts") == (200, ["."])
    assert http.ask("GET", "/") == (200, {})


@pytest.mark.parametrize(
    ("method", "target", "body", "expected"),
    [
        ("GET", "/subjects/x/versions", None, (404, 40401)),
        ("GET", "/subjects/x/versions/1", None, (404, 40401)),
        ("GET", "/subjects/s/versions/9", None, (404, 40402)),
        ("GET", "/subjects/s/versions/first", None, (422, 42202)),
        ("GET", "/subjects/s/versions/0", None, (422, 42202)),
        ("GET", "/schemas/ids/99", None, (404, 40403)),
        ("GET", "/schemas/ids/none", None, (404, 404)),
        ("POST", "/subjects/x", {"schema": ONE}, (404, 40401)),
        ("POST", "/subjects/s", {"schema": TWO}, (404, 40403)),
        ("POST", "/subjects/s/versions", {"schema": "{"}, (422, 42201)),
        ("POST", "/subjects/s/versions", {"schema": ""}, (422, 42201)),
        ("POST", "/subjects/s/versions", {}, (422, 42201)),
        ("POST", "/subjects/s/versions", {"schema": ONE, "schemaType": "XML"}, (422, 42201)),
        ("POST", "/subjects/s/versions", {"schema": ONE, "references": [1]}, (422, 42201)),
        ("POST", "/subjects/s/versions", b"not json", (400, 400)),
        ("POST", "/subjects/s/versions", b"[]", (400, 400)),
        ("POST", "/subjects/s/versions", {"schema": BAD}, (409, 409)),
        ("POST", "/subjects/s/versions", {"schema": "{}", "schemaType": "JSON"}, (409, 409)),
        ("POST", "/subjects/s/versions", {"schema": ONE + "x"}, (422, 42201)),
        ("PUT", "/config", {"compatibility": "SOME"}, (422, 42203)),
        ("PUT", "/config", {}, (422, 42203)),
        ("GET", "/config/s", None, (404, 40408)),
        ("PUT", "/mode", {"mode": "WRITE"}, (422, 42204)),
        ("GET", "/mode/s", None, (404, 40409)),
        ("PUT", "/mode", {"mode": "IMPORT"}, (422, 42205)),
        ("DELETE", "/subjects/x", None, (404, 40401)),
        ("DELETE", "/subjects/s?permanent=true", None, (404, 40405)),
        ("DELETE", "/subjects/s/versions/1?permanent=true", None, (404, 40407)),
        ("GET", "/nowhere", None, (404, 404)),
        ("PUT", "/subjects", None, (405, 405)),
        ("GET", "/subjects?limit=many", None, (400, 400)),
    ],
)
def test_refusals(http: Http, method: str, target: str, body: Any, expected: Any) -> None:
    http.register("s", ONE)
    status, answer = http.ask(method, target, body)
    assert (status, answer["error_code"]) == expected
    assert answer["message"]
    assert http.ask("GET", "/subjects/s/versions") == (200, [1])


def test_messages_say_what_is_wrong(http: Http) -> None:
    http.register("s", ONE)
    _, answer = http.ask("POST", "/subjects/s/versions", {"schema": BAD})
    assert answer["message"].startswith(
        'Schema being registered is incompatible with an earlier schema for subject "s", details: '
        "[{errorType:'TYPE_MISMATCH', description:'The type (path '/fields/0/type') of a field in "
        "the new schema does not match with the old schema'"
    )
    assert "{oldSchemaVersion: 1}" in answer["message"]
    assert http.ask("GET", "/subjects/x/versions")[1]["message"] == "Subject 'x' not found."


def test_deleting(http: Http) -> None:
    http.register("s", ONE)
    http.register("s", TWO)
    assert http.ask("DELETE", "/subjects/s/versions/1") == (200, 1)
    assert http.ask("GET", "/subjects/s/versions") == (200, [2])
    assert http.ask("GET", "/subjects/s/versions?deleted=true") == (200, [1, 2])
    assert http.ask("DELETE", "/subjects/s/versions/1")[1]["error_code"] == 40406
    assert http.ask("GET", "/subjects/s/versions/1")[1]["error_code"] == 40402
    assert http.ask("GET", "/schemas/ids/1")[0] == 200  # data of it may still be about
    assert http.ask("DELETE", "/subjects/s/versions/1?permanent=true") == (200, 1)
    assert http.ask("GET", "/schemas/ids/1")[1]["error_code"] == 40403

    assert http.ask("DELETE", "/subjects/s") == (200, [2])
    assert http.ask("GET", "/subjects") == (200, [])
    assert http.ask("GET", "/subjects?deleted=true") == (200, ["s"])
    assert http.ask("GET", "/subjects?deletedOnly=true") == (200, ["s"])
    assert http.ask("DELETE", "/subjects/s")[1]["error_code"] == 40404
    assert http.register("s", TWO) == 2  # comes back, under a new version
    assert http.ask("GET", "/subjects/s/versions") == (200, [3])
    http.ask("DELETE", "/subjects/s")
    assert http.ask("DELETE", "/subjects/s?permanent=true") == (200, [2, 3])
    assert http.ask("DELETE", "/subjects/s")[1]["error_code"] == 40401
    assert http.register("s", ONE) == 3  # ids are never given twice


ADD = TWO  # has a default: both ways are fine
DROP = '{"type":"record","name":"R","fields":[]}'
REQUIRE = ONE.replace("[", '[{"name":"c","type":"int"},', 1)


@pytest.mark.parametrize(
    ("level", "fine", "refused"),
    [
        ("BACKWARD", [ADD, DROP], [REQUIRE]),
        ("BACKWARD_TRANSITIVE", [ADD, DROP], [REQUIRE]),
        ("FORWARD", [ADD, REQUIRE], [DROP]),
        ("FORWARD_TRANSITIVE", [ADD, REQUIRE], [DROP]),
        ("FULL", [ADD], [DROP, REQUIRE]),
        ("FULL_TRANSITIVE", [ADD], [DROP, REQUIRE]),
        ("NONE", [ADD, DROP, REQUIRE, BAD], []),
    ],
)
def test_levels(http: Http, level: str, fine: list[str], refused: list[str]) -> None:
    http.register("s", ONE)
    answer = http.ask("PUT", "/config/s", {"compatibility": level.lower()})
    assert answer == (200, {"compatibility": level})
    for version in ("/latest", "/1", ""):
        target = f"/compatibility/subjects/s/versions{version}"
        for text in fine:
            assert http.ask("POST", target, {"schema": text}) == (200, {"is_compatible": True})
        for text in refused:
            status, answer = http.ask("POST", f"{target}?verbose=true", {"schema": text})
            assert (status, answer["is_compatible"]) == (200, False)
            assert answer["messages"]
    for text in refused:
        assert http.register("s", text) == (409, 409)
    for text in fine:
        assert isinstance(http.register(f"t{fine.index(text)}", text), int)


@pytest.mark.parametrize("level", ["BACKWARD", "BACKWARD_TRANSITIVE"])
def test_transitive_levels_look_at_all_versions(http: Http, level: str) -> None:
    text = '{"type":"record","name":"R","fields":[%s]}'
    http.ask("PUT", "/config", {"compatibility": level})
    http.register("s", text % "")
    http.register("s", text % '{"name":"a","type":"int","default":0}')
    # Reads version 2, which always has the field, but not version 1, which never has.
    third = http.register("s", text % '{"name":"a","type":"int"}')
    assert third == (3 if level == "BACKWARD" else (409, 409))


def test_levels_and_modes_of_subjects(http: Http) -> None:
    assert http.ask("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})
    http.ask("PUT", "/config", {"compatibility": "FULL"})
    assert http.ask("GET", "/config") == (200, {"compatibilityLevel": "FULL"})
    expected = (200, {"compatibilityLevel": "FULL"})
    assert http.ask("GET", "/config/s?defaultToGlobal=true") == expected
    http.ask("PUT", "/config/s", {"compatibility": "NONE"})
    assert http.ask("GET", "/config/s") == (200, {"compatibilityLevel": "NONE"})
    assert http.ask("DELETE", "/config/s") == (200, {"compatibilityLevel": "NONE"})
    assert http.ask("GET", "/config/s")[1]["error_code"] == 40408
    assert http.ask("DELETE", "/config") == expected
    assert http.ask("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})

    http.register("s", ONE)
    assert http.ask("PUT", "/mode/s", {"mode": "READONLY"}) == (200, {"mode": "READONLY"})
    assert http.register("s", TWO) == (422, 42205)
    assert http.register("s", ONE) == 1
    assert http.ask("DELETE", "/subjects/s")[1]["error_code"] == 42205
    assert http.ask("GET", "/mode") == (200, {"mode": "READWRITE"})
    assert http.ask("DELETE", "/mode/s") == (200, {"mode": "READONLY"})
    assert http.register("s", TWO) == 2
    assert http.register("s", ONE, id=77) == 1
    assert http.register("t", BAD, id=77) == (422, 42205)
    http.ask("PUT", "/mode/t", {"mode": "IMPORT"})
    assert http.register("t", BAD, id=77) == 77


def test_references(http: Http) -> None:
    address = '{"type":"record","name":"x.Address","fields":[]}'
    person = '{"type":"record","name":"P","fields":[{"name":"home","type":"x.Address"}]}'
    assert http.register("person", person) == (422, 42201)
    http.register("address", address)
    reference = {"name": "x.Address", "subject": "address", "version": 1}
    assert http.register("person", person, references=[reference]) == 2
    _, answer = http.ask("GET", "/subjects/person/versions/1")
    assert (answer["schema"], answer["references"]) == (person, [reference])
    assert http.ask("GET", "/subjects/address/versions/1/referencedby") == (200, [2])
    assert http.ask("DELETE", "/subjects/address")[1]["error_code"] == 42206
    assert http.ask("DELETE", "/subjects/address/versions/1")[1]["error_code"] == 42206
    gone = reference | {"version": 5}
    assert http.register("person", person, references=[gone]) == (422, 42201)
    http.ask("DELETE", "/subjects/person")
    assert http.ask("DELETE", "/subjects/address") == (200, [1])


def test_subjects_with_peculiar_names(http: Http) -> None:
    for name in ("a/b", "ü", "100%", "a b", ":.ctx:s"):
        target = f"/subjects/{quote(name, safe='')}/versions"
        assert http.ask("POST", target, {"schema": '"int"'}) == (200, {"id": 1})
        assert http.ask("GET", f"{target}/1")[1]["subject"] == name


def test_normalized(http: Http) -> None:
    one, other = '{"type":"int","b":1,"a":2}', '{"type":"int","a":2,"b":1}'
    http.register("s", one)
    target = "/subjects/s"
    assert http.ask("POST", target, {"schema": other})[1]["error_code"] == 40403
    assert http.ask("POST", f"{target}?normalize=true", {"schema": other})[1]["version"] == 1
    answer = http.ask("POST", f"{target}/versions?normalize=true", {"schema": other})
    assert answer == (200, {"id": 1})


def test_json_and_protobuf_are_kept(http: Http) -> None:
    assert http.register("j", '{ "type": "object" }', schemaType="JSON") == 1
    assert http.ask("GET", "/schemas/ids/1") == (
        200,
        {"schema": '{"type":"object"}', "schemaType": "JSON"},
    )
    proto = 'syntax = "proto3"; message M { string a = 1; }'
    assert http.register("p", proto, schemaType="PROTOBUF") == 2
    assert http.ask("GET", "/schemas/ids/2")[1]["schema"] == proto
    coded = http.ask("GET", "/schemas/ids/2?format=serialized")[1]["schema"]
    assert http.register("q", coded, schemaType="PROTOBUF") == 3
    assert "message M" in http.ask("GET", "/schemas/ids/3")[1]["schema"]


def test_everything_is_in_the_log(http: Http) -> None:
    http.register("s", ONE)
    http.register("s", TWO)
    http.register("t", ONE)
    http.register("gone", '"int"')
    http.ask("PUT", "/config", {"compatibility": "FULL"})
    http.ask("PUT", "/config/t", {"compatibility": "NONE"})
    http.ask("PUT", "/mode/t", {"mode": "READONLY"})
    http.ask("DELETE", "/subjects/s/versions/1")
    http.ask("DELETE", "/subjects/gone")
    http.ask("DELETE", "/subjects/gone?permanent=true")

    log = MemoryLog()
    # As a compacted topic gives it back: of each key the last value, in the order of writing.
    last: dict[bytes, bytes | None] = {}
    for key, value in http.log.entries:
        last.pop(key, None)
        last[key] = value
    log.entries = list(last.items())
    log.entries.insert(0, (b'{"keytype":"NOOP","magic":0}', None))
    log.entries.insert(1, (b"not json", b"{}"))
    log.entries.insert(2, (b'{"keytype":"SCHEMA"}', b'{"subject":1}'))
    again = Http(log)
    for target in (
        "/subjects",
        "/subjects?deleted=true",
        "/subjects/s/versions?deleted=true",
        "/subjects/s/versions/latest",
        "/config",
        "/config/t",
        "/mode/t",
        "/schemas",
    ):
        assert again.ask("GET", target) == http.ask("GET", target)
    assert again.register("u", '"bytes"') == 4


def test_the_log_is_confluents(http: Http) -> None:
    http.register("s", ONE)
    http.ask("PUT", "/config", {"compatibility": "FULL"})
    http.ask("DELETE", "/subjects/s")
    assert [(json.loads(k), v and json.loads(v)) for k, v in http.log.entries] == [
        (
            {"keytype": "SCHEMA", "subject": "s", "version": 1, "magic": 1},
            {"subject": "s", "version": 1, "id": 1, "schema": ONE, "deleted": False},
        ),
        (
            {"keytype": "CONFIG", "subject": None, "magic": 0},
            {"compatibilityLevel": "FULL"},
        ),
        (
            {"keytype": "DELETE_SUBJECT", "subject": "s", "magic": 0},
            {"subject": "s", "version": 1},
        ),
    ]


def test_the_client_in_process() -> None:
    registry = InMemoryRegistry()
    assert registry.latest("s") is None
    assert registry.versions("s") == []
    assert registry.by_id(1) is None
    assert registry.delete_subject("s") == []
    assert registry.check_compatibility("s", ONE) == []
    assert registry.register("s", ONE) == 1
    assert registry.register("s", TWO) == 2
    latest = registry.latest("s")
    assert latest is not None
    assert (latest.version, latest.id, latest.text, latest.type) == (2, 2, TWO, "AVRO")
    assert [place.id for place in registry.versions("s")] == [1, 2]
    assert registry.by_id(1) == Schema(ONE)
    found = registry.lookup("s", TWO)
    assert found == latest
    assert registry.lookup("s", BAD) is None
    assert registry.version("s", 7) is None
    assert "TYPE_MISMATCH" in registry.check_compatibility("s", BAD)[0]
    with pytest.raises(RegistryError, match="incompatible with an earlier schema") as refusal:
        registry.register("s", BAD)
    assert (refusal.value.status, refusal.value.code) == (409, 409)
    assert registry.subjects() == ["s"]
    assert registry.delete_subject("s") == [1, 2]
    assert registry.delete_subject("s", permanent=True) == [1, 2]


def test_referenced_texts() -> None:
    registry = InMemoryRegistry()
    registry.register("a", '{"type":"record","name":"A","fields":[]}')
    to_a, to_b = Reference("A", "a", 1), Reference("B", "b", 1)
    b = '{"type":"record","name":"B","fields":[{"name":"a","type":"A"}]}'
    registry.register("b", b, references=[to_a])
    c = '{"type":"record","name":"C","fields":[{"name":"b","type":"B"}]}'
    id_ = registry.register("c", c, references=[to_b])
    schema = registry.by_id(id_)
    assert schema is not None
    assert list(registry.referenced(schema)) == ["A", "B"]
