"""A driver in a process of its own: python scored_on_ray.py ADDRESS DATA OUT LOG PAUSE."""

import sys
from pathlib import Path

import pluralbench
from pluralbench_runs import ClusterConfig
from ray_models import by_bytes

if __name__ == "__main__":
    address, data, out, log, pause = sys.argv[1:]
    function = by_bytes(Path(log), pause=float(pause))
    pluralbench.score(
        function, benchmark="pairs", data=data, out=out, cluster=ClusterConfig(address=address, workers=1)
    )
