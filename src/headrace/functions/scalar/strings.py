"""Functions on strings: cutting, joining, padding, searching."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.declare.declaration import (
    CallContext,
    Category,
    Example,
    Fallible,
    Function,
    call,
    failing,
    overload,
    scalar,
)
from headrace.functions.scalar.columns import (
    LARGEST,
    LONGEST,
    is_ascii,
    quoted,
    text,
    utf16_cut,
    utf16_length,
    utf16_slice,
    utf16_text,
)

_STRING = Category.STRING
_NOTHING = bytearray()


# -------------------------------------------------------------------------------------- joining


def _concat_bytes(*inputs: Column) -> Column:
    return F.concat(*(F.coalesce(i, F.lit(_NOTHING)) for i in inputs), F.lit(_NOTHING))


def _joined(*inputs: Column) -> Column | Fallible:
    if len(inputs) < 2:
        return _too_few("string")
    return F.call_function("concat_ws", *inputs)


def _joined_bytes(separator: Column, *inputs: Column) -> Column | Fallible:
    if not inputs:
        return _too_few("binary")
    pieces: list[Column] = []
    for index, piece in enumerate(inputs):
        before = reduce(or_, (i.isNotNull() for i in inputs[:index]), F.lit(False))
        gap = F.when(before, separator).otherwise(F.lit(_NOTHING))
        pieces.append(F.when(piece.isNotNull(), F.concat(gap, piece)))
    return F.when(separator.isNotNull(), _concat_bytes(*pieces))


def _too_few(type_: str) -> Fallible:
    return Fallible(
        F.lit(None).cast(type_),
        F.lit("Function Concat_WS expects at least two input arguments."),
    )


def _elt(n: Column, *args: Column) -> Column:
    value = F.lit(None).cast("string")
    for index, arg in reversed(list(enumerate(args, 1))):
        value = F.when(n == index, arg).otherwise(value)
    return value


def _field(sought: Column, *args: Column) -> Column:
    value = F.lit(0)
    for index, arg in reversed(list(enumerate(args, 1))):
        value = F.when(sought == arg, F.lit(index)).otherwise(value)
    return value


# -------------------------------------------------------------------------------------- cutting


def _substring(
    value: Column, position: Column, length: Column | None, size: Column, cut: Callable[..., Column]
) -> Column:
    """From a position (from 1, or negative from the end), at most so many."""
    # GREATEST and LEAST pass over nulls, so a null position has to have no start at all.
    start = F.when(position < 0, F.greatest(size + position, F.lit(0))).when(
        position >= 0, F.greatest(F.least(position - 1, size), F.lit(0))
    )
    rest = size - start
    if length is None:
        return cut(value, start, rest)
    return F.when(
        length.isNotNull(), cut(value, start, F.greatest(F.least(length, rest), F.lit(0)))
    )


def _substring_text(
    value: Column, position: Column, length: Column | None = None, *, context: CallContext
) -> Column:
    start, count = context.literal(1), LONGEST if length is None else context.literal(2)
    if not isinstance(start, int) or start < 1 or not isinstance(count, int):
        return _substring(value, position, length, utf16_length(value), utf16_slice)
    # Nearly every call is of this kind. What comes after its end does not matter; but to look at
    # the start alone takes a copy, which pays only if the text is long.
    before = F.substring(value, 1, start - 1 if length is None else min(start + count, LONGEST))
    special = ~F.when(F.octet_length(value) < 200, is_ascii(value)).otherwise(is_ascii(before))
    many = None if length is None else F.lit(max(count, 0))
    return F.when(special, utf16_cut(value, F.lit(start - 1), many)).otherwise(
        F.substring(value, start, count)
    )


def _substring_bytes(value: Column, position: Column, length: Column | None = None) -> Column:
    return _substring(value, position, length, F.octet_length(value), _cut)


def _cut(value: Column, start: Column, count: Column) -> Column:
    return F.substring(value, start + 1, count)


_TRIMMED = "".join(map(chr, range(0x21)))


def _trim(value: Column) -> Column:
    """Java takes away every control character; mostly there are just spaces, as for Spark."""
    spaceless = F.trim(value)
    last = F.substring(spaceless.cast("binary"), -1, 1)
    done = (spaceless >= "!") & (last >= F.lit(bytearray(b"!")))
    return F.when(done, spaceless).otherwise(F.btrim(value, F.lit(_TRIMMED)))


# -------------------------------------------------------------------------------------- padding


def _pad(native: Callable[..., Column]) -> Callable[[Column, Column, Column], Fallible]:
    """Spark pads by characters, Java by UTF-16 units: as bytes, which Spark pads as well."""

    def pad(value: Column, length: Column, padding: Column) -> Fallible:
        units = native(F.encode(value, "UTF-16BE"), length * 2, F.encode(padding, "UTF-16BE"))
        # A padding with characters of two units is not cut within one of them.
        whole = (is_ascii(value) & is_ascii(padding)) | (F.length(padding) != utf16_length(padding))
        padded = F.when(whole, native(value, length, padding)).otherwise(utf16_text(units))
        return _padded(padded, length, F.length(padding))

    return pad


def _pad_bytes(
    native: Callable[[Column, Column, Column], Column],
) -> Callable[[Column, Column, Column], Fallible]:
    def pad(value: Column, length: Column, padding: Column) -> Fallible:
        return _padded(native(value, length, padding), length, F.octet_length(padding))

    return pad


def _padded(value: Column, length: Column, padding_length: Column) -> Fallible:
    sound = F.when((length >= 0) & (length <= LARGEST) & (padding_length > 0), value)
    return Fallible(
        sound, F.when(length > LARGEST, F.lit(f"Cannot pad to more than {LARGEST} characters"))
    )


def _padding(name: str, side: str, left: bool, *examples: Example) -> Function:
    native = F.lpad if left else F.rpad
    said = {
        "input": "What is to be padded.",
        "targetLen": "The length of the result; what is longer is cut.",
        "padding": "What is repeated until the length is reached.",
    }
    return scalar(
        name,
        f"Text or bytes, padded at the {side} or cut to a length. Null if the padding is empty or "
        "the length negative.",
        overload(
            "(input STRING, targetLen INTEGER, padding STRING) -> STRING",
            _pad(native),
            parameters=said,
        ),
        overload(
            "(input BYTES, targetLen INTEGER, padding BYTES) -> BYTES",
            _pad_bytes(native),
            parameters=said,
        ),
        category=_STRING,
        examples=examples,
    )


# ------------------------------------------------------------------------------------ searching


def _instr(
    value: Column,
    part: Column,
    position: Column | None = None,
    occurrence: Column | None = None,
    *,
    context: CallContext,
) -> Column:
    """The place, from 1, of an occurrence after a position; backwards from a negative one.

    Overlapping occurrences count. A null text or part is found nowhere.
    """
    position = F.lit(1) if position is None else position
    known = context.literal(2) if len(context.arg_types) > 2 else 1
    forward = _found(value, part, position, occurrence, context)
    if isinstance(known, int) and known > 0:
        found = forward
    else:
        place = _found(F.reverse(value), F.reverse(part), -position, occurrence, context)
        backward = F.when(place > 0, F.length(value) - place - F.length(part) + 2)
        found = F.when(position > 0, forward).when(position < 0, backward)
    # Places count UTF-16 units, as Java does.
    units = utf16_length(F.substring(value, F.lit(1), found - 1)) + 1
    within = F.abs(position) <= utf16_length(value)
    return F.coalesce(F.when(within & (found > 0), units), F.lit(0))


def _found(
    value: Column,
    part: Column,
    position: Column,
    occurrence: Column | None,
    context: CallContext,
) -> Column:
    first = F.when(F.length(part) == 0, position).otherwise(F.position(part, value, position))
    if occurrence is None or context.literal(3) == 1:
        return first

    def next_place(at: Column, _: Column) -> Column:
        following = F.position(part, value, at + 1)
        return F.when(F.length(part) == 0, at).when(at > 0, following).otherwise(F.lit(0))

    more = F.when(value.isNotNull(), F.least(occurrence, F.length(value) + 1))
    steps = F.when(more > 1, F.sequence(F.lit(2), more)).otherwise(F.array().cast("array<int>"))
    return F.when(occurrence >= 1, F.aggregate(steps, first, next_place))


# ------------------------------------------------------------------------------------ splitting


def _split(value: Column, delimiter: Column, context: CallContext) -> Column:
    known = context.literal(1)
    if known == "":
        return F.split(value, "", -1)
    if isinstance(known, str):
        # Java splits at a single character without a regular expression.
        return F.split(value, re.sub(r"([\\^$.|?*+()\[{])", r"\\\1", known), -1)
    pieces = F.split(value, quoted(delimiter), -1)
    return F.when(delimiter == "", F.split(value, "", -1)).otherwise(pieces)


def _split_bytes(value: Column, delimiter: Column) -> Column:
    """Bytes as the characters of the same number, split as text."""
    pieces = F.split(F.decode(value, "ISO-8859-1"), quoted(F.decode(delimiter, "ISO-8859-1")), -1)
    single = F.split(F.decode(value, "ISO-8859-1"), "", -1)
    parts = F.when(F.octet_length(delimiter) == 0, single).otherwise(pieces)
    return F.transform(parts, lambda piece: F.encode(piece, "ISO-8859-1"))


def _split_to_map(value: Column, entry_delimiter: Column, pair_delimiter: Column) -> Column:
    useful = (entry_delimiter != "") & (pair_delimiter != "") & (entry_delimiter != pair_delimiter)
    entries = F.filter(
        F.split(value, quoted(entry_delimiter), -1), lambda entry: entry.contains(pair_delimiter)
    )
    pairs = F.transform(entries, lambda entry: F.split(entry, quoted(pair_delimiter), -1))
    found = F.map_from_entries(
        F.transform(pairs, lambda pair: F.struct(F.get(pair, F.lit(0)), F.get(pair, F.lit(1))))
    )
    return F.when(useful, found)


# -------------------------------------------------------------------------------------- replace


def _replace(value: Column, old: Column, new: Column, context: CallContext) -> Column:
    replaced = F.replace(value, old, new)
    if context.literal(1):
        return replaced
    # Java puts the new text around every character if the old one is empty; Spark does nothing.
    between = F.regexp_replace(value, F.lit(""), _replacement(new))
    return F.when(old == "", between).otherwise(replaced)


def _replacement(value: Column) -> Column:
    """A replacement of a regular expression's match that means just this text."""
    return F.replace(F.replace(value, F.lit("\\"), F.lit("\\\\")), F.lit("$"), F.lit("\\$"))


def _initcap(value: Column) -> Column:
    """Words are what stands between white space; what is before the first word is dropped."""
    words = F.regexp_extract_all(F.lower(value), F.lit(r"([^\s]+\s*)"), 1)
    return F.array_join(
        F.transform(
            words,
            lambda word: F.concat(F.upper(F.substring(word, 1, 1)), F.substring(word, 2, LARGEST)),
        ),
        "",
    )


# ----------------------------------------------------------------------------------------- CHR


def _chr(code: Column) -> Column:
    hexadecimal = F.lpad(F.hex(code), 8, "0")
    character = F.decode(F.unhex(hexadecimal), "UTF-32")
    surrogate = code.between(0xD800, 0xDFFF)
    return F.when(surrogate, F.lit("?")).when(code.between(0, 0x10FFFF), character)


def _unescape(code: Column) -> Fallible:
    """What is escaped as in Java source, which for `\\uXXXX` is also how JSON escapes."""
    document = F.concat(F.lit('["'), F.regexp_replace(code, r'(?<!\\)"', r'\\\\"'), F.lit('"]'))
    escaped = (F.length(code) >= 6) & code.startswith("\\u")
    value = F.when(escaped, F.get_json_object(document, "$[0]"))
    error = F.when(escaped & value.isNull(), text("Unable to parse unicode value: ", code))
    return Fallible(value, error)


FUNCTIONS = (
    scalar(
        "CHR",
        "The character with a code, or with a code written as in Java: \\u004b.",
        overload("(decimalCode INTEGER) -> STRING", _chr),
        overload("(utf16Code STRING) -> STRING", _unescape),
        category=_STRING,
        examples=(
            call(75, gives="K"),
            call(22909, gives="好"),
            call(-1, gives=None),
            call("\\u004b", gives="K"),
            call("\\ud83d\\ude00", gives="😀"),
            call("004b", gives=None),
        ),
    ),
    scalar(
        "CONCAT",
        "All texts, or all bytes, in a row; nulls are left out.",
        overload("(inputs STRING...) -> STRING", lambda *inputs: F.concat_ws("", *inputs)),
        overload("(inputs BYTES...) -> BYTES", _concat_bytes),
        category=_STRING,
        examples=(
            call("a", None, "b", gives="ab"),
            call(b"\x01", b"\x02\x03", gives=b"\x01\x02\x03"),
        ),
    ),
    scalar(
        "CONCAT_WS",
        "All texts, or all bytes, in a row with a separator between them; nulls are left out.",
        overload("(inputs STRING...) -> STRING", _joined),
        overload("(inputs BYTES...) -> BYTES", _joined_bytes),
        category=_STRING,
        examples=(
            call(", ", "apple", None, "date", gives="apple, date"),
            call(None, "apple", "date", gives=None),
            call(b"-", b"a", None, b"b", gives=b"a-b"),
            failing(", ", error="Function Concat_WS expects at least two input arguments."),
        ),
    ),
    scalar(
        "ELT",
        "The n-th of the texts, from 1; null if there are not so many.",
        overload("(n INTEGER!, args STRING...) -> STRING", _elt),
        category=_STRING,
        examples=(call(2, "a", "b", gives="b"), call(3, "a", "b", gives=None)),
    ),
    scalar(
        "FIELD",
        "Which of the texts is the first one, from 1; 0 if none is.",
        overload("(str STRING, args STRING...) -> INTEGER", _field),
        category=_STRING,
        examples=(call("b", "a", "b", gives=2), call(None, "a", gives=0)),
    ),
    scalar(
        "INITCAP",
        "Every word with its first letter in upper case and the others in lower case.",
        overload("(str STRING) -> STRING", _initcap),
        category=_STRING,
        examples=(call("the qUICK  brown", gives="The Quick  Brown"), call("", gives="")),
    ),
    scalar(
        "INSTR",
        "The place of a text in another, from 1; 0 if it is not there. A negative position "
        "searches backwards from the end.",
        overload("(str STRING, substring STRING) -> INTEGER", _instr),
        overload("(str STRING, substring STRING, position INTEGER!) -> INTEGER", _instr),
        overload(
            "(str STRING, substring STRING, position INTEGER!, occurrence INTEGER!) -> INTEGER",
            _instr,
        ),
        category=_STRING,
        examples=(
            call("CORPORATE FLOOR", "OR", gives=2),
            call("CORPORATE FLOOR", "OR", 3, gives=5),
            call("CORPORATE FLOOR", "OR", 3, 2, gives=14),
            call("CORPORATE FLOOR", "OR", -3, gives=5),
            call("CORPORATE FLOOR", "OR", -3, 2, gives=2),
            call("CORPORATE FLOOR", "MISSING", gives=0),
            call("😀x", "x", gives=3),
        ),
    ),
    scalar(
        "LCASE",
        "Text in lower case.",
        overload("(input STRING) -> STRING", F.lower),
        category=_STRING,
        examples=(call("MiXed", gives="mixed"),),
    ),
    scalar(
        "LEN",
        "How long a text or bytes are.",
        overload("(input STRING) -> INTEGER", utf16_length),
        overload("(input BYTES) -> INTEGER", F.octet_length),
        category=_STRING,
        examples=(call("stream", gives=6), call("😀", gives=2), call(b"\x00\x01", gives=2)),
    ),
    _padding(
        "LPAD",
        "start",
        True,
        call("Foo", 7, "Bar", gives="BarBFoo"),
        call("Foo", 2, "Bar", gives="Fo"),
        call("é", 4, "ab", gives="abaé"),
        call("Foo", 5, "", gives=None),
        call(b"\x01", 3, b"\x00", gives=b"\x00\x00\x01"),
    ),
    scalar(
        "REPLACE",
        "A text with every occurrence of another replaced.",
        overload("(str STRING, oldStr STRING, newStr STRING) -> STRING", _replace),
        category=_STRING,
        examples=(
            call("foobarfoo", "foo", "x", gives="xbarx"),
            call("ab", "", "$", gives="$a$b$"),
        ),
    ),
    _padding(
        "RPAD",
        "end",
        False,
        call("Foo", 7, "Bar", gives="FooBarB"),
        call("Foo", -1, "Bar", gives=None),
        call(b"\x01", 3, b"\x02\x03", gives=b"\x01\x02\x03"),
    ),
    scalar(
        "SPLIT",
        "The pieces of a text, or of bytes, between delimiters; every character, or byte, if the "
        "delimiter is empty.",
        overload("(string STRING, delimiter STRING) -> ARRAY<STRING>", _split),
        overload("(bytes BYTES, delimiter BYTES) -> ARRAY<BYTES>", _split_bytes),
        category=_STRING,
        examples=(
            call("a.b..c", ".", gives=["a", "b", "", "c"]),
            call("abc", "", gives=["a", "b", "c"]),
            call("", ",", gives=[""]),
            call(b"a-b", b"-", gives=[b"a", b"b"]),
        ),
    ),
    scalar(
        "SPLIT_TO_MAP",
        "The pairs of key and value that a text spells, as a map. The last of several values for a "
        "key counts.",
        overload(
            "(input STRING, entryDelimiter STRING, kvDelimiter STRING) -> MAP<STRING, STRING>",
            _split_to_map,
        ),
        category=_STRING,
        examples=(
            call(
                "apple:=green/cherry:=red/apple:=ripe/x",
                "/",
                ":=",
                gives={"apple": "ripe", "cherry": "red"},
            ),
            call("a=b", "", "=", gives=None),
        ),
    ),
    scalar(
        "SUBSTRING",
        "A part of a text or of bytes, from a position (from 1, or negative from the end) to its "
        "end or of a length.",
        overload("(str STRING, pos INTEGER) -> STRING", _substring_text),
        overload("(str STRING, pos INTEGER, length INTEGER) -> STRING", _substring_text),
        overload("(bytes BYTES, pos INTEGER) -> BYTES", _substring_bytes),
        overload("(bytes BYTES, pos INTEGER, length INTEGER) -> BYTES", _substring_bytes),
        category=_STRING,
        examples=(
            call("stream", 1, 4, gives="stre"),
            call("stream", -3, gives="eam"),
            call("stream", 0, 2, gives="st"),
            call("stream", -9, 2, gives="st"),
            call("s", 2, gives=""),
            call("a😀b", 3, 2, gives="?b"),
            call("a😀b", 4, gives="b"),
            call(b"stream", 2, 2, gives=b"tr"),
        ),
    ),
    scalar(
        "TRIM",
        "A text without white space at its ends.",
        overload("(input STRING) -> STRING", _trim),
        category=_STRING,
        examples=(call(" \t a b\n", gives="a b"),),
    ),
    scalar(
        "UCASE",
        "Text in upper case.",
        overload("(input STRING) -> STRING", F.upper),
        category=_STRING,
        examples=(call("MiXed", gives="MIXED"),),
    ),
)
