"""Function declarations: one object per function, from which planning, docs and tests are fed.

A module of this package declares its functions in a tuple `FUNCTIONS`; the registry finds it there.

    FUNCTIONS = (
        scalar(
            "LEN",
            "The number of characters of a string, or of bytes.",
            overload("(input STRING) -> INTEGER", F.length),
            overload("(input BYTES) -> INTEGER", F.octet_length),
            category=Category.STRING,
            examples=(call("stream", gives=6),),
        ),
    )

Forms make Spark columns from Spark columns and are called only when a query is lowered, so that
declaring and choosing functions never needs a JVM.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.declare.signatures import Signature, parse_signature
from headrace.model.aggregation import Steps
from headrace.model.fallible import Fallible
from headrace.model.types import SqlType


class FunctionKind(Enum):
    SCALAR = "SCALAR"
    AGGREGATE = "AGGREGATE"
    TABLE = "TABLE"


class Category(Enum):
    """What `SHOW FUNCTIONS` and the documentation group by; ksqlDB's own names."""

    CONDITIONAL = "CONDITIONAL"
    MATHEMATICAL = "MATHEMATICAL"
    STRING = "STRING"
    REGULAR_EXPRESSION = "REGULAR EXPRESSION"
    JSON = "JSON"
    DATE_TIME = "DATE / TIME"
    ARRAY = "ARRAY"
    MAP = "MAP"
    URL = "URL"
    OTHER = "OTHER"
    AGGREGATE = "AGGREGATE"
    TABLE = "TABLE"
    LAMBDA = "LAMBDA"
    CONVERSIONS = "CONVERSIONS"


@dataclass(frozen=True)
class CallContext:
    """What an implementation may know of a call besides its argument columns.

    `arg_literals` holds the value of each argument that is a constant, None for the others.
    `settings` are the `ksql.functions.*` properties in force.
    """

    arg_types: tuple[SqlType, ...]
    return_type: SqlType
    arg_literals: Sequence[object] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    def literal(self, index: int) -> object:
        return self.arg_literals[index] if index < len(self.arg_literals) else None


# A Spark form takes one Column for each argument (for a lambda: a Python callable from Columns to
# a Column or Fallible), and `context=` if it has a parameter of that name.
SparkForm = Callable[..., "Column | Fallible"]
ReturnRule = Callable[[Sequence[SqlType]], SqlType]


StepsFactory = Callable[[CallContext], Steps]
NativeForm = Callable[..., "Column | None"]


@dataclass(frozen=True)
class Overload:
    """One way to call a function.

    `returns` computes the return type from the arguments' where the signature cannot say it.
    `of_record` is the form of a call that answers differently each time, for where it must not: it
    takes a text that tells a record from all others.
    """

    signature: Signature
    form: SparkForm | None = None
    returns: ReturnRule | None = None
    description: str = ""
    of_record: Callable[[Column], Column] | None = None
    steps: StepsFactory | None = None
    native_form: NativeForm | None = None
    undoes: bool = False

    def spark(
        self, args: Sequence[Column | Callable[..., object]], context: CallContext
    ) -> Column | Fallible:
        """The call as a Spark column; for a table function the column is an array of its rows."""
        if self.form is None:
            raise TypeError("an aggregate has no scalar form")
        result = self.form(*args, **_context_for(self.form, context))
        return self._without_missing(result, args, context)

    def _without_missing(
        self,
        result: Column | Fallible,
        args: Sequence[Column | Callable[..., object]],
        context: CallContext,
    ) -> Column | Fallible:
        """A null where the signature requires a value is a failure of the call."""
        parameters = self.signature.spread(len(args)) or ()
        missing: Column | None = None
        for index, (parameter, arg) in enumerate(zip(parameters, args, strict=True)):
            if parameter.required and context.literal(index) is None:
                assert isinstance(arg, Column)
                text = F.lit(f"Argument '{parameter.name}' cannot be null")
                here = F.when(arg.isNull(), text)
                missing = here if missing is None else F.coalesce(missing, here)
        if missing is None:
            return result
        value = result.value if isinstance(result, Fallible) else result
        error = result.error if isinstance(result, Fallible) else None
        return Fallible(
            F.when(missing.isNull(), value),
            missing if error is None else F.coalesce(missing, error),
        )

    def step(self, context: CallContext) -> Steps:
        """The aggregate as Python steps."""
        if self.steps is None:
            raise TypeError("only an aggregate has steps")
        return self.steps(context)

    def native(self, args: Sequence[Column], context: CallContext) -> Column | None:
        """The aggregate as a Spark aggregate column, if Spark has one with the same results."""
        if self.native_form is None:
            return None
        return self.native_form(*args, **_context_for(self.native_form, context))


@dataclass(frozen=True)
class Example:
    """A call with its result. Values are Python's; `Typed` and `Lambda` say what Python cannot."""

    args: tuple[object, ...]
    gives: object
    fails: bool = False
    varies: bool = False


@dataclass(frozen=True)
class Typed:
    """A value with another SQL type than its Python type suggests."""

    value: object
    type: str


@dataclass(frozen=True)
class LambdaArgument:
    """A lambda in an example: as SQL text, as a function of columns, and the type it gives."""

    text: str
    function: Callable[..., object]
    gives: SqlType


@dataclass(frozen=True)
class Function:
    name: str
    kind: FunctionKind
    description: str
    overloads: tuple[Overload, ...]
    category: Category
    examples: tuple[Example, ...] = ()
    author: str = "Confluent"
    version: str = ""
    path: str = "internal"
    simple_state: bool = False  # of an aggregate: ksqlDB keeps its state in one primitive value

    def find(self, signature: str) -> Overload | None:
        return next(
            (o for o in self.overloads if o.signature.identity(self.name) == signature), None
        )


def overload(
    signature: str,
    form: SparkForm,
    *,
    returns: ReturnRule | None = None,
    description: str = "",
    parameters: Mapping[str, str] | None = None,
    of_record: Callable[[Column], Column] | None = None,
) -> Overload:
    """One way to call a scalar or table function. `parameters` describes them by name."""
    return Overload(_described(signature, parameters), form, returns, description, of_record)


def aggregate_overload(
    signature: str,
    steps: StepsFactory,
    *,
    native: NativeForm | None = None,
    undoes: bool | None = None,
    returns: ReturnRule | None = None,
    description: str = "",
    parameters: Mapping[str, str] | None = None,
) -> Overload:
    """One way to call an aggregate. `undoes` is taken from the steps where it is not said."""
    return Overload(
        _described(signature, parameters),
        returns=returns,
        description=description,
        steps=steps,
        native_form=native,
        undoes=getattr(steps, "undo", None) is not None if undoes is None else undoes,
    )


def scalar(
    name: str,
    description: str,
    *overloads: Overload,
    category: Category,
    examples: Sequence[Example] = (),
) -> Function:
    return Function(
        name, FunctionKind.SCALAR, description, overloads, category, examples=tuple(examples)
    )


def aggregate(
    name: str,
    description: str,
    *overloads: Overload,
    simple_state: bool = False,
    examples: Sequence[Example] = (),
) -> Function:
    """In the examples of an aggregate each argument is the list of the rows' values."""
    return Function(
        name,
        FunctionKind.AGGREGATE,
        description,
        overloads,
        Category.AGGREGATE,
        examples=tuple(examples),
        simple_state=simple_state,
    )


def table(
    name: str, description: str, *overloads: Overload, examples: Sequence[Example] = ()
) -> Function:
    """An example of a table function gives the list of its rows."""
    return Function(
        name, FunctionKind.TABLE, description, overloads, Category.TABLE, examples=tuple(examples)
    )


def call(*args: object, gives: object) -> Example:
    return Example(args, gives)


def failing(*args: object, error: str) -> Example:
    """A call that fails with this text: null, and an entry in the processing log."""
    return Example(args, error, fails=True)


def varying(*args: object) -> Example:
    """An example whose result is not deterministic."""
    return Example(args, None, varies=True)


def _described(text: str, descriptions: Mapping[str, str] | None) -> Signature:
    signature = parse_signature(text)
    if not descriptions:
        return signature
    parameters = (
        replace(p, description=descriptions.get(p.name, "")) for p in signature.parameters
    )
    return replace(signature, parameters=tuple(parameters))


def _context_for(form: Callable[..., object], context: CallContext) -> dict[str, CallContext]:
    wants = "context" in inspect.signature(form).parameters
    return {"context": context} if wants else {}


__all__ = [
    "CallContext",
    "Category",
    "Example",
    "Fallible",
    "Function",
    "FunctionKind",
    "LambdaArgument",
    "NativeForm",
    "Overload",
    "ReturnRule",
    "SparkForm",
    "Steps",
    "StepsFactory",
    "Typed",
    "aggregate",
    "aggregate_overload",
    "call",
    "failing",
    "overload",
    "scalar",
    "table",
    "varying",
]
