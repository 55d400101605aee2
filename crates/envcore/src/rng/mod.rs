//! NumPy's random numbers, bit for bit.
//!
//! Gymnasium draws an environment's starts, levels and noise from
//! `np.random.default_rng(seed)`. A built-in environment that promises
//! Gymnasium's own trajectories from Gymnasium's own seeds therefore needs the
//! same generator, and not only the same distributions: every method of [`Rng`]
//! consumes exactly the bits that `np.random.Generator`'s method of that name
//! does and returns the same value, so mixed calls stay in step too.
//!
//! | here             | NumPy                                   |
//! |------------------|-----------------------------------------|
//! | [`SeedSequence`] | `np.random.SeedSequence`                |
//! | [`Pcg64`]        | `np.random.PCG64`                       |
//! | [`Rng`]          | `np.random.Generator(PCG64(seed))`      |
//! | [`Streams`]      | none: an env's own and indexed episodes |
//!
//! Nothing here allocates, so that a seeded reset and a step cost only
//! arithmetic.
//!
//! Limits. Seeds are given (no entropy from the system), nothing spawns or
//! jumps, and of NumPy's dtypes there are float64 and int64. NumPy promises a
//! fixed stream for its bit generators only; those of `Generator`'s methods may
//! change between its versions (NEP 19). The reference is NumPy 2.4.6 for
//! x86-64, whose values are recorded in `tests/data/rng.json`. The normal
//! distribution calls `exp` and `log1p` in about one draw of a hundred; both
//! come from the platform's libm, as NumPy's do, so that another libm may give
//! another last bit. All else is integers, and float operations that IEEE 754
//! fixes. Nothing here is fit for cryptography.

mod generator;
mod pcg64;
mod seed_sequence;
mod streams;
mod ziggurat;

pub use generator::Rng;
pub use pcg64::Pcg64;
pub use seed_sequence::SeedSequence;
pub use streams::Streams;
