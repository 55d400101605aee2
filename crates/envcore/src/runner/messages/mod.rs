//! What whoever has slots elsewhere and whoever has the slots tell each other: questions between
//! steps with their answers, and what comes with rows. A worker process and its parent say these,
//! and so do a server of netenv and its client.

mod packed;

use serde::{Deserialize, Serialize};

use crate::begin::Begin;
use crate::buffer::{Batch, ColumnIn, Either, Part, Slots};
use crate::call::{Call, CallKind};
use crate::error::{Error, Result, SlotError};
use crate::saved::{SlotState, VecEnvState};
use crate::space::Value;
use crate::vec_env::VecEnv;

pub use packed::Objects;
pub(crate) use packed::{
    PackedError, PackedFailure, PackedFrame, PackedSpec, PackedValue, open_frames, pack_extras, pack_frames,
};

/// A question between steps, about slots by the numbers of whoever is asked.
#[derive(Serialize, Deserialize)]
pub(crate) enum Question {
    CheckReset(Vec<usize>, Vec<Begin>, PackedValue),
    SetNext(Vec<usize>, Vec<Begin>),
    Save(usize),
    Load(usize, SlotState),
    Render(Vec<usize>),
    Call(Vec<usize>, CallKind, String, PackedValue, PackedValue),
    SaveAll,
    LoadAll(VecEnvState),
}

#[derive(Serialize, Deserialize)]
pub(crate) enum Answer {
    Done,
    State(SlotState),
    Frames(Vec<PackedFrame>),
    Values(Vec<PackedValue>),
    All(VecEnvState),
}

impl Question {
    /// The question of `call` to the envs of `slots`.
    pub(crate) fn call(slots: Vec<usize>, call: &Call, objects: &dyn Objects) -> Self {
        let args = call.args.iter().map(|arg| PackedValue::of(arg, objects)).collect();
        let kwargs = PackedValue::options(&call.kwargs, objects);
        Question::Call(slots, call.kind, call.name.clone(), PackedValue::List(args), kwargs)
    }

    /// The answer of `envs`. `begin` is called with each slot that is drawn or called, before it is.
    ///
    /// # Errors
    /// Those of the vec env, and those of values that cannot be opened.
    pub(crate) fn answer(
        self,
        envs: &mut dyn VecEnv,
        objects: &dyn Objects,
        begin: impl FnMut(usize),
    ) -> Result<Answer> {
        match self {
            Question::CheckReset(slots, begin, options) => {
                let options = options.open_options(objects)?;
                envs.check_reset(&Slots::List(slots), &begin, Some(&options))?;
                Ok(Answer::Done)
            }
            Question::SetNext(slots, begin) => {
                envs.set_next(&Slots::List(slots), &begin)?;
                Ok(Answer::Done)
            }
            Question::Save(slot) => Ok(Answer::State(envs.save_slot(slot)?)),
            Question::Load(slot, state) => {
                envs.load_slot(slot, state.sections())?;
                Ok(Answer::Done)
            }
            Question::Render(slots) => {
                let frames = each(slots, begin, |slots| envs.render(slots))?;
                Ok(Answer::Frames(pack_frames(frames)))
            }
            Question::Call(slots, kind, name, args, kwargs) => {
                let Value::List(args) = args.open(objects)? else {
                    return Err(Error::ArgumentType(format!("the arguments of '{name}' are no list")));
                };
                let call = Call { kind, name, args, kwargs: kwargs.open_options(objects)? };
                let values = each(slots, begin, |slots| envs.call(slots, &call))?;
                Ok(Answer::Values(values.iter().map(|value| PackedValue::of(value, objects)).collect()))
            }
            Question::SaveAll => Ok(Answer::All(envs.save_all()?)),
            Question::LoadAll(state) => {
                envs.load_all(state.sections())?;
                Ok(Answer::Done)
            }
        }
    }
}

/// The columns of actions that are not of fixed shape.
pub(crate) fn pack_loose(actions: &[ColumnIn<'_>], objects: &dyn Objects) -> Vec<Vec<PackedValue>> {
    let loose = actions.iter().filter_map(|column| match column {
        ColumnIn::Values(values) => Some(values),
        ColumnIn::Fixed { .. } => None,
    });
    loose.map(|values| values.iter().map(|value| PackedValue::of(value, objects)).collect()).collect()
}

/// Errors where an action of one of `slots` could not be packed.
pub(crate) fn check_loose(loose: &[Vec<PackedValue>], id: &str, slots: &Slots) -> Result<()> {
    let mut rows = loose.iter().flat_map(|column| column.iter().enumerate());
    match rows.find_map(|(row, value)| Some((row, value.trouble()?))) {
        Some((row, why)) => {
            let slot = slots.at(row);
            Err(Error::Action(format!("{id}: the action of env {slot} cannot go to another process: {why}")))
        }
        None => Ok(()),
    }
}

/// Errors where an argument of `call` cannot be packed.
pub(crate) fn check_call(call: &Call, objects: &dyn Objects, id: &str) -> Result<()> {
    let arguments = call.args.iter().chain(call.kwargs.iter().map(|(_, value)| value));
    for value in arguments {
        if let Some(why) = PackedValue::of(value, objects).trouble() {
            let why = format!("{id}: an argument of {} cannot go to another process: {why}", call.name);
            return Err(Error::ArgumentType(why));
        }
    }
    Ok(())
}

/// Calls `ask` for each of `slots` by itself, so that each has its own time limit.
fn each<T>(
    slots: Vec<usize>,
    mut begin: impl FnMut(usize),
    mut ask: impl FnMut(&Slots) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let mut all = Vec::with_capacity(slots.len());
    for slot in slots {
        begin(slot);
        all.append(&mut ask(&Slots::List(vec![slot]))?);
    }
    Ok(all)
}

/// What is told of some rows beside their columns of fixed shape.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct News {
    /// Why all of the work was refused, if it was.
    pub(crate) refused: Option<String>,
    /// Columns that are not of fixed shape, in the batch's order.
    pub(crate) columns: Vec<Vec<PackedValue>>,
    pub(crate) infos: Vec<(usize, String, PackedValue)>,
    pub(crate) final_infos: Vec<(usize, String, PackedValue)>,
    pub(crate) failures: Vec<PackedFailure>,
    /// Failures that a policy has dealt with.
    pub(crate) tolerated: Vec<PackedFailure>,
}

impl News {
    /// What is to be told of `batch`, of its finals only with `has_finals`.
    pub(crate) fn of(batch: &Batch, has_finals: bool, objects: &dyn Objects) -> Self {
        let mut columns = Vec::new();
        let is_final = |part| matches!(part, Part::FinalObservation(_) | Part::FinalInfo(_));
        batch.visit(|part, column| {
            if let Either::Values(values) = column
                && (has_finals || !is_final(part))
            {
                columns.push(values.iter().map(|value| PackedValue::of(value, objects)).collect());
            }
        });
        let pack = |failures: &[SlotError]| {
            failures.iter().map(|failure| PackedFailure::of(failure, objects)).collect()
        };
        let finals = batch.finals.as_ref().filter(|_| has_finals);
        News {
            refused: None,
            columns,
            infos: pack_extras(&batch.infos.extras, objects),
            final_infos: finals.map(|f| pack_extras(&f.infos.extras, objects)).unwrap_or_default(),
            failures: pack(&batch.failures),
            tolerated: pack(&batch.tolerated),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.refused.is_none()
            && self.columns.is_empty()
            && self.infos.is_empty()
            && self.final_infos.is_empty()
            && self.failures.is_empty()
            && self.tolerated.is_empty()
    }
}
