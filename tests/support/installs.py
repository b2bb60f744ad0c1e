"""What a text tells a user to install or to run, against what the workspace has."""

import re

from members import MEMBERS, ROOT, load

PIP = re.compile(r"""pip install (?:--\S+ (?:cpu\s)?)*["']?([A-Za-z0-9._/-]+)(?:\[([^\]]+)\])?( @)?""")
UV = re.compile(r"uv (?:run|sync)(?: --inexact)?((?: --(?:package|extra|group) [\w{}-]+)*)")
ANY = "{}"
"""What a format string fills in."""

PROJECTS = {load(member)["project"]["name"]: load(member)["project"] for member in MEMBERS}
FOLDERS = {f"./{member.relative_to(ROOT).as_posix()}": load(member)["project"]["name"] for member in MEMBERS}
GROUPS = load(ROOT)["dependency-groups"]


def bare(requirement: str) -> str:
    """The distribution that a requirement names."""
    return re.split(r"[^A-Za-z0-9_.-]", requirement)[0]


def extras(project: str) -> set[str]:
    """The extras of a member."""
    return set(PROJECTS[project].get("optional-dependencies", {}))


KNOWN = {"uv", *PROJECTS} | {
    bare(item)
    for items in [
        *(project["dependencies"] for project in PROJECTS.values()),
        *(extra for project in PROJECTS.values() for extra in project.get("optional-dependencies", {}).values()),
        *([item for item in group if isinstance(item, str)] for group in GROUPS.values()),
    ]
    for item in items
}


def faults(speaker: str, text: str) -> list[str]:
    """What the text names that is not there. speaker: the member whose text it is, if it is one's."""
    found = []
    for distribution, extra, address in PIP.findall(text):
        if distribution not in {*KNOWN, *FOLDERS}:
            found.append(f"no distribution {distribution}")
        elif distribution in PROJECTS and not address:
            found.append(f"{distribution} is on no index")
        elif extra and extra not in extras_or_any(FOLDERS.get(distribution, distribution)):
            found.append(f"no extra {distribution}[{extra}]")
    for flags in UV.findall(text):
        words = flags.split()
        asked = dict(zip(words[::2], words[1::2], strict=True))
        if "--group" in asked and asked["--group"] not in GROUPS:
            found.append(f"no group {asked['--group']}")
        if "--extra" in asked:
            wanted = extras(speaker) if asked["--extra"] == ANY else {asked["--extra"]}
            found += [
                f"no extra {name}[{extra}]"
                for name in packages(speaker, asked.get("--package", ""))
                for extra in sorted(wanted - extras_or_any(name))
            ]
    return found


def extras_or_any(name: str) -> set[str]:
    """The extras of a member, and what stands for one of them where it has some; none for another distribution."""
    own = extras(name) if name in PROJECTS else set()
    return own | {ANY} if own else own


def packages(speaker: str, name: str) -> list[str]:
    """The members that `--package NAME` means: a word in capitals stands for each that depends on the speaker."""
    if name == ANY:
        return []
    if name.isupper():
        return [other for other, project in PROJECTS.items() if speaker in map(bare, project["dependencies"])]
    return [name]
