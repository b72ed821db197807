"""Java's time patterns in Python: letters, leniency, years beyond Python's own. Needs no JVM."""

import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.functions.scalar.time.formatting import Moment, at, writer
from headrace.functions.scalar.time.parsing import numeric_pattern, parse, parse_simple_date
from headrace.functions.scalar.time.patterns import (
    date_of,
    days_of,
    elements,
)
from headrace.functions.scalar.time.zones import zone, zone_of_text
from headrace.model.types import MILLIS_PER_DAY

MOMENT = 1_605_927_509_166  # 2020-11-21T02:58:29.166Z, a Saturday


@pytest.mark.parametrize(
    ("pattern", "where", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "UTC", "2020-11-21T02:58:29.166Z"),
        ("yyyy-MM-dd HH:mm:ss zzz", "America/Los_Angeles", "2020-11-20 18:58:29 PST"),
        ("u y yy yyyyy G", "UTC", "2020 2020 20 02020 AD"),
        ("M MM MMM MMMM MMMMM L", "UTC", "11 11 Nov November N 11"),
        ("d D DDD E EEEE EEEEE e c", "UTC", "21 326 326 Sat Saturday S 7 7"),
        ("Q QQQ QQQQ w W YYYY F", "UTC", "4 Q4 4th quarter 47 3 2020 3"),
        ("h K k H a", "UTC", "2 2 2 2 AM"),
        ("S SSSSSS n A N", "UTC", "1 166000 166000000 10709166 10709166000000"),
        (
            "X XX XXX x xx xxx Z ZZZZ ZZZZZ",
            "+05:30",
            "+0530 +0530 +05:30 +0530 +0530 +05:30 +0530 GMT+05:30 +05:30",
        ),
        ("X x Z O OOOO VV", "UTC", "Z +00 +0000 GMT GMT UTC"),
        ("O OOOO", "-08:00", "GMT-8 GMT-08:00"),
        ("[yyyy]'o''clock'''", "UTC", "2020o'clock'"),
    ],
)
def test_writes(pattern, where, text):
    assert writer(pattern)(at(MOMENT, zone(where))) == text


def test_writes_years_beyond_four_digits_with_a_sign():
    assert writer("yyyy")(Moment(days_of(12021, 1, 1), None)) == "+12021"
    assert writer("uuuu y G")(Moment(days_of(-1, 1, 1), None)) == "-0001 2 BC"


def test_leaves_out_optional_sections_that_cannot_be_written():
    assert writer("yyyy[ HH]")(Moment(0, None)) == "1970"
    with pytest.raises(ValueError, match="Unsupported field: HourOfDay"):
        writer("HH")(Moment(0, None))


@pytest.mark.parametrize(
    ("pattern", "text", "millis"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2020-11-21T02:58:29.166Z", MOMENT),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2020-11-21T04:58:29.166+02", MOMENT),
        ("yyyyMMddHHmmssSSS", "20201121025829166", MOMENT),
        ("d/M/yy h:mm a", "1/2/21 1:05 pm", 1612184700000),
        ("dd MMMM yyyy", "01 january 1970", 0),
        ("yyyy-MM-dd", "2021-02-30", 1614470400000),
        ("yyyy", "2021", 1609459200000),
        ("MM-dd", "02-03", 33 * MILLIS_PER_DAY),
        ("HH:mm", "24:00", 0),
        ("yyyy-DDD", "2020-366", 1609372800000),
        ("yyyy-MM-dd[ HH:mm]", "1970-01-02", MILLIS_PER_DAY),
        ("yyyy-MM-dd[ HH:mm]", "1970-01-02 01:00", MILLIS_PER_DAY + 3_600_000),
        ("yyyy-MM-dd HH:mm zzz", "1970-01-01 00:00 PST", 8 * 3_600_000),
        ("yyyy-MM-dd HH:mm VV", "1970-01-01 01:00 Europe/Paris", 0),
        ("yyyy-MM-dd", "+12021-01-01", days_of(12021, 1, 1) * MILLIS_PER_DAY),
        ("EEE, d MMM yyyy", "Thu, 1 Jan 1970", 0),
    ],
)
def test_parses(pattern, text, millis):
    assert parse(pattern, text).instant(zone("UTC")) == millis


@pytest.mark.parametrize(
    ("pattern", "text", "reason"),
    [
        ("yyyy", "21", "Text '21' could not be parsed"),
        ("yyyy", "12021", "could not be parsed"),
        ("yyyy-MM-dd", "2021-13-01", "Invalid value for MonthOfYear"),
        ("yyyy-MM-dd", "2021-01-01x", "could not be parsed"),
        ("HH:mm", "24:01", "Invalid value for HourOfDay"),
        ("DDD", "366", "Leap day cannot be parsed without supplying the year field"),
        ("EEE d M yyyy", "Fri 1 1 1970", "Conflict found"),
        ("o", "1", "Unknown pattern letter: o"),
        ("yyyy'", "1", "incomplete string literal"),
        ("yyyy]", "1", "without previous"),
        ("{", "1", "reserved character"),
        ("HHH", "1", "Too many pattern letters: H"),
    ],
)
def test_says_why_not(pattern, text, reason):
    with pytest.raises(ValueError, match=reason):
        parse(pattern, text).instant(zone("UTC"))


@pytest.mark.parametrize(
    ("pattern", "text", "days"),
    [
        ("yyyy-MM-dd", "2021-05-18", 18765),
        ("yyyyMMdd", "20210518", 18765),
        ("yyyy-MM-dd", "2021-02-30 and more", 18688),
        ("dd/MMM/yyyy", "18/MAY/2021", 18765),
        ("d.M.yy", "18.5.21", 18765),
        ("yyyy-MM-dd HH:mm", "2021-05-17 24:00", 18765),
        ("yyyy-MM-dd'T'HH:mmX", "2021-05-18T01:00+01", 18765),
    ],
)
def test_parses_dates_leniently(pattern, text, days):
    assert parse_simple_date(pattern, text) == days


def test_a_date_has_no_time():
    with pytest.raises(ValueError, match=r"Date format contains time field\."):
        parse_simple_date("yyyy HH", "2021 01")


@given(st.integers(-10_000_000, 10_000_000))
def test_the_calendar_is_its_own_inverse(days):
    assert days_of(*date_of(days)) == days


@given(st.dates())
def test_the_calendar_is_the_calendar(date):
    assert days_of(date.year, date.month, date.day) == (date - datetime.date(1970, 1, 1)).days


@given(
    st.integers(-(10**14), 10**14),
    st.sampled_from(["uuuu-MM-dd HH:mm:ss.SSSXXX", "D uuuu k:m:s SSS ZZZZZ", "A uuuuMMdd VV"]),
    st.sampled_from(["UTC", "+05:30", "-11:00"]),
)
def test_what_is_written_is_read_back(millis, pattern, where):
    text = writer(pattern)(at(millis, zone(where)))
    assert parse(pattern, text).instant(zone("UTC")) == millis


def test_reads_a_pattern_once():
    assert elements("yyyy") is elements("yyyy")


@pytest.mark.parametrize("name", ["PST", "EST", "Mars/Olympus", "", "+19:00", "GMT+x", "é"])
def test_unknown_zones(name):
    with pytest.raises(ValueError):
        zone(name)


def test_short_names_are_only_for_texts():
    assert zone_of_text("pdt").id == "America/Los_Angeles"
    assert zone("America/Los_Angeles").offset(MOMENT) == -8 * 3600
    assert zone("UTC+02:00").fixed == 7200


FIGURES = st.integers(0, 70).map(lambda n: f"{n:02d}")
PATTERNS = {
    "yyyy-MM-dd": "{}-{}-{}",
    "yyyy-MM-dd HH:mm:ss": "{}-{}-{} {}:{}:{}",
    "yyyy-MM-dd'T'HH:mm:ss.SSS": "{}-{}-{}T{}:{}:{}.250",
    "ss.mm.HH dd/MM/yyyy": "{5}.{4}.{3} {2}/{1}/{0}",
}
YEARS = st.sampled_from(["0000", "0001", "1582", "1970", "2020", "2023", "9999", "-001", "+12020"])


@st.composite
def spelled(draw):
    pattern = draw(st.sampled_from(list(PATTERNS)))
    month, day = (draw(st.integers(0, n).map(lambda n: f"{n:02d}")) for n in (13, 32))
    clock = [draw(FIGURES) for _ in range(3)]
    return pattern, PATTERNS[pattern].format(draw(YEARS), month, day, *clock)


@given(spelled())
def test_numeric_patterns_are_read_as_by_the_parser_of_all_texts(case):
    pattern, text = case
    read = numeric_pattern(pattern).read(text)
    if read is not None:
        assert read == parse(pattern, text).instant(zone("UTC"))


def test_numeric_patterns_are_only_those_of_figures():
    for pattern in ("yy-MM-dd", "yyyy-MMM-dd", "yyyy-MM", "[yyyy-]MM-dd", "HH:ss", "yyyy-MM-dd X"):
        assert numeric_pattern(pattern) is None
    assert not numeric_pattern("HH:mm").dated
    assert not numeric_pattern("yyyy-MM-dd").timed


@given(
    st.sampled_from(["America/Los_Angeles", "Australia/Lord_Howe", "Africa/Monrovia", "Asia/Gaza"]),
    st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2037, 1, 1)),
)
def test_steady_offsets_are_the_offsets_of_the_region(name, moment):
    utc = moment.replace(microsecond=0, tzinfo=datetime.UTC)
    millis = int(utc.timestamp()) * 1000
    offset = utc.astimezone(ZoneInfo(name)).utcoffset()
    assert zone(name).offset(millis) == offset.total_seconds()
    wall = moment.replace(microsecond=0, tzinfo=ZoneInfo(name))
    assert zone(name).to_utc(millis) == millis - wall.utcoffset().total_seconds() * 1000


def test_days_when_clocks_change_have_both_offsets():
    change = 1_604_221_200_000  # 2020-11-01T09:00Z, in Los Angeles
    there = zone("America/Los_Angeles")
    assert [there.offset(change - 1), there.offset(change)] == [-7 * 3600, -8 * 3600]
