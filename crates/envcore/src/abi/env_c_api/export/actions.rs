//! Actions as a host sets them: they stick until they are set again.

use std::ffi::{CStr, CString, c_int};

use super::super::sys;
use super::{c_text, element_names};
use crate::buffer::ColumnIn;
use crate::error::{Error, Result};
use crate::space::{DType, Element, Leaf, LeafKind, Scalar, Space, Text, Value};
use crate::with_element;

/// One element of an action.
pub(super) struct ActionElement {
    leaf: usize,
    /// Its place in the leaf.
    at: usize,
    pub(super) name: CString,
    low: Scalar,
    high: Scalar,
}

impl ActionElement {
    /// Its bounds; infinities where it has none.
    pub(super) fn bounds(&self) -> (f64, f64) {
        (self.low.as_f64(), self.high.as_f64())
    }

    /// Its bounds, of one that counts.
    pub(super) fn whole_bounds(&self) -> (c_int, c_int) {
        let whole = |bound| match bound {
            Scalar::Int(bound) => c_int::try_from(bound).unwrap_or_default(),
            Scalar::Real(_) => 0,
        };
        (whole(self.low), whole(self.high))
    }
}

/// What one leaf is set to.
enum Stuck {
    Fixed { dtype: DType, shape: Vec<usize>, bytes: Vec<u8> },
    Text([Value; 1]),
}

/// The actions of an env, and what they are set to.
pub(super) struct StickyActions {
    pub(super) discrete: Vec<ActionElement>,
    pub(super) continuous: Vec<ActionElement>,
    /// By text action: its leaf and name.
    pub(super) texts: Vec<(usize, CString)>,
    leaves: Vec<Stuck>,
    /// Why what was set last, in each of the three ways, cannot be played.
    refused: [Option<String>; 3],
}

impl StickyActions {
    /// Those of `space`: each element at the value within its bounds that is nearest
    /// to 0, each text empty.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a leaf that is neither numbers of fixed shape nor
    /// text, or whose integers are beyond C's `int`.
    pub(super) fn of(space: &Space) -> Result<Self> {
        let mut actions = StickyActions {
            discrete: Vec::new(),
            continuous: Vec::new(),
            texts: Vec::new(),
            leaves: Vec::new(),
            refused: [const { None }; 3],
        };
        for (number, leaf) in space.leaves().iter().enumerate() {
            actions.add(number, leaf)?;
        }
        Ok(actions)
    }

    fn add(&mut self, number: usize, leaf: &Leaf) -> Result<()> {
        let name = if leaf.name.is_empty() { "action" } else { &leaf.name };
        let unable = |why: &str| Error::Unsupported(format!("EnvCApi: action '{name}' {why}"));
        let tensor = match &leaf.kind {
            LeafKind::Fixed(tensor) => tensor,
            LeafKind::Text { .. } => {
                self.texts.push((number, c_text(name)));
                self.leaves.push(Stuck::Text([Value::Text(Text::default())]));
                return Ok(());
            }
            _ => return Err(unable("is neither numbers of fixed shape nor text")),
        };
        let mut bytes = Vec::with_capacity(tensor.row_bytes());
        for (at, name) in element_names(name, &tensor.shape).into_iter().enumerate() {
            let (low, high) = tensor.bounds.at(at);
            let element = ActionElement { leaf: number, at, name, low, high };
            if tensor.dtype.is_float() {
                self.continuous.push(element);
            } else {
                let fits = |bound| matches!(bound, Scalar::Int(bound) if c_int::try_from(bound).is_ok());
                if !(fits(low) && fits(high)) {
                    return Err(unable("has integers beyond those of C's int"));
                }
                self.discrete.push(element);
            }
            let zero = if tensor.dtype.is_float() { Scalar::Real(0.0) } else { Scalar::Int(0) };
            let first = if zero < low {
                low
            } else if zero > high {
                high
            } else {
                zero
            };
            with_element!(tensor.dtype, T => T::from_scalar(first).unwrap_or_default().extend_ne(&mut bytes));
        }
        let mut shape = vec![1];
        shape.extend(&tensor.shape);
        self.leaves.push(Stuck::Fixed { dtype: tensor.dtype, shape, bytes });
        Ok(())
    }

    /// Sets every discrete action.
    ///
    /// # Safety
    /// `values` must be NULL, or have as many as there are.
    pub(super) unsafe fn set_discrete(&mut self, values: *const c_int) {
        let StickyActions { discrete, leaves, refused, .. } = self;
        // SAFETY: the caller's duty.
        let value = |k| (!values.is_null()).then(|| unsafe { values.add(k).read_unaligned() }.into());
        refused[0] = set(leaves, discrete, value, "discrete");
    }

    /// Sets every continuous action.
    ///
    /// # Safety
    /// As [`set_discrete`](Self::set_discrete).
    pub(super) unsafe fn set_continuous(&mut self, values: *const f64) {
        let StickyActions { continuous, leaves, refused, .. } = self;
        // SAFETY: the caller's duty.
        let value = |k| (!values.is_null()).then(|| unsafe { values.add(k).read_unaligned() }.into());
        refused[1] = set(leaves, continuous, value, "continuous");
    }

    /// Sets every text action.
    ///
    /// # Safety
    /// `values` must be NULL, or have as many as there are, each of as many bytes as
    /// it says.
    pub(super) unsafe fn set_texts(&mut self, values: *const sys::TextAction) {
        self.refused[2] = None;
        for (k, (leaf, name)) in self.texts.iter().enumerate() {
            // SAFETY: the caller's duty.
            let text = (!values.is_null()).then(|| unsafe { text_of(&values.add(k).read_unaligned()) });
            match text {
                Some(Ok(text)) => self.leaves[*leaf] = Stuck::Text([Value::from(text)]),
                Some(Err(why)) => self.refused[2] = Some(format!("text action '{}' {why}", shown(name))),
                None => self.refused[2] = Some("the text actions are at NULL".into()),
            }
        }
    }

    /// Gives what is to be played to `step`.
    ///
    /// # Errors
    /// [`Error::Action`] where what was set last cannot be played; as `step`.
    pub(super) fn play<R>(&self, step: impl FnOnce(&[ColumnIn<'_>]) -> Result<R>) -> Result<R> {
        match (self.refused.iter().flatten().next(), &self.leaves[..]) {
            (Some(why), _) => Err(Error::Action(why.clone())),
            (None, [leaf]) => step(&[leaf.column()]),
            (None, leaves) => step(&leaves.iter().map(Stuck::column).collect::<Vec<_>>()),
        }
    }
}

impl Stuck {
    fn column(&self) -> ColumnIn<'_> {
        match self {
            Stuck::Fixed { dtype, shape, bytes } => {
                ColumnIn::Fixed { dtype: *dtype, shape, bytes: bytes.as_slice().into() }
            }
            Stuck::Text(text) => ColumnIn::Values(text),
        }
    }
}

/// Writes each value to its leaf; why one cannot be.
fn set(
    leaves: &mut [Stuck],
    elements: &[ActionElement],
    value: impl Fn(usize) -> Option<Scalar>,
    kind: &str,
) -> Option<String> {
    let mut refused = None;
    for (k, element) in elements.iter().enumerate() {
        let Some(value) = value(k) else { return Some(format!("the {kind} actions are at NULL")) };
        let Stuck::Fixed { dtype, bytes, .. } = &mut leaves[element.leaf] else { continue };
        let size = dtype.size();
        let to = &mut bytes[element.at * size..(element.at + 1) * size];
        let written = with_element!(*dtype, T => match T::from_scalar(value) {
            Some(value) => {
                let mut own = Vec::with_capacity(size_of::<T>());
                value.extend_ne(&mut own);
                to.copy_from_slice(&own);
                true
            }
            None => false,
        });
        if !written {
            let (name, low, high) = (shown(&element.name), element.low, element.high);
            refused
                .get_or_insert_with(|| format!("{kind} action '{name}': {value} is outside {low} to {high}"));
        }
    }
    refused
}

/// # Safety
/// The action must have as many bytes as it says.
unsafe fn text_of(action: &sys::TextAction) -> Result<String, &'static str> {
    let len = usize::try_from(action.len).ok().filter(|len| isize::try_from(*len).is_ok());
    let len = len.ok_or("is longer than memory")?;
    if action.data.is_null() {
        return if len == 0 { Ok(String::new()) } else { Err("is at NULL") };
    }
    // SAFETY: the caller's duty.
    let bytes = unsafe { std::slice::from_raw_parts(action.data.cast::<u8>(), len) };
    String::from_utf8(bytes.to_vec()).map_err(|_| "is no UTF-8 text")
}

fn shown(name: &CStr) -> std::borrow::Cow<'_, str> {
    name.to_string_lossy()
}
