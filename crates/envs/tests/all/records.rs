//! Records: declared keys become columns of their dtype, others travel loose,
//! and what does not fit its column fails its slot and leaves nothing behind.

use crate::common::{Cell, config, recv, reset, rows_of, source_of};
use envcore::{
    Array, AutoresetMode, Begin, ColumnIn, DType, Discrete, Env, EnvSource, Leaf, Record, Result, RowKind,
    Serial, Slots, Space, Step, Value, VecEnv, wants_reset,
};

/// What `Teller` records at action k.
fn record(action: i64) -> Record {
    let pair = |elements: &[i16]| Array::from_slice(elements);
    match action {
        0 => Record::empty(),
        1 => Record::empty()
            .with("count", 7i64)
            .with("ratio", 0.5)
            .with("on", true)
            .with("pair", pair(&[1, -2])),
        2 => Record::empty().with("loose", "text").with("count", -1i64),
        3 => Record::empty().with("loose", "text").with("count", 300i64),
        4 => Record::empty().with("loose", "text").with("pair", pair(&[1, 2, 3])),
        5 => Record::empty().with("pair", Array::from_slice(&[1i32, 2])),
        6 => Record::empty().with("on", "yes"),
        _ => Record::empty().with("count", 0.5).with("loose", 1i64),
    }
}

struct Teller;

impl Env for Teller {
    type Config = ();
    type Obs = i32;
    type Act = Discrete<8>;
    type Info = ();

    fn build(_config: &(), _seed: i64) -> Result<Self> {
        Ok(Teller)
    }

    fn record_space(_config: &()) -> Result<Space> {
        Ok(Space::of([
            Leaf::real::<i8>(&[]).named("count"),
            Leaf::real::<f64>(&[]).named("ratio"),
            Leaf::tensor(DType::Bool, &[], envcore::Bounds::of(DType::Bool), true).named("on"),
            Leaf::real::<i16>(&[2]).named("pair"),
        ]))
    }

    fn step(&mut self, a: &Discrete<8>) -> Result<(Step<Self>, Record)> {
        Ok((Step::new(*a, 5, 1.0, ()), record(a.0)))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<i32> {
        wants_reset(is_done).map(|_| 0)
    }

    fn reset_with_index(&mut self, _ix: usize) -> Result<i32> {
        Ok(0)
    }
}

#[test]
fn declared_keys_are_columns_others_are_loose_and_misfits_fail_their_slot() {
    let mut envs = Serial::new(&source_of::<Teller>(), config(8, AutoresetMode::NextStep)).unwrap();
    reset(&mut envs, &[Begin::Own; 8]);
    envs.send(&Slots::All, &[ColumnIn::scalars(&[0i64, 1, 2, 3, 4, 5, 6, 7], &[8])]).unwrap();
    let batch = recv(&mut envs);
    let rows: Vec<_> = rows_of(envs.spec(), &batch).into_iter().map(|(_, row)| row).collect();
    assert!(rows[0].infos.is_empty());
    let bytes = |bytes: &[u8]| Cell::Bytes(bytes.to_vec());
    let pair = [1i16.to_ne_bytes(), (-2i16).to_ne_bytes()].concat();
    let expected =
        [("count", bytes(&[7])), ("ratio", Cell::float(0.5)), ("on", bytes(&[1])), ("pair", bytes(&pair))];
    assert_eq!(rows[1].infos, expected.map(|(name, cell)| (name.to_string(), cell)).into());
    let expected = [("*loose", Cell::Loose(Value::from("text"))), ("count", bytes(&[255]))];
    assert_eq!(rows[2].infos, expected.map(|(name, cell)| (name.to_string(), cell)).into());

    let messages = [
        (3, "record key 'count': 300 does not fit int8"),
        (4, "record key 'pair': 3 elements where 2 belong"),
        (5, "record key 'pair': int32[2] [1, 2] does not fit int16"),
        (6, "record key 'on': \"yes\" does not fit bool"),
        (7, "record key 'count': 0.5 does not fit int8"),
    ];
    assert_eq!(batch.failures.len(), messages.len());
    for (failure, (slot, message)) in batch.failures.iter().zip(messages) {
        assert_eq!((failure.slot, failure.failure.message.as_str()), (slot, message));
        assert_eq!(rows[slot].kind, RowKind::Failed);
        assert!(rows[slot].infos.is_empty(), "env {slot} failed and left {:?}", rows[slot].infos);
        assert_eq!((rows[slot].observation[0].clone(), rows[slot].reward()), (bytes(&[0; 4]), 0.0));
    }
}

/// An env whose record's key is also an info.
#[test]
fn a_space_that_names_a_leaf_twice_makes_no_source() {
    struct Twice;
    impl Env for Twice {
        type Config = ();
        type Obs = i32;
        type Act = Discrete<2>;
        type Info = i32;

        fn build(_config: &(), _seed: i64) -> Result<Self> {
            Ok(Twice)
        }
        fn record_space(_config: &()) -> Result<Space> {
            Ok(Leaf::real::<f64>(&[]).named("info").into())
        }
        fn step(&mut self, a: &Discrete<2>) -> Result<(Step<Self>, Record)> {
            Ok((Step::new(*a, 0, 0.0, 0), Record::empty()))
        }
        fn reset(&mut self, _is_done: Option<&Vec<i8>>) -> Result<i32> {
            Ok(0)
        }
        fn reset_with_index(&mut self, _ix: usize) -> Result<i32> {
            Ok(0)
        }
    }
    let text = crate::common::refusal(EnvSource::<Twice>::new("Twice-v0", ()));
    assert_eq!(text, "Twice-v0: info space, leaf 'info': its name clashes with 'info'");
}
