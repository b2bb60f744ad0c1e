"""What is slow to import is imported before a test file's first test, so that collecting the tests does not do so.

Such imports stand in the file under `if RUNNING:`, after the others. Their names are not to be used where the file is
imported: in decorators, in constants, in annotations without quotes.
"""

import ast
from pathlib import Path
from typing import Any

RUNNING: bool = False
"""Whether tests run already; a file takes the name, which says whether its late imports are made."""


def pytest_runtest_setup(item: Any) -> None:
    """Make them; a folder's conftest takes this hook."""
    made = vars(item.module)
    if made.get("RUNNING", True):
        return
    made["RUNNING"] = True
    for block in ast.parse(Path(item.module.__file__).read_text(encoding="utf-8")).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "RUNNING":
            exec(compile(ast.Module(block.body, []), item.module.__file__, "exec"), made)  # noqa: S102
