//! [`PlainClient`] as a [`VecEnv`].

use std::time::Duration;

use super::PlainClient;
use crate::begin::Begin;
use crate::buffer::{Batch, ColumnIn, Slots};
use crate::call::{Call, CallKind};
use crate::episode::Status;
use crate::error::{Cause, Error, Phase, Result};
use crate::frame::Frame;
use crate::net::stream::BrokenConnection;
use crate::runner::slot_states::Sent;
use crate::saved::{Sections, SlotState};
use crate::space::{Options, Value};
use crate::vec_env::{Spec, VecEnv, Want};

/// How long a picture may take where there is no limit.
const UNLIMITED: Duration = Duration::from_secs(1 << 32);

/// What the protocol can call by its name.
const DRAW: &str = "render";

impl PlainClient {
    /// Whether nobody has reset or stepped the envs. The server's envs have begun when they are made,
    /// so a step may come first.
    fn is_untouched(&self) -> bool {
        self.connection.is_some() && self.slot_states.lives.status(0) == Status::Fresh
    }

    /// The error of what netenv cannot do with `slots`.
    fn unable(&self, slots: &Slots, what: &str) -> Error {
        let named = self.base.check_slots(slots);
        named.err().unwrap_or_else(|| Error::Unsupported(format!("{} cannot {what}", self.base.spec.id)))
    }

    /// Lands failed rows where the connection broke before the slots were sent.
    fn land_unreported(&mut self, sent: Sent) -> bool {
        let n = self.base.spec.num_slots;
        let mut any = false;
        for slot in 0..n {
            if let Some(failure) = self.slot_states.take_unreported(slot) {
                let error = self.slot_states.lose(slot, sent, None, (*failure).clone());
                self.notes[slot].failures.push(error);
                any = true;
            }
        }
        if any {
            (self.sent, self.late, self.landed) = (None, None, crate::RowKind::Failed);
            (0..n).for_each(|slot| self.landing.land(slot));
        }
        any
    }
}

impl VecEnv for PlainClient {
    fn spec(&self) -> &Spec {
        &self.base.spec
    }

    fn check_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.base.check_together(slots, Some(begin))?;
        let has_options = options.is_some_and(|options| !options.is_empty());
        let each = slots.iter(self.base.spec.num_slots).zip(begin);
        each.into_iter()
            .try_for_each(|(slot, &begin)| self.slot_states.lives.check_reset(slot, begin, has_options))
    }

    fn check_send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.base.check_together(slots, None)?;
        if !self.is_untouched() {
            self.slot_states.lives.check_steps()?;
        }
        self.actions.store(slots, actions, self.slot_states.lives.pending())
    }

    fn send_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.check_reset(slots, begin, options)?;
        // All begin alike, because they are reset together.
        let begin = begin.first().copied().unwrap_or_default();
        if begin == Begin::Keep {
            self.depart(slots, Sent::Reset(begin));
            if !self.land_unreported(Sent::Reset(begin)) {
                self.land();
            }
            return Ok(());
        }
        self.revive()?;
        (0..self.base.spec.num_slots).for_each(|slot| self.slot_states.depart(slot, begin, None));
        self.depart(slots, Sent::Reset(begin));
        let posted = self.connection.as_mut().map_or(Ok(()), |connection| connection.reset());
        self.prepare();
        if let Err(broken) = posted {
            self.lose(&broken, Cause::Death);
        }
        Ok(())
    }

    fn set_next(&mut self, slots: &Slots, begin: &[Begin]) -> Result<()> {
        self.base.check_slots(slots)?;
        self.base.check_one_each(slots, begin)?;
        let each = slots.iter(self.base.spec.num_slots).zip(begin);
        each.into_iter().try_for_each(|(slot, &begin)| self.slot_states.lives.check_next(slot, begin))
    }

    fn send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.check_send(slots, actions)?;
        if self.is_untouched() {
            let lives = &mut self.slot_states.lives;
            (0..lives.len()).for_each(|slot| lives.began(slot, Begin::Own));
        }
        self.depart(slots, Sent::Step);
        if self.land_unreported(Sent::Step) {
            return Ok(());
        }
        let actions = &self.actions;
        let posted = self.connection.as_mut().map_or(Ok(()), |connection| connection.step(actions));
        self.prepare();
        if let Err(broken) = posted {
            self.lose(&broken, Cause::Death);
        }
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
        Err(self.unable(&Slots::List(vec![slot]), "save its state"))
    }

    fn load_slot(&mut self, slot: usize, _: Sections<'_>) -> Result<()> {
        Err(self.unable(&Slots::List(vec![slot]), "load a state"))
    }

    fn render(&mut self, slots: &Slots) -> Result<Vec<Frame>> {
        Err(self.unable(slots, "draw each env"))
    }

    /// `render` with the arguments that the envs take gives what the server's envs draw, which
    /// is one picture of all envs or whatever else they make of it.
    fn call(&mut self, slots: &Slots, call: &Call) -> Result<Vec<Value>> {
        self.base.check_slots(slots)?;
        let id = self.base.spec.id.clone();
        if call.kind != CallKind::Call || call.name != DRAW || !call.args.is_empty() {
            let why =
                format!("{id}: netenv calls nothing but '{DRAW}', with named arguments; not '{}'", call.name);
            return Err(Error::UnknownName(why));
        }
        if self.base.in_flight() > 0 {
            return Err(Error::Pending(format!("{id}: recv what is in flight before a picture is drawn")));
        }
        let Some(connection) = &mut self.connection else {
            return Err(Error::NeedsReset(format!(
                "{id}: the connection broke earlier: reset, which connects again"
            )));
        };
        let limit = self.limits.of(false);
        let time = limit.map_or(UNLIMITED, |limit| limit.time);
        let broken = match connection.render(&call.kwargs, &*self.config.pause, time) {
            Ok(picture) => return Ok(vec![picture; slots.len(self.base.spec.num_slots)]),
            Err(broken) => broken,
        };
        let (broken, cause) = match (broken, limit) {
            (BrokenConnection::Envs(interrupt), _) => {
                // What the server will answer belongs to nothing.
                let why = "the wait for a picture was interrupted".to_string();
                self.lose(&BrokenConnection::Garbage(why), Cause::Interrupt);
                return Err(interrupt);
            }
            (BrokenConnection::Silent(_), Some(limit)) => {
                (BrokenConnection::Garbage(limit.to_string()), Cause::Silence)
            }
            (broken, _) => (broken, Cause::Death),
        };
        self.lose(&broken, cause);
        let failures = (0..self.base.spec.num_slots).filter_map(|slot| {
            let failure = self.slot_states.take_unreported(slot)?;
            let mut error = self.slot_states.lose(slot, Sent::Step, None, (*failure).clone());
            error.failure.phase = Phase::Render;
            Some(error)
        });
        match failures.collect::<Vec<_>>() {
            // No episode has begun, so none is lost.
            none if none.is_empty() => {
                let at = &self.config.address;
                Err(Error::env(format!("the connection to {at} broke: {broken}")))
            }
            failures => Err(Error::Slots(failures)),
        }
    }

    fn allocations(&self) -> u64 {
        self.pool.allocations()
    }

    fn close(&mut self) -> Result<()> {
        if !self.base.close() {
            return Ok(());
        }
        self.landing.clear();
        self.sent = None;
        self.incoming = None;
        self.connection = None;
        Ok(())
    }
}
