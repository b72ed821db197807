"""The registry: subjects, versions, ids and compatibility levels; every change is logged."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from headrace.registry import schema as refusals
from headrace.registry.languages import (
    LANGUAGES,
    Import,
    ParsedSchema,
    SchemaSyntaxError,
)
from headrace.registry.log import Entry, MemoryLog, RegistryLog
from headrace.registry.schema import (
    Reference,
    RegisteredSchema,
    RegistryError,
    Schema,
    schema_type,
)

LOG = logging.getLogger("headrace.registry")

# By level: may the new schema have to read old data, the old one new data; and of all versions?
LEVELS: dict[str, tuple[bool, bool, bool]] = {
    "NONE": (False, False, False),
    "BACKWARD": (True, False, False),
    "BACKWARD_TRANSITIVE": (True, False, True),
    "FORWARD": (False, True, False),
    "FORWARD_TRANSITIVE": (False, True, True),
    "FULL": (True, True, False),
    "FULL_TRANSITIVE": (True, True, True),
}
MODES = frozenset({"READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT"})
READ_ONLY = frozenset({"READONLY", "READONLY_OVERRIDE"})
DEFAULT_LEVEL = "BACKWARD"
DEFAULT_MODE = "READWRITE"
LATEST_VERSION = -1


@dataclass(frozen=True)
class StoredVersion:
    """A version of a subject; `deleted` ones are hidden until they are registered again."""

    place: RegisteredSchema
    deleted: bool = False


# The JSON of a record of the log: its key, or its value.
JsonObject = dict[str, Any]


class SchemaRegistry:
    """A registry over a log. Safe to share between threads; without a log it lives in memory."""

    def __init__(self, log: RegistryLog | None = None) -> None:
        self._log = log or MemoryLog()
        self._lock = threading.RLock()
        self._subjects: dict[str, dict[int, StoredVersion]] = {}
        self._levels: dict[str | None, str] = {}
        self._modes: dict[str | None, str] = {}
        self._last_id = 0
        for key, value in self._log.replay():
            self._replay(key, value)

    def close(self) -> None:
        self._log.close()

    # --- registering and looking up

    def register(
        self, subject: str, schema: Schema, normalize: bool = False, id_: int | None = None
    ) -> RegisteredSchema:
        """The schema's place under the subject, created if necessary and allowed."""
        with self._lock:
            parsed, kept = self._understand(schema, normalize)
            known = self._find(subject, kept, parsed.normal if normalize else None)
            if known is not None:
                return known.place
            self._check_mode(subject, id_)
            self._check_references(kept)
            found = self._incompatibilities(subject, kept, parsed, self._live(subject))
            if found:
                raise refusals.incompatible(subject, f"[{', '.join(found)}]")
            version = max(self._subjects.get(subject, {}), default=0) + 1
            if id_ is None:
                id_ = self._id_of(kept) or self._last_id + 1
            place = RegisteredSchema(subject, version, id_, kept.text, kept.type, kept.references)
            self._append([_schema_entry(StoredVersion(place))])
            return place

    def lookup(
        self, subject: str, schema: Schema, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        """Where under the subject the schema stands."""
        with self._lock:
            if not self._visible(subject, deleted):
                raise refusals.subject_not_found(subject)
            parsed, kept = self._understand(schema, normalize)
            known = self._find(subject, kept, parsed.normal if normalize else None, deleted)
            if known is None:
                raise refusals.schema_not_found()
            return known.place

    def check(
        self,
        subject: str,
        schema: Schema,
        version: str | None = None,
        normalize: bool = False,
    ) -> list[str]:
        """Why the schema could not be registered: against one version, or as the level demands."""
        with self._lock:
            parsed, kept = self._understand(schema, normalize)
            live = self._live(subject)
            if version is None:
                return self._incompatibilities(subject, kept, parsed, live)
            number = parse_version(version)
            if number == LATEST_VERSION:
                return self._incompatibilities(subject, kept, parsed, live[-1:])
            return self._incompatibilities(subject, kept, parsed, [self.version(subject, version)])

    # --- reading

    def subjects(
        self, prefix: str = "", deleted: bool = False, deleted_only: bool = False
    ) -> list[str]:
        with self._lock:
            return sorted(
                subject
                for subject in self._subjects
                if subject.startswith(prefix)
                and (
                    (bool(self._subjects[subject]) and not self._visible(subject))
                    if deleted_only
                    else bool(self._visible(subject, deleted))
                )
            )

    def versions(self, subject: str, deleted: bool = False) -> list[int]:
        with self._lock:
            found = self._visible(subject, deleted)
            if not found:
                raise refusals.subject_not_found(subject)
            return [kept.place.version for kept in found]

    def version(self, subject: str, version: str, deleted: bool = False) -> RegisteredSchema:
        """One version of a subject, by its number or "latest"."""
        number = parse_version(version)
        with self._lock:
            found = self._visible(subject, deleted)
            if not found:
                raise refusals.subject_not_found(subject)
            if number == LATEST_VERSION:
                return found[-1].place
            for kept in found:
                if kept.place.version == number:
                    return kept.place
            raise refusals.version_not_found(number)

    def by_id(self, id_: int, subject: str | None = None) -> Schema:
        with self._lock:
            for kept in self._all():
                if kept.place.id == id_ and subject in (None, "", kept.place.subject):
                    return kept.place.schema
            raise refusals.schema_not_found(id_)

    def places_of(
        self, id_: int, subject: str | None = None, deleted: bool = False
    ) -> list[RegisteredSchema]:
        """Under which subjects and versions the schema with this id stands."""
        with self._lock:
            self.by_id(id_)
            return [
                kept.place
                for kept in self._all()
                if kept.place.id == id_
                and subject in (None, "", kept.place.subject)
                and (deleted or not kept.deleted)
            ]

    def schemas(
        self, prefix: str = "", deleted: bool = False, latest_only: bool = False
    ) -> list[RegisteredSchema]:
        with self._lock:
            found = [self._visible(name, deleted) for name in self.subjects(prefix, deleted)]
            return [
                kept.place for every in found for kept in (every[-1:] if latest_only else every)
            ]

    def referenced_by(self, subject: str, version: str) -> list[int]:
        """The ids of the schemas that refer to this version."""
        with self._lock:
            place = self.version(subject, version)
            return sorted({kept.place.id for kept in self._users(subject, place.version)})

    def serialized(self, schema: Schema) -> str:
        with self._lock:
            return self._parse(schema).serialized()

    @property
    def last_id(self) -> int:
        return self._last_id

    # --- deleting

    def delete_subject(self, subject: str, permanent: bool = False) -> list[int]:
        with self._lock:
            everything = list(self._subjects.get(subject, {}).values())
            if not everything:
                raise refusals.subject_not_found(subject)
            self._check_mode(subject)
            live = [kept for kept in everything if not kept.deleted]
            if permanent and live:
                raise refusals.subject_not_soft_deleted(subject)
            if not permanent and not live:
                raise refusals.subject_soft_deleted(subject)
            gone = everything if permanent else live
            for kept in gone:
                self._check_unused(subject, kept.place.version)
            entries: list[Entry]
            if permanent:
                entries = [(_schema_key(subject, kept.place.version), None) for kept in gone]
                entries += [(_key("DELETE_SUBJECT", subject), None), self._last_id_entry()]
            else:
                last = gone[-1].place.version
                value = _dump({"subject": subject, "version": last})
                entries = [(_key("DELETE_SUBJECT", subject), value)]
            for keytype, settings in (("CONFIG", self._levels), ("MODE", self._modes)):
                if subject in settings:
                    entries.append((_key(keytype, subject), None))
            self._append(entries)
            return [kept.place.version for kept in gone]

    def delete_version(self, subject: str, version: str, permanent: bool = False) -> int:
        with self._lock:
            place = self.version(subject, version, deleted=True)
            if parse_version(version) == LATEST_VERSION and not permanent:
                place = self.version(subject, version)
            kept = self._subjects[subject][place.version]
            if permanent and not kept.deleted:
                raise refusals.version_not_soft_deleted(subject, place.version)
            if not permanent and kept.deleted:
                raise refusals.version_soft_deleted(subject, place.version)
            self._check_mode(subject)
            self._check_unused(subject, place.version)
            if permanent:
                entry = (_schema_key(subject, place.version), None)
                self._append([entry, self._last_id_entry()])
            else:
                self._append([_schema_entry(replace(kept, deleted=True))])
            return place.version

    # --- settings

    def level(self, subject: str | None = None, or_global: bool = False) -> str:
        """The compatibility level of a subject, or of all that have none of their own."""
        if subject is not None and subject in self._levels:
            return self._levels[subject]
        if subject is not None and not or_global:
            raise refusals.no_subject_config(subject)
        return self._levels.get(None, DEFAULT_LEVEL)

    def set_level(self, level: str, subject: str | None = None) -> str:
        level = level.upper()
        if level not in LEVELS:
            raise refusals.invalid_level()
        with self._lock:
            self._append([(_key("CONFIG", subject), _dump({"compatibilityLevel": level}))])
        return level

    def delete_level(self, subject: str | None = None) -> str:
        with self._lock:
            level = self.level(subject)
            if subject in self._levels:
                self._append([(_key("CONFIG", subject), None)])
            return level

    def mode(self, subject: str | None = None, or_global: bool = False) -> str:
        """Whether a subject, or all that have no mode of their own, may change."""
        if subject is not None and subject in self._modes:
            return self._modes[subject]
        if subject is not None and not or_global:
            raise refusals.no_subject_mode(subject)
        return self._modes.get(None, DEFAULT_MODE)

    def set_mode(self, mode: str, subject: str | None = None, force: bool = False) -> str:
        mode = mode.upper()
        if mode not in MODES:
            raise refusals.invalid_mode()
        with self._lock:
            taken = self.subjects() if subject is None else self._visible(subject)
            if mode == "IMPORT" and taken and not force:
                raise refusals.not_permitted("Cannot import since found existing subjects")
            self._append([(_key("MODE", subject), _dump({"mode": mode}))])
        return mode

    def delete_mode(self, subject: str | None = None) -> str:
        with self._lock:
            mode = self.mode(subject)
            if subject in self._modes:
                self._append([(_key("MODE", subject), None)])
            return mode

    # --- what the above rests on

    def _all(self) -> Iterable[StoredVersion]:
        return (kept for versions in self._subjects.values() for kept in versions.values())

    def _visible(self, subject: str, deleted: bool = False) -> list[StoredVersion]:
        """The subject's versions in order."""
        versions = sorted(self._subjects.get(subject, {}).items())
        return [kept for _, kept in versions if deleted or not kept.deleted]

    def _live(self, subject: str) -> list[RegisteredSchema]:
        return [kept.place for kept in self._visible(subject)]

    def _parse(self, schema: Schema) -> ParsedSchema:
        if not schema.text.strip():
            raise RegistryError(42201, "Empty schema")
        try:
            return LANGUAGES[schema.type](schema.text, self._imports(schema))
        except SchemaSyntaxError as failure:
            raise refusals.invalid_schema(schema, str(failure)) from failure

    def _understand(self, schema: Schema, normalize: bool) -> tuple[ParsedSchema, Schema]:
        """The schema parsed, and as it is to be kept."""
        parsed = self._parse(schema)
        return parsed, replace(schema, text=parsed.normal if normalize else parsed.text)

    def _imports(self, schema: Schema) -> list[Import]:
        """The schemas referred to, directly and through others, each before its users."""
        found: dict[str, str] = {}

        def collect(user: Schema) -> None:
            for reference in user.references:
                if reference.name in found:
                    continue
                kept = self._subjects.get(reference.subject, {})
                number = reference.version
                place = kept.get(max(kept, default=0) if number == LATEST_VERSION else number)
                if place is None:
                    raise refusals.invalid_schema(
                        schema,
                        f'No schema reference found for subject "{reference.subject}" '
                        f"and version {number}",
                    )
                collect(place.place.schema)
                found[reference.name] = place.place.text

        collect(schema)
        return list(found.items())

    def _find(
        self, subject: str, schema: Schema, normal: str | None, deleted: bool = False
    ) -> StoredVersion | None:
        """The newest version that is this schema, or has the same normal text if one is given."""
        for known in reversed(self._visible(subject, deleted)):
            mine = known.place.schema
            if mine == schema:
                return known
            if (
                normal is not None
                and (mine.type, mine.references) == (schema.type, schema.references)
                and self._parse(mine).normal == normal
            ):
                return known
        return None

    def _id_of(self, schema: Schema) -> int | None:
        return next((k.place.id for k in self._all() if k.place.schema == schema), None)

    def _users(self, subject: str, version: int) -> list[StoredVersion]:
        return [
            kept
            for kept in self._all()
            if not kept.deleted
            and any(r.subject == subject and r.version == version for r in kept.place.references)
        ]

    def _check_unused(self, subject: str, version: int) -> None:
        if self._users(subject, version):
            raise refusals.reference_exists(subject, version)

    def _check_references(self, schema: Schema) -> None:
        for reference in schema.references:
            kept = self._subjects[reference.subject].get(reference.version)
            if kept is not None and kept.deleted:
                raise refusals.invalid_schema(
                    schema,
                    f'No schema reference found for subject "{reference.subject}" '
                    f"and version {reference.version}",
                )

    def _check_mode(self, subject: str, id_: int | None = None) -> None:
        mode = self.mode(subject, or_global=True)
        if self._modes.get(None) == "READONLY_OVERRIDE":
            mode = "READONLY_OVERRIDE"
        if mode in READ_ONLY:
            raise refusals.not_permitted(f"Subject {subject} is in read-only mode")
        if id_ is not None and mode != "IMPORT":
            raise refusals.not_permitted(f"Subject {subject} is not in import mode")

    def _incompatibilities(
        self,
        subject: str,
        schema: Schema,
        parsed: ParsedSchema,
        earlier: list[RegisteredSchema],
    ) -> list[str]:
        level = self.level(subject, or_global=True)
        backward, forward, transitive = LEVELS[level]
        if not backward and not forward:
            return []
        for old in reversed(earlier if transitive else earlier[-1:]):
            found = self._compare(schema, parsed, old, backward, forward)
            if found:
                found.append(f"{{oldSchemaVersion: {old.version}}}")
                found.append(f"{{oldSchema: '{old.text}'}}")
                found.append(f"{{compatibility: '{level}'}}")
                return found
        return []

    def _compare(
        self,
        schema: Schema,
        parsed: ParsedSchema,
        old: RegisteredSchema,
        backward: bool,
        forward: bool,
    ) -> list[str]:
        if old.type != schema.type:
            return ["Incompatible because of different schema type"]
        earlier = self._parse(old.schema)
        found: list[str] = []
        try:
            if backward:
                found += parsed.incompatibilities(earlier, "new", "old")
            if forward:
                found += earlier.incompatibilities(parsed, "old", "new")
        except RecursionError as failure:
            raise refusals.invalid_schema(schema, "nested too deeply") from failure
        return found

    # --- the log

    def _last_id_entry(self) -> Entry:
        """An entry with the last id, which is not reused after its schema is compacted."""
        return _dump({"keytype": "NOOP", "magic": 0}), _dump({"lastId": self._last_id})

    def _append(self, entries: list[Entry]) -> None:
        self._log.append(entries)
        for key, value in entries:
            self._replay(key, value)

    def _replay(self, key: bytes, value: bytes | None) -> None:
        """Applies one entry of the log; an unknown entry is reported."""
        try:
            fields = json.loads(key)
            apply = APPLY.get(fields["keytype"])
            if apply is not None:
                apply(self, fields, None if value is None else json.loads(value))
        except (ValueError, KeyError, TypeError, AttributeError, RegistryError) as failure:
            LOG.warning("An entry of the registry's log is not understood (%s): %r", failure, key)

    def _apply_schema(self, key: JsonObject, value: JsonObject | None) -> None:
        versions = self._subjects.setdefault(key["subject"], {})
        if value is None:
            versions.pop(key["version"], None)
            if not versions:
                del self._subjects[key["subject"]]
            return
        references = tuple(
            Reference(r["name"], r["subject"], r["version"]) for r in value.get("references") or ()
        )
        place = RegisteredSchema(
            value["subject"],
            value["version"],
            value["id"],
            value["schema"],
            schema_type(value.get("schemaType")),
            references,
        )
        versions[place.version] = StoredVersion(place, bool(value.get("deleted")))
        self._last_id = max(self._last_id, place.id)

    def _apply_delete_subject(self, key: JsonObject, value: JsonObject | None) -> None:
        if value is not None:
            versions = self._subjects.get(value["subject"], {})
            for number, kept in versions.items():
                if number <= value["version"]:
                    versions[number] = replace(kept, deleted=True)

    def _apply_noop(self, key: JsonObject, value: JsonObject | None) -> None:
        if value is not None:
            self._last_id = max(self._last_id, value["lastId"])

    def _apply_config(self, key: JsonObject, value: JsonObject | None) -> None:
        _set_or_forget(self._levels, key.get("subject"), value and value["compatibilityLevel"])

    def _apply_mode(self, key: JsonObject, value: JsonObject | None) -> None:
        _set_or_forget(self._modes, key.get("subject"), value and value["mode"])


APPLY: dict[str, Callable[[SchemaRegistry, JsonObject, JsonObject | None], None]] = {
    "SCHEMA": SchemaRegistry._apply_schema,
    "DELETE_SUBJECT": SchemaRegistry._apply_delete_subject,
    "CONFIG": SchemaRegistry._apply_config,
    "MODE": SchemaRegistry._apply_mode,
    "NOOP": SchemaRegistry._apply_noop,
}


def parse_version(text: str) -> int:
    if text == "latest" or text == str(LATEST_VERSION):
        return LATEST_VERSION
    if text.isascii() and text.isdigit() and len(text) < 12 and 1 <= int(text) < 2**31:
        return int(text)
    raise refusals.invalid_version(text)


def _set_or_forget(settings: dict[str | None, str], subject: str | None, value: Any) -> None:
    if value is None:
        settings.pop(subject, None)
    else:
        settings[subject] = value


def _schema_entry(kept: StoredVersion) -> Entry:
    place = kept.place
    value: JsonObject = {
        "subject": place.subject,
        "version": place.version,
        "id": place.id,
    }
    if place.type != "AVRO":
        value["schemaType"] = place.type
    if place.references:
        value["references"] = [
            {"name": r.name, "subject": r.subject, "version": r.version} for r in place.references
        ]
    value |= {"schema": place.text, "deleted": kept.deleted}
    return _schema_key(place.subject, place.version), _dump(value)


def _schema_key(subject: str, version: int) -> bytes:
    return _dump({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1})


def _key(keytype: str, subject: str | None) -> bytes:
    return _dump({"keytype": keytype, "subject": subject, "magic": 0})


def _dump(value: JsonObject) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
