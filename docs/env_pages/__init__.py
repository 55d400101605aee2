"""Writes docs/envs, a page for each env, and the texts that `corral info` shows.

What a page says stands in the env's Rust source: the module's docs and those of its options
(`sources`). Spaces and limits are asked of the env itself (`spaces`). Scores and films come from
policies (`policies`) and are made when asked for (`scores`, `films`), because they take minutes;
scores are kept in docs/envs/measured.json.
"""
