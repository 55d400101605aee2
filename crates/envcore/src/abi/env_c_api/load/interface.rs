//! What a library says of itself: its actions and observations, as spaces.

use std::ffi::c_int;

use super::context::LoadedContext;
use super::library::EnvCApiVersion;
use super::observation::ElementType;
use crate::error::{Error, Result};
use crate::space::{Bounds, Leaf, LeafKind, Scalar, Space};

/// Actions and observations of a library. All contexts of a source have equal ones.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Interface {
    /// The least and greatest value of each discrete action.
    pub(super) discrete: Vec<(c_int, c_int)>,
    /// The least and greatest value of each continuous action.
    pub(super) continuous: Vec<(f64, f64)>,
    /// The names of the text actions.
    pub(super) texts: Vec<String>,
    pub(super) observations: Vec<ObservationKind>,
    pub(super) action: Space,
    pub(super) observation: Space,
}

/// An observation, and how its leaf holds it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObservationKind {
    pub(super) name: String,
    pub(super) kind: ElementType,
    pub(super) shape: ObservationShape,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ObservationShape {
    Fixed(Vec<usize>),
    /// It changes, and the leaf is an array of any shape.
    Changing,
    /// It changes, and the leaf is an array of this shape, with the shape beside it.
    Padded(Vec<usize>),
    Text,
}

impl Interface {
    pub(super) fn of(context: &LoadedContext, max_shape: &[(String, Vec<usize>)]) -> Result<Self> {
        let mut actions: Vec<(String, Leaf)> = Vec::new();
        let (mut discrete, mut continuous, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        let api = context.api;
        for k in 0..context.count("number of discrete actions", api.action_discrete_count)? {
            let name = context.name("discrete action", api.action_discrete_name, k)?;
            let (low, high) = context.discrete_bounds(k)?;
            let n = i64::from(high) - i64::from(low) + 1;
            let n = u64::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| {
                context.misfit(format_args!("discrete action '{name}' is from {low} to {high}"))
            })?;
            discrete.push((low, high));
            actions.push((name, Leaf::discrete_from(low.into(), n)));
        }
        for k in 0..context.count("number of continuous actions", api.action_continuous_count)? {
            let name = context.name("continuous action", api.action_continuous_name, k)?;
            let (low, high) = context.continuous_bounds(k)?;
            if low.partial_cmp(&high).is_none_or(std::cmp::Ordering::is_gt) {
                return Err(
                    context.misfit(format_args!("continuous action '{name}' is from {low} to {high}"))
                );
            }
            continuous.push((low, high));
            actions.push((name, Leaf::real::<f64>(&[]).with_bounds(Bounds::uniform(low, high))));
        }
        for k in 0..context.count("number of text actions", api.action_text_count)? {
            let name = context.name("text action", api.action_text_name, k)?;
            texts.push(name.clone());
            actions.push((name, Leaf::text(usize::MAX)));
        }
        let (mut observations, mut leaves) = (Vec::new(), Vec::new());
        for k in 0..context.count("number of observations", api.observation_count)? {
            let name = context.name("observation", api.observation_name, k)?;
            let padded = max_shape.iter().find(|(of, _)| *of == name).map(|(_, shape)| &shape[..]);
            let (kind, leaf) = observe(context, k, &name, padded)?;
            if let ObservationShape::Padded(shape) = &kind.shape {
                let most = shape.iter().max().map_or(0, |&n| n as i64);
                let shape_leaf = Leaf::tensor(
                    crate::space::DType::I64,
                    &[shape.len()],
                    Bounds::uniform(Scalar::Int(0), Scalar::Int(most.into())),
                    false,
                );
                leaves.push((name.clone(), leaf));
                leaves.push((format!("{name}_shape"), shape_leaf));
            } else {
                leaves.push((name, leaf));
            }
            observations.push(kind);
        }
        if let Some((name, _)) =
            max_shape.iter().find(|(of, _)| observations.iter().all(|kind| kind.name != *of))
        {
            return Err(Error::Argument(format!("max_shape: there is no observation '{name}'")));
        }
        let action = space(context, "actions", actions)?;
        let observation = space(context, "observations", leaves)?;
        Ok(Interface { discrete, continuous, texts, observations, action, observation })
    }
}

/// A dict of these leaves, under their names as they are.
fn space(context: &LoadedContext, what: &str, leaves: Vec<(String, Leaf)>) -> Result<Space> {
    let mut names: Vec<&str> = leaves.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(context.misfit(format_args!("two of its {what} are called '{}'", twice[0])));
    }
    let space = Space::dict(leaves.into_iter().map(|(name, leaf)| (name, leaf.into())));
    space.check(what).map_err(|error| context.misfit(error))?;
    Ok(space)
}

/// Observation `k`, and its leaf.
fn observe(
    context: &LoadedContext,
    k: usize,
    name: &str,
    padded: Option<&[usize]>,
) -> Result<(ObservationKind, Leaf)> {
    let fault = |why: String| context.misfit(format_args!("observation '{name}': {why}"));
    let (kind, dims, extents) = context.observation_spec(k)?;
    let kind = ElementType::of(kind, context.version == EnvCApiVersion::Two).map_err(fault)?;
    if let Some(extent) = extents.iter().find(|n| **n < 0 && kind != ElementType::Text) {
        return Err(fault(format!("an axis of {extent} elements")));
    }
    // No axes: in 1.4 the shape changes, in 2.2 it is a single number.
    let is_scalar = dims == 0 && context.version == EnvCApiVersion::Two;
    let is_changing = dims == -1 || (dims == 0 && !is_scalar) || extents.contains(&0);
    let dtype = kind.dtype();
    let (shape, leaf) = match padded {
        _ if kind == ElementType::Text => (ObservationShape::Text, Leaf::text(usize::MAX)),
        Some(shape) => {
            (ObservationShape::Padded(shape.to_vec()), Leaf::tensor(dtype, shape, Bounds::of(dtype), false))
        }
        None if is_changing && extents.is_empty() => (ObservationShape::Changing, Leaf::object()),
        None if is_changing => {
            let most = |n: &c_int| if *n == 0 { usize::MAX } else { *n as usize };
            let max_shape = extents.iter().map(most).collect();
            (ObservationShape::Changing, Leaf::of(LeafKind::Ragged { dtype, max_shape }))
        }
        None => {
            let shape: Vec<usize> = extents.iter().map(|&n| n as usize).collect();
            let leaf = Leaf::tensor(dtype, &shape, Bounds::of(dtype), false);
            (ObservationShape::Fixed(shape), leaf)
        }
    };
    Ok((ObservationKind { name: name.into(), kind, shape }, leaf))
}
