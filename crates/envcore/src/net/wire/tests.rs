//! What is written is read, and what a peer sends is anything at all.

use proptest::prelude::*;

use super::*;
use crate::space::{Leaf, Space};

fn leaves(space: Space) -> Vec<NetLeaf> {
    spaces::leaves_of("space", &space).unwrap()
}

fn request() -> Request {
    Request {
        num_envs: 3,
        use_shared_memory: true,
        env_options: Options::new().with("size", 4i64).with("name", "ü").with("low", f64::NEG_INFINITY),
        extension: Some(Options::new().with("version", 1i64).with(TOKEN, "a token of 16 letters")),
    }
}

fn response() -> Response {
    let observation = Space::of([
        Leaf::image(&[2, 3]).named("pixels"),
        Leaf::real::<f32>(&[2]).bounded(-1.0, 1.0).named("place"),
        Leaf::labels::<i8>(&[3], 0, 2).named("bits"),
    ]);
    Response {
        reward_range: (f64::NEG_INFINITY, 10.0),
        metadata: Options::new().with("render_fps", 30i64),
        action: leaves(Leaf::discrete(4).into()),
        observation: leaves(observation),
        extension: Some(Options::new().with("version", 1i64)),
    }
}

/// How many letters are replaced, and by what.
fn changed() -> impl Strategy<Value = (usize, String)> {
    let said = [
        "",
        "0",
        "-1",
        "1e400",
        "4611686018427387904",
        "NaN",
        "null",
        "{}",
        "[]",
        "[[1]]",
        "\"",
        "}",
        "]",
        ",",
        ":",
        "\"Box\"",
        "\"Discrete\"",
        "\"MultiBinary\"",
        "\"float64\"",
        "\"int8\"",
        "\"shape\": [0]",
        "\"_\"",
    ];
    (0usize..12, prop::sample::select(said.map(String::from).to_vec()))
}

#[test]
fn arrays_are_padded_and_shared_memory_is_as_large_as_was_measured() {
    // The sizes of the recorded spaces with three envs; those of shared memory were measured
    // on the original.
    let action = leaves(Space::of([
        Leaf::discrete(4).named("move"),
        Leaf::real::<f32>(&[2]).bounded(-1.0, 1.0).named("force"),
    ]));
    let observation = leaves(Space::of([
        Leaf::image(&[2, 3]).named("zimg"),
        Leaf::real::<f32>(&[2]).named("vec"),
        Leaf::discrete(5).named("disc"),
        Leaf::labels::<i8>(&[3], 0, 2).named("bits"),
        Leaf::real::<f64>(&[]).named("f64"),
    ]));
    let actions = Payload::of(&action, 3, 1 << 20).unwrap();
    let steps = Payload::of(&spaces::step_leaves(&observation), 3, 1 << 20).unwrap();
    assert_eq!((actions.bytes, steps.bytes), (128, 448));
    assert_eq!(
        steps.places.iter().map(|place| place.at).collect::<Vec<_>>(),
        [0, 64, 128, 192, 256, 320, 384]
    );
    assert_eq!(shared_sizes(actions.bytes, steps.bytes), (192, 702));
}

#[test]
fn a_payload_above_the_limit_is_refused_before_anything_is_allocated() {
    let pixels = leaves(Leaf::image(&[64, 64, 3]).into());
    assert!(Payload::of(&pixels, 2, 64 * 64 * 3).unwrap_err().contains("more than 12288 bytes"));
    assert!(Payload::of(&pixels, usize::MAX, usize::MAX).is_err());
    assert!(Payload::of(&pixels, 1, 64 * 64 * 3).is_ok());
}

#[test]
fn a_length_is_compared_with_its_limit() {
    assert_eq!(length([0, 0, 1, 0], 256), Ok(256));
    assert!(length([0, 0, 1, 1], 256).unwrap_err().contains("257"));
    assert!(length([0xff; 4], MAX_RESPONSE).unwrap_err().contains("4294967295"));
}

#[test]
fn a_request_has_three_keys_and_any_other_is_ignored() {
    let text =
        r#"{"env_options": {"a": 1}, "use_shared_memory": false, "num_envs": 2, "more": [], "corral": 1}"#;
    let request = Request::read(text.as_bytes()).unwrap();
    assert_eq!((request.num_envs, request.use_shared_memory), (2, false));
    assert_eq!(request.env_options, Options::new().with("a", 1i64));
    assert_eq!(request.extension, None);
    for (text, why) in [
        ("3", "no object"),
        (r#"{"num_envs": 0, "use_shared_memory": false, "env_options": {}}"#, "asks for 0"),
        (r#"{"num_envs": -1, "use_shared_memory": false, "env_options": {}}"#, "asks for -1"),
        (r#"{"num_envs": 1.5, "use_shared_memory": false, "env_options": {}}"#, "lacks 'num_envs'"),
        (r#"{"num_envs": 1, "use_shared_memory": 1, "env_options": {}}"#, "lacks 'use_shared"),
        (r#"{"num_envs": 1, "use_shared_memory": true}"#, "lacks 'env_options'"),
    ] {
        let told = Request::read(text.as_bytes()).unwrap_err();
        assert!(told.contains(why), "{told}");
    }
}

proptest! {
    #[test]
    fn every_array_lies_within_the_payload_after_the_one_before(
        rows in 1usize..40, extents in proptest::collection::vec(0usize..40, 1..5)
    ) {
        let leaf = |(k, extent): (usize, &usize)| Leaf::image(&[*extent]).named(format!("l{k}"));
        let leaves = leaves(Space::of(extents.iter().enumerate().map(leaf)));
        let payload = Payload::of(&leaves, rows, usize::MAX).unwrap();
        let mut end = 0;
        for (place, extent) in payload.places.iter().zip(&extents) {
            // Naive: each array begins at the first multiple of 64 after the last.
            while end % 64 != 0 {
                end += 1;
            }
            prop_assert_eq!((place.at, place.bytes), (end, rows * extent));
            end += rows * extent;
        }
        prop_assert!(payload.bytes >= end && payload.bytes < end + 64 && payload.bytes.is_multiple_of(64));
    }

    #[test]
    fn no_bytes_make_either_role_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = (Request::read(&bytes), Response::read(&bytes));
    }

    #[test]
    fn no_change_of_a_valid_message_makes_either_role_panic(
        is_request in any::<bool>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), changed()), 1..4),
    ) {
        let mut text = if is_request { request().write().unwrap() } else { response().write().unwrap() };
        for (at, change) in changes {
            let (from, len) = (at.index(text.len()), change.0);
            let end = (from + len).min(text.len());
            text.replace_range(from..end, &change.1);
        }
        if is_request {
            let _ = Request::read(text.as_bytes());
        } else if let Ok(told) = Response::read(text.as_bytes()) {
            for leaves in [&told.action, &told.observation] {
                let _ = (spaces::space_of("space", leaves), Payload::of(leaves, 3, 1 << 20));
            }
        }
    }
}
