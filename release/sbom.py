"""The list of components of a release, in CycloneDX 1.6 (ECMA-424): what the lock holds, and nothing else.

Names, versions and hashes are the lock's; licences and who needs whom are what the metadata of the same versions says,
which have to be installed here. The same lock and wheel give the same bytes.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from release.lock import Pin

_CLASSIFIER = "License :: OSI Approved :: "
# Whole texts stand in this field of old packages; the name of a licence is shorter.
_LONGEST_NAME = 60


def sbom(product: Pin, pins: Sequence[Pin], needs: Mapping[str, Iterable[str]], epoch: int) -> str:
    """Return the document as JSON.

    Args:
        product: the wheel itself, with its hash.
        pins: what is installed with it.
        needs: by name, what each of these and the product needs.
        epoch: the time that it is to have, seconds since 1970.

    Raises:
        ValueError: another version is installed than the lock has, a package names no licence, or the document is
            none by the schema of CycloneDX.
    """
    components = {pin.name: _component(pin, ComponentType.LIBRARY) for pin in pins}
    whole = _component(product, ComponentType.APPLICATION)
    bom = Bom(components=components.values(), metadata=BomMetaData(component=whole))
    bom.metadata.timestamp = datetime.datetime.fromtimestamp(epoch, datetime.UTC)
    for name, component in {**components, product.name: whole}.items():
        bom.register_dependency(component, [components[one] for one in needs[name]])
    content = "\n".join(f"{pin.name}=={pin.version} {' '.join(pin.hashes)}" for pin in (product, *pins))
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, content)
    text = JsonV1Dot6(bom).output_as_string(indent=2) + "\n"
    if (wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)) is not None:
        message = f"not CycloneDX 1.6: {wrong}"
        raise ValueError(message)
    return text


def _component(pin: Pin, kind: ComponentType) -> Component:
    purl = PackageURL("pypi", None, pin.name, pin.version)
    return Component(
        type=kind,
        name=pin.name,
        version=pin.version,
        bom_ref=str(purl),
        purl=purl,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=one) for one in pin.hashes],
        licenses=[_licence(pin)],
    )


def _licence(pin: Pin) -> License:
    """Return the licence that a package's metadata names: as an expression, a name, or a classifier."""
    said = metadata.metadata(pin.name)
    if said["Version"] != pin.version:
        message = f"{pin.name}: the lock has {pin.version}, installed is {said['Version']}; run make install"
        raise ValueError(message)
    classified = [one.removeprefix(_CLASSIFIER) for one in said.get_all("Classifier") or () if _CLASSIFIER in one]
    named = [value for field in ("License-Expression", "License") for value in said.get_all(field) or ()]
    for name in (*(one for one in named if len(one) <= _LONGEST_NAME), *classified):
        if name and name != "UNKNOWN":
            return LicenseFactory().make_from_string(name)
    message = f"{pin.name} {pin.version}: its metadata names no licence"
    raise ValueError(message)
