//! Refusal of actions that an env's action mask forbids.
//!
//! Batches pass unchanged. The layer keeps the mask of each slot's last row and
//! refuses an action with a choice that the mask forbids before anything moves.
//! Nothing is checked where the env will ignore the next action: the slot awaits its
//! autoreset, or it failed.

use crate::buffer::{Batch, ColumnIn, Fixed, RowKind, Slots, with_private};
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::layer::{Layer, Shows, Transform, rows_of};
use crate::mask::{ACTION_MASK, Choices};
use crate::space::{DType, Element};
use crate::vec_config::AutoresetMode;
use crate::vec_env::{Spec, VecEnv};
use crate::with_element;

/// Refuses masked actions; see the module.
pub struct MaskedActions {
    id: String,
    mode: AutoresetMode,
    /// The index of the info leaf that holds the mask.
    leaf: usize,
    choices: Choices,
    /// By slot, a byte for each choice; none where the slot's next action is not checked.
    masks: Vec<Option<Vec<u8>>>,
}

impl MaskedActions {
    /// Refuses masked actions of `envs`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where `envs` show no action masks.
    pub fn over(envs: Box<dyn VecEnv>) -> Result<Layer<Self>> {
        let spec = envs.spec();
        let leaf = spec.info.leaves().iter().position(|leaf| leaf.name == ACTION_MASK);
        let choices = Choices::of(&spec.action);
        let told = |leaf: &usize| {
            let tensor = spec.info.leaves()[*leaf].as_fixed();
            tensor.is_some_and(|tensor| tensor.dtype == DType::I8 && tensor.elements() == choices.count())
        };
        let leaf = leaf.filter(|leaf| spec.caps.contains(Caps::ACTION_MASK) && told(leaf));
        let Some(leaf) = leaf else {
            return Err(Error::Unsupported(format!("{} tells of no action masks", spec.id)));
        };
        let masks = vec![None; spec.num_slots];
        let transform = MaskedActions { id: spec.id.clone(), mode: spec.autoreset, leaf, choices, masks };
        Layer::new(envs, transform)
    }

    fn check(&self, slot: usize, row: usize, leaf: usize, column: &ColumnIn<'_>) -> Result<()> {
        let (Some(mask), ColumnIn::Fixed { dtype, bytes, .. }) = (&self.masks[slot], column) else {
            return Ok(());
        };
        let elements = self.choices.of_leaf(leaf);
        let bytes = bytes.as_slice().expect("the columns are private");
        let width = dtype.size();
        for (k, element) in elements.iter().enumerate() {
            let at = (row * elements.len() + k) * width;
            let value = with_element!(*dtype, T => {
                T::from_ne_slice(&bytes[at..at + width]).to_scalar()
            });
            let allowed = |choice: usize| mask[element.first + choice] != 0;
            if element.choice(value).is_some_and(|choice| !allowed(choice)) {
                let labels = (0..element.count).filter(|choice| allowed(*choice));
                let labels: Vec<_> =
                    labels.map(|choice| (element.low + choice as i128).to_string()).collect();
                let place = if elements.len() > 1 { format!(", element {k}") } else { String::new() };
                return Err(Error::Action(format!(
                    "{}: env {slot}{place}: action {value} is masked; allowed: [{}]",
                    self.id,
                    labels.join(", ")
                )));
            }
        }
        Ok(())
    }
}

impl Transform for MaskedActions {
    type Slot = Option<Vec<u8>>;
    type Shared = ();

    const CHECKS_ACTIONS: bool = true;

    fn describe(&self) -> String {
        "masked_actions".into()
    }

    fn spec(&self, spec: &Spec) -> Spec {
        spec.clone()
    }

    fn apply(&mut self, batch: &mut Batch, _fresh: &mut [Option<Fixed>], _finals: &mut [Option<Fixed>]) {
        let count = self.choices.count();
        let (Some(told), column) = (batch.infos.masks.get(self.leaf), &batch.infos.columns[self.leaf]) else {
            return;
        };
        let (told, Some(masks)) = (told.as_slice::<bool>(), column.as_fixed()) else { return };
        for (row, of) in rows_of(batch, self.mode).enumerate() {
            if batch.kind(row) == RowKind::Kept {
                continue;
            }
            let ignored = of.over && self.mode == AutoresetMode::NextStep && of.stepped;
            let counts = told[row] && !ignored && of.shows != Shows::Nothing;
            let mask = &masks.as_slice::<i8>()[row * count..(row + 1) * count];
            let place = &mut self.masks[of.slot];
            if counts {
                let kept = place.get_or_insert_default();
                kept.clear();
                kept.extend(mask.iter().map(|allowed| *allowed as u8));
            } else {
                *place = None;
            }
        }
    }

    fn check_actions(&self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        with_private(actions, |actions| {
            for (row, slot) in slots.iter(self.masks.len()).enumerate() {
                for (leaf, column) in actions.iter().enumerate() {
                    self.check(slot, row, leaf, column)?;
                }
            }
            Ok(())
        })
    }

    fn slot(&self, slot: usize) -> Self::Slot {
        self.masks[slot].clone()
    }

    fn check_slot(&self, saved: &Self::Slot) -> Result<()> {
        match saved {
            Some(mask) if mask.len() != self.choices.count() => {
                let (theirs, ours) = (mask.len(), self.choices.count());
                Err(Error::State(format!("an action mask of {theirs} choices where {ours} belong")))
            }
            _ => Ok(()),
        }
    }

    fn set_slot(&mut self, slot: usize, saved: Self::Slot) {
        self.masks[slot] = saved;
    }

    fn shared(&self) {}

    fn check_shared(&self, (): &()) -> Result<()> {
        Ok(())
    }

    fn set_shared(&mut self, (): ()) {}
}
