"""What a text tells a user to install or to run, against what the workspace has."""

import re

from members import MEMBERS, ROOT, load

PROJECTS = {load(member)["project"]["name"]: load(member)["project"] for member in MEMBERS}
EXTRAS = {name: {*project.get("optional-dependencies", {})} for name, project in PROJECTS.items()}
EXTRAS |= {f"./{member.relative_to(ROOT).as_posix()}": EXTRAS[load(member)["project"]["name"]] for member in MEMBERS}
GROUPS = load(ROOT)["dependency-groups"]
PACKAGE = re.compile(r"--package ([\w-]+)(?: --extra ([\w-]+))?")
PIP = re.compile(
    r"""pip install (?:--\S+ (?:cpu\s)?)*["']?((?:pluralbench|build-|\./)[\w./-]*)(?:\[([\w-]+)\])?( @)?"""
)


def faults(text: str) -> list[str]:
    """What the text names that is not there."""
    found = [f"no group {name}" for name in re.findall(r"--group ([\w-]+)", text) if name not in GROUPS]
    for name, extra in PACKAGE.findall(text):
        if name != name.upper() and (name not in PROJECTS or (extra and extra not in EXTRAS[name])):
            found.append(f"no {name}[{extra}]")
    for name, extra, address in PIP.findall(text):
        if name not in EXTRAS or (extra and extra not in EXTRAS[name]):
            found.append(f"no {name}[{extra}]")
        elif name in PROJECTS and not address:
            found.append(f"{name} is on no index")
    return found
