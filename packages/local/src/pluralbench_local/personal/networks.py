"""Which network is which method's."""

import torch
from pluralbench_runs import stream

from pluralbench_local.personal.bt import BT
from pluralbench_local.personal.gpo import GPO
from pluralbench_local.personal.options import Method, PersonalOptions
from pluralbench_local.personal.pal import PAL
from pluralbench_local.personal.synthesize_me import SynthesizeMe
from pluralbench_local.personal.vpl import VPL

Network = BT | GPO | VPL | PAL
NETWORKS: dict[Method, type[Network]] = {
    "bt": BT,
    "gpo": GPO,
    "vpl": VPL,
    "pal": PAL,
    "synthesizeme": SynthesizeMe,
}


def new_network(width: int, options: PersonalOptions) -> Network:
    """The method's network for vectors of this width, its weights drawn by the options' seed."""
    with torch.random.fork_rng(devices=[]):
        kind = NETWORKS[options.method]
        torch.manual_seed(stream(options.seed, "network", kind.__name__.lower()).getrandbits(63))
        return kind(width, width * len(options.told), options)
