"""Which assumption of an optimistic plan a query's failure breaks."""

import pytest
from pyspark.errors import PySparkException

from headrace.spark.rows.optimistic import (
    OPTIMISTIC,
    OptimisticDecoding,
    OptimisticDecodingError,
    require_small,
)

NEEDS_PYTHON = "OptimisticDecodingError: HEADRACE_RECORD_NEEDS_PYTHON"


class Captured(PySparkException):
    """A Java exception as PySpark shows it; `parameters` are those of its error condition."""

    def __init__(self, cause=None, text="", **parameters):
        super().__init__(message=text)
        self._cause, self._parameters = cause, parameters

    def getMessageParameters(self):
        return self._parameters or None


class Large:
    nbytes = 2**30


def failed(cause):
    """A query's failure: the plan in it names what it might have failed for."""
    plan = f"Logical Plan: … raise_error({NEEDS_PYTHON}) …"
    return Captured(Captured(cause), message="", queryDebugString=plan)


def test_a_record_that_needs_python_ends_native_decoding_alone():
    failure = failed(Captured(errorMessage=NEEDS_PYTHON))
    assert OPTIMISTIC.after(failure) == OptimisticDecoding(native=False, small_rows=True)


def test_large_rows_end_their_assumption_alone():
    with pytest.raises(OptimisticDecodingError) as large:
        require_small(Large())
    traceback = f"Traceback …\nheadrace.spark.rows.optimistic.{large.typename}: {large.value}"
    failure = failed(Captured(msg="", traceback=traceback))
    assert OPTIMISTIC.after(failure) == OptimisticDecoding(native=True, small_rows=False)


def test_a_failure_in_foreach_batch_has_no_condition_but_its_text():
    text = "Py4JException: An exception was raised by the Python Proxy. … HEADRACE_LARGE_ROWS"
    assert not OPTIMISTIC.after(failed(Captured(text=text))).small_rows


def test_a_failure_of_another_kind_breaks_no_assumption_though_the_plan_speaks_of_it():
    assert OPTIMISTIC.after(failed(Captured(msg="the broker is gone"))) == OPTIMISTIC
    assert OPTIMISTIC.after(Exception("the broker is gone")) == OPTIMISTIC
