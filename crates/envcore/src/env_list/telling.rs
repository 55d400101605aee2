//! What an env shows and tells, written to rows.

use crate::buffer::{Extra, InfosMut, Row};
use crate::caps::Caps;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::event::{EVENTS, events_info};
use crate::leaves::ToRow;
use crate::record::Record;
use crate::source::Side;
use crate::space::{Element, Scalar, Space, Value};
use crate::with_element;

/// The info space of a chunk's envs.
pub(super) struct InfoLeaves<'a> {
    pub(super) space: &'a Space,
    /// How many leaves are those of `Env::Info`; those of the record follow.
    pub(super) own: usize,
}

impl InfoLeaves<'_> {
    #[cold]
    pub(super) fn write_record(
        &self,
        record: Record,
        mut infos: InfosMut<'_>,
        row: usize,
        side: &mut Side,
    ) -> Result<()> {
        for (key, value) in record {
            let declared = &self.space.leaves()[self.own..];
            match declared.iter().position(|leaf| leaf.name == key) {
                Some(k) => {
                    let mut writer = infos.row::<false>(row);
                    write_value(writer.seek(self.own + k), &value)
                        .map_err(|why| Error::Space(format!("record key '{key}': {why}")))?;
                }
                None => side.extras.push(Extra { row: infos.start() + row, key: key.into_owned(), value }),
            }
        }
        Ok(())
    }
}

/// Reports the events of `env`, in row `row` of the batch.
pub(super) fn tell_events<E: Env>(env: &mut E, row: usize, side: &mut Side) {
    let events = env.events();
    if !events.is_empty() {
        side.extras.push(Extra { row, key: EVENTS.into(), value: events_info(events) });
    }
}

/// Writes which choices `env` allows to the last leaf of its infos, whose space is
/// `space`.
#[inline(always)]
pub(super) fn tell_mask<E: Env>(env: &E, space: &Space, infos: &mut Row<'_>) {
    env.action_mask(infos.seek(space.leaves().len() - 1).choices());
}

/// Begins the next episode of `env`'s own stream, and writes what it shows and tells to row `row`
/// of the batch, by writers of the row's observation and infos.
#[inline(always)]
pub(super) fn begin_own<E: Env>(
    env: &mut E,
    [mut observation, mut infos]: [Row<'_>; 2],
    leaves: &InfoLeaves<'_>,
    row: usize,
    side: &mut Side,
) -> Result<()> {
    let obs = env.reset(None)?;
    show(&obs, &mut observation)?;
    if leaves.own > 0 {
        tell(env, &mut infos);
    }
    if E::CAPS.contains(Caps::EVENTS) {
        tell_events(env, row, side);
    }
    if E::CAPS.contains(Caps::ACTION_MASK) {
        tell_mask(env, leaves.space, &mut infos);
    }
    Ok(())
}

/// Writes an observation.
#[inline(always)]
pub(super) fn show<O: ToRow>(obs: &O, observation: &mut Row<'_>) -> Result<()> {
    obs.write(observation);
    observation.complete()
}

/// Writes the infos of `env` after a reset, if it has any.
#[inline(always)]
pub(super) fn tell<E: Env>(env: &E, infos: &mut Row<'_>) {
    if let Some(info) = env.info() {
        info.write(infos);
    }
}

/// Writes a loose value to the next leaf, if the leaf can hold it without loss.
fn write_value(row: &mut Row<'_>, value: &Value) -> Result<(), String> {
    let Some(dtype) = row.next_dtype() else {
        row.value(value.clone());
        return Ok(());
    };
    let misfit = || format!("{value:?} does not fit {dtype}");
    with_element!(dtype, T => {
        let elements: Vec<T> = match value {
            Value::Array(array) => array.to_vec::<T>().ok_or_else(misfit)?,
            Value::Bool(v) => vec![T::from_scalar(Scalar::from(*v)).ok_or_else(misfit)?],
            Value::Int(v) => vec![T::from_scalar(Scalar::from(*v)).ok_or_else(misfit)?],
            Value::Float(v) => vec![T::from_scalar(Scalar::from(*v)).ok_or_else(misfit)?],
            _ => return Err(misfit()),
        };
        let leaf = row.fixed::<T>();
        if leaf.len() != elements.len() {
            return Err(format!("{} elements where {} belong", elements.len(), leaf.len()));
        }
        leaf.copy_from_slice(&elements);
        Ok(())
    })
}
