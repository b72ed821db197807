"""Which names denote secrets: the one list for answers, logs, topics and child processes.

A name that nobody has thought of is secret if it sounds so. It is better to hide the name of a
class than to show a password.
"""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

HIDDEN = "[hidden]"

_WORDS = (
    *("password", "passphrase", "passwd", "secret", "token", "jaas", "credential"),
    *("private", "user.info", "userinfo", "key"),
)
# Where something is kept, of what kind it is, or who brings it: not the thing itself.
_HARMLESS_ENDS = (
    *(".location", ".type", ".algorithm", ".class", ".classes", ".enable", ".enabled", ".file"),
    *(".path", ".provider", ".providers", ".url", ".ms", ".seconds", ".strategy", ".source"),
)
# Names with `key` that are about records' keys.
_HARMLESS = frozenset(
    {
        "key.format",
        "key.converter",
        "key.serializer",
        "key.deserializer",
        "key.ignore",
        "key.columns",
        "message.key.columns",
        "partition.key.columns",
    }
)
_PREFIXES = ("ksql.streams.", "producer.", "consumer.", "admin.", "spark.")


def sounds_secret(name: str) -> bool:
    """Whether a setting of that name, of whatever program, may hold a secret."""
    bare = name.strip().lower()
    for prefix in _PREFIXES:
        bare = bare.removeprefix(prefix)
    if bare in _HARMLESS or bare.endswith(_HARMLESS_ENDS):
        return False
    return any(word in bare for word in _WORDS)


def without_login(text: str) -> str:
    """An address, or several with commas between them, without a user's name and password."""
    if "@" not in text or "://" not in text:
        return text
    return ",".join(map(_without_login, text.split(",")))


def _without_login(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:
        return HIDDEN
    if "@" not in parts.netloc:
        return text
    return urlunsplit(parts._replace(netloc=f"{HIDDEN}@{parts.netloc.rpartition('@')[2]}"))
