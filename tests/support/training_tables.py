"""Tables of preferences with users, as they are published and as anybody may have them."""

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
