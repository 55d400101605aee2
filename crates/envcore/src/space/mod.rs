//! Spaces: what observations, actions and infos look like.
//!
//! A [`Space`] is an ordered list of [`Leaf`]s, each of which is one buffer of a batch, and
//! the [`Tree`] that the leaves form. `check` checks values against a leaf. `sample` draws
//! values from a space. `value` is data whose shape is known only when it arrives.

pub(crate) mod check;
mod dtype;
mod leaf;
mod sample;
#[expect(clippy::module_inception, reason = "the space itself")]
mod space;
mod text;
mod tree;
mod value;

pub use check::ActionBounds;
pub use dtype::{DType, Element, Scalar};
pub(crate) use leaf::MAX_AXES;
pub use leaf::{Bounds, Leaf, LeafKind, Tensor};
pub(crate) use sample::sample_scalar;
pub use space::Space;
pub use text::Text;
pub use tree::Tree;
pub(crate) use tree::{Node, NodeKind};
pub(crate) use value::deeper;
pub use value::{Array, Options, Value};
