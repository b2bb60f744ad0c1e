"""Hold what the strategies made against each other.

python -m translating.compared '["OURS", ["PEER", ...], ["deu_Latn", ...], 2985]'
"""

import json
import sys
from pathlib import Path

import polars as pl

TEXTS = ["id", "prompt", "chosen", "rejected"]


def main(ours: str, peers: list[str], codes: list[str], rows: int) -> None:
    """Raises `SystemExit` where a row is missing, a peer's text is another one, or a check says something."""
    for code in codes:
        made = pl.read_parquet(Path(ours, "data", code, "test.parquet"))
        if made.height != rows:
            raise SystemExit(f"{made.height:,} of {rows:,} rows came through in {code}.")
        for peer in peers:
            theirs = pl.read_parquet(Path(peer, f"{code}.parquet"))
            if not theirs.select(TEXTS).sort("id").equals(made.select(TEXTS).sort("id")):
                raise SystemExit(f"The texts of {peer} in {code} are not ours.")
            if "reason" in theirs.columns and (theirs["reason"] != "").any():
                raise SystemExit(f"{peer} found something wrong in {code}, where we did not.")


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
