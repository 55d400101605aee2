//! Actions are checked whole before any env moves, and the refusal says where.

use crate::common::oracle::{Naive, Oracle};
use crate::common::{Owned, config, refusal, reset, saved, serial, some_action, some_actions, view};
use envcore::{
    ActionBounds, Array, AutoresetMode, Begin, ColumnIn, DType, Error, FromRow, Leaf, Options, Phase, Record,
    Result, Serial, Slots, Space, Step, ToRow, Value, VecConfig, VecEnv, Want, wants_reset,
};
use envs::testing::{Faulty, FaultyConfig};
use proptest::prelude::*;

/// Sends what must be refused, and that nothing has moved.
fn refused(envs: &mut Serial, slots: &Slots, columns: &[ColumnIn<'_>]) -> String {
    let before = saved(envs);
    let checked = refusal(envs.check_send(slots, columns));
    let error = envs.send(slots, columns).unwrap_err();
    assert!(matches!(error, Error::Action(_)), "{error:?}");
    assert_eq!(error.to_string(), checked, "check_send says the same");
    assert_eq!(envs.in_flight(), 0);
    assert_eq!(saved(envs), before, "something moved");
    checked
}

fn cart_poles(num_slots: usize) -> Serial {
    let mut envs = serial("CartPole-v1", num_slots, AutoresetMode::NextStep);
    reset(&mut envs, &vec![Begin::Own; num_slots]);
    envs
}

fn faulties(num_slots: usize, action_bounds: ActionBounds) -> Serial {
    let config = VecConfig { action_bounds, ..config(num_slots, AutoresetMode::NextStep) };
    let mut envs =
        Serial::new(&*crate::common::source("testing/Faulty-v0", &Default::default()), config).unwrap();
    reset(&mut envs, &vec![Begin::Own; num_slots]);
    envs
}

#[test]
fn a_label_out_of_range_is_refused_with_its_slot_value_and_bounds() {
    let mut envs = cart_poles(4);
    let text = refused(&mut envs, &Slots::All, &[ColumnIn::scalars(&[0i64, 1, 2, 1], &[4])]);
    assert_eq!(text, "CartPole-v1: bad action for env 2: 2 is outside 0 to 1");
    let text = refused(&mut envs, &Slots::List(vec![3, 1]), &[ColumnIn::scalars(&[0i64, -1], &[2])]);
    assert_eq!(text, "CartPole-v1: bad action for env 1: -1 is outside 0 to 1");
    let text = refused(&mut envs, &Slots::All, &[ColumnIn::scalars(&[u64::MAX; 4], &[4])]);
    assert!(text.contains("env 0: 18446744073709551615 does not fit int64"), "{text}");
}

#[test]
fn a_wrong_shape_count_dtype_or_kind_is_refused() {
    let mut envs = cart_poles(3);
    let zeros = [0i64; 6];
    let float = [0f64; 3];
    for (columns, part) in [
        (vec![ColumnIn::scalars(&zeros[..2], &[2])], "shape [2] where [3] belongs"),
        (vec![ColumnIn::scalars(&zeros[..4], &[4])], "shape [4] where [3] belongs"),
        (vec![ColumnIn::scalars(&zeros[..3], &[3, 1])], "shape [3, 1] where [3] belongs"),
        (vec![ColumnIn::scalars(&zeros[..1], &[])], "shape [] where [3] belongs"),
        (vec![ColumnIn::scalars(&zeros[..2], &[3])], "16 bytes are not shape [3] of int64"),
        (vec![ColumnIn::scalars(&float, &[3])], "dtype float64 does not fit int64 without loss"),
        (vec![], "actions have 0 leaves where the action space has 1"),
        (vec![ColumnIn::scalars(&zeros[..3], &[3]); 2], "actions have 2 leaves"),
        (vec![ColumnIn::Values(&[Value::Int(0), Value::Int(0), Value::Int(0)])], "rows of this leaf's kind"),
    ] {
        let text = refused(&mut envs, &Slots::All, &columns);
        assert!(text.starts_with("CartPole-v1: ") && text.contains(part), "{text}");
    }
    let ended = &[ColumnIn::Fixed { dtype: DType::I64, shape: &[3], bytes: (&[0; 23]).into() }];
    assert!(refused(&mut envs, &Slots::All, ended).contains("23 bytes"));
}

#[test]
fn each_leaf_is_checked_and_named() {
    let mut envs = faulties(3, ActionBounds::Error);
    let (gears, forces) = ([1i64, 2, 3], [0f32, 0.5, -1.0, 1.0, 0.0, 0.0]);
    let send = |envs: &mut Serial, forces: &[f32], gears: &[i64]| {
        let columns = [ColumnIn::scalars(forces, &[3, 2]), ColumnIn::scalars(gears, &[3])];
        refused(envs, &Slots::All, &columns)
    };
    let text = send(&mut envs, &forces, &[1, 2, 0]);
    assert_eq!(text, "testing/Faulty-v0: bad action for env 2, leaf 'gear': 0 is outside 1 to 3");
    let mut high = forces;
    high[3] = 1.5;
    let text = send(&mut envs, &high, &gears);
    let expected = "bad action for env 1, leaf 'force', element 1: 1.5 is outside -1.0 to 1.0";
    assert!(text.ends_with(expected), "{text}");
    let wide = [0.0, 0.0, 0.0, 1e39, 0.0, 0.0];
    let columns = [ColumnIn::scalars(&wide, &[3, 2]), ColumnIn::scalars(&gears, &[3])];
    let text = refused(&mut envs, &Slots::All, &columns);
    assert!(text.contains("env 1, leaf 'force', element 1: 1e39 does not fit float32"), "{text}");
    let floats = [1f64, 2.0, 3.0];
    let columns = [ColumnIn::scalars(&forces, &[3, 2]), ColumnIn::scalars(&floats, &[3])];
    let text = refused(&mut envs, &Slots::All, &columns);
    assert!(text.contains("leaf 'gear': dtype float64 does not fit int64"), "{text}");
}

#[test]
fn what_is_not_finite_is_refused_whatever_the_policy() {
    for policy in [ActionBounds::Env, ActionBounds::Clip, ActionBounds::Error] {
        let mut envs = faulties(2, policy);
        for (bad, shown) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
            let forces = [0.0, 0.0, bad, 0.0];
            let columns = [ColumnIn::scalars(&forces, &[2, 2]), ColumnIn::scalars(&[1i64; 2], &[2])];
            let text = refused(&mut envs, &Slots::All, &columns);
            assert!(
                text.ends_with(&format!("env 1, leaf 'force', element 0: {shown} is not finite")),
                "{text}"
            );
        }
    }
}

#[test]
fn a_value_outside_its_box_is_the_envs_is_clipped_or_is_refused_as_asked() {
    // The reference clips by hand what the policy clips.
    let played = |policy, force: f32, seen_by_env: f32| {
        let mut envs = faulties(1, policy);
        let mut oracle = Naive::<Faulty>::new(FaultyConfig::default(), 1, 100, AutoresetMode::NextStep, None);
        oracle.reset(0, Begin::Own, None);
        let action = [Array::from_slice(&[0.25f32, seen_by_env]), Array::new(&[], &[2i64]).unwrap()];
        // The second element of the force is told at every third step.
        for t in 0..3 {
            let gear = ColumnIn::scalars(&[2i64], &[1]);
            envs.send(&Slots::All, &[ColumnIn::scalars(&[0.25f32, force], &[1, 2]), gear]).unwrap();
            let rows = crate::common::receive(&mut envs);
            let expected = oracle.step(0, &action.clone().map(Value::Array));
            assert_eq!(rows[0], expected);
            assert_eq!(expected.infos.contains_key("energy"), t == 2);
        }
    };
    played(ActionBounds::Env, 7.5, 7.5);
    played(ActionBounds::Clip, 7.5, 1.0);
    played(ActionBounds::Clip, -7.5, -1.0);
    played(ActionBounds::Error, -1.0, -1.0);
}

#[test]
fn rows_of_slots_that_await_their_autoreset_are_not_checked() {
    let limit = VecConfig { max_episode_steps: Some(1), ..config(2, AutoresetMode::NextStep) };
    let mut envs = Serial::new(&*crate::common::source("CartPole-v1", &Default::default()), limit).unwrap();
    let keep = |slot| [[Begin::Own, Begin::Keep], [Begin::Keep, Begin::Own]][slot];
    reset(&mut envs, &[Begin::Own; 2]);
    envs.send(&Slots::All, &[ColumnIn::scalars(&[0i64; 2], &[2])]).unwrap();
    crate::common::receive(&mut envs);
    reset(&mut envs, &keep(0));
    // Slot 1 is pending, slot 0 is not.
    let text = refused(&mut envs, &Slots::All, &[ColumnIn::scalars(&[9i64, 9], &[2])]);
    assert!(text.contains("for env 0:"), "{text}");
    for (slots, actions) in [(Slots::All, vec![0i64, 9]), (Slots::List(vec![1, 0]), vec![i64::MIN, 1])] {
        envs.check_send(&slots, &[ColumnIn::scalars(&actions, &[2])]).unwrap();
    }
    // Its dtype and shape are.
    refused(&mut envs, &Slots::List(vec![1]), &[ColumnIn::scalars(&[0f32], &[1])]);
    envs.send(&Slots::List(vec![1]), &[ColumnIn::scalars(&[9i64], &[1])]).unwrap();
    let batch = crate::common::recv(&mut envs);
    assert_eq!(batch.kind(0), envcore::RowKind::Reset);
}

#[test]
fn text_and_other_loose_leaves_are_checked_before_anything_moves() {
    let mut envs = serial("testing/Odd-v0", 2, AutoresetMode::SameStep);
    reset(&mut envs, &[Begin::Own; 2]);
    let moves = [1i64, 1];
    let mut send = |words: &[Value]| {
        let columns = [ColumnIn::scalars(&moves, &[2]), ColumnIn::Values(words)];
        let error = refusal(envs.send(&Slots::All, &columns));
        assert_eq!(envs.in_flight(), 0);
        error
    };
    let text = send(&["fine".into(), "much too long".into()]);
    assert_eq!(
        text,
        "testing/Odd-v0: bad action for env 1, leaf 'word': a text of 13 characters where at most 8 fit"
    );
    assert!(send(&["fine".into(), Value::Int(3)]).contains("3 where a text belongs"));
    assert!(send(&["fine".into()]).contains("leaf 'word': not the 2 rows"));
    envs.send(&Slots::All, &[ColumnIn::scalars(&moves, &[2]), ColumnIn::Values(&["a".into(), "".into()])])
        .unwrap();
    let counts = crate::common::recv(&mut envs).observation[2].as_fixed().unwrap().as_slice::<u8>().to_vec();
    assert_eq!(counts, [2, 1], "the refused actions left no trace");
}

#[test]
fn bytes_at_any_address_are_the_same_actions() {
    let space = faulties(1, ActionBounds::Env).spec().action.clone();
    let columns = some_actions(&space, 3, 4);
    let play = |offset: usize| {
        let mut envs = faulties(4, ActionBounds::Env);
        let shifted: Vec<(Vec<u8>, &Owned)> = columns
            .iter()
            .map(|column| match column {
                Owned::Fixed { bytes, .. } => ([vec![0xEE; offset], bytes.clone()].concat(), column),
                Owned::Values(_) => unreachable!("Faulty's leaves are of fixed shape"),
            })
            .collect();
        let columns: Vec<ColumnIn<'_>> = shifted
            .iter()
            .map(|(bytes, column)| match column {
                Owned::Fixed { dtype, shape, .. } => {
                    ColumnIn::Fixed { dtype: *dtype, shape, bytes: (&bytes[offset..]).into() }
                }
                Owned::Values(_) => unreachable!(),
            })
            .collect();
        envs.send(&Slots::All, &columns).unwrap();
        crate::common::receive(&mut envs)
    };
    let aligned = play(0);
    (1..9).for_each(|offset| assert_eq!(play(offset), aligned, "offset {offset}"));
    let mut oracle = Naive::<Faulty>::new(FaultyConfig::default(), 4, 100, AutoresetMode::NextStep, None);
    for (slot, seen) in aligned.iter().enumerate() {
        oracle.reset(slot, Begin::Own, None);
        assert_eq!(*seen, oracle.step(slot, &some_action(&space, 3, slot)));
    }
}

/// Shows the action it took.
struct Echo([i16; 2]);

#[derive(Clone, FromRow)]
struct Pair {
    #[leaf(low = -3, high = 5, discrete)]
    pair: [i16; 2],
}

impl envcore::Env for Echo {
    type Config = ();
    type Obs = [i16; 2];
    type Act = Pair;
    type Info = ();

    fn build(_config: &(), _seed: i64) -> Result<Self> {
        Ok(Echo([0; 2]))
    }

    fn step(&mut self, a: &Pair) -> Result<(Step<Self>, Record)> {
        self.0 = a.pair;
        Ok((Step::new(a.clone(), self.0, 0.0, ()), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<[i16; 2]> {
        wants_reset(is_done).map(|_| self.0)
    }

    fn reset_with_index(&mut self, _ix: usize) -> Result<[i16; 2]> {
        self.reset(None)
    }
}

/// `values` as elements of `dtype`, where they fit it.
fn as_dtype(dtype: DType, values: &[i64]) -> Option<Vec<u8>> {
    macro_rules! cast {
        ($t:ty) => {
            values
                .iter()
                .map(|v| <$t>::try_from(*v).ok().map(<$t>::to_ne_bytes))
                .collect::<Option<Vec<_>>>()
                .map(|all| all.concat())
        };
    }
    match dtype {
        DType::U8 => cast!(u8),
        DType::I8 => cast!(i8),
        DType::U16 => cast!(u16),
        DType::I16 => cast!(i16),
        DType::U32 => cast!(u32),
        DType::I32 => cast!(i32),
        DType::U64 => cast!(u64),
        _ => cast!(i64),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Integers of any width are held to their values; the env sees exactly
    /// those, or nobody sees anything.
    #[test]
    fn integers_of_any_dtype_arrive_whole_or_not_at_all(
        values in prop::collection::vec(prop_oneof![-5i64..8, any::<i64>()], 6),
        wild in any::<bool>(),
        dtype in prop::sample::select(vec![
            DType::U8, DType::I8, DType::U16, DType::I16, DType::U32, DType::I32, DType::U64, DType::I64,
        ]),
        order in Just(vec![0usize, 1, 2]).prop_shuffle(),
    ) {
        let values: Vec<i64> = values.iter().map(|v| if wild { *v } else { v.rem_euclid(9) - 3 }).collect();
        let Some(bytes) = as_dtype(dtype, &values) else { return Ok(()) };
        let mut envs = Serial::new(&crate::common::source_of::<Echo>(), config(3, AutoresetMode::NextStep)).unwrap();
        reset(&mut envs, &[Begin::Own; 3]);
        let columns = [ColumnIn::Fixed { dtype, shape: &[3, 2], bytes: (&bytes).into() }];
        let sent = envs.send(&Slots::List(order.clone()), &columns);
        let bad: Vec<usize> = (0..6).filter(|k| !(-3..=5).contains(&values[*k])).collect();
        if bad.is_empty() {
            sent.unwrap();
            let batch = crate::common::recv(&mut envs);
            let shown = batch.observation[0].as_fixed().unwrap().as_slice::<i16>();
            prop_assert_eq!(shown.iter().map(|v| i64::from(*v)).collect::<Vec<_>>(), values);
            prop_assert_eq!(batch.slots.iter(3).collect::<Vec<_>>(), order);
        } else {
            let text = sent.unwrap_err().to_string();
            let names = |k: &usize| {
                let (slot, element, value) = (order[k / 2], k % 2, values[*k]);
                text.contains(&format!("for env {slot}, leaf 'pair', element {element}: {value} "))
            };
            prop_assert!(bad.iter().any(names), "{text} names none of {bad:?} in {values:?}");
            prop_assert_eq!(envs.in_flight(), 0);
        }
    }
}

#[test]
fn the_action_space_of_a_derived_struct_is_its_fields() {
    let space = <Pair as FromRow>::space().unwrap();
    assert_eq!(space, Space::of([Leaf::labels::<i16>(&[2], -3, 9).named("pair")]));
    assert_eq!(<[i16; 2] as ToRow>::space().unwrap().leaves().len(), 1);
}

#[test]
fn actions_that_nobody_checked_are_the_envs_own_affair_and_no_panic_of_the_callers() {
    // So many that kernels step them, and a few that step themselves.
    for (entry, num_slots) in envs::all().flat_map(|entry| [(entry, 3), (entry, 20)]) {
        let source = entry.source(&Options::new()).unwrap();
        let space = source.spec().action.clone();
        let Some(leaves) = space.leaves().iter().map(Leaf::as_fixed).collect::<Option<Vec<_>>>() else {
            continue;
        };
        let unchecked = VecConfig {
            action_bounds: ActionBounds::Unchecked,
            ..config(num_slots, AutoresetMode::NextStep)
        };
        let mut envs = Serial::new(&*source, unchecked).unwrap();
        let numbers = [i64::MIN, -1, 4, 1 << 40, i64::MAX];
        for bytes in numbers.map(i64::to_ne_bytes) {
            envs.reset(&Slots::All, &vec![Begin::Own; num_slots], None, Want::all()).unwrap();
            let column = |tensor: &&envcore::Tensor| Owned::Fixed {
                dtype: tensor.dtype,
                shape: [&[num_slots], &tensor.shape[..]].concat(),
                bytes: bytes.into_iter().cycle().take(num_slots * tensor.row_bytes()).collect(),
            };
            let columns: Vec<Owned> = leaves.iter().map(column).collect();
            let batch = envs.step(&Slots::All, &view(&columns), Want::all()).unwrap().unwrap();
            assert!(batch.failures.iter().all(|failure| failure.failure.phase == Phase::Step));
        }
    }
}
