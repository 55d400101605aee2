"""Reinforcement-learning environments in batches: written in Rust, trained on from Python.

Importing this module registers `corral/…` ids with Gymnasium.
"""

from corral import _gymnasium as _gymnasium
from corral import errors, netenv, openenv, testing
from corral._native import FinalObservations, __version__
from corral._simd import Simd, simd
from corral.adapters import (
    from_dm_env,
    from_gym3,
    sb3_vec_env,
    to_dm_env,
    to_gym3,
    to_rl_games,
    to_sb3,
    to_tianshou,
    to_trl,
)
from corral.env_c_api import load_env_c_api
from corral.evaluation import Comparison, Evaluation, compare, evaluate
from corral.films import RecordedVectorEnv, record
from corral.frames import StackedFrames
from corral.libenv import load_libenv
from corral.netenv import connect, serve
from corral.normalization import Normalization
from corral.paths import include_dir, libenv_path
from corral.plugins import load, load_installed
from corral.properties import Attributes, Properties
from corral.python_envs import from_gymnasium
from corral.registry import envs, make, make_vec, register_with_gymnasium
from corral.replay import Replay, replay
from corral.rollouts import Rollout
from corral.single import Env
from corral.specs import VecSpec, spec
from corral.vector import RowKind, VectorEnv

register_with_gymnasium()
load_installed()

__all__ = [
    "Attributes",
    "Comparison",
    "Env",
    "Evaluation",
    "FinalObservations",
    "Normalization",
    "Properties",
    "RecordedVectorEnv",
    "Replay",
    "Rollout",
    "RowKind",
    "Simd",
    "StackedFrames",
    "VecSpec",
    "VectorEnv",
    "__version__",
    "compare",
    "connect",
    "envs",
    "errors",
    "evaluate",
    "from_dm_env",
    "from_gym3",
    "from_gymnasium",
    "include_dir",
    "libenv_path",
    "load",
    "load_env_c_api",
    "load_libenv",
    "make",
    "make_vec",
    "netenv",
    "openenv",
    "record",
    "replay",
    "sb3_vec_env",
    "serve",
    "simd",
    "spec",
    "testing",
    "to_dm_env",
    "to_gym3",
    "to_rl_games",
    "to_sb3",
    "to_tianshou",
    "to_trl",
]
