"""The networks of the methods."""

import torch
from pluralbench_runs import rng_for

from pluralbench_local.personal.bt import BT
from pluralbench_local.personal.gpo import GPO
from pluralbench_local.personal.options import Method, PersonalConfig
from pluralbench_local.personal.pal import PAL
from pluralbench_local.personal.vpl import VPL

Network = BT | GPO | VPL | PAL
NETWORKS: dict[Method, type[Network]] = {"bt": BT, "gpo": GPO, "vpl": VPL, "pal": PAL, "synthesizeme": BT}
"""Network of each method. SynthesizeMe's embedding variant is BT with a synthesized persona (Ryan et al. 2025).

The Personalized RewardBench paper trains a reward model under this name that reads the persona as a vector (appendix
B). Its rows in Tables 2 and 6 are identical to those of BT: it is the same model, not independent evidence. Without a
profile it has the same weights as BT without one.
"""


def new_network(width: int, options: PersonalConfig) -> Network:
    """Create the network of a method for vectors of this width, initialized by the options' seed."""
    with torch.random.fork_rng(devices=[]):
        kind = NETWORKS[options.method]
        torch.manual_seed(rng_for(options.seed, "network", kind.__name__.lower()).getrandbits(63))
        return kind(width, width * len(options.context_sources), options)
