"""Verdicts of two invented judges on two tasks, with everything that can be odd about one."""

from pathlib import Path
from typing import Any

import polars as pl

Rows = list[dict[str, Any]]
NAMES = ("task", "judge", "setting", "persona_variables", "row", "answer", "certainty", "truth")

# Invalid: an empty answer, "Both", a letter of no option, C where nobody can call a tie. No certainty: nothing, 0, 101,
# "ninety", NA.
SAMPLE = """\
task,judge,setting,persona_variables,row,answer,certainty,truth,user
drinks,ada-1,certainty,all,0,A,95,A,u1
drinks,ada-1,certainty,all,1,B,80,B,u1
drinks,ada-1,certainty,all,2,A,80,B,u2
drinks,ada-1,certainty,all,3,B,79,B,u2
drinks,ada-1,certainty,all,4,,85,A,u3
drinks,ada-1,certainty,all,5,Both,70,B,u3
drinks,ada-1,certainty,all,6,C,90,A,u4
drinks,ada-1,certainty,all,7,A,0,A,u4
drinks,ada-1,certainty,all,8,A,101,B,u5
drinks,ada-1,certainty,all,9,B,ninety,B,u5
drinks,ada-1,certainty,all,10,A,,A,u6
drinks,ada-1,certainty,all,11,B,1,A,u6
drinks,ada-1,certainty,none,0,B,60,A,u1
drinks,ada-1,certainty,none,1,B,60,B,u1
drinks,ada-1,certainty,none,2,A,55,B,u2
drinks,ada-1,certainty,none,3,D,55,B,u2
drinks,ben-2,certainty,all,0,A,100,A,u1
drinks,ben-2,certainty,all,1,B,100,B,u1
drinks,ben-2,certainty,all,2,B,90,B,u2
drinks,ben-2,certainty,all,3,A,30,B,u2
letters,ben-2,tie,all,0,C,NA,C,u1
letters,ben-2,tie,all,1,tie,NA,tie,u2
letters,ben-2,tie,all,2,A,NA,C,u3
letters,ben-2,tie,all,3,C,NA,B,u4
letters,ben-2,tie,all,4,B,NA,B,u5
letters,ben-2,tie,all,5,G,NA,A,u6
"""
# Three people on items 0 to 3 of the drinks: 0 clear, 1 two against one, 2 a draw, 3 one who did not answer.
LABELS = """\
task,row,annotator,answer,certainty
drinks,0,p1,A,90
drinks,0,p2,A,80
drinks,0,p3,A,
drinks,1,p1,B,100
drinks,1,p2,B,50
drinks,1,p3,A,20
drinks,2,p1,A,80
drinks,2,p2,B,80
drinks,3,p1,B,60
drinks,3,p2,none,60
drinks,99,p2,A,60
"""


def written(folder: Path, text: str = SAMPLE, name: str = "verdicts.csv") -> str:
    """Write a text and say where."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def verdicts(rows: Rows, **values: Any) -> pl.DataFrame:
    """A raw table of these rows; what they leave out is that of one judge on one task, `row` their number."""
    same = {"task": "drinks", "judge": "ada-1", "setting": "certainty", "persona_variables": "all"}
    return pl.DataFrame(
        [same | {"row": number, "answer": "A", "certainty": 80, "truth": "A"} | row for number, row in enumerate(rows)],
        infer_schema_length=None,
        strict=False,
    ).with_columns(**{name: pl.lit(value) for name, value in values.items()})
