"""What an index, and the reader of a wheel, is told: licence, addresses, and a page whose links lead somewhere."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from markdown_it import MarkdownIt
from members import MEMBERS, ROOT, load
from pluralbench_release.citation import PROJECT

PAGES = {f"{PROJECT}/blob/main/": Path.is_file, f"{PROJECT}/tree/main/": Path.is_dir}
PAGES |= {"https://raw.githubusercontent.com/pluralbench/pluralbench/main/": Path.is_file}
URLS = {
    "Homepage": PROJECT,
    "Documentation": f"{PROJECT}/blob/main/docs/index.md",
    "Repository": PROJECT,
    "Changelog": f"{PROJECT}/blob/main/CHANGELOG.md",
    "Issues": f"{PROJECT}/issues",
}
every_member = pytest.mark.parametrize("member", MEMBERS, ids=lambda path: path.name)


@every_member
def test_a_wheel_holds_the_licence_and_says_what_and_where_it_is(member: Path) -> None:
    project = load(member)["project"]
    assert project["license-files"] == ["LICENSE"]
    assert (member / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert project["urls"] == URLS
    assert project["keywords"]
    assert project["readme"] == "README.md"
    assert 20 < len(project["description"]) < 120
    assert {f"pluralbench-{member.name}", f"build-{member.name.replace('_', '-')}", "pluralbench"} & {project["name"]}
    assert project["classifiers"] == load(MEMBERS[0])["project"]["classifiers"]
    assert not [line for line in project["classifiers"] if line.startswith("License ::")]  # `license` says it


@every_member
def test_the_links_of_a_page_lead_somewhere_from_an_index_too(member: Path) -> None:
    tokens = MarkdownIt().parse((member / "README.md").read_text(encoding="utf-8"))
    parts = [part for token in tokens for part in token.children or []]
    links = [str(part.attrs[name]) for part in parts for name in ("href", "src") if name in part.attrs]
    assert not [link for link in links if not link.startswith(("https://", "#"))]
    for link in links:
        for address, exists in PAGES.items():
            if link.startswith(address):
                assert exists(ROOT / urlsplit(link.removeprefix(address)).path), link
        assert not link.startswith(PROJECT) or link == PROJECT or link.startswith(tuple(PAGES)), link


def test_the_citation_is_of_this_version_and_place() -> None:
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert said["version"] == load(ROOT)["project"]["version"] == load(MEMBERS[0])["project"]["version"]
    assert (said["license"], said["repository-code"]) == (load(MEMBERS[0])["project"]["license"], PROJECT)
    assert said["cff-version"] == "1.2.0"
    assert {"message", "title"} <= said.keys()
    assert said["authors"] == load(MEMBERS[0])["project"]["authors"]
