"""The license in the YAML of a card: an identifier of the Hub, or `other` with a name and a link."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pluralbench_release.manifest import Source

if TYPE_CHECKING:
    from huggingface_hub import CardData

_IDENTIFIERS = """
apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m bigscience-bloom-rail-1.0 bigcode-openrail-m
afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear c-uda cc cc0-1.0 cc-by-2.0 cc-by-2.5
cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0
cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0 cdla-permissive-1.0
cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 eupl-1.2 agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl
lgpl-2.1 lgpl-3.0 isc lppl-1.3c ms-pl mpl-2.0 odc-by odbl openrail++ osl-3.0 postgresql ofl-1.1 ncsa unlicense zlib
pddl lgpl-lr deepfloyd-if-license llama2 llama3 llama3.1 llama3.2 llama3.3 llama4 gemma unknown other
"""
HUB_LICENSES = frozenset(_IDENTIFIERS.split())
"""Identifiers that the Hub accepts as `license` (docs/hub/repositories-licenses.md of its documentation)."""
CREATIVE_COMMONS = re.compile(r"cc-(by(?:-[a-z]+)*)-([0-9.]+)")
OTHER = "other"


def license_yaml(sources: Iterable[Source]) -> dict[str, Any]:
    """Return the keys of a card's YAML that state the licenses of the sources.

    A license that the Hub does not know is `other`, with its name in `license_name`. `license_link` is the deed of a
    Creative Commons license, or the Hub's page of the source that states the license; it is absent for other files.
    """
    known: set[str] = set()
    others: dict[str, str | None] = {}
    for source in sources:
        for name in source.license.lower().split(", "):
            if name in HUB_LICENSES:
                known.add(name)
            else:
                others[re.sub(r"[^a-z0-9.+-]+", "-", name).strip("-")] = _link(name, source)
    values: dict[str, Any] = {"license": sorted(known | ({OTHER} if others else set()))}
    if len(values["license"]) == 1:
        [values["license"]] = values["license"]
    if others:
        values["license_name"] = "-and-".join(sorted(others))
        links = [others[name] for name in sorted(others) if others[name] is not None]
        values |= {"license_link": links[0]} if links else {}
    return values


def _link(name: str, source: Source) -> str | None:
    if deed := CREATIVE_COMMONS.fullmatch(name):
        return f"https://creativecommons.org/licenses/{deed[1]}/{deed[2]}/"
    return f"https://huggingface.co/datasets/{source.location}" if source.revision else None


def license_of(card: "CardData") -> str | None:
    """Return the license that a card states, several joined by ", "; of `other` its name, if it has one."""
    value = card.get("license")
    names = value if isinstance(value, list) else [] if value is None else [value]
    name = card.get("license_name")
    return ", ".join(str(name) if one == OTHER and name else str(one) for one in names) or None
