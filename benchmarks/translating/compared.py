"""Compare the results of the strategies.

python -m translating.compared '["OURS", ["PEER", ...], ["deu_Latn", ...], 2985]'
"""

import json
import sys
from pathlib import Path

import polars as pl

TEXTS = ["id", "prompt", "chosen", "rejected"]


def main(ours: str, peers: list[str], codes: list[str], rows: int) -> None:
    """Raise `SystemExit` if a row is missing, a text differs, or a check of a peer fails."""
    for code in codes:
        made = pl.read_parquet(Path(ours, "data", code, "test.parquet"))
        if made.height != rows:
            raise SystemExit(f"Only {made.height:,} of {rows:,} rows are left in {code}.")
        for peer in peers:
            theirs = pl.read_parquet(Path(peer, f"{code}.parquet"))
            if not theirs.select(TEXTS).sort("id").equals(made.select(TEXTS).sort("id")):
                raise SystemExit(f"The texts of {peer} in {code} differ from ours.")
            if "reason" in theirs.columns and (theirs["reason"] != "").any():
                raise SystemExit(f"A check of {peer} failed in {code}, but not of ours.")


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
