"""A network that is read at chosen tokens: packed where its attention allows it, in sorted batches elsewhere."""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from pluralbench_rewards import Mode
from torch import Tensor, nn
from transformers import PreTrainedModel

from pluralbench_local.attention import PACKED, NotPackable, attending, read_only_last_rows
from pluralbench_local.gates import fuse_gated_mlps
from pluralbench_local.packing import Packed, Tokens, pack

PACKABLE_LAYERS = {"full_attention", "sliding_attention"}
AGREEMENT = {torch.float32: 1e-3, torch.float16: 0.05, torch.bfloat16: 0.15}  # of the probe, relative to its scale


@dataclass(frozen=True)
class ReadableNetwork:
    """A model in use.

    body: gives last hidden states. head: reads them; None where the model pools by itself (encoders).
    usual: the attention that it has when nothing is packed. unpackable: why conversations cannot be packed for it, or
    nothing.
    """

    model: PreTrainedModel
    body: nn.Module
    head: nn.Module | None
    usual: str
    unpackable: str

    @property
    def device(self) -> torch.device:
        """Where token ids go."""
        return _device(self.model)

    @property
    def dtype(self) -> torch.dtype:
        """Of the weights."""
        return self.model.dtype


def positions_of(network: ReadableNetwork) -> int | None:
    """How many positions the model has an embedding for; None where positions are not embedded."""
    limit = getattr(network.model.config.get_text_config(), "max_position_embeddings", None)
    tokens = network.model.get_input_embeddings()
    tables = [module for module in network.model.modules() if isinstance(module, nn.Embedding) and module is not tokens]
    # RoBERTa and OPT have two rows more than positions.
    return limit if limit and any(0 <= table.num_embeddings - limit <= 2 for table in tables) else None


def _device(model: PreTrainedModel) -> torch.device:
    weight = model.get_input_embeddings().weight
    assert isinstance(weight, Tensor)  # noqa: S101 - the library types it as anything that a module can hold
    return weight.device


def network_of(model: PreTrainedModel, head: nn.Module | None) -> ReadableNetwork:
    """Find out how a loaded model can be read, by trying it on a few tokens."""
    body = model.base_model
    usual = model.config._attn_implementation  # noqa: SLF001 - there is no public name for it
    if head is None or body is model:
        return ReadableNetwork(model, model, None, usual, "the model pools its tokens by itself")
    fuse_gated_mlps(model)
    return ReadableNetwork(model, body, head, usual, _why_not_packable(model, body, usual))


def unpacked(network: ReadableNetwork, why: str) -> ReadableNetwork:
    """The network as one that is not to be packed."""
    network.model.set_attn_implementation(network.usual)
    return replace(network, unpackable=why)


@contextmanager
def usual_attention(network: ReadableNetwork) -> Iterator[None]:
    """Within this context the network computes as it does when nothing is packed."""
    if not network.unpackable:
        network.model.set_attn_implementation(network.usual)
    try:
        yield
    finally:
        if not network.unpackable:
            network.model.set_attn_implementation(PACKED)


def read_packed(
    network: ReadableNetwork, groups: Sequence[Sequence[Tokens]], mode: Mode
) -> tuple[Tensor, list[list[int]], int]:
    """Last hidden states [n, width] of the rows that are read, for each conversation its places among them, and how
    many tokens were computed."""
    packed = pack(groups, mode)
    states = _packed_states(network.body, packed, network.device)
    place = {row: number for number, row in enumerate(packed.read_rows)}
    return states[packed.read_rows], [[place[row] for row in rows] for rows in packed.rows], len(packed.ids)


def _packed_states(body: nn.Module, packed: Packed, device: torch.device) -> Tensor:
    ids = torch.tensor([packed.ids], device=device)
    positions = torch.tensor([packed.positions], device=device)
    with attending(packed):
        states: Tensor = body(input_ids=ids, position_ids=positions, use_cache=False).last_hidden_state[0]
    return states


def read_padded(network: ReadableNetwork, conversations: Sequence[Tokens]) -> tuple[Tensor, list[list[int]], int]:
    """The same in a right-padded batch; where the model pools by itself, its logits [conversations, labels]."""
    longest = max(len(tokens.ids) for tokens in conversations)
    # Any id will do: the mask says which tokens count, so no pad token is needed.
    ids = torch.zeros(len(conversations), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, tokens in enumerate(conversations):
        ids[row, : len(tokens.ids)] = torch.tensor(tokens.ids)
        mask[row, : len(tokens.ids)] = 1
    ids, mask = ids.to(network.device), mask.to(network.device)
    if network.head is None:
        logits: Tensor = network.model(input_ids=ids, attention_mask=mask).logits
        return logits, [[row] for row in range(len(conversations))], ids.numel()
    states = network.body(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state.flatten(0, 1)
    rows = [[row * longest + place for place in tokens.reads] for row, tokens in enumerate(conversations)]
    return states, rows, ids.numel()


def _why_not_packable(model: PreTrainedModel, body: nn.Module, usual: str) -> str:
    config = model.config.get_text_config()
    odd = set(getattr(config, "layer_types", None) or ()) - PACKABLE_LAYERS
    if odd:
        return f"its layers of {', '.join(sorted(odd))} cannot be packed"
    layers = getattr(body, "layers", None)
    hooks = read_only_last_rows(layers[-1]) if isinstance(layers, nn.ModuleList) else []
    why = _disagreement(model, body, usual)
    if why and hooks:
        for hook in hooks:
            hook.remove()
        why = _disagreement(model, body, usual)
    if why:
        model.set_attn_implementation(usual)
    return why


@torch.inference_mode()
def _disagreement(model: PreTrainedModel, body: nn.Module, usual: str) -> str:
    """Why two short conversations do not get the same states packed together as each alone; nothing if they do."""
    size, device = model.config.get_text_config().vocab_size, _device(model)
    prompt, tails = range(1, 10), (range(20, 24), range(30, 37))
    ids = [array("i", [7 * token % size for token in (*prompt, *tail)]) for tail in tails]
    group = [Tokens(run, range(len(run) - 1, len(run))) for run in ids]
    packed = pack([group, group[:1]], "fast")
    try:
        model.set_attn_implementation(PACKED)
        together = _packed_states(body, packed, device)[[rows[-1] for rows in packed.rows]].float()
        model.set_attn_implementation(usual)
        alone = [body(input_ids=torch.tensor([list(run)], device=device), use_cache=False) for run in [*ids, ids[0]]]
        model.set_attn_implementation(PACKED)
    except NotPackable as reason:
        return str(reason)
    except (TypeError, ValueError, AttributeError, RuntimeError, KeyError, IndexError) as error:
        return f"its attention cannot be replaced ({' '.join(str(error).split())[:120]})"
    if packed.attended != model.config.get_text_config().num_hidden_layers:
        return "not all of its layers let their attention be replaced"
    states = torch.stack([output.last_hidden_state[0, -1] for output in alone]).float()
    limit = AGREEMENT.get(model.dtype, 0.15) * states.abs().max()
    return "" if (together - states).abs().max() <= limit else "packed, it computes something else than alone"
