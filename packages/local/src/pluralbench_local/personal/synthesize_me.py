"""SynthesizeMe's embedding variant: BT that is told a synthesized persona (Ryan et al. 2025).

SynthesizeMe itself reasons about a person's earlier pairs, writes a persona of the reasonings that predicted the
choice, and picks demonstrations, for a prompted judge (`pluralbench_rewards.synthesize_me`). What the paper of
Personalized RewardBench trains under its name is a reward model that reads the persona as a vector (appendix B). Its
rows in Tables 2 and 6 are identical to those of BT, for both backbones, with and without profile: it is the same model,
and no independent evidence. Here too network, loss and draws are those of BT, and what differs is the text that it is
told of the person: a persona. Without a profile it is BT without one, weight by weight.
"""

from pluralbench_local.personal.bt import BT

SynthesizeMe = BT
