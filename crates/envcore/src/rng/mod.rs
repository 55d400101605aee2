//! NumPy's random numbers, with the same bits.
//!
//! Gymnasium draws an environment's starts, levels and noise from
//! `np.random.default_rng(seed)`. A built-in environment that promises Gymnasium's own
//! trajectories from Gymnasium's own seeds therefore needs the same generator, and not only
//! the same distributions. Every method of [`Rng`] consumes exactly the bits that the method
//! of that name of `np.random.Generator` does and returns the same value. So any mix of
//! calls gives NumPy's numbers too.
//!
//! | here             | NumPy                                   |
//! |------------------|-----------------------------------------|
//! | [`SeedSequence`] | `np.random.SeedSequence`                |
//! | [`Pcg64`]        | `np.random.PCG64`                       |
//! | [`Rng`]          | `np.random.Generator(PCG64(seed))`      |
//! | [`Streams`]      | none: an env's own and indexed episodes |
//!
//! This module allocates nothing, so a seeded reset and a step cost only arithmetic.
//!
//! Limits: seeds must be given (there is no entropy from the system), there are no spawns and
//! no jumps, and of NumPy's dtypes there are float64 and int64. NumPy promises a fixed stream
//! only for its bit generators; the streams of `Generator`'s methods may change between
//! NumPy's versions (NEP 19). The reference is NumPy 2.4.6 for x86-64, whose values are
//! recorded in `tests/data/rng.json`. The normal distribution calls `exp` and `log1p` in
//! about one draw of a hundred. Both come from the platform's libm, as in NumPy, so another
//! libm may give another last bit. All other operations are on integers, or are float
//! operations that IEEE 754 defines exactly. None of these generators is fit for
//! cryptography.

mod generator;
mod pcg64;
mod seed_sequence;
mod streams;
mod ziggurat;

pub use generator::Rng;
pub use pcg64::Pcg64;
pub use seed_sequence::SeedSequence;
pub use streams::Streams;
