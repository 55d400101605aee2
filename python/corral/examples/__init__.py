"""Code to learn from and to take: what the programs in `examples/` and the demo train with.

`corral.examples.ppo` is PPO in NumPy, in one file. It takes no package but corral's own.
"""
