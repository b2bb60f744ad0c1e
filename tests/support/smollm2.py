"""SmolLM2-135M as transformers folders: the language model and a reward model.

Reading the 4-bit file takes ten seconds, so a session does it once, in `CACHE`. They show that real weights go
through; what the reward model measures is fluency at best.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock
from session_folder import CACHE, session_folder

if TYPE_CHECKING:
    import torch

SENTENCES = (
    "Keep the bread in a paper bag so that its crust stays crisp until the evening.",
    "A short walk after lunch helps many people to work better in the afternoon.",
    "Water the tomatoes in the morning and take away the lowest leaves.",
    "The museum opens at ten, and on Thursdays it stays open until nine.",
    "Write the number of the room on the label before you put the box away.",
    "You can cross the river on foot when the tide is low.",
    "Soak the beans overnight and cook them slowly without salt.",
    "She tuned the old piano herself and played until the neighbours came.",
)
QUESTION = "Tell me something useful in one sentence."


def in_bfloat16() -> Path:
    """The embedded model as a transformers folder, not to be changed."""
    from pluralbench_policies import embedded_folder

    return embedded_folder(session_folder(CACHE) / "pluralbench" / "SmolLM2-135M-Instruct")


def language_model() -> Path:
    """The same in float32, not to be changed."""
    folder, base = session_folder("smollm2"), in_bfloat16()
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            from transformers import AutoModelForCausalLM, AutoTokenizer

            model: Any = AutoModelForCausalLM.from_pretrained(base, dtype="float32")
            _save(model, AutoTokenizer.from_pretrained(base), folder)
    return folder


def reward_model() -> Path:
    """A classifier whose head was trained to prefer sentences to the same words backwards, not to be changed."""
    folder, base = session_folder("smollm2-reward"), language_model()
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            _train_head(base, folder)
    return folder


def _train_head(base: Path, folder: Path) -> None:
    import torch
    from torch.nn.functional import logsigmoid
    from transformers import AutoTokenizer, LlamaForSequenceClassification

    torch.manual_seed(0)
    tokenizer: Any = AutoTokenizer.from_pretrained(base)
    model: Any = LlamaForSequenceClassification.from_pretrained(base, num_labels=1, dtype=torch.float32)
    features = [
        torch.stack([_last_state(model.model, tokenizer, answer) for answer in (text, " ".join(text.split()[::-1]))])
        for text in SENTENCES
    ]
    optimizer = torch.optim.Adam(model.score.parameters(), lr=1e-3)
    for _ in range(60):
        margins = torch.cat([model.score(pair[0]) - model.score(pair[1]) for pair in features])
        optimizer.zero_grad()
        (-logsigmoid(margins).mean() + 0.01 * margins.square().mean()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert bool((margins > 0).all())
    _save(model, tokenizer, folder)


def _save(model: Any, tokenizer: Any, folder: Path) -> None:
    """The folder appears once it is whole."""
    made = folder.with_name(f"{folder.name}.made")
    model.save_pretrained(made)
    tokenizer.save_pretrained(made)
    made.rename(folder)


def _ids(tokenizer: Any, answer: str) -> "torch.Tensor":
    messages = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": answer}]
    text = tokenizer.apply_chat_template(messages, tokenize=False)
    ids: torch.Tensor = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    return ids


def _last_state(body: Any, tokenizer: Any, answer: str) -> "torch.Tensor":
    import torch

    with torch.no_grad():
        state: torch.Tensor = body(input_ids=_ids(tokenizer, answer)).last_hidden_state[0, -1]
    return state
