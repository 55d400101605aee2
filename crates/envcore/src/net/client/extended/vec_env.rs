//! [`ExtendedClient`] as a [`VecEnv`].

use std::time::{Duration, Instant};

use super::{ExtendedClient, OBJECTS, Unanswered, What};
use crate::begin::Begin;
use crate::buffer::{Batch, ColumnIn, Slots};
use crate::call::Call;
use crate::caps::Caps;
use crate::episode::saved_life;
use crate::error::{Cause, Error, Result};
use crate::frame::Frame;
use crate::net::extension::{Kind, ResetTail, StepTail, names, pack};
use crate::net::stream::BrokenConnection;
use crate::runner::messages::{
    Answer, PackedValue, Question, check_call, check_loose, open_frames, pack_loose,
};
use crate::runner::remote_rows::Change;
use crate::runner::slot_states::Sent;
use crate::saved::{AllSections, Sections, SlotState, VecEnvState};
use crate::space::{Options, Value};
use crate::vec_env::{Spec, VecEnv, Want, check_idle};

/// How long a close waits for the server's envs to be closed.
const FAREWELL: Duration = Duration::from_secs(2);

impl ExtendedClient {
    /// The answer to a question about envs that are not in flight. Its `changes` are made when it
    /// comes, even if a later call receives it.
    fn ask(&mut self, question: &Question, changes: Vec<Change>) -> Result<Answer> {
        match self.answer_to(question, changes) {
            Ok(answered) => answered,
            Err(Unanswered::Stopped(stop)) => Err(stop),
            Err(Unanswered::Lost(why)) => Err(Error::NeedsReset(format!("{}: {why}", self.base.spec.id))),
        }
    }

    fn answer_to(
        &mut self,
        question: &Question,
        changes: Vec<Change>,
    ) -> std::result::Result<Result<Answer>, Unanswered> {
        let at = &self.config.address;
        let Some(link) = &mut self.link else {
            let why = format!("the connection to {at} broke earlier: reset, which connects again");
            return Err(Unanswered::Lost(why));
        };
        let tail = match pack(question) {
            Ok(tail) => tail,
            Err(why) => return Ok(Err(Error::env(why))),
        };
        let posted = link.post(Kind::Ask, &tail);
        let number = self.next_question;
        self.next_question += 1;
        self.expect(What::Answer(number, changes), self.limits.longest());
        if let Err(broken) = posted {
            self.lose(&broken, Cause::Death);
        }
        let is_there = |this: &Self| this.answer.as_ref().is_some_and(|(of, _)| *of == number);
        let waited = self.wait(is_there, None, true).map_err(Unanswered::Stopped)?;
        match self.answer.take() {
            Some((_, answered)) if waited => Ok(answered.map_err(|error| error.open(0, &OBJECTS))),
            _ => {
                let why =
                    format!("the connection to {} broke: reset, which connects again", self.config.address);
                Err(Unanswered::Lost(why))
            }
        }
    }

    /// Checks and stores `actions`. Returns the columns that are not of fixed shape, as
    /// they are sent.
    fn accept(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<Vec<Vec<PackedValue>>> {
        self.base.check_together(slots, None)?;
        let n = self.base.spec.num_slots;
        let lives = &self.rows.slot_states.lives;
        slots.iter(n).try_for_each(|slot| lives.check_step(slot))?;
        self.actions.store(slots, actions, lives.pending())?;
        let loose = pack_loose(actions, &OBJECTS);
        check_loose(&loose, &self.base.spec.id, slots)?;
        Ok(loose)
    }

    /// Errors where `slots` may not begin as `begin` says.
    fn check_begins(&self, slots: &Slots, begin: &[Begin], has_options: bool) -> Result<()> {
        self.base.check_together(slots, Some(begin))?;
        let n = self.base.spec.num_slots;
        let lives = &self.rows.slot_states.lives;
        slots.iter(n).zip(begin).try_for_each(|(slot, &begin)| lives.check_reset(slot, begin, has_options))
    }

    /// Loses all slots where a message could not be posted.
    fn posted(&mut self, posted: std::result::Result<(), BrokenConnection>) {
        if let Err(broken) = posted {
            self.lose(&broken, Cause::Death);
        }
    }
}

fn options_that_travel(options: &Options) -> Result<PackedValue> {
    let packed = PackedValue::options(options, &OBJECTS);
    match packed.trouble() {
        None => Ok(packed),
        Some(why) => Err(Error::Argument(format!("an option cannot travel: {why}"))),
    }
}

impl VecEnv for ExtendedClient {
    fn spec(&self) -> &Spec {
        &self.base.spec
    }

    fn check_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        let options = options.filter(|options| !options.is_empty());
        self.check_begins(slots, begin, options.is_some())?;
        let Some(options) = options else { return Ok(()) };
        options_that_travel(options)?;
        // A server to which there is no connection checks its options once there is one.
        if self.link.is_none() {
            return Ok(());
        }
        let n = self.base.spec.num_slots;
        let anew = slots.iter(n).zip(begin).filter(|(_, begin)| **begin != Begin::Keep);
        let (slots, begin) = anew.unzip();
        let question = Question::CheckReset(slots, begin, options_that_travel(options)?);
        self.ask(&question, Vec::new()).map(drop)
    }

    fn check_send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.accept(slots, actions).map(drop)
    }

    fn send_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.check_reset(slots, begin, options)?;
        let n = self.base.spec.num_slots;
        if begin.iter().any(|begin| *begin != Begin::Keep) {
            // A server that ended since the last call is noticed here, and not by rows that fail.
            self.pump();
            self.revive()?;
        }
        let options = options.filter(|options| !options.is_empty());
        self.rows.depart(&mut self.base, slots, |row| Sent::Reset(begin[row]));
        let mut given = Vec::new();
        for (slot, &begin) in slots.iter(n).zip(begin) {
            let own = match begin {
                Begin::Keep => None,
                _ => self.rows.slot_states.options_for(slot, options),
            };
            self.rows.slot_states.depart(slot, begin, options);
            given.push((slot, begin, own));
        }
        self.rows.land_unreported(slots, &self.actions);
        given.retain(|(slot, ..)| self.rows.is_in_flight(*slot));
        // Slots with the same options are reset by one message.
        for run in given.chunk_by(|a, b| a.2 == b.2) {
            let these = Slots::of(run.iter().map(|(slot, ..)| *slot).collect(), n);
            let options = run[0].2.clone().unwrap_or_default();
            let tail = ResetTail {
                slots: names(&these),
                begin: run.iter().map(|(_, begin, _)| *begin).collect(),
                options: PackedValue::options(&options, &OBJECTS),
            };
            let Some(link) = &mut self.link else { break };
            let posted = pack(&tail).map_err(BrokenConnection::Garbage);
            let posted = posted.and_then(|tail| link.post(Kind::Reset, &tail));
            self.expect(What::Rows(these), self.limits.of(true));
            self.posted(posted);
        }
        Ok(())
    }

    fn set_next(&mut self, slots: &Slots, begin: &[Begin]) -> Result<()> {
        self.base.check_slots(slots)?;
        self.base.check_one_each(slots, begin)?;
        let each: Vec<(usize, Begin)> =
            slots.iter(self.base.spec.num_slots).zip(begin.iter().copied()).collect();
        let lives = &self.rows.slot_states.lives;
        each.iter().try_for_each(|&(slot, begin)| lives.check_next(slot, begin))?;
        let question = Question::SetNext(each.iter().map(|(slot, _)| *slot).collect(), begin.to_vec());
        self.ask(&question, vec![Change::Next(each)]).map(drop)
    }

    fn send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        let mut loose = self.accept(slots, actions)?;
        self.rows.depart(&mut self.base, slots, |_| Sent::Step);
        let rest = self.rows.land_unreported(slots, &self.actions);
        let n = self.base.spec.num_slots;
        if rest.len(n) == 0 {
            return Ok(());
        }
        if rest != *slots {
            self.rows.retain_in_flight(slots, &mut loose);
        }
        let is_plain = rest == Slots::All && loose.is_empty();
        let tail = match is_plain {
            true => Ok(Vec::new()),
            false => pack(&StepTail { slots: names(&rest), loose }).map_err(BrokenConnection::Garbage),
        };
        let lives = &self.rows.slot_states.lives;
        let may_reset = self.limits.any() && rest.iter(n).any(|slot| lives.pending()[slot]);
        let Some(link) = &mut self.link else { return Ok(()) };
        let posted = tail.and_then(|tail| link.post_step(&rest, &self.actions, &tail));
        let limit = if may_reset { self.limits.longest() } else { self.limits.of(false) };
        self.expect(What::Rows(rest), limit);
        self.posted(posted);
        Ok(())
    }

    fn recv(&mut self, want: Want<'_>) -> Result<Option<Box<Batch>>> {
        self.base.check_open()?;
        self.receive(want)
    }

    fn in_flight(&self) -> usize {
        self.base.in_flight()
    }

    fn save_slot(&mut self, slot: usize) -> Result<SlotState> {
        self.base.check_slots(&Slots::List(vec![slot]))?;
        self.base.spec.caps.require(Caps::SAVE, &self.base.spec.id, "save its state")?;
        match self.ask(&Question::Save(slot), Vec::new())? {
            Answer::State(state) => Ok(state),
            _ => Err(unasked()),
        }
    }

    fn load_slot(&mut self, slot: usize, state: Sections<'_>) -> Result<()> {
        self.base.check_slots(&Slots::List(vec![slot]))?;
        self.base.spec.caps.require(Caps::SAVE, &self.base.spec.id, "load a state")?;
        self.revive()?;
        let life = saved_life(state).map(Box::new);
        self.ask(&Question::Load(slot, state.to_state()), vec![Change::Life(slot, life)]).map(drop)
    }

    fn save_all(&mut self) -> Result<VecEnvState> {
        check_idle(self, "save")?;
        self.base.check_open()?;
        self.base.spec.caps.require(Caps::SAVE, &self.base.spec.id, "save its state")?;
        match self.ask(&Question::SaveAll, Vec::new())? {
            Answer::All(state) => Ok(state),
            _ => Err(unasked()),
        }
    }

    fn load_all(&mut self, state: AllSections<'_>) -> Result<()> {
        check_idle(self, "load")?;
        self.base.check_open()?;
        self.base.spec.caps.require(Caps::SAVE, &self.base.spec.id, "load a state")?;
        state.check(&self.base.spec.id, self.base.spec.num_slots)?;
        self.revive()?;
        let lives = state.slots.iter().enumerate();
        let changes =
            lives.map(|(slot, state)| Change::Life(slot, saved_life(*state).map(Box::new))).collect();
        self.ask(&Question::LoadAll(state.to_state()), changes).map(drop)
    }

    fn render(&mut self, slots: &Slots) -> Result<Vec<Frame>> {
        self.base.check_slots(slots)?;
        self.base.spec.caps.require(Caps::RENDER, &self.base.spec.id, "draw a picture")?;
        let n = self.base.spec.num_slots;
        let lives = &self.rows.slot_states.lives;
        slots.iter(n).try_for_each(|slot| lives.check_begun(slot, "shows nothing"))?;
        match self.ask(&Question::Render(slots.iter(n).collect()), Vec::new())? {
            Answer::Frames(frames) if frames.len() == slots.len(n) => open_frames(frames),
            _ => Err(unasked()),
        }
    }

    fn call(&mut self, slots: &Slots, call: &Call) -> Result<Vec<Value>> {
        self.base.check_slots(slots)?;
        let id = &self.base.spec.id;
        self.base.spec.caps.require(Caps::CALL, id, &format!("call anything by name ('{}')", call.name))?;
        check_call(call, &OBJECTS, id)?;
        let n = self.base.spec.num_slots;
        match self.ask(&Question::call(slots.iter(n).collect(), call, &OBJECTS), Vec::new())? {
            Answer::Values(values) if values.len() == slots.len(n) => {
                values.into_iter().map(|value| value.open(&OBJECTS)).collect()
            }
            _ => Err(unasked()),
        }
    }

    fn allocations(&self) -> u64 {
        self.pool.allocations()
    }

    fn close(&mut self) -> Result<()> {
        let is_idle = self.expected.is_empty();
        if !self.base.close() {
            return Ok(());
        }
        self.rows.forget();
        let mut closed = Ok(());
        // Steps in flight may take long, and nobody will see their rows.
        if let (Some(link), true) = (&mut self.link, is_idle)
            && link.post(Kind::Close, &[]).is_ok()
        {
            self.expect(What::Closed, None);
            let is_there = |this: &Self| matches!(this.answer, Some((u64::MAX, _)));
            closed = match (self.wait(is_there, Some(Instant::now() + FAREWELL), true), self.answer.take()) {
                (Ok(true), Some((_, Err(error)))) => Err(error.open(0, &OBJECTS)),
                (waited, _) => waited.map(drop),
            };
        }
        self.link = None;
        closed
    }
}

/// The error of an answer to something else.
fn unasked() -> Error {
    Error::env("the server answered another question than it was asked")
}
