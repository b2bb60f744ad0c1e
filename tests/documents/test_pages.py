"""The pages of `docs/`: they build, their menu has all of them, and their links into this repository lead somewhere."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from blocks import PAGES, TOP
from command_options import options
from commands import environment, script
from markdown_it import MarkdownIt
from markdown_it.token import Token
from members import MEMBERS, ROOT
from pluralbench_release.citation import PROJECT

SETTINGS = "zensical.toml"
READMES = [member / "README.md" for member in MEMBERS]
# Of uv, pip, zensical and sbatch, and those that every command has.
OTHERS = {"--group", "--index-url", "--strict", "--array", "--help", "--install-completion"}
OF_ENGINES = {"--block-size", "--dist-init-addr", "--nnodes", "--node-rank", "--parallel", "--pipeline-parallel-size"}
OF_ENGINES |= {"--pooling", "--runner", "--tensor-parallel-size", "--tp"}
KINDS = {"blob": Path.is_file, "tree": Path.is_dir, "edit": Path.is_file}


def pages(nav: list[dict[str, Any]]) -> list[str]:
    """The pages that a menu names."""
    places = [place for entry in nav for place in entry.values()]
    return [name for place in places for name in (pages(place) if isinstance(place, list) else [place])]


def parsed(document: Path) -> list[Token]:
    return MarkdownIt().parse(document.read_text(encoding="utf-8"))


def links(document: Path) -> list[str]:
    parts = [part for token in parsed(document) for part in token.children or []]
    return [str(part.attrs[name]) for part in parts for name in ("href", "src") if name in part.attrs]


def in_repository(link: str) -> tuple[str, Path] | None:
    """Whether a link to the project's own repository is to a file or a folder, and which one."""
    raw = "https://raw.githubusercontent.com/pluralbench/pluralbench/main/"
    if link.startswith(raw):
        return "blob", ROOT / urlsplit(link.removeprefix(raw)).path
    kind, _, rest = link.removeprefix(f"{PROJECT}/").partition("/main/")
    return (kind, ROOT / urlsplit(rest).path) if link.startswith(f"{PROJECT}/") and kind in KINDS else None


def test_the_menu_has_every_page() -> None:
    nav = tomllib.loads((ROOT / SETTINGS).read_text(encoding="utf-8"))["project"]["nav"]
    assert sorted(pages(nav)) == [page.relative_to(ROOT / "docs").as_posix() for page in PAGES]


@pytest.mark.parametrize("page", [*PAGES, *READMES], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_somewhere_from_an_index_too(page: Path) -> None:
    for link in links(page):
        target = in_repository(link)
        if target is not None:
            assert KINDS[target[0]](target[1]), link
        elif page in READMES:
            assert link.startswith(("https://", "#")), link
            assert link == PROJECT or not link.startswith(PROJECT), link


@pytest.mark.parametrize("name", TOP)
def test_links_of_a_document_lead_somewhere(name: str) -> None:
    inner = [urlsplit(link).path for link in links(ROOT / name) if not urlsplit(link).scheme]
    assert [link for link in inner if link and not (ROOT / link).exists()] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_an_option_that_a_page_names_is_one(page: Path) -> None:
    known = {name for flags in options() for name in flags.split("/")} | OTHERS | OF_ENGINES
    inline = [part.content for token in parsed(page) for part in token.children or [] if part.type == "code_inline"]
    named = {name for text in inline for name in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)}
    assert named - known == set()


def built(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the pages in a folder where they are, with the sources beside them."""
    for name in ("schemas", "packages", "evaluators"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / SETTINGS, folder)
    return subprocess.run(
        [script("zensical"), "build", "--strict"],
        cwd=folder,
        env=environment() | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.heavy
def test_the_pages_build_without_a_warning(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    done = built(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    score = (tmp_path / "site/reference/pluralbench/index.html").read_text(encoding="utf-8")
    assert "Score a reward model on a benchmark" in score
    described = (tmp_path / "site/reference/config/index.html").read_text(encoding="utf-8")
    assert "Passes over the training data." in described  # a field of `TrainingConfig`
    formulas = (tmp_path / "site/reference/metrics/index.html").read_text(encoding="utf-8")
    assert r"\frac{p_o - p_e}{1 - p_e}" in formulas


@pytest.mark.heavy
def test_a_broken_link_fails(tmp_path: Path) -> None:
    (tmp_path / "docs/tutorials").mkdir(parents=True)
    (tmp_path / "docs/index.md").write_text("# Start\n\n[gone](tutorials/gone.md)\n", encoding="utf-8")
    done = built(tmp_path)
    assert done.returncode != 0
    assert "page does not exist" in done.stdout + done.stderr
