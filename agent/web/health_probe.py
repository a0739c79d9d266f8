"""Whether the agent of this machine is alive: ``python -m agent.web.health_probe [PORT]``, the image's health check.

It speaks plain HTTP, and TLS where the server answers to nothing else. A certificate is not checked: it is for the
names by which others ask.
"""

from __future__ import annotations

import http.client
import ssl
import sys
from collections.abc import Callable

PORT = 9464
_WITHIN_S = 1.2
"""Of each of the two: the health check of the image has 3 s."""
Connect = Callable[[int], http.client.HTTPConnection]


def _plain(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=_WITHIN_S)


def _by_tls(port: int) -> http.client.HTTPConnection:
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=_WITHIN_S, context=unchecked)


def is_alive(port: int) -> bool:
    """Whether `/livez` answers with 200."""
    return any(_answers(connect, port) for connect in (_plain, _by_tls))


def _answers(connect: Connect, port: int) -> bool:
    try:
        asked = connect(port)
        asked.request("GET", "/livez")
        return asked.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False


if __name__ == "__main__":
    sys.exit(not is_alive(int(sys.argv[1]) if len(sys.argv) > 1 else PORT))
