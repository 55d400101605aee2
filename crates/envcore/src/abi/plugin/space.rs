//! Conversion of spaces between host and plugin, both ways.

// Each side of the boundary is a feature of this crate.
#![cfg_attr(not(all(feature = "export", feature = "load")), allow(dead_code))]

use std::ffi::{CString, c_char};

use super::sys;
use super::value::{counted, dtype_from, dtype_to, slice};
use crate::error::{Error, Result};
use crate::space::{Bounds, DType, Leaf, LeafKind, MAX_AXES, Node, NodeKind, Scalar, Space, Tensor, Tree};

/// `text` with a NUL at its end; what follows a NUL in `text` is lost.
pub(super) fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).expect("it ends before the first NUL")
}

/// The greatest number of leaves of a space.
const MAX_LEAVES: usize = 1 << 12;
/// The greatest number of nodes of a space's tree.
const MAX_NODES: usize = 1 << 13;
/// The greatest number of bounds of one side of a leaf.
const MAX_BOUNDS: usize = 1 << 24;
/// The greatest number of bytes of a name.
pub(super) const MAX_NAME: usize = 1 << 12;
/// The greatest number of bytes of any other text of a table or a spec.
pub(super) const MAX_TEXT: usize = 1 << 24;

/// The text at `from`, which ends with a NUL after at most `most` bytes. A null `from`
/// stands for an empty text.
///
/// # Errors
/// [`Error::Space`] where the text is longer or not UTF-8.
///
/// # Safety
/// The text must be readable up to its NUL or for `most + 1` bytes.
pub(super) unsafe fn owned_text(from: *const c_char, most: usize, what: &str) -> Result<String> {
    if from.is_null() {
        return Ok(String::new());
    }
    // SAFETY: the caller guarantees the text, and no byte after the NUL is read.
    let length = (0..=most).find(|k| unsafe { *from.add(*k) } == 0);
    let length = length.ok_or_else(|| Error::Space(format!("{what} is longer than {most} bytes")))?;
    // SAFETY: these bytes were just read.
    let text = std::str::from_utf8(unsafe { slice(from.cast::<u8>(), length) });
    text.map(str::to_string).map_err(|error| Error::Space(format!("{what} is not UTF-8: {error}")))
}

/// The memory that a `sys::Space` points to.
#[derive(Default)]
pub(super) struct SpaceParts {
    names: Vec<CString>,
    shapes: Vec<Vec<usize>>,
    bounds: Vec<Vec<sys::Bound>>,
    leaves: Vec<Vec<sys::Leaf>>,
    keys: Vec<String>,
    nodes: Vec<Vec<sys::Node>>,
}

// SAFETY: the struct owns what its pointers point to, and only reads it.
unsafe impl Send for SpaceParts {}
// SAFETY: the struct owns what its pointers point to, and only reads it.
unsafe impl Sync for SpaceParts {}

impl SpaceParts {
    /// `space` in the other side's form, which is valid while `self` lives.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the space has opaque objects.
    pub(super) fn encode(&mut self, space: &Space) -> Result<sys::Space> {
        let leaves = space.leaves().iter().map(|leaf| self.leaf(leaf)).collect::<Result<Vec<_>>>()?;
        let nodes: Vec<_> = space.tree().nodes().into_iter().map(|node| self.node(node)).collect();
        let encoded = sys::Space {
            num_leaves: leaves.len(),
            leaves: leaves.as_ptr(),
            num_nodes: nodes.len(),
            nodes: nodes.as_ptr(),
        };
        self.leaves.push(leaves);
        self.nodes.push(nodes);
        Ok(encoded)
    }

    fn node(&mut self, Node { key, kind }: Node) -> sys::Node {
        let (kind, value) = match kind {
            NodeKind::Leaf(leaf) => (sys::CORRAL_NODE_LEAF, leaf),
            NodeKind::Dict(count) => (sys::CORRAL_NODE_DICT, count),
            NodeKind::Tuple(count) => (sys::CORRAL_NODE_TUPLE, count),
        };
        // The bytes of a `String` do not move when the `String` does.
        let encoded = sys::Node { key: key.as_ptr().cast(), key_length: key.len(), kind, value };
        self.keys.push(key);
        encoded
    }

    fn leaf(&mut self, leaf: &Leaf) -> Result<sys::Leaf> {
        let name = c_text(&leaf.name);
        let (kind, dtype, shape, tensor) = match &leaf.kind {
            LeafKind::Fixed(t) => (sys::CORRAL_LEAF_FIXED, dtype_to(t.dtype), t.shape.clone(), Some(t)),
            LeafKind::Ragged { dtype, max_shape } => {
                (sys::CORRAL_LEAF_RAGGED, dtype_to(*dtype), max_shape.clone(), None)
            }
            LeafKind::Text { max_len } => (sys::CORRAL_LEAF_TEXT, 0, vec![*max_len], None),
            LeafKind::Object => {
                let name = &leaf.name;
                let why =
                    format!("leaf '{name}' holds opaque objects, which cannot cross to another library");
                return Err(Error::Unsupported(why));
            }
        };
        let mut side = |side: fn(&Bounds) -> &Vec<Scalar>| match tensor {
            Some(t) => self.bounds(t.dtype, side(&t.bounds)),
            None => (0, std::ptr::null()),
        };
        let ((num_low, low), (num_high, high)) = (side(|bounds| &bounds.low), side(|bounds| &bounds.high));
        let encoded = sys::Leaf {
            name: name.as_ptr(),
            kind,
            dtype,
            num_axes: shape.len(),
            shape: shape.as_ptr(),
            discrete: u32::from(tensor.is_some_and(|t| t.discrete)),
            num_low,
            low,
            num_high,
            high,
        };
        self.names.push(name);
        self.shapes.push(shape);
        Ok(encoded)
    }

    fn bounds(&mut self, dtype: DType, bounds: &[Scalar]) -> (usize, *const sys::Bound) {
        let bound = |scalar: &Scalar| match (scalar, dtype) {
            (scalar, DType::F16 | DType::F32 | DType::F64) => sys::Bound { real: scalar.as_f64() },
            (Scalar::Int(i), DType::U8 | DType::U16 | DType::U32 | DType::U64) => {
                sys::Bound { natural: *i as u64 }
            }
            (Scalar::Int(i), _) => sys::Bound { integer: *i as i64 },
            (Scalar::Real(r), _) => sys::Bound { integer: *r as i64 },
        };
        let bounds: Vec<_> = bounds.iter().map(bound).collect();
        let encoded = (bounds.len(), bounds.as_ptr());
        self.bounds.push(bounds);
        encoded
    }
}

/// A copy of `space`.
///
/// # Errors
/// [`Error::Space`] where `space` contradicts itself.
///
/// # Safety
/// `space` must be as `corral.h` says, and everything that it points to must be valid.
pub(super) unsafe fn decode(space: &sys::Space, what: &str) -> Result<Space> {
    // SAFETY: the caller guarantees what this function requires.
    let leaves = unsafe { counted(space.leaves, space.num_leaves, MAX_LEAVES, "leaves") };
    let leaves = leaves.map_err(|error| Error::Space(format!("{what} space: {error}")))?;
    let leaves = leaves.iter().enumerate().map(|(k, leaf)| {
        // SAFETY: the caller guarantees what this function requires.
        let leaf = unsafe { decode_leaf(leaf) };
        leaf.map_err(|error| Error::Space(format!("{what} space, leaf #{k}: {error}")))
    });
    let leaves = leaves.collect::<Result<Vec<_>>>()?;
    let at_tree = |why: String| Error::Space(format!("{what} space: {why}"));
    // SAFETY: the caller guarantees what this function requires.
    let nodes = unsafe { counted(space.nodes, space.num_nodes, MAX_NODES, "nodes") };
    let nodes = nodes.map_err(|error| at_tree(error.to_string()))?;
    let space = if nodes.is_empty() {
        Space::of(leaves)
    } else {
        // SAFETY: the caller guarantees what this function requires.
        let nodes = nodes.iter().map(|node| unsafe { decode_node(node) }).collect::<Result<Vec<_>>>();
        let nodes = nodes.map_err(|error| at_tree(error.to_string()))?;
        Space::with_tree(leaves, Tree::from_nodes(nodes).map_err(at_tree)?)
    };
    space.check(what)?;
    Ok(space)
}

unsafe fn decode_node(node: &sys::Node) -> Result<Node> {
    // SAFETY: the caller guarantees what this function requires.
    let key = unsafe { counted(node.key.cast::<u8>(), node.key_length, MAX_NAME, "bytes of a key") }?;
    let key = std::str::from_utf8(key)
        .map_err(|error| Error::Space(format!("a key of its tree is not UTF-8: {error}")))?;
    let kind = match node.kind {
        sys::CORRAL_NODE_LEAF => NodeKind::Leaf(node.value),
        sys::CORRAL_NODE_DICT => NodeKind::Dict(node.value),
        sys::CORRAL_NODE_TUPLE => NodeKind::Tuple(node.value),
        other => return Err(Error::Space(format!("{other} is no kind of node of its tree"))),
    };
    Ok(Node { key: key.into(), kind })
}

unsafe fn decode_leaf(leaf: &sys::Leaf) -> Result<Leaf> {
    // SAFETY: the caller guarantees what this function requires.
    let name = unsafe { owned_text(leaf.name, MAX_NAME, "its name") }?;
    if leaf.discrete > 1 {
        return Err(Error::Space(format!("`discrete` is {}, where 0 or 1 belongs", leaf.discrete)));
    }
    if leaf.kind == sys::CORRAL_LEAF_TEXT && leaf.num_axes > 1 {
        return Err(Error::Space(format!("`num_axes` is {}, and a text has 1 axis at most", leaf.num_axes)));
    }
    // SAFETY: the caller guarantees what this function requires.
    let shape = unsafe { counted(leaf.shape, leaf.num_axes, MAX_AXES, "axes") }?.to_vec();
    let kind = match leaf.kind {
        sys::CORRAL_LEAF_FIXED => {
            let dtype = dtype_from(leaf.dtype)?;
            let (least, most) = dtype.range();
            // SAFETY: the caller guarantees what this function requires.
            let side = |field, from, count, whole| unsafe {
                let given = counted(from, count, MAX_BOUNDS, "bounds");
                let given = given.map_err(|error| Error::Space(format!("`{field}`: {error}")))?;
                Ok::<_, Error>(match given {
                    [] => vec![whole],
                    bounds => bounds.iter().map(|bound| decode_bound(*bound, dtype)).collect(),
                })
            };
            let low = side("low", leaf.low, leaf.num_low, least)?;
            let high = side("high", leaf.high, leaf.num_high, most)?;
            let bounds = Bounds { low, high };
            LeafKind::Fixed(Tensor { dtype, shape, bounds, discrete: leaf.discrete != 0 })
        }
        sys::CORRAL_LEAF_RAGGED => LeafKind::Ragged { dtype: dtype_from(leaf.dtype)?, max_shape: shape },
        sys::CORRAL_LEAF_TEXT => LeafKind::Text { max_len: shape.first().copied().unwrap_or(usize::MAX) },
        other => return Err(Error::Space(format!("{other} is no kind of leaf ('{name}')"))),
    };
    Ok(Leaf { name, kind })
}

fn decode_bound(bound: sys::Bound, dtype: DType) -> Scalar {
    // SAFETY: all fields are numbers of eight bytes for which any bytes are valid.
    unsafe {
        match dtype {
            DType::F16 | DType::F32 | DType::F64 => Scalar::Real(bound.real),
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => Scalar::Int(bound.natural.into()),
            _ => Scalar::Int(bound.integer.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_come_back_as_they_were() {
        let flat = Space::of([
            Leaf::image(&[64, 64, 3]).named("pixels"),
            Leaf::real::<f32>(&[2]).bounded_by(&[-1f32, 0.1], &[1f32, f32::INFINITY]).named("in.speed"),
            Leaf::labels::<u64>(&[], 0, u64::MAX).named("in.key"),
            Leaf::labels::<i8>(&[3], -4, 8).named("gear"),
            Leaf::ragged::<i32>(&[5, usize::MAX]).named("items"),
            Leaf::text(9).named("says"),
            Leaf::text(9).named("says."),
            Leaf::real::<bool>(&[]).named("awake"),
        ]);
        let keys = ["a.b", "", "ä\0\n", "in.key"];
        let leaf = || Space::from(Leaf::discrete(2));
        let nested =
            Space::tuple([flat.clone(), Space::dict(keys.map(|key| (key, leaf()))), Space::tuple([])]);
        let mut parts = SpaceParts::default();
        for space in [flat.clone(), nested, Space::empty(), leaf()] {
            let encoded = parts.encode(&space).unwrap();
            // SAFETY: `parts` is alive.
            assert_eq!(unsafe { decode(&encoded, "observation") }.unwrap(), space);
        }
        // The names alone determine a tree of structs.
        let named = sys::Space { num_nodes: 0, ..parts.encode(&flat).unwrap() };
        // SAFETY: `parts` is alive.
        assert_eq!(unsafe { decode(&named, "observation") }.unwrap(), flat);
        let object = Space::from(Leaf::object());
        assert!(matches!(parts.encode(&object), Err(Error::Unsupported(_))));
    }

    #[test]
    fn a_space_with_counts_that_nothing_can_have_is_an_error_and_is_not_read() {
        let space = Space::from(Leaf::real::<f32>(&[2]).bounded_by(&[-1f32, 0.1], &[1f32, 2.0]));
        let mut parts = SpaceParts::default();
        let encoded = parts.encode(&space).unwrap();
        // SAFETY: `parts` is alive.
        let sound = unsafe { *encoded.leaves };
        let fault = |num_leaves, leaves| {
            let broken = sys::Space { num_leaves, leaves, ..encoded };
            // SAFETY: the memory at the addresses is never read past its end.
            unsafe { decode(&broken, "observation") }.unwrap_err().to_string()
        };
        let of = |leaf: sys::Leaf| fault(1, &raw const leaf);
        let (huge, none) = (1usize << 50, std::ptr::null());
        assert!(fault(huge, &raw const sound).contains("leaves, where 4096 is the most"));
        assert_eq!(fault(2, std::ptr::null()), "observation space: 2 leaves at NULL");
        let axes = of(sys::Leaf { num_axes: huge, ..sound });
        assert!(axes.starts_with("observation space, leaf #0: 1125899906842624 axes"), "{axes}");
        assert!(of(sys::Leaf { shape: std::ptr::null(), ..sound }).contains("1 axes at NULL"));
        assert!(of(sys::Leaf { num_low: huge, ..sound }).contains("bounds, where"));
        assert!(of(sys::Leaf { high: none, ..sound }).contains("2 bounds at NULL"));
        let name = CString::new(vec![b'x'; MAX_NAME + 1]).unwrap();
        let named = of(sys::Leaf { name: name.as_ptr(), ..sound });
        assert!(named.contains("its name is longer than 4096 bytes"), "{named}");
        let tree = |num_nodes, nodes: &[sys::Node]| {
            let broken = sys::Space { num_nodes, nodes: nodes.as_ptr(), ..encoded };
            // SAFETY: the memory at the addresses is never read past its end.
            unsafe { decode(&broken, "observation") }.unwrap_err().to_string()
        };
        let node = sys::Node { key: none.cast(), key_length: 0, kind: sys::CORRAL_NODE_LEAF, value: 0 };
        assert_eq!(tree(huge, &[node]), format!("observation space: {huge} nodes, where 8192 is the most"));
        assert!(tree(1, &[sys::Node { key_length: 2, ..node }]).contains("2 bytes of a key at NULL"));
        assert!(tree(1, &[sys::Node { kind: 9, ..node }]).contains("9 is no kind of node of its tree"));
        assert!(tree(1, &[sys::Node { value: 1, ..node }]).contains("its tree has leaf 1, and there are 1"));
        assert!(tree(2, &[node, node]).contains("1 nodes of its tree are under no other"));
        let key = [0xff_u8];
        let text = sys::Node { key: key.as_ptr().cast(), key_length: 1, ..node };
        let tuple = sys::Node { kind: sys::CORRAL_NODE_TUPLE, value: 1, ..node };
        assert!(tree(2, &[tuple, text]).contains("a key of its tree is not UTF-8"));
        let dict = sys::Node { kind: sys::CORRAL_NODE_DICT, value: huge, ..node };
        assert!(tree(2, &[dict, node]).contains("its tree ends before all its branches are there"));
    }
}
