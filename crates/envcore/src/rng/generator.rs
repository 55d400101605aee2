//! `np.random.Generator` over [`Pcg64`], with the methods that environments use.
//!
//! Each method draws the same words as NumPy's, rounds in the same order, and rejects in the
//! same cases (bounded integers: D. Lemire, *Fast Random Integer Generation in an Interval*,
//! 2019; only shuffles still mask).
//!
//! Ranges are usually constants in an env's program, so a wrong range panics where NumPy
//! raises. Ranges that come from a user (a config, reset options) must be checked before
//! they are passed to these methods.

use serde::{Deserialize, Serialize};

use super::{Pcg64, SeedSequence, ziggurat};

/// `np.random.default_rng(seed)`, which is also Gymnasium's `np_random`.
///
/// A generator that is saved and loaded (serde) continues where it was. It has the name of
/// NumPy's variable; its [`bit_generator`](Self::bit_generator) implements the trait
/// [`rand_core::Rng`].
///
/// ```
/// use envcore::rng::Rng;
///
/// let mut rng = Rng::new(42); // np.random.default_rng(42)
/// assert_eq!(rng.random(), 0.7739560485559633);
/// assert_eq!(rng.integers(-3, 4), 1);
/// assert_eq!(rng.normal(10.0, 0.5), 10.375225597903228);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rng {
    bits: Pcg64,
}

impl Rng {
    /// `np.random.default_rng(seed)`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Pcg64::new(&SeedSequence::from_seed(seed)).into()
    }

    /// `np.random.default_rng([a, b, …])`: a stream for several numbers, such as a seed and a
    /// restart count.
    ///
    /// NumPy joins the 32-bit words of the numbers and pads them with zeros, so a list can give
    /// the same stream as a single seed: `[s, 0]` is `s`, and `[s, 1]` is `s + 2³²` for s
    /// below 2³². Three numbers, the last not zero, never give the stream of a single seed.
    ///
    /// ```
    /// use envcore::rng::Rng;
    ///
    /// assert_eq!(Rng::from_seeds(&[42, 1, 7]).random(), 0.40710631221235527);
    /// assert_eq!(Rng::from_seeds(&[42, 0]), Rng::new(42));
    /// ```
    #[must_use]
    pub fn from_seeds(seeds: &[u64]) -> Self {
        Pcg64::new(&SeedSequence::from_seeds(seeds)).into()
    }

    /// `Generator.bit_generator`: the source of bits, for the rand project's distributions and
    /// for raw words. What is drawn from the source advances this stream.
    ///
    /// ```
    /// use envcore::rng::Rng;
    ///
    /// let mut rng = Rng::new(42);
    /// assert_eq!(rng.bit_generator().next_u64(), 14276969152011380360);
    /// assert_eq!(rng.random(), 0.4388784397520523);
    /// ```
    #[inline]
    pub fn bit_generator(&mut self) -> &mut Pcg64 {
        &mut self.bits
    }

    /// `Generator.random()`: uniform in [0, 1).
    #[inline]
    pub fn random(&mut self) -> f64 {
        self.bits.next_f64()
    }

    /// `Generator.uniform(low, high)`: uniform in [low, high), up to rounding,
    /// which may give `high`.
    ///
    /// # Panics
    ///
    /// If `high - low` is negative, infinite or NaN, where NumPy raises.
    ///
    /// ```
    /// use envcore::rng::Rng;
    ///
    /// assert_eq!(Rng::new(42).uniform(-0.05, 0.05), 0.027395604855596334);
    /// ```
    #[inline]
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        let span = span(low, high);
        low + span * self.random()
    }

    /// `Generator.uniform(low, high, size)`: the same values as one
    /// [`uniform`](Self::uniform) per element.
    ///
    /// # Panics
    ///
    /// In the cases of [`uniform`](Self::uniform), even where `values` is empty.
    ///
    /// ```
    /// use envcore::rng::Rng;
    ///
    /// // CartPole-v1's start from reset(seed=42), before it is rounded to float32.
    /// let mut state = [0.0; 4];
    /// Rng::new(42).fill_uniform(&mut state, -0.05, 0.05);
    /// assert_eq!(state[1], -0.006112156024794771);
    /// ```
    #[inline]
    pub fn fill_uniform(&mut self, values: &mut [f64], low: f64, high: f64) {
        let span = span(low, high);
        for value in values {
            *value = low + span * self.random();
        }
    }

    /// As [`fill_uniform`](Self::fill_uniform), of a new array. The generator stays in registers
    /// between two draws, which halves the time of a few.
    ///
    /// # Panics
    ///
    /// In the cases of [`uniform`](Self::uniform), even where `N` is 0.
    #[inline]
    pub fn uniform_array<const N: usize>(&mut self, low: f64, high: f64) -> [f64; N] {
        let span = span(low, high);
        let mut bits = self.bits.clone();
        let values = std::array::from_fn(|_| low + span * bits.next_f64());
        self.bits = bits;
        values
    }

    /// `Generator.integers(low, high)` of dtype int64: uniform in low..high.
    ///
    /// A range of one number draws no bits. A range of up to 2³² numbers draws 32-bit words (two
    /// calls share a 64-bit one), and a larger one draws 64-bit words. NumPy's `high` of 2⁶³ is
    /// not supported.
    ///
    /// # Panics
    ///
    /// Unless `low < high`, where NumPy raises.
    ///
    /// ```
    /// use envcore::rng::Rng;
    ///
    /// let mut rng = Rng::new(0);
    /// assert_eq!([rng.integers(1, 7), rng.integers(1, 7)], [6, 4]);
    /// ```
    #[inline]
    pub fn integers(&mut self, low: i64, high: i64) -> i64 {
        if low >= high {
            empty_range(low, high);
        }
        let last = high.wrapping_sub(low) as u64 - 1;
        low.wrapping_add(self.up_to(last) as i64)
    }

    /// `Generator.choice(n)`: an index below `n`, the same as `integers(0, n)`.
    ///
    /// # Panics
    ///
    /// If `n` is 0, where NumPy raises.
    ///
    /// ```
    /// use envcore::rng::Rng;
    ///
    /// assert_eq!(Rng::new(42).choice(100), 8);
    /// ```
    #[inline]
    pub fn choice(&mut self, n: usize) -> usize {
        if n == 0 {
            empty_choice();
        }
        self.up_to(n as u64 - 1) as usize
    }

    /// `Generator.standard_normal()`: normal with mean 0 and deviation 1.
    ///
    /// ```
    /// use envcore::rng::Rng;
    ///
    /// assert_eq!(Rng::new(42).standard_normal(), 0.30471707975443135);
    /// ```
    #[inline]
    pub fn standard_normal(&mut self) -> f64 {
        ziggurat::standard_normal(&mut self.bits)
    }

    /// `Generator.normal(loc, scale)`: normal with mean `loc` and standard
    /// deviation `scale`. NaNs pass through, as in NumPy.
    ///
    /// ```
    /// use envcore::rng::Rng;
    ///
    /// assert_eq!(Rng::new(7).normal(-1.0, 2.0), -0.9975396932850349);
    /// ```
    ///
    /// # Panics
    ///
    /// If `scale` is negative (-0.0 included), where NumPy raises.
    #[inline]
    pub fn normal(&mut self, loc: f64, scale: f64) -> f64 {
        if scale.is_sign_negative() && !scale.is_nan() {
            negative_scale(scale);
        }
        loc + scale * self.standard_normal()
    }

    /// `Generator.shuffle` of a list or a one-dimensional array, in place. On
    /// 0..n it gives `Generator.permutation(n)`.
    ///
    /// ```
    /// use envcore::rng::Rng;
    ///
    /// let mut cards = [0, 1, 2, 3, 4];
    /// Rng::new(42).shuffle(&mut cards);
    /// assert_eq!(cards, [4, 2, 3, 1, 0]);
    /// ```
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.masked_up_to(i as u64) as usize);
        }
    }

    /// Uniform in 0..=last, by Lemire's method. The callers keep `last` below `u64::MAX`.
    #[inline]
    fn up_to(&mut self, last: u64) -> u64 {
        const WHOLE_U32: u64 = u32::MAX as u64;
        match last {
            0 => 0,
            1..WHOLE_U32 => self.below_u32(last as u32 + 1).into(),
            WHOLE_U32 => self.bits.next_u32().into(),
            _ => self.below_u64(last + 1),
        }
    }

    /// Uniform in 0..=last, as NumPy's shuffles draw it: words are cut to the bits of `last`
    /// until one is not above `last`.
    fn masked_up_to(&mut self, last: u64) -> u64 {
        let mask = u64::MAX >> last.leading_zeros();
        loop {
            let word =
                if last <= u64::from(u32::MAX) { self.bits.next_u32().into() } else { self.bits.next_u64() };
            if word & mask <= last {
                return word & mask;
            }
        }
    }

    /// Lemire's method: the high half of word × count is uniform if all words are rejected whose
    /// low half is below 2³² mod count. That modulus is smaller than `count`, so the division is
    /// rarely needed.
    #[inline]
    fn below_u32(&mut self, count: u32) -> u32 {
        let mut product = u64::from(self.bits.next_u32()) * u64::from(count);
        if (product as u32) < count {
            let threshold = count.wrapping_neg() % count;
            while (product as u32) < threshold {
                product = u64::from(self.bits.next_u32()) * u64::from(count);
            }
        }
        (product >> 32) as u32
    }

    /// [`below_u32`](Self::below_u32) with words of 64 bits.
    fn below_u64(&mut self, count: u64) -> u64 {
        let mut product = u128::from(self.bits.next_u64()) * u128::from(count);
        if (product as u64) < count {
            let threshold = count.wrapping_neg() % count;
            while (product as u64) < threshold {
                product = u128::from(self.bits.next_u64()) * u128::from(count);
            }
        }
        (product >> 64) as u64
    }
}

/// `np.random.Generator(bit_generator)`.
impl From<Pcg64> for Rng {
    fn from(bits: Pcg64) -> Self {
        Self { bits }
    }
}

#[inline]
fn span(low: f64, high: f64) -> f64 {
    let span = high - low;
    if !(0.0..f64::INFINITY).contains(&span) {
        no_span(low, high);
    }
    span
}

#[cold]
#[inline(never)]
fn no_span(low: f64, high: f64) -> ! {
    panic!("uniform({low}, {high}): high - low must be finite and not negative")
}

#[cold]
#[inline(never)]
fn empty_range(low: i64, high: i64) -> ! {
    panic!("integers({low}, {high}): low must be below high")
}

#[cold]
#[inline(never)]
fn empty_choice() -> ! {
    panic!("choice(0): there is nothing to choose from, give at least 1")
}

#[cold]
#[inline(never)]
fn negative_scale(scale: f64) -> ! {
    panic!("normal: the scale is {scale}, and must not be negative")
}
