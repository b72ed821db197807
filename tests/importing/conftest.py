"""One broker for all tests here that need one."""

from broker_fixtures import *  # noqa: F403
