"""Tables of preferences with users, as they are published and as anybody may have them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def published(number: int, user: str, **changes: Any) -> dict[str, Any]:
    """A row of Chatbot Arena or PRISM as personalized on the Hub: responses are messages."""
    return {
        "user_id": user,
        "split": "train",
        "conversation_id": f"conversation {number}",
        "context": [{"role": "user", "content": f"Question {number} of {user}?"}],
        "chosen": {"role": "assistant", "content": f"Good answer {number}."},
        "rejected": {"role": "assistant", "content": f"Poor answer {number}."},
        "type": "pairwise",
        "flip": False,
    } | changes


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Rows as JSON Lines."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path
