"""Which network is which method's."""

import torch
from pluralbench_runs import rng_for

from pluralbench_local.personal.bt import BT
from pluralbench_local.personal.gpo import GPO
from pluralbench_local.personal.options import Method, PersonalConfig
from pluralbench_local.personal.pal import PAL
from pluralbench_local.personal.vpl import VPL

Network = BT | GPO | VPL | PAL
NETWORKS: dict[Method, type[Network]] = {"bt": BT, "gpo": GPO, "vpl": VPL, "pal": PAL, "synthesizeme": BT}
"""SynthesizeMe's embedding variant is BT that is told a synthesized persona (Ryan et al. 2025).

What the paper of Personalized RewardBench trains under its name is a reward model that reads the persona as a vector
(appendix B); its rows in Tables 2 and 6 are identical to those of BT: it is the same model, and no independent
evidence. Without a profile it is BT without one, weight by weight.
"""


def new_network(width: int, options: PersonalConfig) -> Network:
    """The method's network for vectors of this width, its weights drawn by the options' seed."""
    with torch.random.fork_rng(devices=[]):
        kind = NETWORKS[options.method]
        torch.manual_seed(rng_for(options.seed, "network", kind.__name__.lower()).getrandbits(63))
        return kind(width, width * len(options.context_sources), options)
