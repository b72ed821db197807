"""`headrace datagen`: writes made-up records to a topic, with ksql-datagen's arguments."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.commands import OK
from headrace.cli.properties import read_properties
from headrace.model.errors import HeadraceError
from headrace.model.settings import Settings

if TYPE_CHECKING:
    from headrace.datagen.sending import Target

_REGISTRY = "http://localhost:8081"
_DELIMITERS = ("TAB", "SPACE")
# Where ksql-datagen's name of an option is another one.
_NAMES = {
    "format": "value-format",
    "valueDelimiter": "value-delimiter",
    "msgRate": "msg-rate",
    "schemaRegistryUrl": "schema-registry-url",
    "propertiesFile": "properties-file",
    "nThreads": "threads",
    "printRows": "print-rows",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "headrace datagen [OPTIONS] [NAME=VALUE …]"
    parser.add_argument(
        "given",
        nargs="*",
        metavar="NAME=VALUE",
        help="an option as ksql-datagen has it: quickstart=orders msgRate=5 is "
        "--quickstart orders --msg-rate 5",
    )
    _options(parser)


def _options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--quickstart",
        help="a schema that comes with this: users, users_, orders, pageviews, ratings, "
        "clickstream, clickstream_users or clickstream_codes",
    )
    add("--schema", type=Path, metavar="FILE", help="an Avro schema, with arg.properties")
    add("--topic", help="(default: the quickstart's own, such as orders_kafka_topic_json)")
    add("--key", metavar="NAME", help="the field that is the key (default: the quickstart's)")
    add("--timestamp", metavar="NAME", help="the field that is the time (default: now)")
    add("--key-format", metavar="FORMAT", help="(default: KAFKA)")
    add(
        "--value-format",
        metavar="FORMAT",
        help="JSON, AVRO, DELIMITED, PROTOBUF, … (default with a quickstart: JSON)",
    )
    add("--value-delimiter", type=_delimiter, metavar="CHARACTER")
    add("--iterations", type=_count, metavar="N", help="how many (default: until Ctrl-C)")
    add("--msg-rate", type=_rate, metavar="RATE", help="at most so many a second")
    add("--seed", help="makes the same values each time, but for times")
    add("--bootstrap-server", default="localhost:9092", metavar="HOST:PORT")
    add("--schema-registry-url", metavar="URL", help=f"{_REGISTRY} if nobody says otherwise")
    add("--properties-file", type=Path, metavar="FILE", help="of the client")
    add("--threads", type=_count, default=1, help="so many series of records")
    add("--print-rows", choices=("true", "false"), default="true")
    add("--maxInterval", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    if args.given:
        args = _reread(args)
    if args.maxInterval is not None:
        print("maxInterval has no effect: use msgRate.", file=sys.stderr)
    return _generate(args)


def _reread(args: argparse.Namespace) -> argparse.Namespace:
    """The options with those that came as NAME=VALUE."""
    options = []
    for given in args.given:
        name, equals, value = given.partition("=")
        if not equals:
            raise HeadraceError(f"'{given}' is not NAME=VALUE.")
        options.append(f"--{_NAMES.get(name, name)}={value}")
    parser = argparse.ArgumentParser(prog="headrace datagen", allow_abbrev=False)
    _options(parser)
    return parser.parse_args(options, args)


def _generate(args: argparse.Namespace) -> int:
    from headrace.cli.connections import registry_url
    from headrace.datagen.rows import RowGenerator, check_fields, columns_of, read_schema
    from headrace.datagen.sending import RowEncoder, Sender, paced
    from headrace.kafka.admin import TopicAdmin, TopicSpec
    from headrace.kafka.client import KafkaConnection
    from headrace.registry.client import HttpRegistry

    path, target = _wanted(args)
    record = read_schema(path)
    columns = columns_of(record)
    check_fields(columns, target.key, target.timestamp)
    generators = [
        RowGenerator(record, None if args.seed is None else f"{args.seed}/{i}", path.parent)
        for i in range(args.threads)
    ]
    given = {} if args.properties_file is None else read_properties(args.properties_file)
    settings = Settings(given)
    address = settings.text("bootstrap.servers") or args.bootstrap_server
    connection = KafkaConnection({**settings.client(), "bootstrap.servers": address})
    url = registry_url(settings, args.schema_registry_url) or _REGISTRY
    encoder = RowEncoder(target, columns, lambda: HttpRegistry.of(url, settings))
    TopicAdmin(connection).ensure(TopicSpec(target.topic))
    sender = Sender(connection, print if args.print_rows == "true" else None)
    count = None if args.iterations is None else args.iterations * args.threads
    try:
        for number in paced(count, args.msg_rate):
            row = generators[number % args.threads].row()
            sender.send(encoder.record(row), row[target.key], row)
    finally:
        sender.flush()
        print(f"{sender.sent} records are in {target.topic}.", file=sys.stderr)
    return OK


def _wanted(args: argparse.Namespace) -> tuple[Path, Target]:
    """The schema's file, and what becomes of its records."""
    from headrace.datagen.quickstarts import quickstart
    from headrace.datagen.sending import KEY_FORMAT, VALUE_FORMAT, Target
    from headrace.formats import format_named

    path, format_, topic, key = args.schema, args.value_format, args.topic, args.key
    if args.quickstart is not None:
        known = quickstart(args.quickstart)
        path, format_, key = path or known.schema, format_ or VALUE_FORMAT, key or known.key
        topic = topic or known.topic_name(format_)
    wanted = {"schema or --quickstart": path, "value-format": format_, "topic": topic, "key": key}
    missing = [name for name, value in wanted.items() if value is None]
    if missing:
        raise HeadraceError(f"--{missing[0]} is not given. See headrace datagen --help.")
    formats = format_named(args.key_format or KEY_FORMAT).name, format_named(format_).name
    return path, Target(topic, key, args.timestamp, *formats, args.value_delimiter)


def _delimiter(text: str) -> str:
    if len(text) != 1 and text not in _DELIMITERS:
        raise argparse.ArgumentTypeError(f"'{text}' is not one character, TAB or SPACE")
    return text


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 on")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return rate
