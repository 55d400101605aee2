//! [`Process`] as a [`VecEnv`].
//!
//! Above 400 lines because a vec env has sixteen functions, and each of them must
//! handle a worker that died.

use super::board::{Work, WorkEntry};
use super::messages::{Answer, PackedValue, Question, check_call, check_loose, open_frames, pack_loose};
use super::parent::Process;
use super::slot_states::Sent;
use super::wire::ToWorker;
use super::worker_pool::NoAnswer;
use crate::begin::Begin;
use crate::buffer::{Batch, ColumnIn, Slots};
use crate::call::Call;
use crate::caps::Caps;
use crate::episode::saved_life;
use crate::error::{Cause, Error, Failure, Phase, Result};
use crate::frame::Frame;
use crate::runner::remote_rows::Change;
use crate::saved::{Sections, SlotState};
use crate::space::{Options, Value};
use crate::vec_env::{Spec, VecEnv, Want};

/// A question that a worker was asked, and the rows of the request that it is about.
struct PendingQuestion {
    worker: usize,
    question: u64,
    rows: Vec<usize>,
}

impl Process {
    /// Asks each worker of `slots` about its own slots, which `question` gets by the
    /// worker's own numbers. Returns what was asked.
    fn question(
        &mut self,
        slots: &Slots,
        question: impl Fn(Vec<usize>, &[usize]) -> Question,
    ) -> Result<Vec<PendingQuestion>> {
        let mut rows = vec![Vec::new(); self.worker_pool.members.len()];
        for (row, slot) in slots.iter(self.base.spec.num_slots).enumerate() {
            rows[self.worker_pool.of(slot)].push(row);
        }
        let mut questions = Vec::new();
        for (worker, rows) in rows.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            let first = self.worker_pool.members[worker].slots.start;
            let own = rows.iter().map(|&row| slots.at(row) - first).collect();
            questions.push((worker, question(own, rows)));
        }
        // Collected results make room for questions in the rings.
        self.collect();
        match self.worker_pool.ask(questions) {
            Ok(asked) => Ok(asked
                .into_iter()
                .map(|(worker, question)| PendingQuestion {
                    worker,
                    question,
                    rows: std::mem::take(&mut rows[worker]),
                })
                .collect()),
            Err((_, NoAnswer::Failed(error) | NoAnswer::Stopped(error))) => Err(error),
            Err((worker, NoAnswer::Dead | NoAnswer::Silent(_))) => Err(self.dead(worker)),
        }
    }

    /// The answer to a question, or why there is none. `phase` is for the error.
    ///
    /// # Errors
    /// The user's wish to stop.
    pub(super) fn answer(&mut self, worker: usize, question: u64, phase: Phase) -> Result<Result<Answer>> {
        match self.await_answer(worker, question) {
            Ok(answer) => Ok(Ok(answer)),
            Err(NoAnswer::Stopped(stop)) => Err(stop),
            Err(NoAnswer::Failed(error)) => Ok(Err(error)),
            Err(NoAnswer::Silent(slot)) => {
                let (slot, text) = self.lose_silent_worker(worker, slot);
                let failure = Failure::new(phase, Cause::Silence, text);
                Ok(Err(Error::Slots(vec![self.rows.slot_states.lives.error(slot, failure)])))
            }
            Err(NoAnswer::Dead) => Ok(Err(self.dead(worker))),
        }
    }

    /// Asks as [`question`](Self::question) does, and waits for the answers. The questions
    /// change nothing that the parent's copy of the slots says.
    fn ask(
        &mut self,
        slots: &Slots,
        phase: Phase,
        question: impl Fn(Vec<usize>, &[usize]) -> Question,
    ) -> Result<Vec<(Vec<usize>, Answer)>> {
        let asked = self.question(slots, question)?;
        let mut answers = Ok(Vec::with_capacity(asked.len()));
        for (k, PendingQuestion { worker, question, rows }) in asked.iter().enumerate() {
            match (self.answer(*worker, *question, phase), &mut answers) {
                (Ok(Ok(answer)), Ok(answers)) => answers.push((rows.clone(), answer)),
                (Ok(Err(error)), Ok(_)) => answers = Err(error),
                (Ok(_), Err(_)) => {}
                // The user will not ask twice, so nobody waits for the remaining answers.
                (Err(stop), _) => {
                    let rest = &asked[k..];
                    rest.iter()
                        .for_each(|asked| self.worker_pool.drop_question(asked.worker, asked.question));
                    return Err(stop);
                }
            }
        }
        answers
    }

    /// Gives orders that change what the parent's copy of the slots says. The copy changes
    /// when the answer is received, even if a later call receives it.
    fn order(
        &mut self,
        slots: &Slots,
        phase: Phase,
        question: impl Fn(Vec<usize>, &[usize]) -> Question,
        change: impl Fn(&[usize]) -> Change,
    ) -> Result<()> {
        for PendingQuestion { worker, question, rows } in self.question(slots, question)? {
            self.add_pending(worker, question, phase, change(&rows));
        }
        self.settle()?
    }

    /// The error for a worker that cannot answer.
    fn dead(&mut self, worker: usize) -> Error {
        if self.worker_pool.members[worker].live.is_some() {
            return Error::env(self.lose_worker(worker, None));
        }
        let slots = &self.worker_pool.members[worker].slots;
        Error::NeedsReset(format!(
            "{}: the worker of envs {} to {} died earlier: reset them, which starts it again",
            self.base.spec.id,
            slots.start,
            slots.end - 1
        ))
    }

    /// Asks as [`ask`](Self::ask) does, and returns the answers' values in row order.
    fn ask_each<T>(
        &mut self,
        slots: &Slots,
        phase: Phase,
        question: impl Fn(Vec<usize>, &[usize]) -> Question,
        mut values: impl FnMut(&Self, Answer) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        let mut all: Vec<Option<T>> = (0..slots.len(self.base.spec.num_slots)).map(|_| None).collect();
        for (rows, answer) in self.ask(slots, phase, question)? {
            for (row, value) in rows.into_iter().zip(values(self, answer)?) {
                all[row] = Some(value);
            }
        }
        self.worker_pool.check_stopped()?;
        all.into_iter().map(|value| value.ok_or_else(|| Error::env("a worker answered too little"))).collect()
    }

    /// Checks and stores `actions`. Returns the columns that are not of fixed shape, as
    /// they are sent.
    fn accept(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<Vec<Vec<PackedValue>>> {
        self.base.check_slots(slots)?;
        self.check_chunks(slots, None)?;
        self.settle_earlier()?;
        let lives = &self.rows.slot_states.lives;
        slots.iter(lives.len()).try_for_each(|slot| lives.check_step(slot))?;
        self.actions.store(slots, actions, lives.pending())?;
        self.actions.copy_to(slots, &self.told);
        let loose = pack_loose(actions, &*self.worker_pool.host);
        // The user may have pressed Ctrl-C meanwhile, which is no fault of the action.
        self.worker_pool.check_stopped()?;
        check_loose(&loose, &self.base.spec.id, slots)?;
        Ok(loose)
    }

    /// Receives the answers that earlier calls have left.
    fn settle_earlier(&mut self) -> Result<()> {
        // Earlier calls have raised the errors of their own orders.
        self.settle().map(drop)
    }
}

impl VecEnv for Process {
    fn spec(&self) -> &Spec {
        &self.base.spec
    }

    fn check_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.base.check_slots(slots)?;
        self.base.check_one_each(slots, begin)?;
        self.check_chunks(slots, Some(begin))?;
        self.settle_earlier()?;
        let n = self.base.spec.num_slots;
        let options = options.filter(|options| !options.is_empty());
        for (slot, &begin) in slots.iter(n).zip(begin) {
            self.rows.slot_states.lives.check_reset(slot, begin, options.is_some())?;
        }
        let Some(options) = options else { return Ok(()) };
        let packed = PackedValue::options(options, &*self.worker_pool.host);
        self.worker_pool.check_stopped()?;
        if let Some(why) = packed.trouble() {
            return Err(Error::Argument(format!("an option cannot go to another process: {why}")));
        }
        // Workers that died check their options once they run again.
        let asked = |(slot, begin): &(usize, &Begin)| {
            let live = self.worker_pool.members[self.worker_pool.of(*slot)].live.is_some();
            **begin != Begin::Keep && live
        };
        let (slots, begin): (Vec<usize>, Vec<Begin>) = slots.iter(n).zip(begin).filter(asked).unzip();
        let host = self.worker_pool.host.clone();
        self.ask(&Slots::List(slots), Phase::Reset, |own, rows| {
            let begin = rows.iter().map(|&row| begin[row]).collect();
            Question::CheckReset(own, begin, PackedValue::options(options, &*host))
        })?;
        Ok(())
    }

    fn check_send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        self.accept(slots, actions).map(drop)
    }

    fn send_reset(&mut self, slots: &Slots, begin: &[Begin], options: Option<&Options>) -> Result<()> {
        self.check_reset(slots, begin, options)?;
        let n = self.base.spec.num_slots;
        let anew = slots.iter(n).zip(begin).filter(|(_, begin)| **begin != Begin::Keep);
        let lost = self.revive(anew.map(|(slot, _)| slot).collect::<Vec<_>>().into_iter())?;
        let options = options.filter(|options| !options.is_empty());
        self.rows.depart(&mut self.base, slots, |row| Sent::Reset(begin[row]));
        let mut given = Vec::new();
        for (slot, &begin) in slots.iter(n).zip(begin) {
            self.worker_pool.board().set_begin(slot, begin);
            let own = self.options_of(slot, options, begin);
            self.rows.slot_states.depart(slot, begin, options);
            given.push(own);
        }
        let rest = self.rows.land_unreported(slots, &self.actions);
        let rest = self.land_lost(rest, lost);
        let host = self.worker_pool.host.clone();
        let mut of = slots.iter(n).zip(&given).collect::<Vec<_>>();
        of.retain(|(slot, _)| self.is_in_flight(*slot));
        let mut at = 0;
        for (worker, run) in self.runs(&rest, self.most_together()) {
            // Consecutive slots with the same options share an entry.
            let end = at + run.len();
            while at < end {
                let options = of[at].1;
                let same = of[at..end].iter().take_while(|(_, o)| *o == options).count();
                let (first, has_message) = (of[at].0, options.is_some());
                self.worker_pool
                    .post(worker, WorkEntry { work: Work::Reset, has_message, first, count: same });
                if let Some(options) = options {
                    self.worker_pool.wake_if_asleep(worker);
                    self.worker_pool
                        .send_message(worker, &ToWorker::Options(PackedValue::options(options, &*host)));
                }
                at += same;
            }
        }
        self.wake_workers_of(&rest, n);
        Ok(())
    }

    fn set_next(&mut self, slots: &Slots, begin: &[Begin]) -> Result<()> {
        self.base.check_slots(slots)?;
        self.base.check_one_each(slots, begin)?;
        self.settle_earlier()?;
        let n = self.base.spec.num_slots;
        for (slot, &begin) in slots.iter(n).zip(begin) {
            self.rows.slot_states.lives.check_next(slot, begin)?;
        }
        self.order(
            slots,
            Phase::Reset,
            |own, rows| Question::SetNext(own, rows.iter().map(|&row| begin[row]).collect()),
            |rows| Change::Next(rows.iter().map(|&row| (slots.at(row), begin[row])).collect()),
        )
    }

    fn send(&mut self, slots: &Slots, actions: &[ColumnIn<'_>]) -> Result<()> {
        let mut loose = self.accept(slots, actions)?;
        let whole = self.prepare(slots)?;
        self.rows.depart(&mut self.base, slots, |_| Sent::Step);
        let rest = self.rows.land_unreported(slots, &self.actions);
        if rest == *slots {
            self.post_steps(slots, loose, whole);
            return Ok(());
        }
        self.rows.retain_in_flight(slots, &mut loose);
        self.post_steps(&rest, loose, false);
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
        let slots = Slots::List(vec![slot]);
        self.base.check_slots(&slots)?;
        self.base.spec.caps.require(Caps::SAVE, &self.base.spec.id, "save its state")?;
        self.settle_earlier()?;
        let states = self.ask_each(
            &slots,
            Phase::Save,
            |own, _| Question::Save(own[0]),
            |_, answer| match answer {
                Answer::State(state) => Ok(vec![state]),
                _ => Ok(Vec::new()),
            },
        );
        let states = match states {
            // The worker was found dead just now; report it like one found dead earlier.
            Err(Error::Env(end)) if self.worker_pool.members[self.worker_pool.of(slot)].live.is_none() => {
                let id = &self.base.spec.id;
                return Err(Error::NeedsReset(format!("{id}: env {slot} is lost, reset it: {end}")));
            }
            states => states?,
        };
        states.into_iter().next().ok_or_else(|| Error::env("a worker saved nothing"))
    }

    fn load_slot(&mut self, slot: usize, state: Sections<'_>) -> Result<()> {
        let slots = Slots::List(vec![slot]);
        self.base.check_slots(&slots)?;
        self.base.spec.caps.require(Caps::SAVE, &self.base.spec.id, "load a state")?;
        self.settle_earlier()?;
        if let Some((_, error)) = self.revive(std::iter::once(slot))?.into_iter().next() {
            return Err(error);
        }
        self.order(
            &slots,
            Phase::Load,
            |own, _| Question::Load(own[0], state.to_state()),
            |_| Change::Life(slot, saved_life(state).map(Box::new)),
        )
    }

    fn render(&mut self, slots: &Slots) -> Result<Vec<Frame>> {
        self.base.check_slots(slots)?;
        self.base.spec.caps.require(Caps::RENDER, &self.base.spec.id, "draw a picture")?;
        self.settle_earlier()?;
        let lives = &self.rows.slot_states.lives;
        slots.iter(lives.len()).try_for_each(|slot| lives.check_begun(slot, "shows nothing"))?;
        let frames = |_: &Self, answer| match answer {
            Answer::Frames(frames) => open_frames(frames),
            _ => Ok(Vec::new()),
        };
        self.ask_each(slots, Phase::Render, |own, _| Question::Render(own), frames)
    }

    fn call(&mut self, slots: &Slots, call: &Call) -> Result<Vec<Value>> {
        self.base.check_slots(slots)?;
        let id = &self.base.spec.id;
        self.base.spec.caps.require(Caps::CALL, id, &format!("call anything by name ('{}')", call.name))?;
        let host = self.worker_pool.host.clone();
        let checked = check_call(call, &*host, id);
        self.worker_pool.check_stopped()?;
        checked?;
        let values = |this: &Self, answer| match answer {
            Answer::Values(values) => {
                values.into_iter().map(|value| value.open(&*this.worker_pool.host)).collect()
            }
            _ => Ok(Vec::new()),
        };
        self.ask_each(slots, Phase::Call, |own, _| Question::call(own, call, &*host), values)
    }

    fn allocations(&self) -> u64 {
        self.own_allocations() + self.worker_pool.arena.allocations()
    }

    fn close(&mut self) -> Result<()> {
        if !self.base.close() {
            return Ok(());
        }
        self.forget();
        let timeout = self.timeout();
        let mut errors = self.worker_pool.close(timeout);
        if errors.is_empty() {
            return Ok(());
        }
        // The failures of several workers become one error.
        let mut failures = Vec::new();
        errors.retain_mut(|error| match error {
            Error::Slots(more) => {
                failures.append(more);
                false
            }
            _ => true,
        });
        match errors.into_iter().next() {
            Some(error) => Err(error),
            None => Err(Error::Slots(failures)),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.close();
    }
}
