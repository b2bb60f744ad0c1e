"""SynthesizeMe's embedding variant: BT that is told a synthesized persona (Ryan et al. 2025)."""

from pluralbench_local.personal.bt import BT


class SynthesizeMe(BT):
    """BT, told of the person by a persona that a language model wrote from what they chose before.

    SynthesizeMe itself reasons about a person's earlier pairs, writes a persona of the reasonings that predicted the
    choice, and picks demonstrations, for a prompted judge. What the Personalized RewardBench paper trains under its
    name is a reward model that reads the persona as a vector (appendix B). Its rows in Tables 2 and 6 are identical to
    those of BT, for both backbones, with and without profile: it is the same model, and no independent evidence. Here
    too network and loss are those of BT, and what differs is the vector that is read: that of the persona
    (`PersonalOptions.told`). Without a profile it is BT without one.
    """
