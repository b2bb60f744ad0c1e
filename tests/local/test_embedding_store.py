"""Vectors that were kept are those that were computed, whatever was interrupted and whoever else keeps some."""

import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from killing import killed_when
from pluralbench_local import Backbone, BackboneRecord, EmbeddingStore, LocalError, embed, load_backbone
from pluralbench_local.personal import embedding
from pluralbench_local.personal.backbones import Decoder
from pluralbench_rewards import Group, ScoringConfig
from reward_models import Folders, make_groups, user, work_of

RECORD = BackboneRecord(name="here/model", digest="ab" * 32, width=3, dtype="float32")


def key(number: int) -> bytes:
    """A key like no other."""
    return number.to_bytes(32, "big")


@given(
    shards=st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=8, unique=True), max_size=5),
    kind=st.sampled_from(["float32", "bfloat16", "float16"]),
    data=st.data(),
)
def test_what_is_kept_is_read_back_to_the_bit(shards: list[list[int]], kind: str, data: st.DataObject) -> None:
    dtype = getattr(torch, kind)
    table = torch.randn(41, 3, generator=torch.Generator().manual_seed(1)).to(dtype)
    with tempfile.TemporaryDirectory() as folder:
        store = EmbeddingStore(Path(folder) / "store", RECORD)
        for numbers in shards:
            store.write([key(number) for number in numbers], table[numbers])
        known = sorted({number for numbers in shards for number in numbers})
        for again in (store, EmbeddingStore(store.folder, RECORD)):
            asked = data.draw(st.permutations(known))
            assert torch.equal(again.read([key(number) for number in asked]), table[asked].float())
            assert len(again) == len(known)
            assert key(99) not in again


def embedded(groups: list[Group], backbone: "Backbone", store: "EmbeddingStore | None") -> "embedding.EmbeddedCorpus":
    return embed(groups, [[0] * len(group.responses) for group in groups], backbone, posts=5, store=store)


@pytest.fixture(scope="module")
def llama(language_models: Folders) -> "Backbone":
    return load_backbone(language_models(), scoring=ScoringConfig(token_budget=200))


@pytest.mark.parametrize("changes", [0, 1, 2, 5, 6])
def test_embedding_goes_on_where_it_was_killed(
    llama: "Backbone", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: int
) -> None:
    groups = make_groups(2, number=3)
    monkeypatch.setattr(embedding, "SHARD_VECTORS", 4)
    whole = embedded(groups, llama, None)
    done = iter(range(100))
    with killed_when(lambda: next(done) == changes, monkeypatch) as killed:
        embedded(groups, llama, EmbeddingStore(tmp_path / "store", llama.record))
    assert killed()
    store = EmbeddingStore(tmp_path / "store", llama.record)
    kept = len(store)
    assert kept == 4 * max(changes // 2, 0)  # a folder is looked for, and a shard put in place
    again = embedded(groups, llama, store)
    assert len(store) == len(whole.vectors)
    assert (work_of(again).computed_tokens < work_of(whole).computed_tokens) == (kept > 0)
    assert float((again.vectors - whole.vectors).abs().max()) < 1e-4
    assert again.responses == whole.responses
    third = embedded(groups, llama, EmbeddingStore(tmp_path / "store", llama.record))
    assert work_of(third).computed_tokens == 0
    assert torch.equal(third.vectors, again.vectors)


def test_what_was_computed_before_an_error_is_kept(
    llama: "Backbone", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EmbeddingStore(tmp_path, llama.record)
    batches = 0

    def stop(*_: object) -> None:
        nonlocal batches
        batches += 1
        if batches == 3:
            raise KeyboardInterrupt

    assert isinstance(llama, Decoder)
    hook = llama.network.body.register_forward_pre_hook(stop)
    with pytest.raises(KeyboardInterrupt):
        embedded(make_groups(2, number=3), llama, store)
    hook.remove()
    assert len(EmbeddingStore(tmp_path, llama.record)) == len(store) > 0


def test_two_that_embed_at_the_same_time_do_not_harm_each_other(llama: "Backbone", tmp_path: Path) -> None:
    stores = [EmbeddingStore(tmp_path, llama.record) for _ in range(2)]
    groups = make_groups(2, number=3)
    first, second = (embedded(groups, llama, store) for store in stores)
    third = embedded(groups, llama, EmbeddingStore(tmp_path, llama.record))
    assert torch.equal(first.vectors, second.vectors)
    assert torch.equal(first.vectors, third.vectors)
    assert work_of(third).computed_tokens == 0


def test_the_store_of_another_backbone_is_refused_by_both_names(
    llama: "Backbone", language_models: Folders, tmp_path: Path
) -> None:
    other = load_backbone(language_models(seed=1))
    groups = [Group("q", user("Tea?"), ["Oolong."])]
    store = EmbeddingStore(tmp_path, llama.record)
    embedded(groups, llama, store)
    for refused in (lambda: EmbeddingStore(tmp_path, other.record), lambda: embedded(groups, other, store)):
        with pytest.raises(LocalError, match=r"has vectors of .*, not of .*; give another folder\.") as error:
            refused()
        assert f"{llama.record}" in str(error.value)
        assert f"{other.record}" in str(error.value)


@pytest.mark.parametrize("kept", [0, 5, 40, -1])
def test_half_a_file_is_named(tmp_path: Path, kept: int) -> None:
    EmbeddingStore(tmp_path, RECORD).write([key(1)], torch.zeros(1, 3))
    [path] = tmp_path.glob("*.safetensors")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(
        LocalError, match=r"\.safetensors is not a complete shard of an embedding store \(.*\); delete it"
    ):
        EmbeddingStore(tmp_path, RECORD)
