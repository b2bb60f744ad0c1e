"""The pages of `docs/`: they build, their menu has all of them, and their links into this repository lead somewhere."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from blocks import PAGES, TOP
from command_options import options
from commands import environment, script
from markdown_it import MarkdownIt
from markdown_it.token import Token
from members import MEMBERS, ROOT
from playwright.sync_api import Browser, expect
from pluralbench.commands.app import program
from pluralbench_release.card import PROJECT
from session_folder import made_once

SETTINGS = "zensical.toml"
READMES = [member / "README.md" for member in MEMBERS]
# Of uv, pip, zensical and sbatch, and those that every command has.
OTHERS = {
    "--group",
    "--package",
    "--extra",
    "--inexact",
    "--torch-backend",
    "--strict",
    "--array",
    "--help",
    "--install-completion",
}
OF_ENGINES = {"--block-size", "--dist-init-addr", "--nnodes", "--node-rank", "--parallel", "--pipeline-parallel-size"}
OF_ENGINES |= {"--enable-cache-report", "--enable-prompt-tokens-details", "--pooling", "--runner"}
OF_ENGINES |= {"--tensor-parallel-size", "--tp"}
OF_INSPECT = {"--cache", "--max-connections", "--no-fail-on-error", "--reasoning-effort", "--sample-id"}
LOADED = re.compile(
    r'<(?:script|img|iframe|link)\b[^>]*?\s(?:src|href)="((?:https?:)?//[^"]*)"|url\(["\']?((?:https?:)?//[^)]*)'
)
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
    known = {name for flags in options() for name in flags.split("/")} | OTHERS | OF_ENGINES | OF_INSPECT
    inline = [part.content for token in parsed(page) for part in token.children or [] if part.type == "code_inline"]
    named = {name for text in inline for name in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)}
    assert named - known == set()


@pytest.fixture(scope="module")
def site() -> Path:
    """The pages as the documented command builds them, with the sources beside them."""
    return made_once("pages", build) / "site"


def build(folder: Path) -> None:
    for name in ("docs", ".ci"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("schemas", "packages", "evaluators"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / SETTINGS, folder)
    env = environment() | {"OMP_NUM_THREADS": "1"}
    words = [script("zensical"), "build", "--strict"]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.heavy
def test_the_pages_build_without_a_warning(site: Path) -> None:
    score = (site / "reference/pluralbench/index.html").read_text(encoding="utf-8")
    assert "Score a reward model on a benchmark" in score
    described = (site / "reference/config/index.html").read_text(encoding="utf-8")
    assert "Passes over the training data." in described  # a field of `TrainingConfig`
    formulas = (site / "reference/metrics/index.html").read_text(encoding="utf-8")
    assert r"\frac{p_o - p_e}{1 - p_e}" in formulas
    notebook = (site / "tutorials/first-look/index.html").read_text(encoding="utf-8")
    assert notebook.count('<div class="output">') > 2


@pytest.mark.heavy
def test_the_pages_load_nothing_from_another_host(site: Path) -> None:
    addresses = {
        next(filter(None, found.groups()))
        for path in site.rglob("*")
        if path.suffix in {".html", ".css"}
        for found in LOADED.finditer(path.read_text(encoding="utf-8"))
    }
    published = tomllib.loads((ROOT / SETTINGS).read_text(encoding="utf-8"))["project"]["site_url"]
    assert {address for address in addresses if not address.startswith(published)} == set()


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where a server of this test shows the pages."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("", 400, "dark"),
        ("tutorials/first-look/", 400, "dark"),
        ("how-to/engine/", 1400, "light"),
        ("reference/metrics/", 400, "dark"),
    ],
)
def test_a_page_fits_and_has_no_barrier(address: str, browser: Browser, name: str, width: int, scheme: Any) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.set_default_timeout(120_000)
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(address) else wrong.append(request.url))
    page.goto(address + name)
    if name == "reference/metrics/":
        expect(page.locator(".katex").first).to_be_attached()
    else:
        expect(page.locator(".md-code__nav").first).to_be_attached()
    wide = (
        "root => [...root.querySelectorAll('pre > code')].filter(one => one.scrollWidth > one.clientWidth + 1).length"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert width == 400 or page.locator("body").evaluate(wide) == 0
    assert [(one["id"], one["nodes"]) for one in Axe().run(page).response["violations"]] == []
    assert wrong == []
    page.close()


def test_the_readme_of_the_evaluator_lists_each_verb_once() -> None:
    readme = (ROOT / "evaluators" / "README.md").read_text(encoding="utf-8")
    rows = readme.partition("| command |")[2].partition("\n\n")[0].splitlines()[2:]
    listed = [verb for row in rows for verb in re.findall(r"`([a-z-]+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(verb for verbs in program.verbs.values() for verb in verbs)
