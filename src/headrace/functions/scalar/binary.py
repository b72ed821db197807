"""Functions on bytes: encodings to and from text, and conversions to numbers."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.declare.declaration import (
    CallContext,
    Category,
    Fallible,
    Function,
    call,
    failing,
    overload,
    scalar,
)
from headrace.functions.scalar.columns import (
    Choices,
    all_given,
    by_text,
    text,
)

_ENCODINGS = ("hex", "utf8", "ascii", "base64")


# --------------------------------------------------------------------------- as text, and back


def _ascii_text(value: Column) -> Column:
    """A byte beyond ASCII is not a character; Java puts the replacement character."""
    return F.regexp_replace(F.decode(value, "ISO-8859-1"), "[\x80-\xff]", "\ufffd")


def _ascii_bytes(value: Column) -> Column:
    return F.regexp_replace(value, "[^\x00-\x7f]", "?").cast("binary")


def _base64_text(value: Column) -> Column:
    """Spark breaks the lines of long ones."""
    return F.replace(F.base64(value), F.lit("\r\n"), F.lit(""))


_TO_TEXT: dict[str, Callable[[Column], Column]] = {
    "hex": F.hex,
    "utf8": lambda value: F.make_valid_utf8(value.cast("string")),
    "ascii": _ascii_text,
    "base64": _base64_text,
}

_EVEN_HEX = "^(?:[0-9A-Fa-f]{2})*$"
_BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$"


def base64_bytes(value: Column) -> Column:
    """As Java's strict decoder; Spark's own skips what it does not know, or fails."""
    return F.when(value.rlike(_BASE64), F.unbase64(value))


# Null where the text is not in the encoding.
_TO_BYTES: dict[str, Callable[[Column], Column]] = {
    "hex": lambda value: F.when(value.rlike(_EVEN_HEX), F.unhex(value)),
    "utf8": lambda value: value.cast("binary"),
    "ascii": _ascii_bytes,
    "base64": base64_bytes,
}


def _unknown(encoding: Column) -> Column:
    return F.when(
        ~F.lower(encoding).isin(*_ENCODINGS),
        text(
            "Unknown encoding type '",
            encoding,
            "'. Supported formats are 'hex', 'utf8', 'ascii', and 'base64'.",
        ),
    )


def _from_bytes(value: Column, encoding: Column, context: CallContext) -> Fallible:
    choices: Choices = {(name,): form(value) for name, form in _TO_TEXT.items()}
    result = by_text(context, (1,), (encoding,), choices)
    return Fallible(result, F.when(value.isNotNull(), _unknown(encoding)))


def _to_bytes(value: Column, encoding: Column, context: CallContext) -> Fallible:
    choices: Choices = {(name,): form(value) for name, form in _TO_BYTES.items()}
    result = by_text(context, (1,), (encoding,), choices).cast("binary")
    malformed = (
        F.when(
            F.lower(encoding) == "hex",
            F.when(
                F.length(value) % 2 != 0, text("hexBinary needs to be even-length: ", value)
            ).otherwise(text("contains illegal character for hexBinary: ", value)),
        )
        .when(F.lower(encoding) == "base64", text("Illegal base64 characters: ", value))
        .otherwise(F.lit(None))
    )
    failed = all_given(value, encoding) & result.isNull()
    return Fallible(result, F.when(failed, F.coalesce(_unknown(encoding), malformed)))


# --------------------------------------------------------------------- from one text to another


def _bare_hex(value: Column) -> Column:
    """Without the `0x` before it, or the `X'` and `'` around it."""
    zero_x = F.substring(value, F.lit(3), F.length(value))
    even = F.when(F.length(value) % 2 != 0, F.concat(F.lit("0"), zero_x)).otherwise(zero_x)
    quoted = F.substring(value, F.lit(3), F.length(value) - 3)
    return (
        F.when(value.startswith("0x"), even)
        .when(value.rlike("^[xX]'.*'$"), quoted)
        .otherwise(value)
    )


def _hex_bytes(value: Column) -> Column:
    return _TO_BYTES["hex"](_bare_hex(value))


def _lenient_base64(value: Column) -> Column:
    """As commons-codec reads it: URL-safe letters too, what is no letter is skipped."""
    letters = F.regexp_replace(
        F.translate(F.regexp_extract(value, "^([^=]*)", 1), "-_", "+/"), "[^A-Za-z0-9+/]", ""
    )
    size = F.length(letters)
    whole = F.when(size % 4 == 1, F.substring(letters, F.lit(1), size - 1)).otherwise(letters)
    return F.unbase64(whole)


_READ: dict[str, Callable[[Column], Column]] = {
    "hex": _hex_bytes,
    "utf8": lambda value: value.cast("binary"),
    "ascii": _ascii_bytes,
    "base64": _lenient_base64,
}
_WRITTEN: dict[str, Callable[[Column], Column]] = {
    **_TO_TEXT,
    "hex": lambda value: F.lower(F.hex(value)),
}


def _encode(value: Column, source: Column, target: Column, context: CallContext) -> Fallible:
    choices: Choices = {
        (read, written): _WRITTEN[written](_READ[read](value))
        for read in _ENCODINGS
        for written in _ENCODINGS
        if read != written
    }
    result = by_text(context, (1, 2), (source, target), choices).cast("string")
    same = F.lower(source) == F.lower(target)
    known = F.lower(source).isin(*_ENCODINGS) & F.lower(target).isin(*_ENCODINGS)
    message = (
        F.when(
            ~known | same,
            F.lit("Supported input and output encodings are: hex, utf8, ascii and base64"),
        )
        .when(F.length(_bare_hex(value)) % 2 != 0, F.lit("Odd number of characters."))
        .otherwise(text("Illegal hexadecimal character in ", value))
    )
    failed = all_given(value, source, target) & result.isNull()
    return Fallible(result, F.when(failed, message))


# ------------------------------------------------------------------------------------- numbers


def _integer(value: Column) -> Column:
    """The number that up to 8 bytes spell; narrower types take its lower bits."""
    return F.conv(F.hex(value), 16, -10).cast("bigint")


def _double(value: Column) -> Column:
    """IEEE 754 by hand, for lack of a function that just looks at the bits."""
    bits = _integer(value)
    fraction = bits.bitwiseAND(2**52 - 1)
    exponent = F.shiftrightunsigned(bits, 52).bitwiseAND(0x7FF).cast("int")
    sign = F.when(bits < 0, F.lit(-1.0)).otherwise(F.lit(1.0))
    special = F.when(fraction == 0, sign * float("inf")).otherwise(F.lit(float("nan")))
    # Powers of two in two halves, since the whole may be less than the least normal number.
    power = F.greatest(exponent, F.lit(1)) - 1075
    first = (power / 2).cast("int")
    scale = F.pow(F.lit(2.0), first), F.pow(F.lit(2.0), power - first)
    mantissa = F.when(exponent == 0, fraction).otherwise(fraction + 2**52).cast("double")
    number = sign * (mantissa * scale[0] * scale[1])
    return F.when(exponent == 0x7FF, special).otherwise(number)


def _from(size: int, type_: str, read: Callable[[Column], Column]) -> Callable[..., Fallible]:
    def form(value: Column, order: Column | None = None, *, context: CallContext) -> Fallible:
        # Two hexadecimal digits at a time, backwards, are the bytes backwards.
        digits = F.hex(value)
        backwards = F.unhex(
            F.concat(*(F.substring(digits, 2 * i - 1, 2) for i in range(size, 0, -1)))
        )
        result = read(value)
        wrong_order = None
        if order is not None:
            choices: Choices = {("big_endian",): result, ("little_endian",): read(backwards)}
            result = by_text(context, (1,), (order,), choices)
            wrong_order = F.when(
                ~F.coalesce(F.lower(order).isin("big_endian", "little_endian"), F.lit(False)),
                text(
                    "Byte order must be BIG_ENDIAN or LITTLE_ENDIAN. Unknown byte order '",
                    order,
                    "'.",
                ),
            )
        wrong_size = F.when(
            F.octet_length(value) != size,
            text(f"Number of bytes must be equal to {size}, but found ", F.octet_length(value)),
        )
        error = wrong_size if wrong_order is None else F.coalesce(wrong_order, wrong_size)
        return Fallible(F.when(F.octet_length(value) == size, result.cast(type_)), error)

    return form


def _number(
    name: str, type_: str, size: int, form: Callable[..., Fallible], example: object, other: object
) -> Function:
    said = {
        "value": f"The {size} bytes.",
        "byteOrder": "BIG_ENDIAN or LITTLE_ENDIAN.",
    }
    data = bytes([*range(1, size), 0x40])
    return scalar(
        name,
        f"The {type_} that {size} bytes spell, the most significant first unless told otherwise.",
        overload(f"(value BYTES) -> {type_}", form, parameters=said),
        overload(f"(value BYTES, byteOrder STRING) -> {type_}", form, parameters=said),
        category=Category.CONVERSIONS,
        examples=(
            call(data, gives=example),
            call(data, "LITTLE_ENDIAN", gives=other),
            failing(b"\x00", error=f"Number of bytes must be equal to {size}, but found 1"),
            failing(
                data,
                "MIDDLE",
                error="Byte order must be BIG_ENDIAN or LITTLE_ENDIAN. Unknown byte order "
                "'MIDDLE'.",
            ),
        ),
    )


FUNCTIONS = (
    _number(
        "BIGINT_FROM_BYTES",
        "BIGINT",
        8,
        _from(8, "bigint", _integer),
        0x0102030405060740,
        0x4007060504030201,
    ),
    _number(
        "DOUBLE_FROM_BYTES",
        "DOUBLE",
        8,
        _from(8, "double", _double),
        8.20788039913193e-304,
        2.8779392541330258,
    ),
    scalar(
        "ENCODE",
        "Text that spells something in one encoding, so that it spells the same in another: hex, "
        "utf8, ascii or base64.",
        overload("(str STRING, inputEncoding STRING, outputEncoding STRING) -> STRING", _encode),
        category=Category.STRING,
        examples=(
            call("4578616d706c6521", "hex", "ascii", gives="Example!"),
            call("0xfab", "hex", "base64", gives="D6s="),
            call("x'4041'", "hex", "utf8", gives="@A"),
            call("Ünı", "utf8", "hex", gives="c39c6ec4b1"),
            call("w5xuxLE", "base64", "utf8", gives="Ünı"),
            failing("1", "hex", "utf8", error="Odd number of characters."),
            failing(
                "1",
                "hex",
                "hex",
                error="Supported input and output encodings are: hex, utf8, ascii and base64",
            ),
        ),
    ),
    scalar(
        "FROM_BYTES",
        "Bytes as text: hex, utf8, ascii or base64.",
        overload("(value BYTES, encoding STRING) -> STRING", _from_bytes),
        category=Category.STRING,
        examples=(
            call(b"Hi\xff", "hex", gives="4869FF"),
            call(b"Hi\xff", "utf8", gives="Hi\ufffd"),
            call(b"Hi\xff", "ascii", gives="Hi\ufffd"),
            call(b"Hi", "base64", gives="SGk="),
            call(bytes(60), "BASE64", gives="A" * 80),
            failing(
                b"Hi",
                "rot13",
                error="Unknown encoding type 'rot13'. Supported formats are 'hex', 'utf8', "
                "'ascii', and 'base64'.",
            ),
        ),
    ),
    _number(
        "INT_FROM_BYTES",
        "INTEGER",
        4,
        _from(4, "int", _integer),
        0x01020340,
        0x40030201,
    ),
    scalar(
        "TO_BYTES",
        "The bytes that a text spells: hex, utf8, ascii or base64.",
        overload("(value STRING, encoding STRING) -> BYTES", _to_bytes),
        category=Category.STRING,
        examples=(
            call("4869ff", "hex", gives=b"Hi\xff"),
            call("é", "utf8", gives=b"\xc3\xa9"),
            call("é", "ascii", gives=b"?"),
            call("SGk=", "base64", gives=b"Hi"),
            failing("486", "hex", error="hexBinary needs to be even-length: 486"),
            failing("4g", "hex", error="contains illegal character for hexBinary: 4g"),
            failing("S*", "base64", error="Illegal base64 characters: S*"),
        ),
    ),
)
