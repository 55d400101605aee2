"""Vec envs in Ray's actors, on one machine or many. Needs Ray: `pip install ray`.

A step by a remote call takes longer than most envs do. So an actor plays whole fragments of steps,
with a copy of the policy, and sends them as arrays.
"""

from corral.ray.evaluating import evaluate
from corral.ray.pools import Part, Pools, pools

__all__ = ["Part", "Pools", "evaluate", "pools"]
