"""The HTTP client of all models: one TLS context, bounded answers, and no proxy for this machine."""

from __future__ import annotations

import functools
import ssl
from typing import TYPE_CHECKING, Any, Final

from foldline.summarizers._remote.bodies import bounding
from foldline.summarizers._remote.remote import extra_package

if TYPE_CHECKING:
    import httpx2

__all__ = ["http_client"]

#: Hosts of this machine, as patterns of URLs. They are reached directly: a proxy from the environment would look for
#: the server on its own machine, and would be shown the conversation.
_LOOPBACK: Final = (
    "all://localhost",
    "all://localhost.",
    "all://*.localhost",
    "all://127.0.0.0/8",
    "all://[::1]",
    "all://[::ffff:127.0.0.0]/104",
)


@functools.cache
def _tls() -> ssl.SSLContext:
    """The TLS context of all connections, cached since loading certificates takes 0.1 s."""
    context: ssl.SSLContext = extra_package("httpx2", "llm").create_ssl_context()
    return context


def http_client(max_bytes: int, *, transport: httpx2.AsyncBaseTransport | None = None) -> Any:
    """An HTTP client with bounded answers, for the running event loop.

    Proxies come from the environment (``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY``, ``NO_PROXY``), except for
    loopback addresses, to which it always connects directly. Redirects are not followed.

    Args:
        max_bytes: Maximum size of an answer, decompressed.
        transport: Sends the requests instead of the network.
    """
    return extra_package("httpx2", "llm").AsyncClient(
        timeout=None,  # the deadline covers the whole call
        follow_redirects=False,
        transport=transport,
        mounts=dict.fromkeys(_LOOPBACK),
        verify=_tls(),
        event_hooks={"response": [bounding(max_bytes)]},
    )
