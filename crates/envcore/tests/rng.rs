//! `envcore::rng` against what NumPy drew (`data/rng.json`, recorded by
//! `data/make_rng_vectors.py`), and the promises that no recording can show:
//! ranges, saving, independent streams.
//!
//! The normal draws are recorded with glibc; another libm may differ in the last
//! bit of one in some thousands.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use envcore::rng::{Pcg64, Rng, SeedSequence, Streams};
use proptest::prelude::*;
use rand_core::Rng as _;
use serde::Deserialize;

#[derive(Deserialize)]
struct Recording {
    /// Which width each of a generator's `words` was drawn with.
    widths: Vec<u32>,
    seed_sequences: Vec<SequenceCase>,
    generators: Vec<GeneratorCase>,
    mixed: Vec<MixedCase>,
}

/// One of `seed`, `seeds` and `words` is there.
#[derive(Deserialize)]
struct SequenceCase {
    seed: Option<u64>,
    seeds: Option<Vec<u64>>,
    words: Option<Vec<u32>>,
    u32: Vec<u32>,
    u64: Vec<u64>,
}

#[derive(Deserialize)]
struct GeneratorCase {
    seed: u64,
    words: Vec<u64>,
    doubles: Vec<u64>,
    bytes: Vec<u8>,
    random: Vec<u64>,
    uniform: Vec<UniformCase>,
    integers: Vec<IntegersCase>,
    normal: Vec<NormalCase>,
    standard_normal: Vec<u64>,
    permutation: Vec<usize>,
    digests: Digests,
}

#[derive(Deserialize)]
struct UniformCase {
    low: u64,
    high: u64,
    bits: Vec<u64>,
}

#[derive(Deserialize)]
struct IntegersCase {
    low: i64,
    high: i64,
    values: Vec<i64>,
}

#[derive(Deserialize)]
struct NormalCase {
    loc: u64,
    scale: u64,
    bits: Vec<u64>,
}

#[derive(Deserialize)]
struct Digests {
    /// How many draws each digest is of.
    of: usize,
    random: u64,
    standard_normal: u64,
    integers: u64,
    wide_integers: u64,
}

#[derive(Deserialize)]
struct MixedCase {
    seed: u64,
    calls: Vec<Call>,
}

/// Floats, as their bits, and integers alike are JSON integers.
#[derive(Deserialize)]
struct Call {
    method: String,
    args: Vec<serde_json::Number>,
    result: Vec<serde_json::Number>,
}

static RECORDING: LazyLock<Recording> =
    LazyLock::new(|| serde_json::from_str(include_str!("data/rng.json")).unwrap());

/// Draws of a fresh generator, floats as their bits.
fn floats(seed: u64, n: usize, mut draw: impl FnMut(&mut Rng) -> f64) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    (0..n).map(|_| draw(&mut rng).to_bits()).collect()
}

/// The digest that `make_rng_vectors.py` describes.
fn digest(words: impl IntoIterator<Item = u64>) -> u64 {
    let weights = (1..).step_by(2);
    words
        .into_iter()
        .zip(weights)
        .fold(0, |sum, (word, weight): (u64, u64)| sum.wrapping_add(word.wrapping_mul(weight)))
}

#[test]
fn a_seed_sequence_generates_numpys_state() {
    for case in &RECORDING.seed_sequences {
        let (sequence, name) = match (case.seed, &case.seeds, &case.words) {
            (Some(seed), None, None) => (SeedSequence::from_seed(seed), format!("{seed}")),
            (None, Some(seeds), None) => (SeedSequence::from_seeds(seeds), format!("{seeds:?}")),
            (None, None, Some(words)) => (SeedSequence::new(words), format!("words {words:?}")),
            _ => panic!("a case has one kind of seed"),
        };
        assert_eq!(sequence.generate_u32::<9>().as_slice(), case.u32, "{name}");
        assert_eq!(sequence.generate_u64::<7>().as_slice(), case.u64, "{name}");
    }
}

#[test]
fn the_bit_generator_gives_numpys_words_doubles_and_bytes() {
    for case in &RECORDING.generators {
        let mut bits = Pcg64::new(&SeedSequence::from_seed(case.seed));
        let words: Vec<u64> = RECORDING
            .widths
            .iter()
            .map(|&width| if width == 64 { bits.next_u64() } else { bits.next_u32().into() })
            .collect();
        assert_eq!(words, case.words, "seed {}", case.seed);
        let doubles: Vec<u64> = case.doubles.iter().map(|_| bits.next_f64().to_bits()).collect();
        assert_eq!(doubles, case.doubles, "seed {}", case.seed);
        let mut bytes = vec![0; case.bytes.len()];
        bits.fill_bytes(&mut bytes);
        assert_eq!(bytes, case.bytes, "seed {}", case.seed);
    }
}

#[test]
fn the_rand_traits_draw_from_the_same_stream() {
    let mut by_trait = Rng::new(5);
    let mut by_method = Pcg64::new(&SeedSequence::from_seed(5));
    let rand = by_trait.bit_generator();
    assert_eq!(rand_core::Rng::next_u32(rand), by_method.next_u32());
    assert_eq!(rand_core::Rng::next_u64(rand), by_method.next_u64());
    assert_eq!(rand_core::Rng::next_u32(rand), by_method.next_u32());
    assert_eq!(by_trait, Rng::from(by_method));
}

#[test]
fn random_is_numpys() {
    for case in &RECORDING.generators {
        let seed = case.seed;
        assert_eq!(floats(seed, case.random.len(), Rng::random), case.random, "seed {seed}");
        let draws = floats(seed, case.digests.of, Rng::random);
        assert_eq!(digest(draws), case.digests.random, "seed {seed}");
    }
}

#[test]
fn uniform_is_numpys_one_by_one_and_filled() {
    for case in &RECORDING.generators {
        for uniform in &case.uniform {
            let (low, high) = (f64::from_bits(uniform.low), f64::from_bits(uniform.high));
            let draws = floats(case.seed, uniform.bits.len(), |rng| rng.uniform(low, high));
            assert_eq!(draws, uniform.bits, "seed {}, uniform({low}, {high})", case.seed);
            let mut filled = vec![0.0; uniform.bits.len()];
            Rng::new(case.seed).fill_uniform(&mut filled, low, high);
            let filled: Vec<u64> = filled.into_iter().map(f64::to_bits).collect();
            assert_eq!(filled, uniform.bits, "seed {}, filled({low}, {high})", case.seed);
            let mut rng = Rng::new(case.seed);
            let array: [f64; 2] = rng.uniform_array(low, high);
            let drawn = [array[0], array[1], rng.uniform(low, high)].map(f64::to_bits);
            assert_eq!(drawn, uniform.bits[..3], "seed {}, array({low}, {high})", case.seed);
        }
    }
}

#[test]
fn integers_are_numpys_in_every_width_of_range() {
    for case in &RECORDING.generators {
        for &IntegersCase { low, high, ref values } in &case.integers {
            let mut rng = Rng::new(case.seed);
            let draws: Vec<i64> = values.iter().map(|_| rng.integers(low, high)).collect();
            assert_eq!(draws, *values, "seed {}, integers({low}, {high})", case.seed);
        }
        let many = |low, high| {
            let mut rng = Rng::new(case.seed);
            digest((0..case.digests.of).map(|_| rng.integers(low, high) as u64))
        };
        assert_eq!(many(-9, 3 << 30), case.digests.integers, "seed {}", case.seed);
        let wide = many(-(1 << 62), (1 << 62) + 1);
        assert_eq!(wide, case.digests.wide_integers, "seed {}", case.seed);
    }
}

#[test]
fn a_range_of_one_number_draws_nothing() {
    let mut rng = Rng::new(8);
    assert_eq!(rng.integers(4, 5), 4);
    assert_eq!(rng.choice(1), 0);
    assert_eq!(rng, Rng::new(8));
}

#[test]
fn normals_are_numpys_in_layers_edges_and_tail() {
    let mut in_the_tail = 0;
    for case in &RECORDING.generators {
        let seed = case.seed;
        for normal in &case.normal {
            let (loc, scale) = (f64::from_bits(normal.loc), f64::from_bits(normal.scale));
            let draws = floats(seed, normal.bits.len(), |rng| rng.normal(loc, scale));
            assert_eq!(draws, normal.bits, "seed {seed}, normal({loc}, {scale})");
        }
        let draws = floats(seed, case.digests.of, Rng::standard_normal);
        assert_eq!(draws[..case.standard_normal.len()], case.standard_normal, "seed {seed}");
        in_the_tail += draws.iter().filter(|&&bits| f64::from_bits(bits).abs() > 3.6542).count();
        assert_eq!(digest(draws), case.digests.standard_normal, "seed {seed}");
    }
    assert!(in_the_tail > 100, "only {in_the_tail} draws reached the tail");
}

#[test]
fn a_shuffle_of_the_first_numbers_is_numpys_permutation() {
    for case in &RECORDING.generators {
        let mut items: Vec<usize> = (0..case.permutation.len()).collect();
        Rng::new(case.seed).shuffle(&mut items);
        assert_eq!(items, case.permutation, "seed {}", case.seed);
    }
}

#[test]
fn mixed_calls_stay_in_step_with_numpy() {
    for MixedCase { seed, calls } in &RECORDING.mixed {
        let mut rng = Rng::new(*seed);
        for (i, Call { method, args, result }) in calls.iter().enumerate() {
            let float = |i: usize| f64::from_bits(args[i].as_u64().unwrap());
            let int = |i: usize| args[i].as_i64().unwrap();
            let drawn: Vec<serde_json::Number> = match method.as_str() {
                "random" => vec![rng.random().to_bits().into()],
                "uniform" => vec![rng.uniform(float(0), float(1)).to_bits().into()],
                "integers" => vec![rng.integers(int(0), int(1)).into()],
                "choice" => vec![rng.choice(int(0) as usize).into()],
                "normal" => vec![rng.normal(float(0), float(1)).to_bits().into()],
                "shuffle" => {
                    let mut items: Vec<i64> = (0..int(0)).collect();
                    rng.shuffle(&mut items);
                    items.into_iter().map(Into::into).collect()
                }
                other => panic!("the recording calls {other}, which this test does not know"),
            };
            assert_eq!(drawn, *result, "seed {seed}, call {i}: {method}{args:?}");
        }
    }
}

#[test]
fn ranges_that_numpy_refuses_panic_and_name_their_values() {
    type Call = fn(&mut Rng);
    let refused: [(Call, &str); 9] = [
        (|rng| _ = rng.integers(3, 3), "integers(3, 3)"),
        (|rng| _ = rng.integers(3, -1), "integers(3, -1)"),
        (|rng| _ = rng.choice(0), "choice(0)"),
        (|rng| _ = rng.uniform(1.0, 0.5), "uniform(1, 0.5)"),
        (|rng| _ = rng.uniform(f64::MIN, f64::MAX), "finite"),
        (|rng| _ = rng.uniform(0.0, f64::NAN), "uniform(0, NaN)"),
        (|rng| rng.fill_uniform(&mut [], 1.0, 0.0), "uniform(1, 0)"),
        (|rng| _ = rng.normal(0.0, -1.0), "scale is -1"),
        (|rng| _ = rng.normal(0.0, -0.0), "scale is -0"),
    ];
    for (call, expected) in refused {
        let panic = catch_unwind(AssertUnwindSafe(|| call(&mut Rng::new(0)))).unwrap_err();
        let message = panic
            .downcast::<String>()
            .map_or_else(|other| other.downcast::<&str>().unwrap().to_string(), |message| *message);
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    }
}

#[test]
fn a_damaged_save_is_refused_with_what_is_wrong() {
    let damaged = r#"{"state":[1,2],"increment":[3,4],"half":null}"#;
    let error = serde_json::from_str::<Rng>(damaged).unwrap_err().to_string();
    assert!(error.contains("even increment") && error.contains("damaged"), "{error}");
    let foreign = r#"{"state":[1,2],"increment":[3,5],"half":null,"phase":0}"#;
    assert!(serde_json::from_str::<Rng>(foreign).is_err());
}

#[test]
fn a_seed_and_the_list_of_it_are_one_stream_and_others_differ() {
    assert_eq!(Rng::from_seeds(&[6]), Rng::new(6));
    assert_ne!(Rng::from_seeds(&[6, 1, 1]), Rng::from_seeds(&[6, 2, 1]));
    assert_ne!(Rng::new(6), Rng::new(7));
}

#[test]
fn a_negative_seed_of_streams_counts_modulo_2_to_the_64() {
    assert_eq!(*Streams::new(-1).rng(), Rng::new(u64::MAX));
}

/// Any call, weighted to leave half words behind.
#[derive(Clone, Debug)]
enum Draw {
    Random,
    Half,
    Integers(i64, i64),
    Normal,
    Shuffle(usize),
}

impl Draw {
    /// What the call gives, as words to compare.
    fn from(&self, rng: &mut Rng) -> Vec<u64> {
        match *self {
            Draw::Random => vec![rng.random().to_bits()],
            Draw::Half => vec![rng.bit_generator().next_u32().into()],
            Draw::Integers(low, high) => vec![rng.integers(low, high) as u64],
            Draw::Normal => vec![rng.standard_normal().to_bits()],
            Draw::Shuffle(n) => {
                let mut items: Vec<u64> = (0..n as u64).collect();
                rng.shuffle(&mut items);
                items
            }
        }
    }
}

fn draw() -> impl Strategy<Value = Draw> {
    prop_oneof![
        Just(Draw::Random),
        Just(Draw::Half),
        Just(Draw::Normal),
        range().prop_map(|(low, high)| Draw::Integers(low, high)),
        (0..12usize).prop_map(Draw::Shuffle),
    ]
}

/// Ranges of every width, so that short ones and those near 2³² and 2⁶⁴ are as
/// common as the others.
fn range() -> impl Strategy<Value = (i64, i64)> {
    let width = (0..64u32, any::<u64>()).prop_map(|(bits, noise)| (1 << bits) | (noise >> (63 - bits)) >> 1);
    (any::<i64>(), width).prop_filter_map("the range ends within i64", |(low, width): (i64, u64)| {
        low.checked_add_unsigned(width).map(|high| (low, high))
    })
}

fn episode() -> impl Strategy<Value = (Option<u64>, Vec<Draw>)> {
    (prop::option::of(any::<u64>()), prop::collection::vec(draw(), 0..6))
}

fn play(streams: &mut Streams, draws: &[Draw]) -> Vec<Vec<u64>> {
    draws.iter().map(|draw| draw.from(streams.rng())).collect()
}

proptest! {
    #[test]
    fn integers_and_choices_stay_in_their_range(seed: u64, (low, high) in range(), n in 1..=usize::MAX) {
        let mut rng = Rng::new(seed);
        for _ in 0..20 {
            prop_assert!((low..high).contains(&rng.integers(low, high)));
            prop_assert!(rng.choice(n) < n);
        }
    }

    #[test]
    fn a_saved_stream_resumes_where_it_was(
        seed: i64,
        (ix, before) in episode(),
        after in prop::collection::vec(draw(), 1..12),
    ) {
        let mut streams = Streams::new(seed);
        if let Some(ix) = ix {
            streams.begin_index(ix);
        }
        play(&mut streams, &before);
        let saved = serde_json::to_string(&streams).unwrap();
        let mut loaded: Streams = serde_json::from_str(&saved).unwrap();
        prop_assert_eq!(&loaded, &streams);
        prop_assert_eq!(play(&mut loaded, &after), play(&mut streams, &after));
        loaded.begin_own();
        streams.begin_own();
        prop_assert_eq!(play(&mut loaded, &after), play(&mut streams, &after));
    }

    #[test]
    fn indexed_episodes_leave_the_own_stream_as_if_they_had_not_been(
        seed: i64,
        episodes in prop::collection::vec(episode(), 1..8),
    ) {
        let mut streams = Streams::new(seed);
        let mut own = Rng::new(seed as u64);
        for (ix, draws) in &episodes {
            let played = match *ix {
                Some(ix) => {
                    streams.begin_index(ix);
                    let played = play(&mut streams, draws);
                    let mut of_seed = Rng::new(ix);
                    let alone: Vec<_> = draws.iter().map(|draw| draw.from(&mut of_seed)).collect();
                    prop_assert_eq!(&played, &alone);
                    continue;
                }
                None => {
                    streams.begin_own();
                    play(&mut streams, draws)
                }
            };
            let undisturbed: Vec<_> = draws.iter().map(|draw| draw.from(&mut own)).collect();
            prop_assert_eq!(played, undisturbed);
        }
    }

    #[test]
    fn an_index_plays_what_the_same_seed_plays(
        seed: i64,
        ix in 0..=i64::MAX,
        draws in prop::collection::vec(draw(), 1..12),
    ) {
        let mut seeded = Streams::new(ix);
        seeded.begin_own();
        let mut indexed = Streams::new(seed);
        play(&mut indexed, &draws);
        indexed.begin_index(ix as u64);
        prop_assert_eq!(play(&mut indexed, &draws), play(&mut seeded, &draws));
    }
}
