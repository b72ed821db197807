"""Functions that mask and hash text, and UUIDs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    varying,
)
from headrace.functions.scalar.columns import (
    fails_when,
    text,
    utf16_length,
    utf16_slice,
)

_STRING = Category.STRING


_DEFAULT_MASKS = ("X", "x", "n", "-")
_CLASSES = (r"\p{Lu}", r"\p{Ll}", r"\p{Nd}", r"[^\p{Lu}\p{Ll}\p{Nd}]")
# Characters for private use stand for the masks until all classes are replaced.
_MARKS = "\ue000\ue001\ue002\ue003"


def _masked(value: Column, masks: Sequence[Column], known: Sequence[object]) -> Column:
    if all(isinstance(k, str) and len(k) == 1 for k in known):
        upper, lower, digit, other = (F.lit(k) for k in known)
        return F.mask(value, upper, lower, digit, other)
    # A null mask leaves its class alone: its expression matches nothing.
    for pattern, mark, mask in zip(_CLASSES, _MARKS, masks, strict=True):
        wanted = F.when(mask.isNull(), F.lit("(?!)")).otherwise(F.lit(pattern))
        value = F.regexp_replace(value, wanted, F.lit(mark))
    for mark, mask in zip(_MARKS, masks, strict=True):
        value = F.replace(value, F.lit(mark), F.coalesce(mask, F.lit(mark)))
    return value


def _mask(
    value: Column,
    *masks: Column,
    context: CallContext,
) -> Column | Fallible:
    return _checked_masks(lambda m, k: _masked(value, m, k), masks, context, 1)


def _mask_part(name: str, masks_first: bool, from_end: bool) -> Callable[..., Column | Fallible]:
    """Masks one end of a text and keeps the other; `from_end`: the count is taken at the end."""

    def form(
        value: Column, count: Column, *masks: Column, context: CallContext
    ) -> Column | Fallible:
        size = utf16_length(value)
        counted = F.least(count, size)
        split = size - counted if from_end else counted
        left = utf16_slice(value, F.lit(0), split)
        right = utf16_slice(value, split, size - split)

        def whole(m: Sequence[Column], known: Sequence[object]) -> Column:
            if masks_first:
                return F.concat(_masked(left, m, known), right)
            return F.concat(left, _masked(right, m, known))

        result = _checked_masks(whole, masks, context, 2)
        negative = context.literal(1)
        if isinstance(negative, int) and negative >= 0:
            return result
        message = f"function {name} requires a non-negative number of characters to mask or skip"
        masked = result if isinstance(result, Fallible) else Fallible(result)
        refused = fails_when(count < 0, message, masked.value)
        if masked.error is None or refused.error is None:
            return refused
        return Fallible(refused.value, F.coalesce(masked.error, refused.error))

    return form


def _checked_masks(
    form: Callable[[Sequence[Column], Sequence[object]], Column],
    masks: Sequence[Column],
    context: CallContext,
    offset: int,
) -> Column | Fallible:
    if not masks:
        return form([F.lit(m) for m in _DEFAULT_MASKS], _DEFAULT_MASKS)
    known = [context.literal(offset + i) for i in range(len(masks))]
    value = form(masks, known)
    doubtful = [
        m for m, k in zip(masks, known, strict=True) if not (isinstance(k, str) and len(k) == 1)
    ]
    if not doubtful:
        return value
    wrong = F.coalesce(
        *(
            F.when(
                utf16_length(m) != 1,
                text("Invalid mask character. Must be only single character, but was '", m, "'"),
            )
            for m in doubtful
        )
    )
    return Fallible(F.when(wrong.isNull(), value), wrong)


_MASK_DOC = {
    "input": "The text to mask.",
    "numChars": "How many characters.",
    "upper": "What upper-case letters become; null leaves them.",
    "lower": "What lower-case letters become; null leaves them.",
    "digit": "What digits become; null leaves them.",
    "other": "What all other characters become; null leaves them.",
}


def _masking(
    name: str,
    description: str,
    form: Callable[..., Column | Fallible],
    count: str,
    *examples: Example,
) -> Function:
    return scalar(
        name,
        f"{description} Unless told otherwise, upper-case letters become X, lower-case ones x, "
        "digits n and all else -.",
        overload(f"(input STRING{count}) -> STRING", form, parameters=_MASK_DOC),
        overload(
            f"(input STRING{count}, upper STRING, lower STRING, digit STRING, other STRING) "
            "-> STRING",
            form,
            parameters=_MASK_DOC,
        ),
        category=_STRING,
        examples=examples,
    )


def _uuid_of_record(record: Column) -> Column:
    """A UUID of version 4 from the record's hash instead of from chance."""
    digits = F.md5(record.cast("binary"))
    variant = F.translate(F.substring(digits, 17, 1), "0123456789abcdef", "89ab89ab89ab89ab")
    return F.concat(
        F.substring(digits, 1, 8),
        F.lit("-"),
        F.substring(digits, 9, 4),
        F.lit("-4"),
        F.substring(digits, 14, 3),
        F.lit("-"),
        variant,
        F.substring(digits, 18, 3),
        F.lit("-"),
        F.substring(digits, 21, 12),
    )


def _uuid_of(value: Column) -> Column:
    digits = F.lower(F.hex(value))
    cuts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    written = F.concat_ws("-", *(F.substring(digits, start, count) for start, count in cuts))
    return F.when(F.octet_length(value) == 16, written)


FUNCTIONS = (
    _masking(
        "MASK",
        "A text with every character replaced by a mask.",
        _mask,
        "",
        call("My Test $123", gives="Xx-Xxxx--nnn"),
        call("My Test $123", "*", None, "1", None, gives="*y *est $111"),
        failing(
            "My Test",
            "**",
            None,
            None,
            None,
            error="Invalid mask character. Must be only single character, but was '**'",
        ),
    ),
    _masking(
        "MASK_KEEP_LEFT",
        "A text with all but the first characters masked.",
        _mask_part("mask_keep_left", masks_first=False, from_end=False),
        ", numChars INTEGER!",
        call("My Test $123", 4, gives="My Txxx--nnn"),
        failing(
            "My Test",
            -1,
            error="function mask_keep_left requires a non-negative number of characters to mask "
            "or skip",
        ),
    ),
    _masking(
        "MASK_KEEP_RIGHT",
        "A text with all but the last characters masked.",
        _mask_part("mask_keep_right", masks_first=True, from_end=True),
        ", numChars INTEGER!",
        call("My Test $123", 4, gives="Xx-Xxxx-$123"),
    ),
    _masking(
        "MASK_LEFT",
        "A text with its first characters masked.",
        _mask_part("mask_left", masks_first=True, from_end=False),
        ", numChars INTEGER!",
        call("My Test $123", 4, gives="Xx-Xest $123"),
    ),
    _masking(
        "MASK_RIGHT",
        "A text with its last characters masked.",
        _mask_part("mask_right", masks_first=False, from_end=True),
        ", numChars INTEGER!",
        call("My Test $123", 4, gives="My Test -nnn"),
    ),
    scalar(
        "MD5",
        "The MD5 hash of a text, as hexadecimal digits.",
        overload("(s STRING) -> STRING", lambda value: F.md5(value.cast("binary"))),
        category=_STRING,
        examples=(call("one", gives="f97c5d29941bfb1b2fdab0874906ab82"),),
    ),
    scalar(
        "UUID",
        "A new random UUID, or the one that 16 bytes spell.",
        overload("() -> STRING", F.uuid, of_record=_uuid_of_record),
        overload("(bytes BYTES) -> STRING", _uuid_of),
        category=_STRING,
        examples=(
            varying(),
            call(bytes(range(16)), gives="00010203-0405-0607-0809-0a0b0c0d0e0f"),
            call(b"short", gives=None),
        ),
    ),
)
