"""Measure time and memory of reading a generated Stack Exchange dump of any size.

    uv run python benchmarks/dump.py --gigabytes 5 --limit 2000

The dump resembles a real one: a third of the posts are questions, bodies are HTML of about 200 words, and a few users
wrote most posts. Prints the machine, the time, the throughput and the peak memory.
"""

import argparse
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from html import escape
from pathlib import Path

from build_personalized.recipe import SourceTable
from build_personalized.sources import load

WORDS = [
    "beer",
    "hops",
    "yeast",
    "malt",
    "glass",
    "cellar",
    "taste",
    "foam",
    "bitter",
    "sweet",
    "brew",
    "barrel",
    "water",
]
USERS = 80_000  # per gigabyte


def make(path: Path, size: int) -> int:
    """Write a dump of about `size` bytes, and return its number of posts."""
    draw = random.Random(1)
    bodies = [
        f"<p>{' '.join(draw.choices(WORDS, k=100))}</p>\n<p>{' '.join(draw.choices(WORDS, k=100))}</p>"
        for _ in range(2000)
    ]
    bodies = [escape(body, quote=True).replace("\n", "&#xA;") for body in bodies]
    posts, users = 0, int(USERS * size / 1e9)
    with path.open("w", encoding="utf-8") as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n<posts>\n')
        while file.tell() < size:
            for _ in range(10_000):
                posts += 1
                user = int(users * draw.random() ** 3)  # half of the posts are by a fifth of the users
                day = f"{2010 + posts % 14}-{1 + posts % 12:02}-{1 + posts % 28:02}T10:00:00.000"
                kind = 1 if draw.random() < 0.35 else 2
                file.write(
                    f'  <row Id="{posts}" PostTypeId="{kind}" CreationDate="{day}" Score="1" OwnerUserId="{user}" '
                    f'Title="Question {posts}" Tags="&lt;taste&gt;" Body="{posts} {bodies[posts % 2000]}" />\n'
                )
        file.write("</posts>\n")
    return posts


def read(path: Path, limit: int | None) -> None:
    """Read the dump as the builder does, and print time and memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        loaded = load(SourceTable(locations=[f"stack-exchange:{path}"], limit=limit, split="test"), Path(scratch))
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    posts = loaded.questions["profile"].list.len().sum()
    print(f"users kept {loaded.questions.height:,} with {posts:,} posts; dropped {loaded.drops.height:,}")
    print(f"{seconds:.0f} s, {path.stat().st_size / seconds / 1e6:.0f} MB/s")
    print(f"peak memory {peak / 1e6:.2f} GB ({before / 1e6:.2f} GB before reading)")


def main() -> None:
    """Generate the dump and read it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=0.5)
    parser.add_argument("--limit", type=int, default=None, help="maximum number of users")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read(options.read, options.limit)
        return
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.Posts.xml"
        posts = make(path, int(options.gigabytes * 1e9))
        print(f"dump of {path.stat().st_size / 1e9:.2f} GB, {posts:,} posts", flush=True)
        limit = [] if options.limit is None else ["--limit", str(options.limit)]
        # In its own process, to measure the peak of reading only.
        subprocess.run([sys.executable, __file__, "--read", str(path), *limit], check=True)


if __name__ == "__main__":
    main()
