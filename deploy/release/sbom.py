"""The bill of materials (CycloneDX) of what the agent runs on: locked packages and the page's browser libraries.

Each has its hashes and its licence, a package also its dependencies; what an extra alone brings is optional. A licence
is what the installed package says of itself, so the lock file must be installed. A package of other systems is listed
without one.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from email.message import Message
from importlib import metadata
from typing import NamedTuple, cast

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?:\s*;\s*(?P<marker>[^\\]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_NAMESPACE = uuid.UUID("6f1c3b7e-6d0b-5b5a-9d0c-5f5e0a3a7b11")
_LONGEST_NAME = 100
_UNNAMED = frozenset(("", "unknown", "dual license"))


class LockedPackage(NamedTuple):
    """A line of the lock file."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]

    @property
    def is_for_this_system(self) -> bool:
        """Whether its marker holds here."""
        return not self.marker or Marker(self.marker).evaluate()


class VendoredLibrary(NamedTuple):
    """A package of npm of which the wheel has files."""

    name: str
    version: str
    license: str
    digest: str
    """SHA-512 of the package, as hexadecimal digits."""


class NotInstalledError(Exception):
    """A locked package is not installed in the locked version, so its licence is not known."""


def locked_packages(lock: str) -> tuple[LockedPackage, ...]:
    """The packages of a lock file, by name. Raises ValueError for a line that is none."""
    found: list[LockedPackage] = []
    for line in lock.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        digest, pinned = _HASH.search(line), _PINNED.match(line)
        if digest is not None and found:
            found[-1] = found[-1]._replace(hashes=(*found[-1].hashes, digest[1]))
        elif pinned is not None:
            name = canonicalize_name(pinned["name"])
            found.append(LockedPackage(name, pinned["version"], pinned["marker"] or "", ()))
        else:
            raise ValueError(f"no locked package: {line}")
    return tuple(sorted(found))


def vendored_libraries(lock: str) -> tuple[VendoredLibrary, ...]:
    """The libraries of a ``vendor.lock.json``."""
    return tuple(
        VendoredLibrary(
            one["package"], one["version"], one["licence"],
            base64.b64decode(one["integrity"].removeprefix("sha512-")).hex(),
        )
        for one in json.loads(lock)
    )  # fmt: skip


def bill_of_materials(
    name: str,
    version: str,
    license_name: str,
    lock: str,
    epoch: int,
    *,
    extra: str = "",
    optional: Collection[str] = (),
    vendored: Sequence[VendoredLibrary] = (),
) -> str:
    """The document, checked against the schema of CycloneDX. Equal for equal input.

    ``optional``: packages of the lock file that the extra of that name alone brings. Raises NotInstalledError, and
    ValueError for a lock file or a document that is none.
    """
    packages = locked_packages(lock)
    root = Component(
        name=name,
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=f"{name}=={version}",
        purl=PackageURL("pypi", name=name, version=version),
        licenses=[LicenseFactory().make_from_string(license_name)],
    )
    components = {package.name: _component(package, optional=package.name in optional) for package in packages}
    libraries = [_library(one) for one in vendored]
    serial = uuid.uuid5(_NAMESPACE, f"{name} {version} {epoch} {lock} {sorted(optional)} {vendored}")
    bom = Bom(serial_number=serial, components=[*components.values(), *libraries])
    bom.metadata.component = root
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, UTC)
    needs = [components[one] for one in _required(name, extra) if one in components]
    bom.register_dependency(root, [*needs, *libraries])
    for package in packages:
        if package.is_for_this_system:
            needs = [components[one] for one in _required(package.name) if one in components]
            bom.register_dependency(components[package.name], needs)
    text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1)
    mistake = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if mistake is not None:
        raise ValueError(f"the bill of materials is none by its schema: {mistake}")
    return text + "\n"


def _library(one: VendoredLibrary) -> Component:
    scope, _, plain = one.name.rpartition("/")
    return Component(
        name=plain,
        group=scope or None,
        version=one.version,
        type=ComponentType.LIBRARY,
        bom_ref=f"npm:{one.name}@{one.version}",
        purl=PackageURL("npm", namespace=scope or None, name=plain, version=one.version),
        hashes=[HashType(alg=HashAlgorithm.SHA_512, content=one.digest)],
        licenses=[LicenseFactory().make_from_string(one.license)],
    )


def _component(package: LockedPackage, *, optional: bool) -> Component:
    licenses: Iterable[License] = ()
    if package.is_for_this_system:
        found = _installed(package)
        licenses = [LicenseFactory().make_from_string(one) for one in _licenses(found)]
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        scope=ComponentScope.OPTIONAL if optional else None,
        bom_ref=f"{package.name}=={package.version}",
        purl=PackageURL("pypi", name=package.name, version=package.version),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in package.hashes],
        licenses=licenses,
        properties=[Property(name="rackwise:marker", value=package.marker)] if package.marker else [],
    )


def _installed(package: LockedPackage) -> metadata.Distribution:
    try:
        found = metadata.distribution(package.name)
    except metadata.PackageNotFoundError as error:
        raise NotInstalledError(f"{package.name} is not installed, so its licence is not known") from error
    if found.version != package.version:
        raise NotInstalledError(f"{package.name} {found.version} is installed, and {package.version} is locked")
    return found


def _licenses(found: metadata.Distribution) -> Iterator[str]:
    """What the package says of itself: an expression, else classifiers, else a short text."""
    told = cast("Message", found.metadata)
    expression = str(told.get("License-Expression") or "")
    if expression:
        yield expression
        return
    classified = [
        line.rpartition(" :: ")[2] for line in told.get_all("Classifier", []) if line.startswith("License :: ")
    ]
    named = [line for line in classified if line != "OSI Approved"]
    text = str(told.get("License") or "").strip()
    if named:
        yield from sorted(set(named))
    elif text.lower() not in _UNNAMED and len(text) <= _LONGEST_NAME and "\n" not in text:
        yield text


def _required(name: str, extra: str = "") -> tuple[str, ...]:
    """The packages that an installed one needs here, with those of one extra."""
    requirements = (Requirement(line) for line in metadata.distribution(name).requires or ())
    held = (one for one in requirements if one.marker is None or one.marker.evaluate({"extra": extra}))
    return tuple(sorted({canonicalize_name(one.name) for one in held}))
