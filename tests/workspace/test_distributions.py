"""What an index, and the reader of a wheel, is told: license and addresses."""

from pathlib import Path

import pytest
import yaml
from members import MEMBERS, ROOT, load
from pluralbench_release.card import PROJECT

URLS = {
    "Homepage": PROJECT,
    "Documentation": f"{PROJECT}/blob/main/docs/index.md",
    "Repository": PROJECT,
    "Changelog": f"{PROJECT}/blob/main/CHANGELOG.md",
    "Issues": f"{PROJECT}/issues",
}


@pytest.mark.parametrize("member", MEMBERS, ids=lambda path: path.name)
def test_a_wheel_is_typed_holds_the_license_and_says_what_and_where_it_is(member: Path) -> None:
    project = load(member)["project"]
    assert (project["license"], project["requires-python"]) == ("Apache-2.0", ">=3.11")
    assert all((module.parent / "py.typed").exists() for module in member.glob("src/*/__init__.py"))
    assert len((member / "README.md").read_text(encoding="utf-8").splitlines()) > 5
    assert project["license-files"] == ["LICENSE"]
    assert (member / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert project["urls"] == URLS
    assert project["keywords"]
    assert project["readme"] == "README.md"
    assert 20 < len(project["description"]) < 120
    assert {f"pluralbench-{member.name}", f"build-{member.name.replace('_', '-')}", "pluralbench"} & {project["name"]}
    assert project["classifiers"] == load(MEMBERS[0])["project"]["classifiers"]
    assert not [line for line in project["classifiers"] if line.startswith("License ::")]  # `license` says it


def test_the_citation_is_of_this_version_and_place() -> None:
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert said["version"] == load(ROOT)["project"]["version"] == load(MEMBERS[0])["project"]["version"]
    assert (said["license"], said["repository-code"]) == (load(MEMBERS[0])["project"]["license"], PROJECT)
    assert said["cff-version"] == "1.2.0"
    assert {"message", "title"} <= said.keys()
    assert said["authors"] == load(MEMBERS[0])["project"]["authors"]
