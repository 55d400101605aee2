use super::*;
use crate::Value;
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Sample {
    size: u8,
    name: String,
    wind: Option<f64>,
}

impl Default for Sample {
    fn default() -> Self {
        Sample { size: 3, name: "x".into(), wind: None }
    }
}

#[test]
fn options_are_laid_over_the_default() {
    let options = Options::new().with("size", 7i64).with("wind", 0.5);
    let config = Sample::from_options("E-v0", &options).unwrap();
    assert_eq!(config, Sample { size: 7, name: "x".into(), wind: Some(0.5) });
    <()>::from_options("E-v0", &Options::new()).unwrap();
}

#[test]
fn an_unknown_option_lists_the_valid_ones_and_the_nearest() {
    let error = Sample::from_options("E-v0", &Options::new().with("sizes", 7i64)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("did you mean 'size'?"), "{text}");
    assert!(text.contains("name (default \"x\"), size (default 3), wind (default null)"), "{text}");
    let text = <()>::from_options("E-v0", &Options::new().with("a", 1i64)).unwrap_err().to_string();
    assert!(text.contains("takes no options"), "{text}");
}

fn refused<C: Config>(name: &str, value: impl Into<Value>) -> String {
    let error = C::from_options("E-v0", &Options::new().with(name, value)).map(drop).unwrap_err();
    assert!(matches!(error, Error::OptionValue(_)), "{error}");
    error.to_string()
}

#[test]
fn an_ill_typed_option_is_named_with_what_it_takes() {
    let cases = [
        ("size", Value::from("big"), "E-v0: size is an int from 0 to 255, not 'big'"),
        ("size", Value::from(-1i64), "E-v0: size is an int from 0 to 255, not -1"),
        ("size", Value::from(300i64), "E-v0: size is an int from 0 to 255, not 300"),
        ("size", Value::from(7.0), "E-v0: size is an int from 0 to 255, not 7.0"),
        ("size", Value::from(true), "E-v0: size is an int from 0 to 255, not True"),
        ("size", Value::None, "E-v0: size is an int from 0 to 255, not None"),
        ("name", Value::from(3i64), "E-v0: name is a text, not 3"),
        ("wind", Value::from(f64::NAN), "E-v0: wind is a finite number, or None, not nan"),
        ("wind", Value::from(f64::INFINITY), "E-v0: wind is a finite number, or None, not inf"),
        ("wind", Value::from(vec![1i64.into()]), "E-v0: wind is a finite number, or None, not [1]"),
    ];
    for (name, value, wanted) in cases {
        assert_eq!(refused::<Sample>(name, value), wanted);
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
enum Tint {
    #[default]
    Red,
    Green,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct PondConfig {
    depth: i8,
    colour: Tint,
}

/// An even number.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "u8")]
struct EvenNumber(u8);

impl TryFrom<u8> for EvenNumber {
    type Error = &'static str;

    fn try_from(number: u8) -> Result<Self, &'static str> {
        if number.is_multiple_of(2) { Ok(EvenNumber(number)) } else { Err("it must be even") }
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
enum Outline {
    #[default]
    Point,
    Circle(f64),
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct ManyKinds {
    pond: PondConfig,
    rewards: [f64; 3],
    pair: (u8, String),
    rows: Vec<Vec<u16>>,
    even: EvenNumber,
    shape: Outline,
    far: u64,
}

#[test]
fn the_types_of_any_config_are_found_and_checked() {
    let types: Vec<_> = ManyKinds::docs().iter().map(|doc| doc.kind.type_name()).collect();
    assert_eq!(types, ["dict", "3 × float", "any", "list of list of int", "int", "any", "int"]);
    let pond = |name: &str, value: Value| Value::from(Options::new().with(name, value));
    let list = |items: Vec<Value>| Value::from(items);
    let cases = [
        ("pond", pond("depth", 300i64.into()), "pond['depth'] is an int from -128 to 127, not 300"),
        (
            "pond",
            pond("colour", "Grean".into()),
            "pond['colour'] is one of 'Red', 'Green', not 'Grean': did you mean 'Green'?",
        ),
        ("pond", pond("deep", 3i64.into()), "pond is a dict of 'depth', 'colour', not {'deep': 3}"),
        ("rewards", list(vec![1i64.into(); 2]), "rewards is a list of 3, each a finite number, not [1, 1]"),
        ("rewards", list(vec!["a".into(); 3]), "rewards[0] is a finite number, not 'a'"),
        ("rows", list(vec![list(vec![(-1i64).into()])]), "rows[0][0] is an int from 0 to 65535, not -1"),
        ("far", (-1i64).into(), "far is an int of 0 or more, not -1"),
    ];
    for (name, value, wanted) in cases {
        assert_eq!(refused::<ManyKinds>(name, value), format!("E-v0: {wanted}"));
    }
    let good = Options::new().with("rewards", crate::Array::from_slice(&[1i32, 2, 3])).with("even", 4i64);
    assert_eq!(ManyKinds::from_options("E-v0", &good).unwrap().rewards, [1.0, 2.0, 3.0]);
}

#[test]
fn what_only_the_type_itself_can_tell_is_said_in_its_words_and_never_in_serdes() {
    assert_eq!(refused::<ManyKinds>("even", 3i64), "E-v0: even cannot be 3: it must be even (default: 0)");
    assert_eq!(refused::<ManyKinds>("shape", 3i64), "E-v0: shape cannot be 3 (default: \"Point\")");
    let pair = refused::<ManyKinds>("pair", vec![Value::from(300i64), "x".into()]);
    assert_eq!(pair, "E-v0: pair cannot be [300, 'x'] (default: [0,\"\"])");
    let object: crate::Object = std::sync::Arc::new(());
    let text = refused::<ManyKinds>("shape", Value::Object(object));
    assert!(text.ends_with("not an object"), "{text}");
    let text = refused::<ManyKinds>("shape", vec![Value::from(f64::NAN)]);
    assert!(text.ends_with("not [nan]"), "{text}");
}

/// Bounds of every kind of number, and choices, at each depth that they reach.
#[derive(Clone, Default, crate::Config)]
struct Bounded {
    /// A level.
    #[option(low = 0.5, high = 2.0)]
    level: f64,
    #[option(low = -3, high = 3)]
    shift: i8,
    #[option(low = 1, high = 2)]
    perhaps: Option<u8>,
    #[option(low = 0.0, high = 1.0)]
    chances: Vec<f64>,
    #[option(high = 9)]
    pair: [u8; 2],
    #[option(choices = ["north", "south"])]
    way: String,
    flag: bool,
    other: Outline,
}

#[test]
fn bounds_and_choices_that_a_field_names_are_those_of_what_is_in_it() {
    let list = |item: f64| Value::from(vec![Value::from(item)]);
    let cases = [
        ("level", Value::from(0.4), "level is a number from 0.5 to 2, not 0.4"),
        ("level", 3i64.into(), "level is a number from 0.5 to 2, not 3"),
        ("level", 2.5.into(), "level is a number from 0.5 to 2, not 2.5"),
        ("shift", 4i64.into(), "shift is an int from -3 to 3, not 4"),
        ("shift", (-4i64).into(), "shift is an int from -3 to 3, not -4"),
        ("perhaps", 3i64.into(), "perhaps is an int from 1 to 2, or None, not 3"),
        ("chances", list(1.5), "chances[0] is a number from 0 to 1, not 1.5"),
        ("pair", vec![Value::from(1i64), 10i64.into()].into(), "pair[1] is an int from 0 to 9, not 10"),
        ("way", "nort".into(), "way is one of 'north', 'south', not 'nort': did you mean 'north'?"),
        ("flag", 1i64.into(), "flag is a bool, not 1"),
    ];
    for (name, value, wanted) in cases {
        assert_eq!(refused::<Bounded>(name, value), format!("E-v0: {wanted}"));
    }
    let flag = crate::Array::new(&[], &[true]).unwrap();
    assert!(Bounded::from_options("E-v0", &Options::new().with("flag", flag)).unwrap().flag);
    let empty = crate::Array::from_slice::<f64>(&[]);
    let config = Bounded::from_options("E-v0", &Options::new().with("chances", empty)).unwrap();
    assert!(config.chances.is_empty());
}

#[test]
fn numbers_that_are_not_finite_are_found_wherever_they_are() {
    for value in [
        Value::from(crate::Array::from_slice(&[1.0, f64::NAN])),
        Options::new().with("deep", vec![Value::from(f64::INFINITY)]).into(),
    ] {
        let text = refused::<Bounded>("other", value);
        assert!(text.contains("other is None, a bool, a finite number"), "{text}");
    }
}

/// A config that holds itself, and one whose fields are its own.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Branch {
    branches: Vec<Branch>,
    size: u8,
}

/// How large it is.
#[derive(Clone, Default, crate::Config)]
struct InnerConfig {
    /// The inner width.
    #[option(high = 5)]
    width: u8,
}

#[derive(Clone, Default, crate::Config)]
struct OuterConfig {
    inner: InnerConfig,
    /// The outer width.
    #[option(high = 50)]
    width: u8,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Flat {
    near: u8,
    #[serde(flatten)]
    rest: PondConfig,
}

#[test]
fn configs_within_configs_are_told_of_as_far_as_their_types_say() {
    assert_eq!(Branch::docs()[0].kind.type_name(), "list of dict");
    let docs = OuterConfig::docs();
    assert_eq!(
        (docs[1].meaning.as_str(), docs[1].kind.takes()),
        ("The outer width.", "an int from 0 to 50".into())
    );
    let names: Vec<_> = Flat::docs().into_iter().map(|doc| doc.name).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let options = Options::new().with("depth", -7i64).with("near", 3i64);
    assert_eq!(Flat::from_options("E-v0", &options).unwrap().rest.depth, -7);
}
