"""JAAS strings are read as Java reads them, or refused in a sentence that repeats no secret."""

from __future__ import annotations

import pytest

from headrace.kafka.jaas import read_login
from headrace.model.errors import HeadraceError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("required;", {}),
        ('required username="ann" password="x";', {"username": "ann", "password": "x"}),
        (
            "required username='ann' password=plain-1_$;",
            {"username": "ann", "password": "plain-1_$"},
        ),
        ('  REQUIRED\n\tusername = "ann"\n  ;\n', {"username": "ann"}),
        (r'required password="a\"b; c=d \\ \101\n";', {"password": 'a"b; c=d \\ A\n'}),
        ("""required password='say "it"';""", {"password": 'say "it"'}),
        ('required password="";', {"password": ""}),
        ('optional a="//no" /* comment; */ b="2"; // the end', {"a": "//no", "b": "2"}),
        ('required ssl.truststore.location="/a b/c";', {"ssl.truststore.location": "/a b/c"}),
    ],
)
def test_options(text: str, options: dict[str, str]) -> None:
    login = read_login(f"{PLAIN} {text}")
    assert login.options == options
    assert (login.class_name, login.module) == (PLAIN, "PlainLoginModule")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begin with the class of a login module"),
        ('"hunter2" required;', "begin with the class"),
        ("password='hunter2' required;", "there has to be 'required'"),
        (f'{PLAIN} password="hunter2";', "there has to be 'required'"),
        (f"{PLAIN} required password='hunter2'", "end with a semicolon"),
        (f'{PLAIN} required password="hunter2;', r"a quote is not closed \(at character 75\)"),
        (f"{PLAIN} required password=hunter2!;", "needs double quotes"),
        (f'{PLAIN} required password "hunter2";', r"no name=\"value\" \(at character 66\)"),
        (f"{PLAIN} required password=;", "no name="),
        (f"{PLAIN} required ='hunter2';", "no name="),
        (f"{PLAIN} required; {PLAIN} required;", "more than one login module"),
    ],
)
def test_what_cannot_be_read(text: str, reason: str) -> None:
    with pytest.raises(HeadraceError, match=reason) as caught:
        read_login(text)
    assert "hunter2" not in caught.value.message
    assert caught.value.message.startswith("sasl.jaas.config cannot be read: ")
