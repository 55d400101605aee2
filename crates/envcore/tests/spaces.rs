//! Spaces that no memory holds, at every door by which a space comes in: an
//! error that names leaf and shape, and never a block too small for its rows.

use std::sync::Arc;

use envcore::{
    ActionBounds, Actions, Array, Background, BatchPool, Bounds, Caps, Chunk, DType, Error, Layout, Leaf,
    NormalizeObservation, Options, Result, Sections, Serial, SlotState, Slots, Source, SourceSpec, Space,
    Threaded, VecConfig, VecEnv,
};
use proptest::prelude::*;
use proptest::sample::select;

const DTYPES: [DType; 12] = [
    DType::Bool,
    DType::U8,
    DType::I8,
    DType::U16,
    DType::I16,
    DType::U32,
    DType::I32,
    DType::U64,
    DType::I64,
    DType::F16,
    DType::F32,
    DType::F64,
];

/// A source of this spec, of which no env is ever made.
struct Of(SourceSpec);

impl Source for Of {
    fn spec(&self) -> &SourceSpec {
        &self.0
    }

    fn chunk(&self, _: usize, _: &[i64]) -> Result<Box<dyn Chunk>> {
        Err(Error::Unsupported("no envs here".into()))
    }
}

fn source(observation: Space, action: Space, info: Space) -> Arc<dyn Source> {
    Arc::new(Of(SourceSpec {
        id: "Odd".into(),
        observation,
        action,
        info,
        caps: Caps::ENV,
        autoreset: None,
        max_episode_steps: None,
        metadata: Options::new(),
        num_agents: 1,
        config: String::new(),
    }))
}

fn leaf(dtype: DType, shape: &[usize]) -> Leaf {
    Leaf::tensor(dtype, shape, Bounds::of(dtype), false).named("push")
}

/// Bytes of so many rows, counted where nothing overflows; an extent of 0 counts
/// as 1, since NumPy counts the others too.
fn bytes(dtype: DType, shape: &[usize], rows: usize) -> Option<u128> {
    let extents = shape.iter().chain([&rows]);
    extents.map(|&n| n.max(1) as u128).try_fold(dtype.size() as u128, u128::checked_mul)
}

/// Whether it is little memory, or more than there is: blocks are zeroed.
fn is_worth_trying(size: Option<u128>) -> bool {
    size.is_none_or(|size| size <= 1 << 20 || size > 1 << 45)
}

const MOST: u128 = isize::MAX as u128 / 2;

fn extent() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => 0usize..5,
        1 => (0u32..64).prop_map(|bits| 1 << bits),
        1 => any::<usize>(),
        1 => select(vec![usize::MAX, isize::MAX as usize, 1 << 61, (1 << 32) + 1]),
    ]
}

fn shape() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(extent(), 0..5)
}

fn told(error: &Error, shape: &[usize]) -> bool {
    let text = error.to_string();
    matches!(error, Error::Space(_)) && text.contains("'push'") && text.contains(&format!("{shape:?}"))
}

proptest! {
    #[test]
    fn actions_have_room_for_every_element_or_there_are_none(
        dtype in select(&DTYPES[..]), shape in shape(), slots in prop_oneof![0usize..4, extent()],
    ) {
        let space = Space::from(leaf(dtype, &shape));
        let size = bytes(dtype, &shape, slots);
        prop_assume!(is_worth_trying(size));
        match Actions::new("Odd", &space, slots, ActionBounds::Env) {
            Err(error @ Error::Space(_)) => {
                prop_assert!(size.is_none_or(|size| size > MOST), "{error}");
                prop_assert!(told(&error, &shape), "{error}");
            }
            Err(Error::Memory(_)) => prop_assert!(size.is_some_and(|size| size > 1 << 28)),
            Err(other) => prop_assert!(false, "{other}"),
            Ok(actions) => {
                prop_assert!(size.is_some_and(|size| size <= MOST));
                let elements = shape.iter().product::<usize>();
                for slot in [0, slots.saturating_sub(1)].into_iter().filter(|slot| *slot < slots) {
                    let row = actions.row(slot).bytes();
                    prop_assert_eq!(row.len(), elements * dtype.size());
                    prop_assert!(row.first().is_none_or(|byte| *byte == 0));
                    prop_assert!(row.last().is_none_or(|byte| *byte == 0));
                }
            }
        }
    }

    #[test]
    fn batches_have_room_for_every_element_or_there_are_none(
        dtype in select(&DTYPES[..]), shape in shape(), rows in 0usize..4, finals in any::<bool>(), info in any::<bool>(),
    ) {
        let (full, empty) = (Space::from(leaf(dtype, &shape)), Space::empty());
        let (observation, info) = if info { (empty, full) } else { (full, empty) };
        let size = bytes(dtype, &shape, rows);
        prop_assume!(is_worth_trying(size));
        let made = BatchPool::new(&Layout { observation, info, finals, capacity: rows })
            .and_then(|mut pool| pool.draft(Slots::All, rows, None).map(|draft| pool.finish(draft)));
        match made {
            Err(error @ Error::Space(_)) => {
                prop_assert!(size.is_none_or(|size| size > MOST), "{error}");
                prop_assert!(told(&error, &shape), "{error}");
            }
            Err(Error::Memory(_)) => prop_assert!(size.is_some_and(|size| size > 1 << 28)),
            Err(other) => prop_assert!(false, "{other}"),
            Ok(batch) => {
                let elements = shape.iter().product::<usize>();
                let columns = batch.observation.iter().chain(&batch.infos.columns);
                for column in columns.filter_map(|column| column.as_fixed()) {
                    prop_assert_eq!(column.bytes().len(), rows * elements * dtype.size());
                }
            }
        }
    }

    #[test]
    fn arrays_that_somebody_wrote_have_as_many_bytes_as_their_shape_says(
        dtype in select(&DTYPES[..]), shape in shape(), bytes in prop::collection::vec(0u8..3, 0..40),
    ) {
        let json = serde_json::json!({ "dtype": dtype, "shape": shape, "bytes": bytes });
        match serde_json::from_value::<Array>(json) {
            Ok(array) => {
                prop_assert_eq!(array.shape().iter().product::<usize>() * dtype.size(), bytes.len());
                prop_assert!(dtype != DType::Bool || bytes.iter().all(|byte| *byte <= 1));
            }
            Err(error) => {
                let size = self::bytes(dtype, &shape, 1);
                let has_bytes = size == Some(bytes.len() as u128) && !shape.contains(&0);
                prop_assert!(!has_bytes || dtype == DType::Bool, "{}", error);
            }
        }
    }
}

/// What each runner says of a source of these spaces.
fn refusals(observation: &Space, action: &Space, info: &Space, num_slots: usize) -> Vec<Error> {
    let source = || source(observation.clone(), action.clone(), info.clone());
    let config = || VecConfig { num_slots, num_threads: Some(2), seed: Some(0), ..VecConfig::default() };
    vec![
        Serial::new(&*source(), config()).map(drop).unwrap_err(),
        Threaded::new(&*source(), config()).map(drop).unwrap_err(),
        Background::new(source(), config()).map(drop).unwrap_err(),
    ]
}

#[test]
fn every_runner_refuses_a_source_whose_spaces_fit_no_memory() {
    let good = || Space::from(Leaf::discrete(2));
    let shapes: [&[usize]; 3] = [&[1 << 61], &[1 << 40, 1 << 40], &[usize::MAX, 0]];
    for shape in shapes {
        let bad = Space::from(leaf(DType::F64, shape));
        for (observation, action, info, which) in [
            (bad.clone(), good(), Space::empty(), "Odd: observation space"),
            (good(), bad.clone(), Space::empty(), "Odd: action space"),
            (good(), good(), bad.clone(), "Odd: info space"),
        ] {
            for error in refusals(&observation, &action, &info, 2) {
                assert!(told(&error, shape) && error.to_string().contains(which), "{error}");
            }
        }
    }
    // One row fits, all of them do not.
    let large = Space::from(leaf(DType::U8, &[1 << 60]));
    for error in refusals(&large, &good(), &Space::empty(), 1 << 10) {
        assert!(error.to_string().contains("1024 rows"), "{error}");
    }
}

#[test]
fn every_runner_refuses_a_source_whose_spaces_contradict_themselves() {
    let good = || Space::from(Leaf::discrete(2));
    let crossed = Space::from(Leaf::real::<f32>(&[2]).bounded(1.0, -1.0));
    let short = Space::from(Leaf::real::<f32>(&[3]).bounded_by(&[0f32; 2], &[1f32; 2]));
    for bad in [crossed, short] {
        for error in refusals(&bad, &good(), &Space::empty(), 2) {
            assert!(matches!(error, Error::Space(_)), "{error}");
        }
    }
}

#[test]
fn a_space_that_is_only_absurd_is_an_error_and_the_process_goes_on() {
    let lacks = |error: &Error| matches!(error, Error::Memory(bytes) if *bytes >= 1 << 50);
    let absurd = || Space::from(leaf(DType::F32, &[1 << 48]));
    let made = Actions::new("Odd", &absurd(), 1, ActionBounds::Env).map(drop);
    assert!(lacks(&made.unwrap_err()));
    let layout = Layout { observation: absurd(), info: Space::empty(), finals: false, capacity: 1 };
    let drafted = BatchPool::new(&layout).and_then(|mut pool| pool.draft(Slots::All, 1, None).map(drop));
    assert!(lacks(&drafted.unwrap_err()));
    for error in refusals(&Space::from(Leaf::discrete(2)), &absurd(), &Space::empty(), 1) {
        assert!(lacks(&error), "{error}");
    }
    let layer = NormalizeObservation::over(Box::new(Shown(spec_of(absurd()))));
    assert!(lacks(&layer.map(drop).unwrap_err()));
}

#[test]
fn a_draft_has_no_more_rows_than_its_pool_has_room_for() {
    let layout =
        Layout { observation: Leaf::discrete(2).into(), info: Space::empty(), finals: true, capacity: 2 };
    let mut pool = BatchPool::new(&layout).unwrap();
    for (slots, rows) in [(Slots::All, 3), (Slots::All, usize::MAX), (Slots::List(vec![0]), 2)] {
        let error = pool.draft(slots, rows, None).map(drop).unwrap_err();
        assert!(matches!(error, Error::Argument(_)), "{error}");
    }
    pool.draft(Slots::List(vec![1, 0]), 2, None).unwrap();
}

fn spec_of(observation: Space) -> envcore::Spec {
    envcore::Spec {
        id: "Odd".into(),
        num_slots: 1,
        observation,
        action: Leaf::discrete(2).into(),
        info: Space::empty(),
        autoreset: envcore::AutoresetMode::NextStep,
        caps: Caps::ENV,
        max_episode_steps: None,
        metadata: Options::new(),
        num_agents: 1,
    }
}

/// A vec env that has a spec and nothing else.
struct Shown(envcore::Spec);

impl VecEnv for Shown {
    fn spec(&self) -> &envcore::Spec {
        &self.0
    }

    fn check_reset(&mut self, _: &Slots, _: &[envcore::Begin], _: Option<&Options>) -> Result<()> {
        Err(Error::Closed)
    }

    fn check_send(&mut self, _: &Slots, _: &[envcore::ColumnIn<'_>]) -> Result<()> {
        Err(Error::Closed)
    }

    fn send_reset(&mut self, _: &Slots, _: &[envcore::Begin], _: Option<&Options>) -> Result<()> {
        Err(Error::Closed)
    }

    fn set_next(&mut self, _: &Slots, _: &[envcore::Begin]) -> Result<()> {
        Err(Error::Closed)
    }

    fn send(&mut self, _: &Slots, _: &[envcore::ColumnIn<'_>]) -> Result<()> {
        Err(Error::Closed)
    }

    fn recv(&mut self, _: envcore::Want<'_>) -> Result<Option<Box<envcore::Batch>>> {
        Err(Error::Closed)
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn save_slot(&mut self, _: usize) -> Result<SlotState> {
        Err(Error::Closed)
    }

    fn load_slot(&mut self, _: usize, _: Sections<'_>) -> Result<()> {
        Err(Error::Closed)
    }

    fn render(&mut self, _: &Slots) -> Result<Vec<envcore::Frame>> {
        Err(Error::Closed)
    }

    fn allocations(&self) -> u64 {
        0
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}
