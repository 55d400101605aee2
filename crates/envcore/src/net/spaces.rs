//! Spaces as netenv names them: `Box`, `Discrete` and `MultiBinary`, in a flat dict.
//!
//! What the protocol has no word for is refused with a reason: nested spaces, texts, ragged
//! arrays, arrays of labels. A `Discrete` on the wire counts from 0; one that begins elsewhere
//! is shifted on its way.

use crate::space::{
    Array, Bounds, DType, Element, Leaf, LeafKind, Options, Scalar, Space, Tensor, Tree, Value,
};
use crate::with_element;

use super::json::cut;

/// The name of the only leaf of a space that is no dict.
const WRAPPED: &str = "_";
/// The names of the leaves that follow those of the observation.
pub(super) const REWARDS: &str = "_rews";
pub(super) const DONES: &str = "_dones";
/// How many leaves a space of a peer may have.
const MAX_LEAVES: usize = 1024;
/// How many elements of a leaf may have bounds of their own. Each bound takes 64 bytes.
const MAX_BOUNDED: usize = 1 << 20;

/// What a leaf is on the wire.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Class {
    /// Any numbers, with an array of bounds for each side.
    Box { low: Array, high: Array },
    /// A label from `0..n`, as `int64`. `start` is the label that travels as 0; it is
    /// this side's own matter.
    Discrete { n: i64, start: i64 },
    /// `n` labels, 0 or 1, as `int8`.
    MultiBinary { n: usize },
}

/// One leaf on the wire.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NetLeaf {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) class: Class,
}

impl NetLeaf {
    /// The shape of a row.
    pub(super) fn shape(&self) -> &[usize] {
        match &self.class {
            Class::Box { low, .. } => low.shape(),
            Class::Discrete { .. } => &[],
            Class::MultiBinary { n } => std::slice::from_ref(n),
        }
    }

    /// The bytes of a row; `None` where the number is too large.
    pub(super) fn row_bytes(&self) -> Option<usize> {
        self.shape().iter().try_fold(self.dtype.size(), |bytes, &extent| bytes.checked_mul(extent))
    }

    /// The leaf in JSON.
    fn to_value(&self) -> Value {
        let named = Options::new().with("name", self.name.as_str()).with("dtype", self.dtype.name());
        let value = match &self.class {
            Class::Box { low, high } => {
                named.with("class_name", "Box").with("low", low.clone()).with("high", high.clone())
            }
            Class::Discrete { n, .. } => named.with("class_name", "Discrete").with("n", *n),
            Class::MultiBinary { n } => named.with("class_name", "MultiBinary").with("n", *n as i64),
        };
        value.into()
    }

    /// The leaf that a peer describes.
    fn from_value(value: &Value) -> Result<Self, String> {
        let text = |name: &str| match field(value, name)? {
            Value::Text(text) => Ok(text.to_string()),
            _ => Err(format!("its '{name}' is no text")),
        };
        let (name, dtype, class) = (text("name")?, text("dtype")?, text("class_name")?);
        let dtype = DType::from_name(&dtype).ok_or_else(|| format!("its dtype is '{}'", cut(&dtype)))?;
        let count = || match field(value, "n")? {
            Value::Int(n) if *n > 0 => Ok(*n),
            _ => Err("its 'n' is no positive number".to_string()),
        };
        let class = match (class.as_str(), dtype) {
            ("Box", dtype) => {
                let side = |name: &str| match field(value, name)? {
                    Value::Array(array) if array.dtype() == dtype => Ok(array.clone()),
                    _ => Err(format!("its '{name}' is no array of {dtype}")),
                };
                let (low, high) = (side("low")?, side("high")?);
                if low.shape() != high.shape() {
                    return Err("its 'low' and 'high' differ in shape".into());
                }
                Class::Box { low, high }
            }
            ("Discrete", DType::I64) => Class::Discrete { n: count()?, start: 0 },
            ("MultiBinary", DType::I8) => {
                Class::MultiBinary { n: usize::try_from(count()?).map_err(|_| "its 'n' is too large")? }
            }
            (class, dtype) => return Err(format!("its class is '{}' of {dtype}", cut(class))),
        };
        Ok(NetLeaf { name, dtype, class })
    }

    /// The leaf as the core has it.
    fn to_leaf(&self) -> Result<Leaf, String> {
        Ok(match &self.class {
            Class::Box { low, high } => {
                let sides = with_element!(self.dtype, T => (side::<T>(low)?, side::<T>(high)?));
                let bounds = Bounds { low: sides.0, high: sides.1 };
                Leaf::tensor(self.dtype, low.shape(), bounds, false)
            }
            Class::Discrete { n, .. } => Leaf::discrete(*n as u64),
            Class::MultiBinary { n } => Leaf::labels::<i8>(&[*n], 0, 2),
        })
    }

    /// `leaf` on the wire.
    fn of(name: &str, leaf: &Leaf) -> Result<Self, String> {
        let tensor = match &leaf.kind {
            LeafKind::Fixed(tensor) => tensor,
            LeafKind::Text { .. } => return Err("is text, which netenv has no word for".into()),
            LeafKind::Ragged { .. } => return Err("has no fixed shape, as netenv's leaves have".into()),
            LeafKind::Object => return Err("is an object, and netenv carries numbers".into()),
        };
        let Tensor { dtype, shape, bounds, discrete } = tensor;
        let uniform = bounds.is_uniform().then(|| bounds.at(0));
        let is_bits = matches!(uniform, Some((Scalar::Int(0), Scalar::Int(1))));
        let (dtype, class) = match (&shape[..], uniform) {
            ([], Some((Scalar::Int(low), Scalar::Int(high)))) if *discrete => {
                let whole =
                    |number: i128| i64::try_from(number).map_err(|_| "has labels that no int64 counts");
                whole(high)?;
                (DType::I64, Class::Discrete { n: whole(high - low + 1)?, start: whole(low)? })
            }
            (&[n], _) if is_bits && (*discrete && *dtype == DType::I8 || *dtype == DType::Bool) => {
                (DType::I8, Class::MultiBinary { n })
            }
            _ if *discrete => {
                return Err(format!(
                    "is an array of labels of {dtype}, and netenv has Discrete and MultiBinary"
                ));
            }
            _ => {
                let side = |low: bool| {
                    let scalars =
                        (0..tensor.elements()).map(|k| if low { bounds.at(k).0 } else { bounds.at(k).1 });
                    with_element!(*dtype, T => {
                        let elements: Vec<T> = scalars.filter_map(T::from_scalar).collect();
                        Array::new(shape, &elements).map_err(|error| error.to_string())
                    })
                };
                (*dtype, Class::Box { low: side(true)?, high: side(false)? })
            }
        };
        Ok(NetLeaf { name: name.into(), dtype, class })
    }
}

/// One side of a Box's bounds: one bound where all are equal.
fn side<T: Element>(array: &Array) -> Result<Vec<Scalar>, String> {
    let elements = array.to_vec::<T>().unwrap_or_default();
    match elements.split_first() {
        Some((first, rest)) if rest.iter().all(|element| element == first) => Ok(vec![first.to_scalar()]),
        _ if elements.len() > MAX_BOUNDED => {
            Err(format!("its {} elements have different bounds; at most {MAX_BOUNDED} may", elements.len()))
        }
        _ => Ok(elements.iter().map(|element| element.to_scalar()).collect()),
    }
}

fn field<'a>(value: &'a Value, name: &str) -> Result<&'a Value, String> {
    match value {
        Value::Map(entries) => entries.get(name).ok_or_else(|| format!("'{name}' is missing")),
        _ => Err("it is no object".into()),
    }
}

/// The leaves of `space` on the wire; `what` names the space in messages.
///
/// # Errors
/// What the protocol has no word for.
pub(super) fn leaves_of(what: &str, space: &Space) -> Result<Vec<NetLeaf>, String> {
    let fault = |name: &str, why: String| format!("the {what}'s leaf '{}' {why}", cut(name));
    let branches = match space.tree() {
        Tree::Leaf(leaf) => vec![(WRAPPED, *leaf)],
        Tree::Tuple(_) => return Err(format!("the {what} is a tuple, and netenv has flat dicts")),
        Tree::Dict(branches) => {
            let flat = |(name, branch): &'_ (String, Tree)| match branch {
                Tree::Leaf(leaf) => Ok(*leaf),
                _ => Err(fault(name, "is nested, and netenv has flat dicts".into())),
            };
            let leaves = branches.iter().map(flat).collect::<Result<Vec<_>, _>>()?;
            branches.iter().map(|(name, _)| name.as_str()).zip(leaves).collect()
        }
    };
    let wrapped = space.is_single();
    for (name, _) in &branches {
        let taken = [REWARDS, DONES].contains(name) || (!wrapped && *name == WRAPPED);
        if taken {
            return Err(fault(name, "has a name that netenv uses itself".into()));
        }
    }
    let leaf = |(name, leaf): (&str, usize)| {
        NetLeaf::of(name, &space.leaves()[leaf]).map_err(|why| fault(name, why))
    };
    branches.into_iter().map(leaf).collect()
}

/// For each leaf on the wire of a flat space, its number in the space.
pub(super) fn numbers(space: &Space) -> Vec<usize> {
    match space.tree() {
        Tree::Leaf(leaf) => vec![*leaf],
        Tree::Dict(branches) => {
            let leaf =
                |(_, branch): &(String, Tree)| if let Tree::Leaf(leaf) = branch { Some(*leaf) } else { None };
            branches.iter().filter_map(leaf).collect()
        }
        Tree::Tuple(_) => Vec::new(),
    }
}

/// The space that `leaves` make.
///
/// # Errors
/// What contradicts itself.
pub(super) fn space_of(what: &str, leaves: &[NetLeaf]) -> Result<Space, String> {
    let named = |leaf: &NetLeaf| {
        let made = leaf.to_leaf().map_err(|why| format!("the {what}'s leaf '{}': {why}", cut(&leaf.name)))?;
        Ok((leaf.name.clone(), Space::from(made)))
    };
    let mut spaces = leaves.iter().map(named).collect::<Result<Vec<_>, String>>()?;
    let space = match &spaces[..] {
        [(name, _)] if name == WRAPPED => spaces.remove(0).1,
        _ => Space::dict(spaces),
    };
    space.check(what).map_err(|error| error.to_string())?;
    Ok(space)
}

/// The step space: the observation's leaves, the rewards and the ends.
pub(super) fn step_leaves(observation: &[NetLeaf]) -> Vec<NetLeaf> {
    let mut leaves = observation.to_vec();
    leaves.push(scalar_box(REWARDS, f32::NEG_INFINITY, f32::INFINITY));
    leaves.push(scalar_box(DONES, false, true));
    leaves
}

fn scalar_box<T: Element>(name: &str, low: T, high: T) -> NetLeaf {
    let scalar = |value: T| Array::new(&[], &[value]).expect("one element is a scalar");
    let class = Class::Box { low: scalar(low), high: scalar(high) };
    NetLeaf { name: name.into(), dtype: T::DTYPE, class }
}

/// The observation's leaves in a step space.
///
/// # Errors
/// Where the last two leaves are not the rewards and the ends.
pub(super) fn observation_leaves(what: &str, step: &[NetLeaf]) -> Result<Vec<NetLeaf>, String> {
    let wanted = step_leaves(&[]);
    let split = step.len().saturating_sub(wanted.len());
    let is_same =
        |(a, b): (&NetLeaf, &NetLeaf)| a.name == b.name && a.dtype == b.dtype && a.shape().is_empty();
    match step[split..].len() == wanted.len() && step[split..].iter().zip(&wanted).all(is_same) {
        true => Ok(step[..split].to_vec()),
        false => Err(format!("the {what} does not end in {REWARDS} (float32) and {DONES} (bool)")),
    }
}

/// A space in JSON.
pub(super) fn to_value(leaves: &[NetLeaf]) -> Value {
    Options::new().with("spaces", leaves.iter().map(NetLeaf::to_value).collect::<Vec<_>>()).into()
}

/// The leaves of the space that a peer describes; `what` names the space in messages.
///
/// # Errors
/// What makes no sense.
pub(super) fn from_value(what: &str, value: &Value) -> Result<Vec<NetLeaf>, String> {
    let fault = |why: String| format!("the {what}: {why}");
    let Value::List(spaces) = field(value, "spaces").map_err(fault)? else {
        return Err(fault("its 'spaces' are no list".into()));
    };
    if spaces.len() > MAX_LEAVES {
        return Err(fault(format!("{} leaves, where at most {MAX_LEAVES} may be", spaces.len())));
    }
    let leaf = |(k, value): (usize, &Value)| {
        NetLeaf::from_value(value).map_err(|why| fault(format!("leaf {k}: {why}")))
    };
    spaces.iter().enumerate().map(leaf).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(space: impl Into<Space>) -> Result<NetLeaf, String> {
        leaves_of("observation", &space.into()).map(|mut leaves| leaves.remove(0))
    }

    #[test]
    fn each_kind_of_leaf_has_its_class() {
        let discrete = |n, start| Class::Discrete { n, start };
        assert_eq!(leaf(Leaf::discrete(5)).unwrap().class, discrete(5, 0));
        assert_eq!(leaf(Leaf::discrete_from(-3, 5)).unwrap().class, discrete(5, -3));
        assert_eq!(leaf(Leaf::labels::<u8>(&[], 2, 4)).unwrap().class, discrete(4, 2));
        for bits in [Leaf::labels::<i8>(&[3], 0, 2), Leaf::real::<bool>(&[3])] {
            let leaf = leaf(bits).unwrap();
            assert_eq!((leaf.dtype, leaf.class), (DType::I8, Class::MultiBinary { n: 3 }));
        }
        let image = leaf(Leaf::image(&[2, 1])).unwrap();
        let sides = [0u8, 255].map(|side| Array::new(&[2, 1], &[side; 2]).unwrap());
        let [low, high] = sides;
        assert_eq!((image.name.as_str(), image.class), ("_", Class::Box { low, high }));
    }

    #[test]
    fn what_netenv_has_no_word_for_is_refused_and_told() {
        let named = |leaf: Leaf, name: &str| Space::of([leaf.named(name)]);
        for (space, why) in [
            (Leaf::text(3).into(), "is text"),
            (Leaf::ragged::<u8>(&[3]).into(), "no fixed shape"),
            (Leaf::object().into(), "is an object"),
            (Leaf::labels::<i64>(&[2], 0, 3).into(), "array of labels"),
            (Space::tuple([Leaf::discrete(2).into()]), "is a tuple"),
            (named(Leaf::discrete(2), "a.b"), "'a' is nested"),
            (named(Leaf::discrete(2), "_"), "uses itself"),
            (named(Leaf::discrete(2), "_rews"), "uses itself"),
        ] {
            let told = leaves_of("observation", &space).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn spaces_come_back_through_json() {
        let space = Space::of([
            Leaf::image(&[2, 3]).named("z"),
            Leaf::real::<f64>(&[2]).bounded_by(&[-1.0, f64::NEG_INFINITY], &[1.0, 2.0]).named("a"),
            Leaf::discrete(4).named("move"),
            Leaf::labels::<i8>(&[3], 0, 2).named("bits"),
        ]);
        let leaves = leaves_of("observation", &space).unwrap();
        let text = super::super::json::write(&to_value(&leaves)).unwrap();
        let read = from_value("observation", &super::super::json::read(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(read, leaves);
        assert_eq!(space_of("observation", &read).unwrap(), space);
    }

    #[test]
    fn a_space_of_a_peer_that_makes_no_sense_is_refused() {
        let text = |spaces: &str| format!("{{\"spaces\": [{spaces}]}}");
        let discrete = |n: &str, dtype: &str| {
            text(&format!(r#"{{"name": "_", "dtype": "{dtype}", "class_name": "Discrete", "n": {n}}}"#))
        };
        for (space, why) in [
            ("[]".into(), "it is no object"),
            (r#"{"spaces": 3}"#.into(), "no list"),
            (discrete("0", "int64"), "no positive number"),
            (discrete("-1", "int64"), "no positive number"),
            (discrete("2", "int32"), "'Discrete' of int32"),
            (discrete("2", "object"), "dtype is 'object'"),
            (text(r#"{"name": "_", "dtype": "int8", "class_name": "Box"}"#), "'low' is missing"),
            (text(r#"{"name": "_", "dtype": "int8", "class_name": "Sphere"}"#), "'Sphere'"),
            (text(&vec!["0"; 2000].join(", ")), "2000 leaves"),
        ] {
            let value = super::super::json::read(space.as_bytes()).unwrap();
            let told = from_value("action space", &value).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
        let huge =
            NetLeaf { name: "_".into(), dtype: DType::I8, class: Class::MultiBinary { n: usize::MAX } };
        assert!(space_of("action", &[huge]).unwrap_err().contains("too large"));
    }
}
