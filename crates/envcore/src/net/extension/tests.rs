//! What a peer sends is anything at all.

use proptest::prelude::*;

use super::*;
use crate::call::{Call, CallKind};
use crate::caps::Caps;
use crate::error::{Cause, Error, Failure, Phase, SlotError};
use crate::runner::messages::{News, PackedFailure, Question};
use crate::space::{Leaf, Space};
use crate::vec_config::AutoresetMode;
use crate::vec_env::Spec;

const OBJECTS: PlainObjects<'static> = PlainObjects(None);

fn spec() -> Spec {
    Spec {
        id: "Odd-v0".into(),
        num_slots: 3,
        observation: Space::of([
            Leaf::image(&[2, 3]).named("pixels"),
            Leaf::text(9).named("word"),
            Leaf::real::<f32>(&[]).named("level"),
        ]),
        action: Leaf::discrete(4).into(),
        info: Space::of([Leaf::real::<f64>(&[2]).named("place"), Leaf::ragged::<u8>(&[4]).named("items")]),
        autoreset: AutoresetMode::SameStep,
        caps: Caps::ENV | Caps::SAVE,
        max_episode_steps: Some(9),
        metadata: Options::new().with("render_fps", 30i64),
        num_agents: 1,
    }
}

fn failure() -> SlotError {
    SlotError::in_build("Odd-v0", 2, Begin::Seed(4), Failure::new(Phase::Step, Cause::Panic, "boom"))
}

fn built() -> BuildResult {
    Ok(BuiltTail { spec: PackedSpec::of(&spec(), &OBJECTS), seeded: true, version: STATES.into() })
}

/// A message of each kind, beside its columns.
fn messages() -> Vec<(Kind, Vec<u8>)> {
    let value = Value::List(vec![Value::Int(-1), Value::Map(Options::new().with("a", "ü")), Value::None]);
    let call =
        Call { kind: CallKind::Call, name: "say".into(), args: vec![value.clone()], ..Call::default() };
    let step = StepTail { slots: Some(vec![2, 0]), loose: vec![vec![PackedValue::of(&value, &OBJECTS)]] };
    let reset = ResetTail {
        slots: None,
        begin: vec![Begin::Own, Begin::Seed(3), Begin::Index(1 << 40)],
        options: PackedValue::options(&Options::new().with("low", 0.5), &OBJECTS),
    };
    let news = News {
        columns: vec![vec![PackedValue::of(&value, &OBJECTS)]],
        infos: vec![(1, "x".into(), PackedValue::of(&Value::Float(0.5), &OBJECTS))],
        failures: vec![PackedFailure::of(&failure(), &OBJECTS)],
        ..News::default()
    };
    let refused: Answered = Err(PackedError::of(Error::Slots(vec![failure()]), &OBJECTS));
    vec![
        (Kind::Built, pack(&built()).unwrap()),
        (Kind::Built, pack(&BuildResult::Err(PackedError::text(&Error::UnknownEnv("no".into())))).unwrap()),
        (Kind::Step, pack(&step).unwrap()),
        (Kind::Reset, pack(&reset).unwrap()),
        (Kind::Ask, pack(&Question::call(vec![0, 1], &call, &OBJECTS)).unwrap()),
        (Kind::Ask, pack(&Question::Save(1)).unwrap()),
        (Kind::Rows, pack(&news).unwrap()),
        (Kind::Answer, pack(&Answered::Ok(Answer::Values(vec![PackedValue::of(&value, &OBJECTS)]))).unwrap()),
        (Kind::Answer, pack(&refused).unwrap()),
        (Kind::Closed, pack(&Closed::Some(PackedError::text(&Error::Closed))).unwrap()),
    ]
}

/// Reads `bytes` as each side reads a message of `kind`.
fn read(kind: Kind, bytes: &[u8]) -> Result<(), String> {
    match kind {
        Kind::Built => match open::<BuildResult>(kind, bytes)? {
            Ok(built) => built.spec.open(&OBJECTS).map(drop).map_err(|error| error.to_string()),
            Err(error) => {
                let _ = error.open(0, &OBJECTS).to_string();
                Ok(())
            }
        },
        Kind::Step => open::<StepTail>(kind, bytes).map(drop),
        Kind::Reset => open::<ResetTail>(kind, bytes).map(drop),
        Kind::Ask => open::<Question>(kind, bytes).map(drop),
        Kind::Rows => open::<News>(kind, bytes).map(drop),
        Kind::Answer => open::<Answered>(kind, bytes).map(drop),
        Kind::Closed => open::<Closed>(kind, bytes).map(drop),
        Kind::Close => Ok(()),
    }
}

#[test]
fn every_message_is_read_and_no_beginning_of_one() {
    for (kind, bytes) in messages() {
        read(kind, &bytes).unwrap();
        for count in 0..bytes.len() {
            assert!(read(kind, &bytes[..count]).is_err(), "{kind:?}, {count} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(read(kind, &longer).unwrap_err().contains("1 bytes too many"));
    }
}

#[test]
fn a_spec_comes_back_as_it_was() {
    let (kind, bytes) = messages().remove(0);
    let spec = open::<BuildResult>(kind, &bytes).unwrap().ok().unwrap().spec.open(&OBJECTS).unwrap();
    assert_eq!(format!("{spec:?}"), format!("{:?}", self::spec()));
}

#[test]
fn a_header_says_what_was_written_and_its_lengths_are_compared() {
    for (kind, bytes, rows, finals, is_shared) in
        [(Kind::Built, 0, 0, 0, false), (Kind::Rows, 700, 3, 1, true), (Kind::Closed, 1 << 31, 9, 9, false)]
    {
        let header = Header { kind, bytes, rows, finals, is_shared };
        assert_eq!(Header::read(header.write().unwrap()), Ok(header));
    }
    let none = Header { kind: Kind::Rows, bytes: 1 << 32, rows: 0, finals: 0, is_shared: false };
    assert!(none.write().is_err());
    let mut unknown = Header::of(Kind::Close, &[]).write().unwrap();
    for (at, byte) in [(4, 8), (5, 2), (6, 1), (7, 1)] {
        let was = std::mem::replace(&mut unknown[at], byte);
        assert!(Header::read(unknown).unwrap_err().contains("no message"));
        unknown[at] = was;
    }
    let header = Header { kind: Kind::Step, bytes: 100, rows: 1, finals: 0, is_shared: false };
    assert_eq!(header.tail(Some(64), 36), Ok(36));
    for (columns, most) in [(Some(64), 35), (Some(101), 1000), (None, 1000)] {
        assert!(header.tail(columns, most).unwrap_err().contains("which cannot be"));
    }
}

#[test]
fn columns_are_those_of_fixed_shape_and_are_padded() {
    let layout = RowsLayout::of(&spec());
    // pixels, level, place; reward, terminated, truncated, kind; two masks; ended.
    assert_eq!(layout.columns, [6, 4, 16, 8, 1, 1, 1, 1, 1, 1]);
    assert_eq!(layout.finals, [6, 4, 16, 1, 1]);
    assert_eq!(layout.bytes(3, 1), Some((640, 320)));
    assert_eq!(layout.bytes(5, 0), Some((64 * 9 + 128, 0)));
    assert_eq!(layout.bytes(usize::MAX, 0), None);
    let plain = RowsLayout::of(&Spec { autoreset: AutoresetMode::NextStep, ..spec() });
    assert_eq!((plain.columns.len(), plain.finals.len()), (9, 0));
}

#[test]
fn versions_that_do_not_meet_are_plain_netenv() {
    let keys = |version: i64, minimum: i64| {
        Options::new().with("version", version).with("minimum", minimum).with("id", "A-v0")
    };
    let asked = Asked::read(Some(&keys(VERSION, MINIMUM)));
    assert_eq!((asked.is_extended, asked.id.as_deref()), (true, Some("A-v0")));
    assert!(Asked::read(Some(&keys(VERSION + 9, MINIMUM))).is_extended);
    for other in [keys(VERSION + 9, VERSION + 1), keys(MINIMUM - 1, MINIMUM - 1), Options::new()] {
        assert_eq!(Asked::read(Some(&other)), Asked::default());
    }
    assert_eq!(Asked::read(None), Asked::default());
    assert_eq!(is_granted(Some(&granted())), Ok(true));
    assert_eq!(is_granted(None), Ok(false));
    for version in [Value::Int(VERSION + 1), Value::Text("1".into()), Value::None] {
        assert!(is_granted(Some(&Options::new().with("version", version))).is_err());
    }
}

#[test]
fn values_that_are_nested_too_deep_are_refused_and_end_no_stack() {
    // A list of one list of one list …: the number of `PackedValue::List` and a length of 1.
    let deep = [1u8, 1].repeat(1 << 20);
    assert!(open::<PackedValue>(Kind::Reset, &deep).err().unwrap().contains("makes no sense"));
    let deep = [2u8, 1, 0].repeat(1 << 20);
    assert!(open::<PackedValue>(Kind::Reset, &deep).is_err());
}

proptest! {
    #[test]
    fn no_bytes_of_the_extension_make_either_role_panic(
        message in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        rest in proptest::collection::vec(any::<u8>(), 0..40),
        head in any::<[u8; HEADER]>(),
    ) {
        let _ = Header::read(head).map(|header| header.tail(Some(9), 1 << 20));
        let all = messages();
        let (kind, bytes) = message.get(&all);
        let mut bytes = bytes.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.extend(&rest);
        let _ = read(*kind, &bytes);
        for (other, _) in &all {
            let _ = (read(*other, &rest), read(*other, &bytes));
        }
    }
}
