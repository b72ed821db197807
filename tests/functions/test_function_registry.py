"""Which overload a call means, and what it says when there is none. Needs no JVM."""

import pytest

from headrace.functions.declare.declaration import Category, overload, scalar
from headrace.functions.declare.signatures import INTERVAL_UNIT, parse_signature
from headrace.functions.registry import REGISTRY, LambdaShape, Registry
from headrace.model.errors import StatementError
from headrace.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    STRING,
    Array,
    Decimal,
    Field,
    Lambda,
    Map,
    Struct,
)


def form(*args):
    raise AssertionError("not called")


def function(name, *signatures, **more):
    return scalar(
        name, "", *(overload(s, form, **more) for s in signatures), category=Category.OTHER
    )


def resolve(args, *signatures, **more):
    return Registry([function("F", *signatures, **more)]).resolve("F", args)


def chosen(args, *signatures):
    return resolve(args, *signatures).signature


def test_reads_every_kind_of_parameter():
    signature = parse_signature(
        "(a ARRAY<A>, m MAP<STRING, B>, fn LAMBDA (A, B) => BOOLEAN, s STRUCT<`x y` INTEGER>, "
        "d DECIMAL, e DECIMAL(4, 2), u INTERVAL, rest ANY..., const n INTEGER) -> ARRAY<B>"
    )
    assert signature.identity("F") == (
        "F(ARRAY<A>, MAP<STRING, B>, LAMBDA (A, B) => BOOLEAN, STRUCT<`x y` INTEGER>, DECIMAL, "
        "DECIMAL(4, 2), INTERVAL UNIT, ANY..., INTEGER)"
    )
    assert signature.parameters[-1].constant
    assert signature.variadic == 7


@pytest.mark.parametrize("text", ["(a) -> STRING", "(a STRING)", "(a FOO) -> STRING", "(a ;) -> A"])
def test_rejects_what_is_no_signature(text):
    with pytest.raises(ValueError):
        parse_signature(text)


def test_prefers_the_exact_overload_to_a_cast():
    signatures = ("(x INTEGER) -> INTEGER", "(x DOUBLE) -> DOUBLE")
    assert chosen([INTEGER], *signatures) == "F(INTEGER)"
    assert chosen([DOUBLE], *signatures) == "F(DOUBLE)"
    assert chosen([BIGINT], *signatures) == "F(DOUBLE)"


def test_casts_integers_to_decimals_exactly():
    assert resolve([INTEGER], "(x DECIMAL) -> BOOLEAN").finish()[0] == (Decimal(10, 0),)
    assert resolve([BIGINT], "(x DECIMAL) -> BOOLEAN").finish()[0] == (Decimal(19, 0),)
    assert resolve([Decimal(4, 2)], "(x DECIMAL) -> BOOLEAN").finish()[0] == (Decimal(4, 2),)


def test_casts_strings_to_dates():
    assert resolve([STRING], "(x DATE) -> DATE").finish() == ((DATE,), DATE)


def test_never_casts_for_generics():
    with pytest.raises(StatementError):
        resolve([INTEGER, BIGINT], "(a A, b A) -> A")


def test_prefers_fixed_then_longer_then_less_generic():
    assert chosen(
        [STRING, STRING], "(a STRING...) -> STRING", "(a STRING, b STRING) -> STRING"
    ) == ("F(STRING, STRING)")
    assert chosen(
        [STRING, STRING], "(a STRING...) -> STRING", "(a STRING, b STRING...) -> STRING"
    ) == ("F(STRING, STRING...)")
    assert chosen([STRING], "(a A) -> STRING", "(a STRING) -> STRING") == "F(STRING)"


def test_variadic_takes_none_and_stands_anywhere():
    assert chosen([STRING], "(a STRING, b INTEGER...) -> STRING") == "F(STRING, INTEGER...)"
    middle = resolve(
        [STRING, BOOLEAN, BIGINT, INTEGER], "(a STRING, r ANY..., n INTEGER) -> STRING"
    )
    assert middle.finish()[0] == (STRING, BOOLEAN, BIGINT, INTEGER)


def test_counts_constants():
    assert resolve([STRING, INTEGER], "(a A, const n INTEGER) -> A").literal_count == 1


def test_null_fits_everywhere_and_may_be_ambiguous():
    assert chosen([NULL], "(a STRING) -> STRING") == "F(STRING)"
    with pytest.raises(StatementError) as error:
        resolve([NULL], "(a STRING) -> STRING", "(b INTEGER) -> STRING")
    assert str(error.value) == (
        "Function 'f' cannot be resolved due to ambiguous method parameters (null).\n"
        "Use CAST() to explicitly cast your parameters to one of the supported function calls.\n"
        "Valid function calls are:\nF(INT b)\nF(VARCHAR a)\n"
        "For detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"
    )


def test_says_what_would_be_accepted():
    with pytest.raises(StatementError) as error:
        resolve(
            [Struct((Field("A", INTEGER),)), NULL, LambdaShape(1)],
            "(a STRING, rest MAP<STRING, INTEGER>...) -> STRING",
            "(x DECIMAL, y A, z LAMBDA (A) => A) -> STRING",
        )
    assert str(error.value) == (
        "Function 'f' does not accept parameters (STRUCT<A INTEGER>, null, LAMBDA).\n"
        "Valid alternatives are:\n"
        "F(DECIMAL x, A y, LAMBDA (A) => A z)\n"
        "F(VARCHAR a, MAP<VARCHAR, INT>... rest)\n"
        "For detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ABS", "ABS(DECIMAL val)|ABS(DOUBLE val)|ABS(INT val)|ABS(BIGINT val)"),
        ("SUM", "SUM(DECIMAL val1)|SUM(DOUBLE val1)|SUM(INT val1)|SUM(BIGINT val1)"),
        (
            "SUBSTRING",
            "SUBSTRING(VARCHAR str, INT pos, INT length)|"
            "SUBSTRING(BYTES bytes, INT pos, INT length)|"
            "SUBSTRING(BYTES bytes, INT pos)|SUBSTRING(VARCHAR str, INT pos)",
        ),
        ("EXPLODE", "explode(ARRAY<DECIMAL> input)|explode(ARRAY<T> list)"),
        ("COLLECT_LIST", "collect_list(T val1)"),
        ("TRIM", "TRIM(VARCHAR input)"),
    ],
)
def test_the_order_and_the_names_are_those_of_ksqldb(name, expected):
    """As its hash map has them, whose buckets follow from the types of the parameters."""
    with pytest.raises(StatementError) as error:
        REGISTRY.resolve(name, [BOOLEAN] * 9)
    listed = str(error.value).split("Valid alternatives are:\n")[1].splitlines()[:-1]
    assert "|".join(listed) == expected


def test_unknown_name():
    with pytest.raises(StatementError, match="Can't find any functions with the name 'NOPE'"):
        Registry().resolve("NOPE", [])


def test_generics_reach_into_containers():
    resolution = resolve([Map(STRING, Array(DOUBLE))], "(m MAP<K, V>) -> ARRAY<V>")
    assert resolution.finish() == ((Map(STRING, Array(DOUBLE)),), Array(Array(DOUBLE)))


def test_unbound_generic_result():
    with pytest.raises(StatementError, match="Could not find mapping for generic type: A"):
        resolve([NULL], "(a A) -> A").finish()


def test_lambda_types_follow_from_arguments():
    resolution = resolve(
        [Map(STRING, INTEGER), LambdaShape(2), LambdaShape(2)],
        "(m MAP<K, V>, k LAMBDA (K, V) => R, v LAMBDA (K, V) => S) -> MAP<R, S>",
    )
    assert resolution.lambda_inputs(1, {}) == (STRING, INTEGER)
    types, returned = resolution.finish({1: BIGINT, 2: BOOLEAN})
    assert types[1] == Lambda((STRING, INTEGER), BIGINT)
    assert returned == Map(BIGINT, BOOLEAN)


def test_lambda_result_has_to_agree():
    resolution = resolve(
        [Array(STRING), INTEGER, LambdaShape(2)],
        "(a ARRAY<T>, s S, fn LAMBDA (S, T) => S) -> S",
    )
    assert resolution.lambda_inputs(2, {}) == (INTEGER, STRING)
    assert resolution.finish({2: INTEGER})[1] == INTEGER
    with pytest.raises(StatementError, match="Cannot map S to both INTEGER and STRING"):
        resolution.finish({2: STRING})


def test_lambda_arity_chooses():
    signatures = (
        "(a ARRAY<T>, f LAMBDA (T) => R) -> ARRAY<R>",
        "(m MAP<K, V>, f LAMBDA (K, V) => BOOLEAN) -> MAP<K, V>",
    )
    assert chosen([Map(STRING, STRING), LambdaShape(2)], *signatures).startswith("F(MAP")
    with pytest.raises(StatementError):
        resolve([Map(STRING, STRING), LambdaShape(1)], *signatures)


def test_interval_units_only_fit_interval_parameters():
    signatures = ("(unit INTERVAL, n INTEGER) -> INTEGER", "(unit STRING, n INTEGER) -> INTEGER")
    assert chosen([INTERVAL_UNIT, INTEGER], *signatures) == "F(INTERVAL UNIT, INTEGER)"
    with pytest.raises(StatementError):
        resolve([INTEGER, INTEGER], signatures[0])


def test_return_type_by_rule():
    resolution = resolve([Decimal(9, 3)], "(x DECIMAL) -> DECIMAL", returns=lambda args: args[0])
    assert resolution.finish()[1] == Decimal(9, 3)


def test_a_name_is_taken_once():
    with pytest.raises(StatementError, match="Function already registered: F"):
        Registry([function("F", "() -> STRING"), function("F", "() -> STRING")])
