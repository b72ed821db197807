from headrace.spark.hope import Hope, HopeLostError, must_be_small

PLAN = """
=== Streaming Query ===
Logical Plan: … raise_error(HopeLostError: a record cannot be read in Spark's own way) …"""
UNREADABLE = "[USER_RAISED_EXCEPTION] HopeLostError: a record cannot be read in Spark's own way"


class Large:
    nbytes = 2**30


def test_a_query_loses_the_hope_that_failed_and_no_other():
    large = ""
    try:
        must_be_small(Large())
    except HopeLostError as e:
        large = f"PythonException: Traceback …\nheadrace.spark.hope.HopeLostError: {e}"
    assert Hope().after(Exception(UNREADABLE + PLAN)) == Hope(plain=False, small=True)
    assert Hope().after(Exception(large + PLAN)) == Hope(plain=True, small=False)


def test_a_failure_of_another_kind_is_no_lost_hope_though_the_plan_speaks_of_it():
    assert Hope().after(Exception("the broker is gone" + PLAN)) == Hope()
