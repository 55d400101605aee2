//! `np.random.SeedSequence`, which turns seeds of any size into well mixed initial states.
//!
//! Adjacent seeds (slot i has the seed s + i) must give unrelated streams. The sequence
//! hashes the seed's 32-bit words into a pool of four words, and reads as many words as a
//! generator's state needs from the pool. The mathematics is M. E. O'Neill's `seed_seq_fe`
//! (<https://www.pcg-random.org/posts/developing-a-seed_seq-alternative.html>), and the
//! constants are NumPy's. Spawning of children is left out, because nothing needs it.

const POOL_SIZE: usize = 4;
const INIT_A: u32 = 0x43b0_d7e5;
const MULT_A: u32 = 0x931e_8875;
const INIT_B: u32 = 0x8b51_f9dd;
const MULT_B: u32 = 0x58f3_8ded;
const MIX_MULT_L: u32 = 0xca01_f9dd;
const MIX_MULT_R: u32 = 0x4973_f715;
const XSHIFT: u32 = 16;

/// A seed, mixed: `np.random.SeedSequence(entropy)`.
///
/// ```
/// use envcore::rng::SeedSequence;
///
/// // np.random.SeedSequence(42).generate_state(2)
/// assert_eq!(SeedSequence::from_seed(42).generate_u32(), [3444837047, 2669555309]);
/// // np.random.SeedSequence([1, 2]) is another sequence than SeedSequence([2, 1]).
/// assert_ne!(SeedSequence::from_seeds(&[1, 2]), SeedSequence::from_seeds(&[2, 1]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedSequence {
    pool: [u32; POOL_SIZE],
}

impl SeedSequence {
    /// The sequence of 32-bit words that NumPy turns its entropy into.
    ///
    /// An integer of any size becomes its words from the lowest to the highest that is not
    /// zero (zero becomes one word). A list becomes the words of its items, one item after the
    /// other. This function is for seeds above 64 bits; [`from_seed`](Self::from_seed) and
    /// [`from_seeds`](Self::from_seeds) split all others into words.
    ///
    /// ```
    /// use envcore::rng::SeedSequence;
    ///
    /// // np.random.SeedSequence(2**64 + 5)
    /// let wide = SeedSequence::new(&[5, 0, 1]);
    /// assert_eq!(wide.generate_u32(), [3598628658, 1002794727]);
    /// ```
    #[must_use]
    pub fn new(words: &[u32]) -> Self {
        Self::mix(words.iter().copied())
    }

    /// `np.random.SeedSequence(seed)`.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self::mix(words_of(seed))
    }

    /// `np.random.SeedSequence([a, b, …])`; the list may be empty.
    #[must_use]
    pub fn from_seeds(seeds: &[u64]) -> Self {
        Self::mix(seeds.iter().copied().flat_map(words_of))
    }

    /// `generate_state(N, np.uint32)`. The words are always the same, and a longer state begins
    /// with a shorter one.
    #[must_use]
    pub fn generate_u32<const N: usize>(&self) -> [u32; N] {
        let mut words = self.words();
        std::array::from_fn(|_| words())
    }

    /// `generate_state(N, np.uint64)`: the words of
    /// [`generate_u32`](Self::generate_u32) in pairs, the low half first.
    ///
    /// ```
    /// use envcore::rng::SeedSequence;
    ///
    /// // np.random.SeedSequence(42).generate_state(1, np.uint64)
    /// assert_eq!(SeedSequence::from_seed(42).generate_u64(), [11465652750463011511]);
    /// ```
    #[must_use]
    pub fn generate_u64<const N: usize>(&self) -> [u64; N] {
        let mut words = self.words();
        std::array::from_fn(|_| u64::from(words()) | u64::from(words()) << 32)
    }

    /// Hashes the words into the pool: the first four (or zeros) fill the pool, then each part
    /// of the pool is mixed into the others, then each further word is mixed into all parts.
    fn mix(mut words: impl Iterator<Item = u32>) -> Self {
        let mut multiplier = INIT_A;
        let mut hash = |word| hash(word, &mut multiplier, MULT_A);
        let mut pool: [u32; POOL_SIZE] = std::array::from_fn(|_| hash(words.next().unwrap_or_default()));
        for source in 0..POOL_SIZE {
            for target in (0..POOL_SIZE).filter(|&target| target != source) {
                pool[target] = stir(pool[target], hash(pool[source]));
            }
        }
        for word in words {
            for part in &mut pool {
                *part = stir(*part, hash(word));
            }
        }
        Self { pool }
    }

    /// The endless sequence of output words.
    fn words(&self) -> impl FnMut() -> u32 {
        let mut multiplier = INIT_B;
        let mut parts = self.pool.into_iter().cycle();
        move || hash(parts.next().unwrap_or_default(), &mut multiplier, MULT_B)
    }
}

/// The words that NumPy splits an integer seed into: one for seeds below 2³², else two.
fn words_of(seed: u64) -> impl Iterator<Item = u32> {
    let [low, high] = [seed as u32, (seed >> 32) as u32];
    [low, high].into_iter().take(if high == 0 { 1 } else { 2 })
}

/// Hashes one word. `multiplier` changes with each word, so no two words are hashed alike.
fn hash(word: u32, multiplier: &mut u32, factor: u32) -> u32 {
    let word = word ^ *multiplier;
    *multiplier = multiplier.wrapping_mul(factor);
    let word = word.wrapping_mul(*multiplier);
    word ^ (word >> XSHIFT)
}

fn stir(part: u32, word: u32) -> u32 {
    let mixed = MIX_MULT_L.wrapping_mul(part).wrapping_sub(MIX_MULT_R.wrapping_mul(word));
    mixed ^ (mixed >> XSHIFT)
}
