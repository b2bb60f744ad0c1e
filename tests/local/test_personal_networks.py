"""The five methods' networks: their losses by hand, and what each may and may not look at."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from personal_corpora import TEST, TRAIN, WIDTH, showing, small
from pluralbench_local.personal.corpus import Points
from pluralbench_local.personal.networks import annealing, bradley_terry, new_network
from pluralbench_local.personal.options import METHODS, Method
from pluralbench_local.personal.scoring import batches_of
from simulated_users import simulated
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence


def network(method: Method, **given: Any) -> Any:
    return new_network(WIDTH, small(method, **given)).eval()


def points(method: Method, corpus: Any = None, **given: Any) -> "Points":
    [(_, points)] = batches_of(corpus or TEST, small(method, **given))
    return points


def taken(points: "Points", items: Sequence[int]) -> "Points":
    return Points(**{name: value[list(items)] for name, value in vars(points).items()})


# What holds for every method


@pytest.mark.parametrize("profile", [True, False])
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=5)
@given(draw=st.randoms(use_true_random=False))
def test_a_reward_depends_on_no_other_item_and_on_no_place(method: Method, profile: bool, draw: Any) -> None:
    model, whole = network(method, profile=profile), points(method, profile=profile)
    expected = model(whole)
    order = draw.sample(range(len(expected)), len(expected))
    torch.testing.assert_close(model(taken(whole, order)), expected[order], rtol=1e-4, atol=1e-5)
    alone = order[0]
    torch.testing.assert_close(model(taken(whole, [alone]))[0], expected[alone], rtol=1e-4, atol=1e-5)
    swapped = replace(whole, responses=whole.responses.flip(1))
    torch.testing.assert_close(model(swapped), expected.flip(1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["gpo", "vpl"])
@settings(max_examples=10)
@given(draw=st.randoms(use_true_random=False), padding=st.integers(0, 3))
def test_earlier_pairs_count_in_any_order_and_padding_does_not(method: Method, draw: Any, padding: int) -> None:
    model, whole = network(method), points(method)
    last = taken(whole, [2])  # a third item has two earlier pairs
    count = int(last.pair_mask.sum())
    order = draw.sample(range(count), count)
    shown = replace(last, pair_mask=last.pair_mask[:, order], earlier=last.earlier[:, order])
    padded = replace(
        shown,
        earlier_query=nn.functional.pad(last.earlier_query[:, order], (0, 0, 0, padding), value=9.0),
        earlier=nn.functional.pad(shown.earlier, (0, 0, 0, 0, 0, padding), value=9.0),
        pair_mask=nn.functional.pad(shown.pair_mask, (0, padding)),
    )
    torch.testing.assert_close(model(padded), model(last), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(
        model(padded), model(replace(last, pair_mask=torch.zeros_like(last.pair_mask))), atol=1e-6
    )


@pytest.mark.parametrize("method", METHODS)
def test_query_and_profile_change_which_response_is_better(method: Method) -> None:
    # What is common to both responses of a pair would cancel in a network that adds it up.
    model, whole = network(method), points(method)
    margins = model(whole).diff(dim=1)
    others = replace(whole, query=whole.query.roll(1, 0))
    assert not torch.allclose(model(others).diff(dim=1), margins, atol=1e-5)
    others = replace(whole, about=whole.about.roll(3, 0))
    assert not torch.allclose(model(others).diff(dim=1), margins, atol=1e-5)


@pytest.mark.parametrize("profile", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_some_steps_make_the_loss_smaller(method: Method, profile: bool) -> None:
    model, whole = network(method, profile=profile), points(method, profile=profile)
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(model.parameter_groups(), lr=0.01)
    losses = []
    for _ in range(20):
        loss = model.train().loss(whole, 0.5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.1


# BT and SynthesizeMe


def test_the_loss_of_bradley_terry_is_minus_the_logarithm_of_the_choice() -> None:
    rewards = torch.tensor([[2.0, 0.5], [-1.0, 3.0]])
    by_hand = (math.log(1 + math.exp(-1.5)) + math.log(1 + math.exp(4))) / 2
    assert bradley_terry(rewards).item() == pytest.approx(by_hand)


@pytest.mark.parametrize("profile", [True, False])
def test_synthesize_me_is_bt_to_the_weight(profile: bool) -> None:
    ours, plain = network("synthesizeme", profile=profile), network("bt", profile=profile)
    given = points("bt", profile=profile)
    assert torch.equal(ours(given), plain(given))


def test_a_persona_stands_beside_what_is_told() -> None:
    both, alone = points("bt", persona=True).about, points("bt", replace(TEST, about=TEST.persona)).about
    assert torch.equal(both, torch.cat([points("bt").about, alone], dim=1))
    assert isinstance(network("bt", persona=True)(points("bt", persona=True)), Tensor)


# GPO


def test_the_loss_of_gpo_is_the_density_of_the_outcome() -> None:
    model = network("gpo")
    whole = points("gpo")
    mean, deviation = model.predict(whole)
    predicted: Any = Normal(mean.softmax(dim=1), deviation)
    density = predicted.log_prob(torch.tensor([1.0, 0.0]).expand_as(mean))
    expected = -(density + math.log(2 * math.pi) / 2).mean()
    assert model.loss(whole, 0.0).item() == pytest.approx(expected.item(), rel=1e-4)
    assert deviation.min() >= 0.05


def test_a_target_of_gpo_sees_context_and_itself_alone() -> None:
    model, whole = network("gpo"), points("gpo")
    others = replace(whole, responses=torch.stack([whole.responses[:, 0], whole.responses[:, 1] + 1], dim=1))
    torch.testing.assert_close(model(others)[:, 0], model(whole)[:, 0])
    outcome_swapped = replace(whole, earlier=whole.earlier.flip(2))
    assert not torch.allclose(model(outcome_swapped)[2], model(whole)[2], atol=1e-6)


# VPL


def test_the_loss_of_vpl_is_that_of_the_choice_and_the_divergence_from_the_prior() -> None:
    model, whole = network("vpl", kl_weight=0.3), points("vpl")
    mean, log_variance = model.posterior(whole)
    torch.manual_seed(4)
    loss = model.loss(whole, 0.2)
    torch.manual_seed(4)
    drawn = mean + torch.randn_like(mean) * (log_variance / 2).exp()
    scaled = drawn / drawn.norm(dim=1, keepdim=True) * 2  # four dimensions
    rewards = model._rewards(whole, scaled)
    choice = torch.log1p(torch.exp(rewards[:, 1] - rewards[:, 0])).mean()
    prior = Normal(torch.tensor(0.0), torch.tensor(1.0))
    divergence = kl_divergence(Normal(mean, (log_variance / 2).exp()), prior).sum(dim=1).mean()
    assert loss.item() == pytest.approx((choice + 0.3 * annealing(0.2) * divergence).item(), rel=1e-4)


def test_the_weight_of_the_divergence_rises_in_each_cycle() -> None:
    assert annealing(0) == pytest.approx(0.1)
    assert annealing(0.125) == pytest.approx(0.55)
    assert annealing(0.2499) == pytest.approx(1, abs=1e-3)
    assert annealing(0.25) == pytest.approx(0.1)


def test_the_latent_is_of_the_person_and_not_of_the_pair_that_is_judged() -> None:
    model, whole = network("vpl"), points("vpl")
    latent = model.latent(whole)
    assert latent.shape == (len(TEST.ids), 4)
    others = replace(whole, responses=whole.responses.flip(1) + 1, query=whole.query + 1)
    assert torch.equal(model.latent(others), latent)
    assert latent.abs().max() <= 1
    first = model.latent(points("vpl", showing(TEST, 0)))
    assert first.abs().sum(dim=1).min() > 0  # nobody decided anything before, and each is told of
    torch.testing.assert_close(first[0], latent[0])
    assert not torch.allclose(first[1], latent[1], atol=1e-6)


def test_without_a_profile_the_latent_is_that_of_the_prior() -> None:
    assert network("vpl", profile=False).latent(points("vpl", profile=False)).count_nonzero() == 0


# PAL


def test_the_rewards_of_pal_are_scaled_cosines_to_the_mixture() -> None:
    model, whole = network("pal", num_prototypes=3), points("pal")
    weights = model.weights(whole)
    assert weights.shape == (len(TEST.ids), 3)
    assert weights.sum(dim=1).tolist() == pytest.approx([1.0] * len(TEST.ids))
    ideal = sum(weights[:, [k]] * model.prototypes[k](whole.query) for k in range(3))
    response = model.response(whole.responses[:, 0])
    cosine = nn.functional.cosine_similarity(response, ideal, dim=1)
    torch.testing.assert_close(model(whole)[:, 0], cosine / 0.07, rtol=1e-4, atol=1e-4)
    expected = nn.functional.cross_entropy(model(whole), torch.zeros(len(TEST.ids), dtype=torch.long))
    assert torch.equal(model.loss(whole, 0.0), expected)
    with torch.no_grad():
        model.scale.fill_(9.0)
    assert model(whole).abs().max() <= 100


def test_without_a_profile_everybody_has_the_same_weights() -> None:
    model = network("pal", profile=False)
    weights = model.weights(points("pal", profile=False))
    assert (weights == weights[0]).all()
    groups = model.parameter_groups()
    assert [len(group["params"]) for group in groups] == [18, 1, 1]


def test_pal_has_a_rate_for_each_part_and_leaves_out_nothing() -> None:
    model = network("pal", mixture_learning_rate=0.2, temperature_learning_rate=0.3)
    groups = model.parameter_groups()
    assert [group.get("lr") for group in groups] == [None, 0.2, 0.3]
    grouped = {id(parameter) for group in groups for parameter in group["params"]}
    assert grouped == {id(parameter) for parameter in model.parameters()}


# The synthetic users


def test_the_best_possible_is_what_who_knows_the_users_gets() -> None:
    users = simulated(400, 10, told=1.0, seed=3)
    chosen_first = torch.tensor([rank[0] == 1 for rank in users.corpus.rank])
    own = users.first[torch.arange(4000), torch.tensor(users.group)]
    # The standard error over 4,000 choices is 0.008.
    assert ((own > 0.5) == chosen_first).float().mean().item() == pytest.approx(users.best, abs=0.025)
    assert 0.5 < users.best_untold < users.best_shown(0) < users.best_shown(2) < users.best_shown(8) < users.best
    everything = simulated(50, 3, told=40.0, seed=3)
    assert everything.best_shown(0) == pytest.approx(everything.best, abs=1e-5)
    earlier = [
        (TRAIN.query[item], *(row for _, row in sorted(zip(TRAIN.rank[item], TRAIN.responses[item], strict=True))))
        for item in range(3)
    ]
    assert TRAIN.earlier[3] == earlier
