"""Which network is which method's."""

import torch
from pluralbench_runs import stream

from pluralbench_local.personal.bt import BT
from pluralbench_local.personal.options import Method, PersonalOptions
from pluralbench_local.personal.synthesize_me import SynthesizeMe

Network = BT
NETWORKS: dict[Method, type[Network]] = {"bt": BT, "synthesizeme": SynthesizeMe}


def new_network(width: int, options: PersonalOptions) -> Network:
    """The method's network for vectors of this width, its weights drawn by the options' seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream(options.seed, "network", options.method).getrandbits(63))
        return NETWORKS[options.method](width, width * len(options.told), options)
