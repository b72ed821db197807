"""Logins to Kafka (SASL): from the Java client's settings to librdkafka's, and what the Java client
in Spark has to be told besides.

What one of both cannot do is refused here, since each query needs both: PLAIN, SCRAM and
OAUTHBEARER (client credentials, unsecured tokens) work in both.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.kafka.jaas import Login, read_login
from headrace.kafka.key_stores import trusted
from headrace.model.errors import HeadraceError

Settings = Mapping[str, str]

_JAAS = "sasl.jaas.config"
_HANDLER = "sasl.login.callback.handler.class"
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
# Kafka 4.1's own settings for what is an option of the login module before.
_CREDENTIALS = {
    "clientId": "sasl.oauthbearer.client.credentials.client.id",
    "clientSecret": "sasl.oauthbearer.client.credentials.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
# What this module reads.
NAMES = frozenset({_JAAS, _HANDLER, _ENDPOINT, _RETRIEVER, *_CREDENTIALS.values()})

_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_OAUTH_HANDLER = f"{_OAUTH}.OAuthBearerLoginCallbackHandler"
# Java classes that do what librdkafka does too; the second is older Kafka's name of the first.
_KNOWN_HANDLERS = frozenset(
    {
        _OAUTH_HANDLER,
        f"{_OAUTH}.secured.OAuthBearerLoginCallbackHandler",
        f"{_OAUTH}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
    }
)
_KNOWN_RETRIEVERS = frozenset(
    {f"{_OAUTH}.DefaultJwtRetriever", f"{_OAUTH}.ClientCredentialsJwtRetriever"}
)
_LOGIN_MODULES = (
    *("PlainLoginModule", "ScramLoginModule", "OAuthBearerLoginModule", "Krb5LoginModule"),
)
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
_STRING_CLAIM, _EXTENSION = "unsecuredLoginStringClaim_", "extension_"
_UNSECURED_EXTENSION = "unsecuredLoginExtension_"


def for_librdkafka(settings: Settings) -> dict[str, str]:
    """The login in librdkafka's names; raises if it is none that works everywhere."""
    _check(settings)
    if _JAAS not in settings:
        return {}
    login = read_login(settings[_JAAS])
    match login.module:
        case "PlainLoginModule" | "ScramLoginModule":
            return _user(login)
        case "OAuthBearerLoginModule":
            return _oauth(login, settings)
        case "Krb5LoginModule":
            names = {"keyTab": "sasl.kerberos.keytab", "principal": "sasl.kerberos.principal"}
            return {new: login.options[old] for old, new in names.items() if old in login.options}
    raise HeadraceError(
        f"sasl.jaas.config names the login module {login.class_name}, which this client does not "
        f"know; it knows {', '.join(_LOGIN_MODULES)}."
    )


def for_java(settings: Settings) -> dict[str, str]:
    """What Spark's Kafka client needs instead of, or besides, the user's own settings."""
    if _JAAS not in settings or not _takes_tokens(read_login(settings[_JAAS])):
        return {}
    return {
        _HANDLER: settings.get(_HANDLER, _OAUTH_HANDLER),
        _JAAS: _with_credentials(settings),
    }


def user_of(settings: Settings) -> tuple[str, str] | None:
    """User and password of a login by those; None if it is another kind of login."""
    found = _user(read_login(settings[_JAAS])) if _JAAS in settings else {}
    return (found["sasl.username"], found["sasl.password"]) if found else None


def client_of(settings: Settings) -> dict[str, str]:
    """What tokens are asked for with: `clientId`, `clientSecret`, `scope`."""
    login = read_login(settings[_JAAS]) if _JAAS in settings else Login("", {})
    given = {old: settings.get(new) or login.options.get(old) for old, new in _CREDENTIALS.items()}
    return {name: value for name, value in given.items() if value}


def _check(settings: Settings) -> None:
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms")
    if mechanism is not None and mechanism not in _MECHANISMS:
        raise HeadraceError(
            f"sasl.mechanism {mechanism} cannot be used: this client knows "
            f"{', '.join(_MECHANISMS)}."
        )
    protocol = settings.get("security.protocol", "").upper()
    if protocol.startswith("SASL_"):
        if mechanism is None:
            raise HeadraceError(
                f"security.protocol is {protocol}, but sasl.mechanism is not set: set it to "
                "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."
            )
        if _JAAS not in settings and "sasl.username" not in settings and mechanism != "GSSAPI":
            raise HeadraceError(
                f"security.protocol is {protocol}, but there is no login: set sasl.jaas.config (a "
                "file named by java.security.auth.login.config is not read)."
            )
    for name, known in ((_HANDLER, _KNOWN_HANDLERS), (_RETRIEVER, _KNOWN_RETRIEVERS)):
        if (told := settings.get(name)) is not None and told not in known:
            raise HeadraceError(
                f"{name} {told} is a Java class, which cannot log in for clients that are not "
                "Java's: for OAUTHBEARER use the client credentials of a token endpoint "
                f"({_ENDPOINT}, and clientId and clientSecret in sasl.jaas.config)."
            )
    url = settings.get(_ENDPOINT, "")
    if url and not url.startswith(("http://", "https://")):
        raise HeadraceError(
            f"{_ENDPOINT} {url} is no http or https address: a token from a file cannot be used, "
            "since librdkafka has no way to read it again when it expires."
        )


def _user(login: Login) -> dict[str, str]:
    if login.module not in ("PlainLoginModule", "ScramLoginModule"):
        return {}
    missing = [name for name in ("username", "password") if name not in login.options]
    if missing:
        raise HeadraceError(f"sasl.jaas.config: {login.module} needs {' and '.join(missing)}.")
    if login.options.get("tokenauth", "").lower() == "true":
        raise HeadraceError(
            "sasl.jaas.config: librdkafka cannot log in with a delegation token (tokenauth): use "
            "a user's name and password."
        )
    return {
        "sasl.username": login.options["username"],
        "sasl.password": login.options["password"],
    }


def _takes_tokens(login: Login) -> bool:
    """Whether it asks an endpoint for tokens, and does not make them itself."""
    unsecured = any(name.startswith("unsecuredLogin") for name in login.options)
    return login.module == "OAuthBearerLoginModule" and not unsecured


def _oauth(login: Login, settings: Settings) -> dict[str, str]:
    if not _takes_tokens(login):
        return _unsecured(login)
    client = client_of(settings)
    missing = [
        *([] if settings.get(_ENDPOINT) else [_ENDPOINT]),
        *(name for name in ("clientId", "clientSecret") if name not in client),
    ]
    if missing:
        raise HeadraceError(
            f"OAUTHBEARER needs {' and '.join(missing)}: {_ENDPOINT} is a setting, clientId and "
            "clientSecret are options of OAuthBearerLoginModule in sasl.jaas.config."
        )
    values = {
        "sasl.oauthbearer.method": "oidc",
        _ENDPOINT: settings[_ENDPOINT],
        "sasl.oauthbearer.client.id": client["clientId"],
        "sasl.oauthbearer.client.secret": client["clientSecret"],
    }
    if "scope" in client:
        values["sasl.oauthbearer.scope"] = client["scope"]
    if extensions := _options_after(login, _EXTENSION):
        told = ",".join(f"{name}={value}" for name, value in extensions.items())
        values["sasl.oauthbearer.extensions"] = told
    # The token endpoint's certificate: the login module has TLS settings of its own.
    if any(name.startswith("ssl.keystore.") for name in login.options):
        raise HeadraceError(
            "sasl.jaas.config: librdkafka cannot show a client certificate (ssl.keystore.…) to "
            "the token endpoint."
        )
    if authorities := trusted(login.options):
        values["https.ca.pem"] = authorities
    return values


def _unsecured(login: Login) -> dict[str, str]:
    """Tokens without a signature, for tests: librdkafka makes those too, of fewer claims."""
    options = login.options
    known = {f"{_STRING_CLAIM}sub", f"{_STRING_CLAIM}scope", "unsecuredLoginLifetimeSeconds"}
    unknown = {
        name
        for name in options
        if name.startswith("unsecuredLogin")
        and name not in known
        and not name.startswith(_UNSECURED_EXTENSION)
    }
    if unknown or f"{_STRING_CLAIM}sub" not in options:
        told = f"{min(unknown)} cannot be used" if unknown else "there is no claim sub"
        raise HeadraceError(
            f"sasl.jaas.config: {told}; librdkafka makes unsecured tokens of {_STRING_CLAIM}sub, "
            f"{_STRING_CLAIM}scope and unsecuredLoginLifetimeSeconds."
        )
    config = {"principal": options[f"{_STRING_CLAIM}sub"]}
    if scope := options.get(f"{_STRING_CLAIM}scope"):
        config["scope"] = scope
    config["lifeSeconds"] = options.get("unsecuredLoginLifetimeSeconds", "3600")
    for name, value in _options_after(login, _UNSECURED_EXTENSION).items():
        config[f"extension_{name}"] = value
    return {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": " ".join(f"{name}={value}" for name, value in config.items()),
    }


def _options_after(login: Login, prefix: str) -> dict[str, str]:
    return {
        name.removeprefix(prefix): value
        for name, value in login.options.items()
        if name.startswith(prefix)
    }


def _with_credentials(settings: Settings) -> str:
    """The login with Kafka 4.1's settings as options: Spark's client is older."""
    text = settings[_JAAS].strip()
    missing = {
        name: settings[setting]
        for name, setting in _CREDENTIALS.items()
        if setting in settings and name not in read_login(text).options
    }
    quoted = "".join(f" {name}={_quoted(value)}" for name, value in missing.items())
    return f"{text.removesuffix(';').rstrip()}{quoted};"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
