//! What every row must be, from bare envs in a naive loop: one env per slot,
//! build, reset, step, and Gymnasium's table of autoreset modes written out.
//! No runner, no `episode.rs`.

use envcore::{
    ActionBounds, Actions, AutoresetMode, BatchPool, Begin, Env, FromRow, Layout, Options, Row, RowKind,
    Slots, Space, ToRow, Value,
};

use super::{Cell, Seen, Told, columns, view};

/// Slots, one at a time.
pub trait Oracle {
    fn reset(&mut self, slot: usize, begin: Begin, options: Option<&Options>) -> Seen;
    fn set_next(&mut self, slot: usize, begin: Begin);
    fn step(&mut self, slot: usize, action: &[Value]) -> Seen;
}

/// The leaves that `write` writes.
pub fn written(space: &Space, write: impl FnOnce(&mut Row<'_>)) -> Vec<Cell> {
    let (observation, info) = (space.clone(), Space::empty());
    let layout = Layout { observation, info, finals: false, capacity: 1 };
    let mut pool = BatchPool::new(&layout).unwrap();
    let mut draft = pool.draft(Slots::All, 1, None).unwrap();
    write(&mut draft.rows_mut().observation(0));
    pool.finish(draft).observation.iter().map(|column| Cell::of(column, 0)).collect()
}

/// One action as the env takes it.
pub fn read<A: FromRow>(space: &Space, action: &[Value]) -> A {
    let mut actions = Actions::new("oracle", space, 1, ActionBounds::Env).unwrap();
    actions.store(&Slots::All, &view(&columns(space, &[action])), &[false]).unwrap();
    A::read(&mut actions.row(0))
}

/// Slots of an [`Env`].
pub struct Naive<E: Env> {
    config: E::Config,
    autoreset: AutoresetMode,
    limit: Option<u64>,
    statistics: bool,
    slots: Vec<Slot<E>>,
}

struct Slot<E> {
    env: E,
    over: bool,
    steps: u64,
    sum: f64,
    next: Begin,
    options: Options,
}

impl<E: Env> Naive<E> {
    /// `num_slots` slots, built from `seed`, `seed + 1`, …
    pub fn new(
        config: E::Config,
        num_slots: usize,
        seed: i64,
        autoreset: AutoresetMode,
        limit: Option<u64>,
    ) -> Self {
        let slot = |k: i64| Slot {
            env: E::build(&config, seed + k).unwrap(),
            over: false,
            steps: 0,
            sum: 0.0,
            next: Begin::Own,
            options: Options::new(),
        };
        let slots = (0..num_slots as i64).map(slot).collect();
        Naive { config, autoreset, limit, statistics: false, slots }
    }

    /// The same with episode statistics.
    pub fn with_statistics(mut self) -> Self {
        self.statistics = true;
        self
    }

    fn show(&self, obs: &E::Obs) -> Vec<Cell> {
        written(&E::observation_space(&self.config).unwrap(), |row| obs.write(row))
    }

    fn tell(&self, info: &E::Info) -> Told {
        let space = E::info_space(&self.config).unwrap();
        let names = space.leaves().iter().map(|leaf| leaf.name.clone());
        names.zip(written(&space, |row| info.write(row))).collect()
    }

    fn begin(&mut self, slot: usize, begin: Begin) -> (Vec<Cell>, Told) {
        let this = &mut self.slots[slot];
        if let Begin::Seed(seed) = begin {
            this.env = E::build(&self.config, seed).unwrap();
            if !this.options.is_empty() {
                this.env.set_options(&this.options).unwrap();
            }
        }
        let obs = match begin {
            Begin::Index(index) => this.env.reset_with_index(index as usize),
            _ => this.env.reset(None),
        }
        .unwrap();
        (this.over, this.steps, this.sum, this.next) = (false, 0, 0.0, Begin::Own);
        let info = this.env.info();
        (self.show(&obs), info.map(|info| self.tell(&info)).unwrap_or_default())
    }
}

impl<E: Env> Oracle for Naive<E> {
    fn reset(&mut self, slot: usize, begin: Begin, options: Option<&Options>) -> Seen {
        let this = &mut self.slots[slot];
        if begin == Begin::Keep {
            let obs = this.env.reset(Some(&vec![0])).unwrap();
            return Seen::quiet(RowKind::Kept, self.show(&obs), Told::new());
        }
        if let Some(options) = options {
            this.options.merge(options);
            this.env.set_options(options).unwrap();
        }
        let (observation, infos) = self.begin(slot, begin);
        Seen::quiet(RowKind::Reset, observation, infos)
    }

    fn set_next(&mut self, slot: usize, begin: Begin) {
        self.slots[slot].next = begin;
    }

    fn step(&mut self, slot: usize, action: &[Value]) -> Seen {
        let next = self.slots[slot].next;
        if self.slots[slot].over {
            assert_eq!(self.autoreset, AutoresetMode::NextStep, "the test stepped a slot that had ended");
            let (observation, infos) = self.begin(slot, next);
            return Seen::quiet(RowKind::Reset, observation, infos);
        }
        let act: E::Act = read(&E::action_space(&self.config).unwrap(), action);
        let this = &mut self.slots[slot];
        let (step, record) = this.env.step(&act).unwrap();
        this.steps += 1;
        this.sum += step.reward;
        let truncated = step.is_truncated || self.limit == Some(this.steps);
        let (steps, sum) = (this.steps, this.sum);
        this.over = step.is_terminated || truncated;
        let over = this.over;

        let mut seen = Seen::quiet(RowKind::Step, self.show(&step.obs), self.tell(&step.info));
        (seen.reward, seen.terminated, seen.truncated) =
            (step.reward.to_bits(), step.is_terminated, truncated);
        let declared = E::record_space(&self.config).unwrap();
        for (key, value) in record {
            let is_declared = declared.leaves().iter().any(|leaf| leaf.name == key);
            let (name, cell) = match value {
                Value::Float(value) if is_declared => (key.to_string(), Cell::float(value)),
                value => (format!("*{key}"), Cell::Loose(value)),
            };
            seen.infos.insert(name, cell);
        }
        if over && self.autoreset == AutoresetMode::SameStep {
            let (observation, infos) = self.begin(slot, next);
            seen.last = Some((
                std::mem::replace(&mut seen.observation, observation),
                std::mem::replace(&mut seen.infos, infos),
            ));
        }
        if over && self.statistics {
            add_statistics(&mut seen, sum, steps);
        }
        seen
    }
}

/// What a row tells of the episode that it ends.
pub fn add_statistics(seen: &mut Seen, sum: f64, steps: u64) {
    seen.infos.insert("episode.r".into(), Cell::float(sum));
    seen.infos.insert("episode.l".into(), Cell::int(steps as i64));
    seen.infos.insert("episode.t".into(), Cell::Loose(Value::None));
}

/// Odd's rules: count up by the move and the word's length; at 10 start over.
pub struct OddRules {
    counts: Vec<u8>,
    episodes: Vec<(f64, u64)>,
    /// The number by which each slot calls itself.
    names: Vec<usize>,
}

impl OddRules {
    pub fn new(names: Vec<usize>) -> Self {
        OddRules { counts: vec![0; names.len()], episodes: vec![(0.0, 0); names.len()], names }
    }

    fn show(&self, slot: usize) -> Vec<Cell> {
        let count = self.counts[slot];
        let items = vec![i32::from(count); usize::from(count % 5)];
        vec![
            Cell::Loose(Value::Array(envcore::Array::from_slice(&items))),
            Cell::Loose(format!("slot {} at {count}", self.names[slot]).into()),
            Cell::Bytes(vec![count]),
        ]
    }
}

impl Oracle for OddRules {
    fn reset(&mut self, slot: usize, begin: Begin, _options: Option<&Options>) -> Seen {
        let kind = if begin == Begin::Keep { RowKind::Kept } else { RowKind::Reset };
        Seen::quiet(kind, self.show(slot), Told::new())
    }

    fn set_next(&mut self, _slot: usize, _begin: Begin) {}

    fn step(&mut self, slot: usize, action: &[Value]) -> Seen {
        let [Value::Array(step), Value::Text(word)] = action else { panic!("not Odd's action: {action:?}") };
        let reached = self.counts[slot] + step.to_vec::<i64>().unwrap()[0] as u8 + word.len() as u8;
        let over = reached >= 10;
        self.counts[slot] = if over { 0 } else { reached };
        let mut seen = Seen::quiet(RowKind::Step, self.show(slot), Told::new());
        seen.infos.insert("thing".into(), Cell::Loose(Value::Int(reached.into())));
        if !word.is_empty() {
            seen.infos.insert("last_word".into(), Cell::Loose(word.as_str().into()));
        }
        (seen.reward, seen.terminated) = (f64::from(reached).to_bits(), over);
        let (sum, steps) = &mut self.episodes[slot];
        (*sum, *steps) = (*sum + f64::from(reached), *steps + 1);
        if over {
            seen.infos.insert("*reached".into(), Cell::Loose(Value::Int(reached.into())));
            let (sum, steps) = std::mem::take(&mut self.episodes[slot]);
            add_statistics(&mut seen, sum, steps);
        }
        seen
    }
}
