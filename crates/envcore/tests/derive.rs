//! What `#[derive(ToRow, FromRow)]` makes of structs: leaves, names, bounds, and
//! values that come back as they went in. Spaces that depend on the config.

use envcore::{
    ActRow, ActionBounds, Actions, AutoresetMode, BatchPool, Begin, Bounds, Column, ColumnIn, DType,
    Discrete, Env, EnvSource, Error, FromRow, Layout, Leaf, LeafKind, Record, Result, Row, Scalar, Serial,
    Slots, Space, Step, ToRow, Tree, Value, VecConfig, VecEnv, Want, f16, wants_reset,
};
use proptest::prelude::*;

fn names(space: &Space) -> Vec<&str> {
    space.leaves().iter().map(|leaf| leaf.name.as_str()).collect()
}

/// Writes `value` to the first row of a batch of `space` and gives the columns.
fn write(space: &Space, value: &impl ToRow) -> Vec<Column> {
    write_with(space, |row| value.write(row))
}

fn write_with(space: &Space, write: impl FnOnce(&mut Row<'_>)) -> Vec<Column> {
    let layout = Layout { observation: space.clone(), info: Space::empty(), finals: false, capacity: 1 };
    let mut pool = BatchPool::new(&layout).unwrap();
    let mut draft = pool.draft(Slots::All, 1, None).unwrap();
    write(&mut draft.rows_mut().observation(0));
    pool.finish(draft).observation
}

/// Reads columns of one row back, all of fixed shape.
fn read<T>(space: &Space, columns: &[Column], read: impl FnOnce(&mut ActRow<'_>) -> T) -> T {
    let shape = |leaf: &Leaf| [&[1], leaf.as_fixed().unwrap().shape.as_slice()].concat();
    let shapes: Vec<Vec<usize>> = space.leaves().iter().map(shape).collect();
    let inputs: Vec<ColumnIn<'_>> = columns
        .iter()
        .zip(&shapes)
        .map(|(column, shape)| {
            let fixed = column.as_fixed().unwrap();
            ColumnIn::Fixed { dtype: fixed.dtype(), shape, bytes: fixed.bytes().into() }
        })
        .collect();
    let mut actions = Actions::new("test", space, 1, ActionBounds::Env).unwrap();
    actions.store(&Slots::All, &inputs, &[false]).unwrap();
    read(&mut actions.row(0))
}

#[derive(Clone, Debug, PartialEq, ToRow, FromRow)]
struct Every {
    bool_: bool,
    u8_: u8,
    i8_: i8,
    u16_: u16,
    i16_: i16,
    u32_: u32,
    i32_: i32,
    u64_: u64,
    i64_: i64,
    f16_: f16,
    f32_: f32,
    f64_: f64,
    flags: [bool; 3],
    halves: [[f16; 2]; 2],
    grid: [[[i16; 2]; 3]; 2],
    none: [f64; 0],
    label: Discrete<3, -1>,
}

#[test]
fn every_number_and_array_of_them_is_a_leaf_of_its_dtype_and_shape() {
    let space = <Every as ToRow>::space().unwrap();
    assert_eq!(space, <Every as FromRow>::space().unwrap());
    space.check("observation").unwrap();
    let expected = [
        ("bool_", DType::Bool, vec![]),
        ("u8_", DType::U8, vec![]),
        ("i8_", DType::I8, vec![]),
        ("u16_", DType::U16, vec![]),
        ("i16_", DType::I16, vec![]),
        ("u32_", DType::U32, vec![]),
        ("i32_", DType::I32, vec![]),
        ("u64_", DType::U64, vec![]),
        ("i64_", DType::I64, vec![]),
        ("f16_", DType::F16, vec![]),
        ("f32_", DType::F32, vec![]),
        ("f64_", DType::F64, vec![]),
        ("flags", DType::Bool, vec![3]),
        ("halves", DType::F16, vec![2, 2]),
        ("grid", DType::I16, vec![2, 3, 2]),
        ("none", DType::F64, vec![0]),
        ("label", DType::I64, vec![]),
    ];
    assert_eq!(space.leaves().len(), expected.len());
    for (leaf, (name, dtype, shape)) in space.leaves().iter().zip(expected) {
        let tensor = leaf.as_fixed().unwrap();
        assert_eq!((leaf.name.as_str(), tensor.dtype, &tensor.shape), (name, dtype, &shape));
        // Bools and labels are labels, numbers are not.
        assert_eq!(tensor.discrete, dtype == DType::Bool || name == "label", "{name}");
    }
    assert_eq!(space.leaves()[16].as_fixed().unwrap().bounds, Bounds::uniform(-1i64, 1i64));
    assert_eq!(space.leaves()[7].as_fixed().unwrap().bounds, Bounds::uniform(0u64, u64::MAX));
}

#[test]
fn values_are_written_in_row_major_order() {
    let value = Every {
        bool_: true,
        u8_: 255,
        i8_: -128,
        u16_: 65535,
        i16_: -2,
        u32_: 3,
        i32_: -4,
        u64_: u64::MAX,
        i64_: i64::MIN,
        f16_: f16::from_f32(0.5),
        f32_: 1.5,
        f64_: -2.5,
        flags: [true, false, true],
        halves: [[f16::ZERO, f16::ONE], [f16::NEG_ONE, f16::INFINITY]],
        grid: [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]],
        none: [],
        label: Discrete(-1),
    };
    let columns = write(&<Every as ToRow>::space().unwrap(), &value);
    let fixed = |k: usize| columns[k].as_fixed().unwrap();
    assert_eq!(fixed(0).bytes(), [1]);
    assert_eq!(fixed(1).as_slice::<u8>(), [255]);
    assert_eq!(fixed(2).bytes(), [0x80]);
    assert_eq!(fixed(7).bytes(), [255; 8]);
    assert_eq!(fixed(8).bytes(), i64::MIN.to_ne_bytes());
    assert_eq!(fixed(9).bytes(), 0x3800u16.to_ne_bytes(), "binary16 of 0.5");
    assert_eq!(fixed(11).bytes(), (-2.5f64).to_ne_bytes());
    assert_eq!(fixed(12).bytes(), [1, 0, 1]);
    let halves: Vec<u8> = [0u16, 0x3c00, 0xbc00, 0x7c00].iter().flat_map(|h| h.to_ne_bytes()).collect();
    assert_eq!(fixed(13).bytes(), halves);
    assert_eq!(fixed(14).as_slice::<i16>(), (0..12).collect::<Vec<i16>>());
    assert!(fixed(15).bytes().is_empty());
    assert_eq!(fixed(16).as_slice::<i64>(), [-1]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(
        bits in any::<u64>(), floats in any::<(f32, f64)>(), flags in any::<[bool; 3]>(),
        grid in any::<[[[i16; 2]; 3]; 2]>(), label in -1i64..2,
    ) {
        // Actions are finite.
        prop_assume!(floats.0.is_finite() && floats.1.is_finite());
        let half = f16::from_bits(bits as u16 & 0x7bff);
        let value = Every {
            bool_: bits % 2 == 1, u8_: bits as u8, i8_: bits as i8, u16_: bits as u16, i16_: bits as i16,
            u32_: bits as u32, i32_: bits as i32, u64_: bits, i64_: bits as i64,
            f16_: half, f32_: floats.0, f64_: floats.1,
            flags, halves: [[half; 2]; 2], grid, none: [], label: Discrete(label),
        };
        let space = <Every as ToRow>::space().unwrap();
        let back: Every = read(&space, &write(&space, &value), Every::read);
        prop_assert_eq!(back, value);
    }
}

#[derive(ToRow, FromRow)]
struct Outer {
    #[leaf(name = "renamed")]
    plain: i32,
    r#type: u8,
    inner: Inner,
    deeper: Deeper,
}

#[derive(ToRow, FromRow)]
struct Inner {
    #[leaf(low = -2.0, high = 2.0)]
    a: [f32; 2],
    #[leaf(high = 9)]
    b: i16,
}

#[derive(ToRow, FromRow)]
struct Deeper {
    inner: Inner,
    #[leaf(low = 1, high = 4, discrete)]
    die: [u8; 2],
}

#[test]
fn fields_name_leaves_and_nested_structs_put_a_dot_between() {
    let space = <Outer as ToRow>::space().unwrap();
    let expected =
        ["renamed", "type", "inner.a", "inner.b", "deeper.inner.a", "deeper.inner.b", "deeper.die"];
    assert_eq!(names(&space), expected);
    assert_eq!(names(&<Outer as FromRow>::space().unwrap()), expected);
    space.check("observation").unwrap();
}

#[test]
fn attributes_bound_a_fields_numbers_or_make_them_labels() {
    let space = <Outer as ToRow>::space().unwrap();
    let tensor = |name: &str| {
        let leaf = space.leaves().iter().find(|leaf| leaf.name == name).unwrap();
        leaf.as_fixed().unwrap().clone()
    };
    assert_eq!(tensor("inner.a").bounds, Bounds::uniform(-2.0f32, 2.0f32));
    assert_eq!(tensor("deeper.inner.b").bounds, Bounds::uniform(i16::MIN, 9i16));
    let die = tensor("deeper.die");
    assert_eq!((die.bounds, die.discrete), (Bounds::uniform(1u8, 4u8), true));
    assert!(!tensor("renamed").discrete);
    assert_eq!(tensor("renamed").bounds, Bounds::uniform(i32::MIN, i32::MAX));
}

#[derive(ToRow, FromRow)]
struct Tenth {
    #[leaf(low = -0.1, high = 0.1)]
    x: f32,
}

#[test]
fn a_bound_is_the_nearest_number_of_the_leafs_dtype() {
    let space = <Tenth as ToRow>::space().unwrap();
    let bounds = &space.leaves()[0].as_fixed().unwrap().bounds;
    assert_eq!(bounds.at(0), (Scalar::Real(f64::from(-0.1f32)), Scalar::Real(f64::from(0.1f32))));
}

#[derive(ToRow)]
struct Misplaced {
    #[leaf(low = 0.0)]
    inner: Tenth,
}

#[test]
fn bounds_on_what_has_no_numbers_of_its_own_are_an_error_that_names_the_field() {
    let error = Misplaced::space().unwrap_err();
    assert!(matches!(error, Error::Space(_)));
    assert!(error.to_string().contains("field 'inner'"), "{error}");
}

#[derive(Clone, Debug, PartialEq, ToRow, FromRow)]
struct Two<A: ToRow + FromRow, const N: usize>
where
    [i32; N]: ToRow + FromRow,
{
    first: A,
    many: [i32; N],
}

#[test]
fn generic_structs_take_the_leaves_of_their_parameters() {
    type Nested = Two<Two<f64, 1>, 3>;
    let space = <Nested as ToRow>::space().unwrap();
    assert_eq!(names(&space), ["first.first", "first.many", "many"]);
    assert_eq!(space.leaves()[2].as_fixed().unwrap().shape, [3]);
    let value = Two { first: Two { first: 0.5, many: [7] }, many: [1, 2, 3] };
    assert_eq!(read(&space, &write(&space, &value), Nested::read), value);
}

#[derive(ToRow)]
struct Loose {
    text: String,
    number: i32,
}

#[test]
fn a_string_is_a_text_leaf() {
    let space = Loose::space().unwrap();
    assert!(matches!(space.leaves()[0].kind, LeafKind::Text { max_len: usize::MAX }));
    let columns = write(&space, &Loose { text: "süß".into(), number: 3 });
    assert_eq!(columns[0].as_values().unwrap(), [Value::from("süß")]);
    assert_eq!(columns[1].as_fixed().unwrap().as_slice::<i32>(), [3]);
}

#[derive(Clone, Debug, PartialEq, ToRow, FromRow)]
struct Way(#[leaf(low = -1, high = 1, discrete)] i16);

#[derive(Clone, Debug, PartialEq, ToRow, FromRow)]
struct Placed<T: ToRow + FromRow>(Way, (f32, Named), T, #[leaf(high = 9)] [u8; 2]);

#[derive(Clone, Debug, PartialEq, ToRow, FromRow)]
struct Named {
    #[leaf(name = "a.b, \"né\"")]
    dotted: f64,
    pair: (bool, (i32,)),
}

#[test]
fn a_tuple_struct_is_a_tuple_and_one_of_a_single_field_is_that_field() {
    let space = <Placed<i8> as ToRow>::space().unwrap();
    space.check("observation").unwrap();
    let expected = ["0", "1.0", "1.1.a.b, \"né\"", "1.1.pair.0", "1.1.pair.1.0", "2", "3"];
    assert_eq!(names(&space), expected);
    let pair = Tree::Tuple(vec![Tree::Leaf(3), Tree::Tuple(vec![Tree::Leaf(4)])]);
    let named = Tree::Dict(vec![("a.b, \"né\"".into(), Tree::Leaf(2)), ("pair".into(), pair)]);
    let second = Tree::Tuple(vec![Tree::Leaf(1), named]);
    assert_eq!(space.tree(), &Tree::Tuple(vec![Tree::Leaf(0), second, Tree::Leaf(5), Tree::Leaf(6)]));
    assert_eq!(<Placed<i8> as FromRow>::space().unwrap(), space);
    let way = space.leaves()[0].as_fixed().unwrap();
    assert_eq!((way.bounds.at(0), way.discrete), ((Scalar::Int(-1), Scalar::Int(1)), true));
    assert_eq!(space.leaves()[6].as_fixed().unwrap().bounds, Bounds::uniform(0u8, 9u8));
    assert!(<Way as ToRow>::space().unwrap().is_single());
    let named = Named { dotted: 0.25, pair: (true, (-3,)) };
    let value = Placed(Way(-1), (1.5, named), 4i8, [7, 9]);
    assert_eq!(read(&space, &write(&space, &value), Placed::<i8>::read), value);
}

#[derive(ToRow)]
struct Empty {}

#[derive(ToRow)]
struct Unit;

#[test]
fn a_struct_of_no_fields_and_the_unit_have_no_leaves() {
    assert_eq!(Empty::space().unwrap(), Space::empty());
    assert_eq!(Unit::space().unwrap(), Space::empty());
    assert!(write(&Space::empty(), &Unit).is_empty());
    assert_eq!(<() as ToRow>::space().unwrap(), Space::empty());
    assert!(write(&Space::empty(), &Empty {}).is_empty());
}

/// Shows as many numbers as its config says, and its action back.
struct Wide(Vec<f32>);

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Width {
    width: usize,
    /// What the env really shows.
    shows: usize,
}

impl Default for Width {
    fn default() -> Self {
        Width { width: 3, shows: 3 }
    }
}

#[derive(ToRow)]
struct Line {
    line: Vec<f32>,
    sum: f32,
}

impl Env for Wide {
    type Config = Width;
    type Obs = Line;
    type Act = Vec<f32>;
    type Info = ();

    fn build(config: &Width, _seed: i64) -> Result<Self> {
        Ok(Wide(vec![0.0; config.shows]))
    }

    fn observation_space(config: &Width) -> Result<Space> {
        Ok(Space::of([Leaf::real::<f32>(&[config.width]).named("line"), Leaf::real::<f32>(&[]).named("sum")]))
    }

    fn action_space(config: &Width) -> Result<Space> {
        Ok(Leaf::real::<f32>(&[config.width]).into())
    }

    fn step(&mut self, a: &Vec<f32>) -> Result<(Step<Self>, Record)> {
        self.0.iter_mut().zip(a).for_each(|(x, a)| *x += a);
        let obs = Line { line: self.0.clone(), sum: self.0.iter().sum() };
        Ok((Step::new(a.clone(), obs, 0.0, ()), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Line> {
        wants_reset(is_done).map(|_| Line { line: self.0.clone(), sum: 0.0 })
    }

    fn reset_with_index(&mut self, _ix: usize) -> Result<Line> {
        self.reset(None)
    }
}

fn wide(width: usize, shows: usize) -> Serial {
    let source = EnvSource::<Wide>::new("Wide-v0", Width { width, shows }).unwrap();
    let config = VecConfig { num_slots: 2, autoreset: Some(AutoresetMode::NextStep), ..Default::default() };
    Serial::new(&source, config).unwrap()
}

#[test]
fn a_vector_takes_its_shape_from_the_config_through_the_envs_space() {
    for width in [1, 3, 17] {
        let mut envs = wide(width, width);
        envs.send_reset(&Slots::All, &[Begin::Own; 2], None).unwrap();
        envs.recv(Want::all()).unwrap();
        let actions: Vec<f32> = (0..2 * width as i16).map(f32::from).collect();
        let shape = [2, width];
        let batch =
            envs.step(&Slots::All, &[ColumnIn::scalars(&actions, &shape)], Want::all()).unwrap().unwrap();
        assert_eq!(batch.failures, []);
        let line = batch.observation[0].as_fixed().unwrap();
        assert_eq!(line.as_slice::<f32>(), actions);
        let sums = [actions[..width].iter().sum::<f32>(), actions[width..].iter().sum()];
        assert_eq!(batch.observation[1].as_fixed().unwrap().as_slice::<f32>(), sums);
    }
}

#[test]
fn a_vector_without_a_space_of_its_env_is_an_error_that_says_what_to_override() {
    for error in [<Vec<f32> as ToRow>::space().unwrap_err(), Line::space().unwrap_err()] {
        assert!(error.to_string().contains("override the env's observation_space"), "{error}");
    }
}

#[test]
fn a_vector_of_another_length_than_its_space_fails_its_slot_and_nothing_else() {
    let mut envs = wide(3, 4);
    envs.send_reset(&Slots::All, &[Begin::Own; 2], None).unwrap();
    let batch = envs.recv(Want::all()).unwrap().unwrap();
    assert_eq!(batch.failures.len(), 2);
    assert_eq!(batch.failures[0].failure.cause, envcore::Cause::Panic);
}

#[test]
fn writing_otherwise_than_declared_panics_with_the_leaf_and_both_dtypes() {
    let space = Space::of([Leaf::real::<f32>(&[2]).named("a"), Leaf::text(5).named("b")]);
    let panics = |write: fn(&mut Row<'_>)| {
        let outcome = std::panic::catch_unwind(|| drop(write_with(&space, write)));
        let payload = outcome.unwrap_err();
        payload
            .downcast_ref::<String>()
            .cloned()
            .unwrap_or_else(|| payload.downcast_ref::<&str>().unwrap().to_string())
    };
    let text = panics(|row| row.scalar(1.0f64));
    assert_eq!(text, "leaf 0 was declared with float32 and written with float64");
    assert!(panics(|row| row.scalar(1.0f32)).contains("a leaf of 2 elements"));
    assert!(panics(|row| row.text("x")).contains("declared with float32 and written with a loose value"));
    let text = panics(|row| {
        row.skip();
        row.scalar(1u8);
    });
    assert_eq!(text, "leaf 1 was declared with no fixed shape and written with uint8");
    let text = panics(|row| {
        [1.0f32, 2.0].write(row);
        row.text("x");
        row.text("y");
    });
    assert!(text.contains("more leaves written than the space's 2"), "{text}");
}
