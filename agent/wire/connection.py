"""One connection to one broker: set-up within a deadline, then one request at a time, each within its own.

Sockets are blocking, and the time-out is renewed before every step, so that a silent or dripping peer ends at the
deadline as well. Every failure is a `CallFailed` with its cause; a connection that failed is closed and never used
again, as a late answer would be taken for the next one's.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import time
from typing import Any

from agent.errors import CALLS, AuthenticationFailed, TlsFailed, thread
from agent.values.kafka import UNSUPPORTED_VERSION
from agent.values.observation import GapCause
from agent.wire.failure import CallFailed, Deadline, UnusableAnswer, from_error_name
from agent.wire.protocol import (
    API_VERSIONS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    ApiCall,
    BrokerAddress,
    WireSettings,
    decode,
    encode,
    error_name,
    sasl_mechanism,
)


def dial(address: BrokerAddress, tls: ssl.SSLContext | None, deadline: Deadline) -> socket.socket:
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
        # So does a plaintext listener at a TLS greeting, but also a broker that stops just now.
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
    """The failure for an error of the TLS layer, with its remedy."""
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


def _connect(address: BrokerAddress, deadline: Deadline) -> socket.socket:
    """A connected socket; each address of the host is tried in turn."""
    failure: OSError | None = None
    for family, kind, number, _, place in _resolve(address, deadline):
        sock = socket.socket(family, kind, number)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(max(deadline.left_s, 0.001))
            sock.connect(place)
        except OSError as error:  # TimeoutError among them
            sock.close()
            failure = error
        else:
            return sock
    if isinstance(failure, TimeoutError):
        raise CallFailed(GapCause.TIMED_OUT, f"{address} did not accept the connection in time") from failure
    why = _why(failure) if failure else "the host has no address"
    raise CallFailed(GapCause.UNREACHABLE, f"{address}: {why}") from failure


def _resolve(address: BrokerAddress, deadline: Deadline) -> list[Any]:
    """Addresses of the host name. The lookup cannot be cancelled, so it runs in a thread of its own."""
    results: list[list[Any] | OSError] = []

    def look_up() -> None:
        try:
            results.append(socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM))
        except OSError as error:
            results.append(error)

    if _is_literal(address.host):
        look_up()
    else:
        resolving = thread(CALLS, look_up, address.host)
        resolving.start()
        resolving.join(deadline.left_s)
    if not results:
        raise CallFailed(GapCause.TIMED_OUT, f"host {address.host} was not resolved in time")
    if isinstance(results[0], OSError):
        raise CallFailed(GapCause.UNREACHABLE, _unresolved(address.host, results[0]))
    return results[0]


def _unresolved(host: str, error: OSError) -> str:
    """The sentence for a host name; a failure of the resolver has its reason, a missing name needs none."""
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


_TLS_ALERT = b"\x15\x03"
_HTTP = b"HTTP"
"""Read as a length it would be 1.2 GB: the port is a web server's."""
_REAUTHENTICATE_AT = 0.85
_IDLE_S = 1.0


class BrokerConnection:
    """A ready connection; make it with `open_connection`."""

    def __init__(self, address: BrokerAddress, settings: WireSettings, sock: socket.socket) -> None:
        self.address = address
        self.versions: dict[int, tuple[int, int]] = {}
        """API key -> oldest and newest version that this broker takes."""
        self.session_ends = float("inf")
        """Monotonic time by which the broker requires a new authentication (KIP-368)."""
        self.last_used = time.monotonic()
        self._settings = settings
        self._sock = sock
        self._correlation_id = 0
        self._served = False

    def version(self, api: ApiCall, *, oldest: int = 0, newest: int | None = None) -> int:
        """The newest common version. Raises CallFailed(UNSUPPORTED) when broker and codec share none in that range."""
        low, high = self.versions.get(api.key, (0, -1))
        best = min(high, api.newest, api.newest if newest is None else newest)
        if best < max(low, oldest):
            offers = f"v{low} to v{high}" if high >= 0 else "none"
            detail = f"{self.address} does not offer {api.name} v{oldest} or newer (it offers {offers})"
            raise CallFailed(GapCause.UNSUPPORTED, detail)
        return best

    def call(self, api: ApiCall, message: Any, deadline: Deadline, *, version: int) -> Any:
        """The decoded answer. Raises CallFailed, after which the connection is closed unless the answer was whole.

        ``sent`` of the failure is True when a request that changes something may have reached the broker.
        """
        self._correlation_id = (self._correlation_id + 1) % 2**31
        request = encode(message, version, self._correlation_id, self._settings.client_id)
        may_have_left = False
        try:
            if api.changes and time.monotonic() - self.last_used > _IDLE_S:
                self._check_quiet()
            self._await_start(deadline)
            may_have_left = api.changes
            self._send(request, deadline)
            return self._answer(api, version, deadline)
        except CallFailed as failure:
            failure.sent = may_have_left
            raise

    def _answer(self, api: ApiCall, version: int, deadline: Deadline) -> Any:
        try:
            frame = self._receive_frame(api, deadline)
        except CallFailed:
            self.close()
            raise
        self.last_used = time.monotonic()
        self._served = self._served or api is not API_VERSIONS
        if struct.unpack_from(">i", frame)[0] != self._correlation_id:
            self.close()
            raise CallFailed(GapCause.ERROR, f"{self.address} answered another request than {api.name}")
        return decode(api, version, memoryview(frame))

    def _check_quiet(self) -> None:
        """Bytes or an end before the request mean that the broker closes the connection: nothing was sent yet."""
        readable = select.poll()
        readable.register(self._sock, select.POLLIN | select.POLLHUP | select.POLLERR)
        if readable.poll(0):
            self.close()
            raise self._closed_by_peer(stale=True)

    def _await_start(self, deadline: Deadline) -> None:
        if deadline.over:
            self.close()
            raise self._timed_out("to take the request")

    @property
    def closed(self) -> bool:
        """True once closed; it is never reopened."""
        return self._sock.fileno() < 0

    def usable(self, now: float, max_idle_ms: int) -> bool:
        """True before the idle limit and the end of the SASL session; ``now``: monotonic seconds."""
        return not self.closed and now < self.session_ends and now - self.last_used < max_idle_ms / 1000

    def close(self) -> None:
        """Close the socket; repeatable."""
        with contextlib.suppress(OSError):
            self._sock.close()

    def set_up(self, deadline: Deadline) -> None:
        """ApiVersions, then SASL where it is configured. Raises CallFailed."""
        self._learn_versions(deadline)
        if self._settings.sasl is not None:
            self._authenticate(dict(self._settings.sasl), deadline)

    def _learn_versions(self, deadline: Deadline) -> None:
        # v3 since Kafka 2.4; an older broker answers UNSUPPORTED_VERSION in v0's layout.
        for version in (3, 0):
            request = API_VERSIONS.request(
                client_software_name="rackwise", client_software_version=self._settings.version
            )
            answer = self.call(API_VERSIONS, request, deadline, version=version)
            name = error_name(answer.error_code)
            if name is None:
                self.versions = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
                return
            if name != UNSUPPORTED_VERSION:
                raise from_error_name(name)
        raise CallFailed(GapCause.UNSUPPORTED, f"{self.address} does not report its API versions")

    def _authenticate(self, sasl: dict[str, Any], deadline: Deadline) -> None:
        mechanism = sasl["sasl_mechanism"]
        request = SASL_HANDSHAKE.request(mechanism=mechanism)
        answer = self.call(SASL_HANDSHAKE, request, deadline, version=self.version(SASL_HANDSHAKE, oldest=1, newest=1))
        refusal = error_name(answer.error_code)
        if refusal is not None:
            raise self._refused(_handshake_refusal(refusal, mechanism, list(answer.mechanisms or ())))
        exchange = sasl_mechanism(self.address.host, sasl)
        version = self.version(SASL_AUTHENTICATE)
        while not exchange.is_done():
            token = SASL_AUTHENTICATE.request(auth_bytes=exchange.auth_bytes())
            answer = self.call(SASL_AUTHENTICATE, token, deadline, version=version)
            name = error_name(answer.error_code)
            if name is not None:
                raise self._refused(answer.error_message or name)
            try:
                exchange.receive(bytes(answer.auth_bytes))
            except (ValueError, KeyError) as error:
                raise self._refused("the broker could not prove that it knows the password") from error
        lifetime_ms = getattr(answer, "session_lifetime_ms", 0) or 0
        if lifetime_ms > 0:
            self.session_ends = time.monotonic() + lifetime_ms / 1000 * _REAUTHENTICATE_AT

    def _refused(self, why: str) -> CallFailed:
        self.close()
        user = (self._settings.sasl or {}).get("sasl_plain_username")
        error = AuthenticationFailed(
            f"The broker at {self.address} refused user {user!r}",
            why=why,
            todo="Check sasl.mechanism, sasl.username and sasl.password.",
        )
        return CallFailed(GapCause.UNREACHABLE, str(error), error=error)

    def _send(self, data: bytes, deadline: Deadline) -> None:
        try:
            self._await_until(deadline)
            self._sock.sendall(data)
        except TimeoutError as error:
            self.close()
            raise self._timed_out("to take the request") from error
        except OSError as error:
            self.close()
            raise self._broken(error, stale=True) from error

    def _receive_frame(self, api: ApiCall, deadline: Deadline) -> bytearray:
        head = self._receive(4, deadline, f"to {api.name}", first=True)
        if head.startswith(_TLS_ALERT) and self._settings.tls is None:
            error = TlsFailed(
                f"The broker at {self.address} requires TLS", todo="Set security.protocol to SSL or SASL_SSL."
            )
            raise CallFailed(GapCause.UNREACHABLE, str(error), error=error)
        size = struct.unpack(">i", head)[0]
        if size < 4 or head == _HTTP:
            raise CallFailed(GapCause.ERROR, f"what listens at {self.address} does not speak Kafka's protocol")
        if size > self._settings.max_frame_bytes:
            limit = self._settings.max_frame_bytes
            detail = f"the answer to {api.name} has {size} bytes, more than receive.message.max.bytes {limit}"
            raise UnusableAnswer(GapCause.TOO_LARGE, detail)
        return self._receive(size, deadline, f"to {api.name}", first=False)

    def _receive(self, size: int, deadline: Deadline, what: str, *, first: bool) -> bytearray:
        buffer = bytearray(size)
        view = memoryview(buffer)
        at = 0
        try:
            while at < size:
                self._await_until(deadline)
                count = self._sock.recv_into(view[at:])
                if count == 0:
                    raise self._closed_by_peer(stale=first and at == 0)
                at += count
        except TimeoutError as error:
            raise self._timed_out(what) from error
        except ssl.SSLError as error:
            raise tls_failure(str(self.address), error) from error
        except OSError as error:
            raise self._broken(error, stale=first and at == 0) from error
        return buffer

    def _await_until(self, deadline: Deadline) -> None:
        left = deadline.left_s
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)

    def _timed_out(self, what: str) -> CallFailed:
        return CallFailed(GapCause.TIMED_OUT, f"{self.address} did not answer {what} in time")

    def _broken(self, error: OSError, *, stale: bool) -> CallFailed:
        detail = f"the connection to {self.address} broke: {error.strerror or error}"
        return CallFailed(GapCause.UNREACHABLE, detail, stale=stale)

    def _closed_by_peer(self, *, stale: bool) -> CallFailed:
        hint = ""
        if not self.versions and self._settings.tls is None:
            hint = "; its listener may require TLS (security.protocol)"
        elif self._settings.sasl is None and not self._served:
            hint = "; its listener may require SASL (security.protocol)"
        detail = f"{self.address} closed the connection{hint}"
        return CallFailed(GapCause.UNREACHABLE, detail, stale=stale)


def open_connection(address: BrokerAddress, settings: WireSettings, deadline: Deadline) -> BrokerConnection:
    """A connection ready for calls. Raises CallFailed; its ``error`` is set when credentials or TLS were refused."""
    within = min(deadline, Deadline.after_ms(settings.setup_timeout_ms))
    connection = BrokerConnection(address, settings, dial(address, settings.tls, within))
    try:
        connection.set_up(within)
    except CallFailed as failure:
        connection.close()
        failure.sent = False
        raise
    return connection


def _handshake_refusal(name: str, mechanism: str, offered: list[str]) -> str:
    if name == "UNSUPPORTED_SASL_MECHANISM" and offered:
        return f"it does not offer {mechanism}, but {', '.join(offered)}"
    if name == "ILLEGAL_SASL_STATE":
        return "its listener takes no SASL"
    return name
