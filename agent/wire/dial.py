"""Reaches a broker's listener: name, connection and TLS handshake, all within one deadline."""

from __future__ import annotations

import contextlib
import socket
import ssl
from typing import Any

from agent.errors import CALLS, TlsFailed, thread
from agent.values.observation import GapCause
from agent.wire.deadline import Deadline
from agent.wire.failure import CallFailed
from agent.wire.settings import Address


def dial(address: Address, tls: ssl.SSLContext | None, deadline: Deadline) -> socket.socket:
    """A connected socket, in TLS when a context is given. Raises CallFailed."""
    plain = _connect(address, deadline)
    if tls is None:
        return plain
    try:
        plain.settimeout(max(deadline.left_s, 0.001))
        return tls.wrap_socket(plain, server_hostname=address.host)
    except TimeoutError as error:
        raise CallFailed(GapCause.TIMED_OUT, f"{address} did not finish the TLS handshake in time") from error
    except (ssl.SSLEOFError, ConnectionError) as error:
        # What a listener in plain text does with a TLS greeting, but also a broker that dies just now.
        detail = f"{address} broke off the TLS handshake; its listener may be one in plain text (security.protocol)"
        raise CallFailed(GapCause.UNREACHABLE, detail) from error
    except ssl.SSLError as error:
        raise tls_failure(str(address), error) from error
    except OSError as error:
        raise CallFailed(GapCause.UNREACHABLE, f"{address} broke off the TLS handshake: {error.strerror}") from error
    finally:
        # On success the TLS socket has taken the descriptor over, and this closes nothing.
        plain.close()


def tls_failure(address: str, error: ssl.SSLError) -> CallFailed:
    """The failure that an error of the TLS layer stands for, with what to change."""
    todo = "Check ssl.ca.location and the broker's certificate."
    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"its certificate is not trusted ({error.verify_message})"
        if "mismatch" in error.verify_message.lower():
            why, todo = error.verify_message, "Name the broker as its certificate does."
    elif error.reason in ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"):
        why, todo = "it does not speak TLS on this port", "Check the port, or security.protocol."
    elif error.reason and "CERTIFICATE_REQUIRED" in error.reason:
        why, todo = "it requires a client certificate", "Give ssl.certificate.location and ssl.key.location."
    else:
        why = error.reason or str(error)
    failed = TlsFailed(f"The TLS handshake with {address} failed", why=why, todo=todo)
    return CallFailed(GapCause.UNREACHABLE, str(failed), error=failed)


def _connect(address: Address, deadline: Deadline) -> socket.socket:
    """A connected socket; each address of the host is tried in turn."""
    failure: OSError | None = None
    for family, kind, number, _, place in _resolve(address, deadline):
        sock = socket.socket(family, kind, number)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(max(deadline.left_s, 0.001))
            sock.connect(place)
        except TimeoutError as error:
            sock.close()
            failure = error
        except OSError as error:
            sock.close()
            failure = error
        else:
            return sock
    if isinstance(failure, TimeoutError):
        raise CallFailed(GapCause.TIMED_OUT, f"{address} did not accept the connection in time") from failure
    why = _why(failure) if failure else "the host has no address"
    raise CallFailed(GapCause.UNREACHABLE, f"{address}: {why}") from failure


def _resolve(address: Address, deadline: Deadline) -> list[Any]:
    """Addresses of the host name. The lookup cannot be cut short, so it runs in a thread that is left behind."""
    found: list[list[Any] | OSError] = []

    def look_up() -> None:
        try:
            found.append(socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM))
        except OSError as error:
            found.append(error)

    if _is_literal(address.host):
        look_up()
    else:
        resolving = thread(CALLS, look_up, address.host)
        resolving.start()
        resolving.join(deadline.left_s)
    if not found:
        raise CallFailed(GapCause.TIMED_OUT, f"host {address.host} was not resolved in time")
    if isinstance(found[0], OSError):
        raise CallFailed(GapCause.UNREACHABLE, _unresolved(address.host, found[0]))
    return found[0]


def _unresolved(host: str, error: OSError) -> str:
    """A name that does not exist needs no more words; a resolver that fails does."""
    absent = error.errno in {socket.EAI_NONAME, socket.EAI_NODATA}
    return f"host {host} does not resolve" + ("" if absent else f" ({_why(error)})")


def _why(error: OSError) -> str:
    """The system's reason inside a sentence."""
    reason = error.strerror or str(error)
    return reason[:1].lower() + reason[1:]


def _is_literal(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, host)
            return True
    return False
