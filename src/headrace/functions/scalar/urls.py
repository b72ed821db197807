"""Functions on URLs, by the rules of Java's URI."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.declare.declaration import (
    Category,
    Fallible,
    Function,
    call,
    failing,
    overload,
    scalar,
)
from headrace.functions.scalar.columns import checked, text


def _part(url: Column, part: str) -> Column:
    return F.try_parse_url(url, F.lit(part))


def _decoded(value: Column) -> Column:
    """Percent escapes undone; unlike in a form, a plus is a plus."""
    return F.try_url_decode(F.replace(value, F.lit("+"), F.lit("%2B")))


def _of(url: Column, value: Column) -> Fallible:
    """What is null may be missing in the URL, or there is no URL."""
    # Said twice: what Spark finds twice in a condition it works out once, for the result as well.
    missing = value.isNull() & (F.concat_ws("", value.cast("string")) == "")
    # A URI has a scheme or, if it is a relative one, a path. They are looked for only then.
    broken = url.isNotNull() & _part(url, "PROTOCOL").isNull() & _part(url, "PATH").isNull()
    error = F.when(broken, text("URL input has invalid syntax: ", url))
    return Fallible(value, F.when(missing, error))


def _extract(form: Callable[[Column], Column]) -> Callable[[Column], Fallible]:
    return lambda url: _of(url, form(url))


def _port(url: Column) -> Column:
    digits = F.regexp_extract(_part(url, "AUTHORITY"), r":([0-9]+)$", 1)
    return F.when((digits != "") & _part(url, "HOST").isNotNull(), digits.cast("int"))


def _parameter(url: Column, name: Column) -> Fallible:
    query = _decoded(_part(url, "QUERY"))
    matching = F.filter(F.split(query, "&", -1), lambda p: F.substring_index(p, "=", 1) == name)
    first = F.get(matching, F.lit(0))
    after = F.substring(first, F.length(name) + 2, F.length(first))
    return _of(url, F.when(first.isNotNull(), after))


_URL = Category.URL
_FULL = "https://user@docs.confluent.io:8080/current%20x/quickstart.html?a=1%202&b=&c#id-1"


def _extractor(
    name: str, description: str, type_: str, form: Callable[[Column], Column], gives: object
) -> Function:
    return scalar(
        name,
        description,
        overload(f"(input STRING) -> {type_}", _extract(form), parameters={"input": "A URL."}),
        category=_URL,
        examples=(
            call(_FULL, gives=gives),
            call("current/index", gives="current/index" if name.endswith("PATH") else None),
            failing("http://a b", error="URL input has invalid syntax: http://a b"),
        ),
    )


FUNCTIONS = (
    scalar(
        "URL_DECODE_PARAM",
        "What was encoded as a parameter of a URL.",
        overload(
            "(input STRING) -> STRING",
            lambda value: checked(
                F.try_url_decode(value),
                text("Illegal hex characters in escape (%) pattern: ", value),
                value,
            ),
        ),
        category=_URL,
        examples=(
            call("url+with%20spaces%C3%A9", gives="url with spacesé"),
            failing("%zz", error="Illegal hex characters in escape (%) pattern: %zz"),
        ),
    ),
    scalar(
        "URL_ENCODE_PARAM",
        "A text that can be a parameter of a URL.",
        overload("(input STRING) -> STRING", F.url_encode),
        category=_URL,
        examples=(call("url ?=é-_.*~", gives="url+%3F%3D%C3%A9-_.*%7E"),),
    ),
    _extractor(
        "URL_EXTRACT_FRAGMENT",
        "The fragment of a URL, after the #.",
        "STRING",
        lambda url: _decoded(_part(url, "REF")),
        "id-1",
    ),
    _extractor(
        "URL_EXTRACT_HOST",
        "The host of a URL.",
        "STRING",
        lambda url: _part(url, "HOST"),
        "docs.confluent.io",
    ),
    scalar(
        "URL_EXTRACT_PARAMETER",
        "The value of a parameter in the query of a URL.",
        overload("(input STRING, paramToFind STRING) -> STRING", _parameter),
        category=_URL,
        examples=(
            call(_FULL, "a", gives="1 2"),
            call(_FULL, "b", gives=""),
            call(_FULL, "c", gives=""),
            call(_FULL, "d", gives=None),
        ),
    ),
    _extractor(
        "URL_EXTRACT_PATH",
        "The path of a URL.",
        "STRING",
        lambda url: _decoded(_part(url, "PATH")),
        "/current x/quickstart.html",
    ),
    _extractor("URL_EXTRACT_PORT", "The port of a URL, if it names one.", "INTEGER", _port, 8080),
    _extractor(
        "URL_EXTRACT_PROTOCOL",
        "The scheme of a URL.",
        "STRING",
        lambda url: _part(url, "PROTOCOL"),
        "https",
    ),
    _extractor(
        "URL_EXTRACT_QUERY",
        "The query of a URL, after the ?.",
        "STRING",
        lambda url: _decoded(_part(url, "QUERY")),
        "a=1 2&b=&c",
    ),
)
