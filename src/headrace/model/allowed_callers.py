"""Which web origins may call an HTTP port, and by which host names it may be called.

A browser sends requests for any page its user visits, also to servers on the user's own machine.
It says in Origin whose page it was, and in Host which name the page called. A name can be made to
mean any address by whoever owns it (DNS rebinding), so that a page of that name would pass for the
server's own: only names that are known to be the server's are answered. Programs that are not
browsers send no Origin, and the name they were told.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

ANY = "*"
ALLOWED_HOSTS = "ksql.server.allowed.hosts"
# What a form of any page can send without the browser asking the server first, and no program
# says of JSON unless it is told to.
FORM_TYPES = frozenset({"text/plain", "multipart/form-data"})


@dataclass(frozen=True)
class Callers:
    """Who may call a port: `hosts` are its names, without the port, `origins` other pages.

    With `every_address`, it listens on all addresses of the machine, more than it can know of.
    """

    hosts: frozenset[str]
    every_address: bool = False
    origins: frozenset[str] = frozenset()

    @staticmethod
    def of(
        listening: str, names: Iterable[str] = (), origins: Iterable[str] = (), machine: str = ""
    ) -> Callers:
        """For a port that listens on this address; `names` are what else it is called."""
        address = _address(listening)
        everywhere = address is not None and address.is_unspecified
        hosts = {listening, *names}
        if everywhere:
            hosts.add(machine)
        if everywhere or listening == "localhost" or (address is not None and address.is_loopback):
            hosts |= {"localhost", "127.0.0.1", "::1"}
        known = frozenset(_bare(host) for host in hosts if host)
        return Callers(known, everywhere, frozenset(origins))

    def refusal(self, host: str | None, origin: str | None, site: str | None) -> str | None:
        """Why a request is refused, by its headers Host, Origin and, if it could change something,
        Sec-Fetch-Site; None if it is not."""
        if not self._is_ours(host):
            return (
                f"Requests to the host {_shown(host)} are not answered here. If that is a name of "
                f"this server, {ALLOWED_HOSTS} has to name it."
            )
        if origin is not None and not self.is_own(origin, host) and not self.is_allowed(origin):
            return f"Requests from pages of {_shown(origin)} are not allowed."
        if origin is None and site == "cross-site" and ANY not in self.origins:
            return "Requests from pages of other sites are not allowed."
        return None

    def is_own(self, origin: str, host: str | None) -> bool:
        return bool(host) and origin.partition("://")[2] == host

    def is_allowed(self, origin: str) -> bool:
        return ANY in self.origins or origin in self.origins

    def _is_ours(self, host: str | None) -> bool:
        if ANY in self.hosts or host is None:  # every browser sends one
            return True
        name = _bare(host)
        return name in self.hosts or (self.every_address and _address(name) is not None)


def _bare(host: str) -> str:
    """A Host header or a setting without its port and brackets, in lower case."""
    text = host.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    name, colon, port = text.rpartition(":")
    if colon and ":" not in name and (port.isdecimal() or not port):
        text = name
    return text.removesuffix(".")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def media_type(content_type: str) -> str:
    """What a Content-Type header says, without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def _shown(header: str | None) -> str:
    return (header or "")[:200]
