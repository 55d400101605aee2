//! `np.random.PCG64`: the source of bits under [`Rng`](super::Rng).
//!
//! The generator is a 128-bit linear congruential one whose output function XSL-RR folds each
//! state to 64 bits (M. E. O'Neill, *PCG: A Family of Simple Fast Space-Efficient
//! Statistically Good Algorithms for Random Number Generation*, 2014). The rand project's
//! `rand_pcg` has the same recurrence, but neither NumPy's seeding nor NumPy's way of halving
//! 64-bit words, so Corral has its own.

use std::convert::Infallible;

use rand_core::TryRng;
use serde::{Deserialize, Serialize};

use super::SeedSequence;

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// NumPy's default bit generator, `np.random.PCG64`.
///
/// The generator is a [`rand_core::TryRng`] that never fails, and so a [`rand_core::Rng`]:
/// the rand project's distributions can draw from it. A generator that is saved and loaded
/// (serde) continues where it was.
///
/// ```
/// use envcore::rng::{Pcg64, SeedSequence};
///
/// // np.random.PCG64(42).random_raw()
/// let mut bits = Pcg64::new(&SeedSequence::from_seed(42));
/// assert_eq!(bits.next_u64(), 14276969152011380360);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SavedPcg64", into = "SavedPcg64")]
pub struct Pcg64 {
    state: Wide,
    /// The increment, which is odd because the recurrence has short cycles with an even one.
    increment: Wide,
    /// The high half of the last word that [`next_u32`](Self::next_u32) split.
    half: Option<u32>,
}

/// A 128-bit number as [high, low]. A `u128` would be aligned to 16 bytes, and make a list of envs
/// longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wide([u64; 2]);

impl From<u128> for Wide {
    #[inline]
    fn from(number: u128) -> Self {
        Wide([(number >> 64) as u64, number as u64])
    }
}

impl From<Wide> for u128 {
    #[inline]
    fn from(Wide([high, low]): Wide) -> Self {
        u128::from(high) << 64 | u128::from(low)
    }
}

impl Pcg64 {
    /// `np.random.PCG64(sequence)`.
    #[must_use]
    pub fn new(sequence: &SeedSequence) -> Self {
        let [state_high, state_low, stream_high, stream_low] = sequence.generate_u64();
        let increment = u128::from(Wide([stream_high, stream_low])) << 1 | 1;
        let mut bits = Self { state: Wide([0, 0]), increment: increment.into(), half: None };
        let first = bits.advance().wrapping_add(Wide([state_high, state_low]).into());
        bits.state = first.into();
        bits.advance();
        bits
    }

    /// The next 64 bits. A half word that [`next_u32`](Self::next_u32) keeps is not used.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let state = self.advance();
        let folded = (state >> 64) as u64 ^ state as u64;
        folded.rotate_right((state >> 122) as u32)
    }

    /// The next 32 bits: the low half of the next 64 bits, and their high half at the call
    /// after.
    ///
    /// ```
    /// use envcore::rng::{Pcg64, SeedSequence};
    ///
    /// let mut words = Pcg64::new(&SeedSequence::from_seed(42));
    /// let mut halves = words.clone();
    /// let [low, high] = [halves.next_u32(), halves.next_u32()];
    /// assert_eq!(u64::from(high) << 32 | u64::from(low), words.next_u64());
    /// ```
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        if let Some(half) = self.half.take() {
            return half;
        }
        let word = self.next_u64();
        self.half = Some((word >> 32) as u32);
        word as u32
    }

    /// The next float64, uniform in [0, 1): a multiple of 2⁻⁵³.
    #[inline]
    pub fn next_f64(&mut self) -> f64 {
        const UNIT: f64 = 1.0 / (1u64 << 53) as f64;
        (self.next_u64() >> 11) as f64 * UNIT
    }

    /// Goes to the next state, and returns it.
    #[inline]
    fn advance(&mut self) -> u128 {
        let state = u128::from(self.state).wrapping_mul(MULTIPLIER).wrapping_add(self.increment.into());
        self.state = state.into();
        state
    }
}

/// `try_fill_bytes` gives the bytes of `Generator.bytes`: whole 32-bit words, little endian;
/// the rest of the last word is dropped.
impl TryRng for Pcg64 {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.next_u32())
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        rand_core::utils::fill_bytes_via_next_word(bytes, || self.try_next_u32())
    }
}

/// The saved form of a generator. The 128-bit numbers are saved as [high, low], because many
/// serde formats have no integers above 64 bits.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedPcg64 {
    state: [u64; 2],
    increment: [u64; 2],
    half: Option<u32>,
}

impl From<Pcg64> for SavedPcg64 {
    fn from(bits: Pcg64) -> Self {
        Self { state: bits.state.0, increment: bits.increment.0, half: bits.half }
    }
}

impl TryFrom<SavedPcg64> for Pcg64 {
    type Error = String;

    fn try_from(saved: SavedPcg64) -> Result<Self, String> {
        let increment = u128::from(Wide(saved.increment));
        if increment.is_multiple_of(2) {
            return Err(format!(
                "the saved random generator has the even increment {increment}, which no PCG64 \
                 has: the saved state is damaged, take another"
            ));
        }
        Ok(Self { state: Wide(saved.state), increment: Wide(saved.increment), half: saved.half })
    }
}
