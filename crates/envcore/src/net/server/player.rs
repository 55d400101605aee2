//! The envs of a connection as netenv has them: numbers in a payload, and a new episode in the
//! step that ends one.
//!
//! Envs of another autoreset mode are reset here, by a reset or a step of those alone whose
//! episode ended, where their source can do that. What ended shows the next episode's first
//! observation then, as the original's envs do.

use std::borrow::Cow;

use super::Served;
use crate::begin::Begin;
use crate::buffer::{Batch, Column, ColumnIn, Fixed, Slots};
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::net::spaces::{Class, NetLeaf, numbers};
use crate::net::stream::LARGE;
use crate::net::wire::{ALIGN, Payload, Response};
use crate::space::{Array, DType, Options, Scalar, Value};
use crate::vec_config::AutoresetMode;
use crate::vec_env::Want;
use crate::with_element;

pub(super) struct Player {
    served: Served,
    /// The action's leaves on the wire, and where their arrays lie.
    action: Vec<(NetLeaf, std::ops::Range<usize>)>,
    /// For each leaf of the action space, its number on the wire.
    action_numbers: Vec<usize>,
    observation: Vec<NetLeaf>,
    /// For each of these leaves, its number in the observation space.
    observation_numbers: Vec<usize>,
    steps: Payload,
    /// Whether observations travel as the envs show them, byte for byte.
    shows_as_is: bool,
    has_begun: bool,
}

impl Player {
    pub(super) fn new(
        served: Served,
        told: &Response,
        (actions, steps): (&Payload, Payload),
    ) -> Result<Self> {
        let spec = served.envs.spec();
        let is_disabled = spec.autoreset == AutoresetMode::Disabled;
        let can_follow = !is_disabled || spec.caps.intersects(Caps::SUBSET | Caps::MASK);
        if !can_follow {
            return Err(Error::Unsupported(format!(
                "{}: netenv begins an episode where one ends, and these envs cannot be reset one by one: give \
                 them another autoreset mode",
                spec.id
            )));
        }
        let mut action_numbers = vec![0; told.action.len()];
        for (on_wire, leaf) in numbers(&spec.action).into_iter().enumerate() {
            action_numbers[leaf] = on_wire;
        }
        let places = actions.places.iter().map(|place| place.at..place.at + place.bytes);
        let leaves = spec.observation.leaves();
        let is_same = |(leaf, number): (&NetLeaf, usize)| {
            let size = leaves[number].as_fixed().map(|tensor| tensor.dtype.size());
            size == Some(leaf.dtype.size()) && start(leaf) == 0
        };
        let shows_as_is = told.observation.iter().zip(numbers(&spec.observation)).all(is_same);
        Ok(Player {
            shows_as_is,
            action: told.action.iter().cloned().zip(places).collect(),
            action_numbers,
            observation: told.observation.clone(),
            observation_numbers: numbers(&spec.observation),
            steps,
            has_begun: false,
            served,
        })
    }

    fn num_envs(&self) -> usize {
        self.served.envs.spec().num_slots
    }

    /// Begins an episode in every env. Rewards and ends in `payload` stay what they were.
    pub(super) fn reset(&mut self, payload: &mut [u8]) -> Result<()> {
        let begin = vec![Begin::Own; self.num_envs()];
        self.served.envs.send_reset(&Slots::All, &begin, None)?;
        let batch = self.receive()?;
        self.has_begun = true;
        self.show(&batch, payload);
        Ok(())
    }

    /// Plays the actions of a payload. Where `may_give` allows it, and the observations need no
    /// change, they are not copied to `payload`: they are those of the batch that is returned,
    /// array by array.
    pub(super) fn step(
        &mut self,
        actions: &[u8],
        payload: &mut [u8],
        may_give: bool,
    ) -> Result<Option<Box<Batch>>> {
        if !self.has_begun {
            // The original's envs have begun before anyone resets them.
            self.reset(payload)?;
        }
        let n = self.num_envs();
        let columns = self.action.iter().map(|(leaf, place)| {
            let shape: Vec<usize> = std::iter::once(n).chain(leaf.shape().iter().copied()).collect();
            (leaf.dtype, shape, counted(leaf, &actions[place.clone()]))
        });
        let columns: Vec<_> = columns.collect();
        let column = |on_wire: &usize| {
            let (dtype, shape, bytes) = &columns[*on_wire];
            ColumnIn::Fixed { dtype: *dtype, shape, bytes: (&bytes[..]).into() }
        };
        let columns_in: Vec<ColumnIn<'_>> = self.action_numbers.iter().map(column).collect();
        self.served.envs.send(&Slots::All, &columns_in)?;
        let batch = self.receive()?;
        let (terminated, truncated) =
            (batch.terminated.as_slice::<bool>(), batch.truncated.as_slice::<bool>());
        let ended: Vec<usize> = (0..n).filter(|row| terminated[*row] || truncated[*row]).collect();
        self.tell(&batch, payload);
        let has_followers = self.served.envs.spec().autoreset != AutoresetMode::SameStep && !ended.is_empty();
        if may_give && self.shows_as_is && !has_followers && batch.slots == Slots::All {
            return Ok(Some(batch));
        }
        self.show(&batch, payload);
        drop(batch);
        if has_followers {
            self.follow(ended, payload)?;
        }
        Ok(None)
    }

    /// The payload of a batch that [`step`](Self::step) returned, in parts; rewards and ends are in
    /// `payload`.
    pub(super) fn parts<'a>(&'a self, batch: &'a Batch, payload: &'a [u8]) -> Vec<&'a [u8]> {
        let column = |number: &usize| batch.observation.get(*number).and_then(Column::as_fixed);
        let arrays = self.observation_numbers.iter().filter_map(column).map(Fixed::bytes);
        let padding = |bytes: &[u8]| &[0; ALIGN][..bytes.len().next_multiple_of(ALIGN) - bytes.len()];
        let rewards = self.steps.places[self.observation.len()].at;
        arrays.flat_map(|bytes| [bytes, padding(bytes)]).chain([&payload[rewards..]]).collect()
    }

    /// Whether observations are large, and travel as the envs show them.
    pub(super) fn is_direct(&self) -> bool {
        self.shows_as_is && self.steps.bytes >= LARGE
    }

    /// Shows the next episode's first observation of the envs whose episode has ended.
    fn follow(&mut self, ended: Vec<usize>, payload: &mut [u8]) -> Result<()> {
        let spec = self.served.envs.spec();
        let apart = spec.caps.contains(Caps::SUBSET);
        match spec.autoreset {
            AutoresetMode::NextStep if apart => {
                // The step of an env whose episode is over ignores its action.
                let rows = ended.len();
                let columns: Vec<_> = spec
                    .action
                    .leaves()
                    .iter()
                    .filter_map(|leaf| leaf.as_fixed())
                    .map(|tensor| {
                        let shape: Vec<usize> =
                            std::iter::once(rows).chain(tensor.shape.iter().copied()).collect();
                        (tensor.dtype, shape, vec![0u8; rows * tensor.row_bytes()])
                    })
                    .collect();
                let columns: Vec<ColumnIn<'_>> = columns
                    .iter()
                    .map(|(dtype, shape, bytes)| ColumnIn::Fixed {
                        dtype: *dtype,
                        shape,
                        bytes: bytes.into(),
                    })
                    .collect();
                self.served.envs.send(&Slots::List(ended), &columns)?;
            }
            AutoresetMode::Disabled if apart => {
                let begin = vec![Begin::Own; ended.len()];
                self.served.envs.send_reset(&Slots::List(ended), &begin, None)?;
            }
            AutoresetMode::Disabled => {
                let mut begin = vec![Begin::Keep; spec.num_slots];
                ended.into_iter().for_each(|slot| begin[slot] = Begin::Own);
                self.served.envs.send_reset(&Slots::All, &begin, None)?;
            }
            AutoresetMode::NextStep | AutoresetMode::SameStep => return Ok(()),
        }
        let batch = self.receive()?;
        self.show(&batch, payload);
        Ok(())
    }

    fn receive(&mut self) -> Result<Box<Batch>> {
        let batch = self.served.envs.recv(Want::all())?.ok_or_else(|| Error::env("no batch came"))?;
        if batch.failures.is_empty() { Ok(batch) } else { Err(Error::Slots(batch.failures)) }
    }

    /// Writes the batch's observations to the payload, each at its env's place.
    fn show(&self, batch: &Batch, payload: &mut [u8]) {
        for ((leaf, number), place) in
            self.observation.iter().zip(&self.observation_numbers).zip(&self.steps.places)
        {
            let Some(column) = batch.observation.get(*number).and_then(Column::as_fixed) else { continue };
            let array = &mut payload[place.at..place.at + place.bytes];
            let is_same = leaf.dtype.size() == column.dtype().size() && start(leaf) == 0;
            if is_same && batch.slots == Slots::All {
                array.copy_from_slice(column.bytes());
                continue;
            }
            for (row, slot) in batch.slots.iter(batch.rows()).enumerate() {
                let to = &mut array[slot * place.row_bytes..(slot + 1) * place.row_bytes];
                match is_same {
                    true => to
                        .copy_from_slice(&column.bytes()[row * place.row_bytes..(row + 1) * place.row_bytes]),
                    false => {
                        to.copy_from_slice(&label(column, row).wrapping_sub(start(leaf)).to_ne_bytes()[..])
                    }
                }
            }
        }
    }

    /// Writes rewards and ends of all envs to the payload.
    fn tell(&self, batch: &Batch, payload: &mut [u8]) {
        let [.., rewards, dones] = self.steps.places[..] else { return };
        let to = payload[rewards.at..rewards.at + rewards.bytes].chunks_exact_mut(4);
        for (to, reward) in to.zip(batch.reward.as_slice::<f64>()) {
            to.copy_from_slice(&(*reward as f32).to_ne_bytes());
        }
        let ends = batch.terminated.as_slice::<bool>().iter().zip(batch.truncated.as_slice::<bool>());
        for (to, (terminated, truncated)) in payload[dones.at..dones.at + dones.bytes].iter_mut().zip(ends) {
            *to = u8::from(*terminated || *truncated);
        }
    }

    /// A picture, by the arguments that the client named.
    pub(super) fn render(&mut self, kwargs: &Options) -> Result<Value> {
        if let Some(render) = &mut self.served.render {
            return render(kwargs);
        }
        if !self.served.envs.spec().caps.contains(Caps::RENDER) {
            return Ok(Value::None);
        }
        if !self.has_begun {
            let begin = vec![Begin::Own; self.num_envs()];
            self.served.envs.send_reset(&Slots::All, &begin, None)?;
            self.receive()?;
            self.has_begun = true;
        }
        let frames = self.served.envs.render(&Slots::All)?;
        let shape = |frame: &crate::Frame| [frame.height(), frame.width(), 3];
        let Some(first) = frames.first().map(shape) else { return Ok(Value::None) };
        if frames.iter().any(|frame| shape(frame) != first) {
            return Ok(Value::List(
                frames.iter().map(|f| picture(&shape(f), f.pixels())).collect::<Result<_>>()?,
            ));
        }
        let pixels: Vec<u8> = frames.iter().flat_map(|frame| frame.pixels()).copied().collect();
        picture(&[&[frames.len()], &first[..]].concat(), &pixels)
    }

    pub(super) fn close(&mut self) -> Result<()> {
        self.served.envs.close()
    }
}

fn picture(shape: &[usize], pixels: &[u8]) -> Result<Value> {
    Array::new(shape, pixels).map(Value::Array)
}

/// The label that travels as 0.
fn start(leaf: &NetLeaf) -> i64 {
    match leaf.class {
        Class::Discrete { start, .. } => start,
        _ => 0,
    }
}

/// Row `row` of a column of labels.
fn label(column: &Fixed, row: usize) -> i64 {
    let scalar = with_element!(column.dtype(), T => column.row::<T>(row).first().map(|element| {
        crate::space::Element::to_scalar(*element)
    }));
    match scalar {
        Some(Scalar::Int(label)) => i64::try_from(label).unwrap_or_default(),
        _ => 0,
    }
}

/// The actions of a leaf as the envs count them.
fn counted<'a>(leaf: &NetLeaf, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    let start = start(leaf);
    if start == 0 || leaf.dtype != DType::I64 {
        return bytes.into();
    }
    let shift = |label: &[u8]| i64::from_ne_bytes(label.try_into().expect("eight bytes")).wrapping_add(start);
    bytes.chunks_exact(8).flat_map(|label| shift(label).to_ne_bytes()).collect()
}
