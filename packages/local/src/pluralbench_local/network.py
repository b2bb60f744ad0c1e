"""Networks whose hidden states are read at chosen tokens: packed if the attention allows it, else padded."""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from pluralbench_runs import one_line
from torch import Tensor, nn

from pluralbench_local.attention import (
    PACKED,
    NotPackable,
    packed_attention,
    read_only_last_rows,
    register_attention,
)
from pluralbench_local.errors import LocalError, is_out_of_memory
from pluralbench_local.faster_products import fuse_gated_mlps, use_faster_products
from pluralbench_local.packing import Kept, Packed, Tokens, pack, to_device

if TYPE_CHECKING:
    from transformers import PreTrainedModel

PACKABLE_LAYERS = {"full_attention", "sliding_attention"}
# Largest difference of two ways to compute the same, relative to the largest number.
AGREEMENT = {torch.float32: 1e-3, torch.float16: 0.05, torch.bfloat16: 0.15}


@dataclass(frozen=True)
class ReadableNetwork:
    """A loaded model and how to read it.

    Attributes:
        model: The whole model.
        body: The part that returns last hidden states.
        head: The part that reads them; None if the model pools by itself (encoders, and models with code of their own).
        default_attention: Name of the attention that it uses when nothing is packed.
        unpackable: Why conversations cannot be packed for it; empty if they can.
        unpaddable: What padding changes; empty if nothing was found (see `pluralbench_local.probes`).
        settings: What a run records of its reading.
    """

    model: "PreTrainedModel"
    body: nn.Module
    head: nn.Module | None
    default_attention: str
    unpackable: str
    unpaddable: str = ""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def device(self) -> torch.device:
        """Device of the input embeddings."""
        return _device(self.model)

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the weights."""
        return self.model.dtype


def max_positions(network: ReadableNetwork) -> int | None:
    """Return the number of position embeddings; None if the model has none."""
    config = network.model.config.get_text_config()
    if not getattr(config, "position_biased_input", True):  # DeBERTa may embed distances alone
        return None
    limit = getattr(config, "max_position_embeddings", None)
    tokens = network.model.get_input_embeddings()
    tables = [module for module in network.model.modules() if isinstance(module, nn.Embedding) and module is not tokens]
    # RoBERTa and OPT have two more rows than positions.
    return limit if limit and any(0 <= table.num_embeddings - limit <= 2 for table in tables) else None


def varies_with_length(model: "PreTrainedModel") -> bool:
    """Return whether its rotary embedding depends on the longest conversation of a batch (dynamic NTK, LongRoPE).

    Such a conversation gets the same score as alone only in a batch of its own.
    """
    given = [getattr(module, "rope_type", None) for module in model.modules()]
    kinds = [kind for one in given for kind in (one.values() if isinstance(one, dict) else [one])]
    return any(isinstance(kind, str) and ("dynamic" in kind or kind == "longrope") for kind in kinds)


def _device(model: "PreTrainedModel") -> torch.device:
    weight = model.get_input_embeddings().weight
    assert isinstance(weight, Tensor)  # noqa: S101 - for mypy: the library declares a wider type
    return weight.device


def network_of(model: "PreTrainedModel", head: nn.Module | None, body: nn.Module | None = None) -> ReadableNetwork:
    """Determine how a loaded model can be read, by running it on a few tokens.

    `head` reads its hidden states (None: the model pools by itself), which `body` gives, by default the model's base.
    """
    default_attention = model.config._attn_implementation  # noqa: SLF001 - it has no public name
    if body is None and model.base_model is not model:
        body = model.base_model
    if head is None or body is None:
        return ReadableNetwork(model, model, None, default_attention, "the model pools its tokens by itself")
    fuse_gated_mlps(model)
    use_faster_products(body)
    return ReadableNetwork(model, body, head, default_attention, _unpackable_reason(model, body, default_attention))


def without_packing(network: ReadableNetwork, why: str) -> ReadableNetwork:
    """Return the network with packing turned off, for the reason `why`."""
    network.model.set_attn_implementation(network.default_attention)
    return replace(network, unpackable=why)


@contextmanager
def using_default_attention(network: ReadableNetwork) -> Iterator[None]:
    """Let the network compute without packing within this context."""
    if not network.unpackable:
        network.model.set_attn_implementation(network.default_attention)
    try:
        yield
    finally:
        if not network.unpackable:
            network.model.set_attn_implementation(PACKED)


def read_packed(
    network: ReadableNetwork, packed: Packed, kept: Kept | None = None
) -> tuple[Tensor, list[list[int]], int]:
    """Compute the last hidden states of a packed batch.

    `kept` is what this network has kept of the batch before; it is replaced by what it keeps of this one.

    Returns:
        The states that are read, of shape (n, width); for each conversation the indices of its states; and the number
        of tokens computed.
    """
    packed = replace(packed, kept=kept or Kept(), attended_layers=0)
    states = _packed_states(network.body, packed, network.device)
    if packed.inherited and packed.kept.states is not None:
        states = torch.cat((packed.kept.states, states))
    packed.kept.states = packed.pass_on(states, 0) if packed.passed_on else None
    if not packed.passed_on:
        packed.kept.layers.clear()
    rows = sorted({row for rows in packed.rows for row in rows})
    index = {row: number for number, row in enumerate(rows)}
    read = states[to_device([row + packed.num_inherited for row in rows], states.device)]
    return read, [[index[row] for row in rows] for rows in packed.rows], len(packed.ids)


def _packed_states(body: nn.Module, packed: Packed, device: torch.device) -> Tensor:
    ids, positions = to_device([packed.ids], device), to_device([packed.positions], device)
    with packed_attention(packed):
        states: Tensor = body(input_ids=ids, position_ids=positions, use_cache=False).last_hidden_state[0]
    return states


def padding_id(network: ReadableNetwork) -> int | None:
    """Return the token id that pads a batch; None if conversations must not be padded.

    A mask hides padding from a body, so that any id will do. A model that pools by itself may look for the padding of
    its configuration (as ArmoRM does).
    """
    if network.head is not None:
        return 0
    pad = getattr(network.model.config.get_text_config(), "pad_token_id", None)
    return pad if isinstance(pad, int) and pad >= 0 else None


def must_be_alone(network: ReadableNetwork) -> bool:
    """Return whether each conversation needs a forward pass of its own."""
    return bool(network.unpaddable) or padding_id(network) is None or varies_with_length(network.model)


def read_padded(network: ReadableNetwork, conversations: Sequence[Tokens]) -> tuple[Tensor, list[list[int]], int]:
    """Compute the last hidden states of a right-padded batch; see `read_packed`.

    For a model that pools by itself, the states are its logits, of shape (conversations, labels).

    Raises:
        LocalError: If the forward pass of such a model fails, or returns something else.
    """
    longest = max(len(tokens.ids) for tokens in conversations)
    ids = torch.full((len(conversations), longest), padding_id(network) or 0)
    mask = torch.zeros_like(ids)
    for row, tokens in enumerate(conversations):
        ids[row, : len(tokens.ids)] = torch.tensor(tokens.ids)
        mask[row, : len(tokens.ids)] = 1
    inputs = {"input_ids": ids, "attention_mask": mask}
    if any(tokens.second is not None for tokens in conversations):
        inputs["token_type_ids"] = _token_types(conversations, longest)
    inputs = {name: to_device(values, network.device) for name, values in inputs.items()}
    if network.head is None:
        return _rows_of_logits(network.model, inputs), [[row] for row in range(len(conversations))], ids.numel()
    states = network.body(**inputs, use_cache=False).last_hidden_state.flatten(0, 1)
    rows = [[row * longest + position for position in tokens.reads] for row, tokens in enumerate(conversations)]
    return states, rows, ids.numel()


def _token_types(conversations: Sequence[Tokens], longest: int) -> Tensor:
    types = torch.zeros(len(conversations), longest, dtype=torch.long)
    for row, tokens in enumerate(conversations):
        if tokens.second is not None:
            types[row, tokens.second : len(tokens.ids)] = 1
    return types


def own_logits(model: Any, **inputs: Any) -> Tensor:
    """Return the logits of a model's own forward pass.

    Raises:
        LocalError: If it fails for another reason than a lack of memory.
    """
    try:
        output = model(**inputs)
        logits: Tensor = output["logits"] if isinstance(output, dict) and "logits" in output else output[0]
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise LocalError(
            f"The forward pass of {model.name_or_path} fails on a conversation ({one_line(error, 200)})."
        ) from None
    return logits


def _rows_of_logits(model: "PreTrainedModel", inputs: dict[str, Tensor]) -> Tensor:
    logits, rows = own_logits(model, **inputs), len(inputs["input_ids"])
    if logits.dim() < 2 and logits.numel() % rows == 0:  # as of ArmoRM; some squeeze a batch of one
        logits = logits.reshape(rows, -1)
    if logits.dim() != 2 or len(logits) != rows:
        raise LocalError(
            f"{model.name_or_path} returns logits of shape {tuple(logits.shape)} for {rows} conversations, not a "
            "row of each; it is not a sequence classifier."
        )
    return logits


def _unpackable_reason(model: "PreTrainedModel", body: nn.Module, default_attention: str) -> str:
    config = model.config.get_text_config()
    if varies_with_length(model):
        return "its rotary embedding depends on the longest conversation of a batch"
    if getattr(model, "is_loaded_in_8bit", False):
        return "which of its numbers are rounded to 8 bits depends on the batch"
    unsupported = set(getattr(config, "layer_types", None) or ()) - PACKABLE_LAYERS
    if unsupported:
        return f"its layers of {', '.join(sorted(unsupported))} cannot be packed"
    layers = getattr(body, "layers", None)
    hooks = read_only_last_rows(layers[-1]) if isinstance(layers, nn.ModuleList) else []
    why = _packing_problem(model, body, default_attention)
    if why and hooks:
        for hook in hooks:
            hook.remove()
        why = _packing_problem(model, body, default_attention)
    if why:
        model.set_attn_implementation(default_attention)
    return why


@torch.inference_mode()
def _packing_problem(model: "PreTrainedModel", body: nn.Module, default_attention: str) -> str:
    """Why two short conversations get other states packed together than separately; empty if they do not."""
    size, device = model.config.get_text_config().vocab_size, _device(model)
    prompt, tails = range(1, 10), (range(20, 24), range(30, 37))
    ids = [array("i", [7 * token % size for token in (*prompt, *tail)]) for tail in tails]
    group = [Tokens(run, range(len(run) - 1, len(run))) for run in ids]
    packed = pack([group, group[:1]], "fast")
    register_attention()
    try:
        model.set_attn_implementation(PACKED)
        last = to_device([rows[-1] for rows in packed.rows], device)
        packed_states = _packed_states(body, packed, device)[last].float()
        model.set_attn_implementation(default_attention)
        outputs = [body(input_ids=to_device([list(run)], device), use_cache=False) for run in ids]
        model.set_attn_implementation(PACKED)
    except NotPackable as reason:
        return str(reason)
    except (TypeError, ValueError, AttributeError, RuntimeError, KeyError, IndexError) as error:
        return f"its attention cannot be replaced ({' '.join(str(error).split())[:120]})"
    if packed.attended_layers != model.config.get_text_config().num_hidden_layers:
        return "not all of its layers let their attention be replaced"
    states = torch.stack([output.last_hidden_state[0, -1] for output in [*outputs, outputs[0]]]).float()
    limit = AGREEMENT.get(model.dtype, 0.15) * states.abs().max()
    return "" if (packed_states - states).abs().max() <= limit else "its hidden states change when it is packed"
