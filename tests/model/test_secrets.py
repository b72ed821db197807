"""What is secret is hidden, and what is not is shown."""

import pytest

from headrace.model.errors import StatementError
from headrace.model.secrets import HIDDEN, sounds_secret, without_login
from headrace.model.settings import SETTINGS, check_editable, is_secret, shown

SECRET = [
    "spark.hadoop.fs.s3a.session.token",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.access.key",
    "spark.hadoop.fs.azure.account.key.me.blob.core.windows.net",
    "spark.hadoop.fs.azure.account.oauth2.client.secret",
    "ssl.keystore.key",
    "ssl.key.pem",
    "ssl.key.password",
    "ssl.keystore.password",
    "ssl.truststore.password",
    "sasl.jaas.config",
    "ksql.streams.sasl.jaas.config",
    "ksql.streams.producer.sasl.jaas.config",
    "ksql.streams.consumer.ssl.keystore.key",
    "sasl.password",
    "sasl.oauthbearer.client.secret",
    "ksql.schema.registry.basic.auth.user.info",
    "listeners.ssl.key.password",
    "spark.authenticate.secret",
    "spark.ssl.keyPassword",
    "SSL.KEY.PASSWORD",
    "value.converter.basic.auth.user.info",
    "connection.password",
    "some.api_key",
    "private.stuff",
]
HARMLESS = [
    "key.format",
    "key.converter",
    "key.serializer",
    "key.deserializer",
    "ksql.streams.producer.key.serializer",
    "ksql.persistence.default.format.key",
    "ksql.persistence.wrap.single.keys",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.truststore.location",
    "sasl.mechanism",
    "sasl.oauthbearer.token.endpoint.url",
    "spark.hadoop.fs.s3a.aws.credentials.provider",
    "authentication.credentials.file",
    "listeners.ssl.key",
    "bootstrap.servers",
    "ksql.service.id",
]


@pytest.mark.parametrize("name", SECRET)
def test_secret(name):
    assert is_secret(name)
    assert shown(name, "hunter2") == HIDDEN
    assert shown(name, "") == ""


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless(name):
    assert not is_secret(name)
    assert shown(name, "value") == "value"


def test_whoever_declares_a_setting_says_whether_it_is_secret():
    """Declared ones that sound secret and are not: each was thought about."""
    sounding = {name for name, s in SETTINGS.items() if sounds_secret(name) and not s.secret}
    assert sounding == {
        "ksql.persistence.default.format.key",
        "ksql.persistence.wrap.single.keys",
        "ksql.ssl.keystore.alias.external",
        "ksql.ssl.keystore.alias.internal",
        "ksql.streams.default.key.serde",
        "listeners.ssl.key",
        "ssl.keystore.reload",
    }


@pytest.mark.parametrize("name", ["sasl.jaas.config", "ksql.streams.ssl.keystore.key"])
def test_a_secret_cannot_be_set_by_a_statement(name):
    with pytest.raises(StatementError, match=r"it is a secret.*the server's own settings"):
        check_editable(name)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://a:8081", "http://a:8081"),
        ("http://me:hunter2@a:8081/x", "http://[hidden]@a:8081/x"),
        ("http://me:p@ss@a", "http://[hidden]@a"),
        ("http://a,http://b:c@d", "http://a,http://[hidden]@d"),
        ("http://[me@x", HIDDEN),
        ("me@example.com", "me@example.com"),
    ],
)
def test_addresses_without_logins(url, told):
    assert without_login(url) == told
