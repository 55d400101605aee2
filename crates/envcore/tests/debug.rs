//! [`VecConfig::debug`]: which rows break their space, and of which slots that is said.

use envcore::{
    Array, AutoresetMode, Batch, Begin, Caps, ColumnIn, Env, EnvSource, Error, Leaf, Record, Result, Row,
    Serial, Slots, Space, Step, ToRow, VecConfig, VecEnv, Want, wants_reset,
};

/// What an env does, by the action or the index of the episode.
const SOUND: i64 = 0;
const OUT_OF_BOUNDS: i64 = 1;
const LONG_TEXT: i64 = 2;
const MANY_ECHOES: i64 = 3;
const ERROR: i64 = 4;
const END: i64 = 5;
const TELLS: i64 = 6;
const TELLS_WRONG: i64 = 7;

/// Does what it is told. Zeros are in none of its bounds.
struct Obedient;

struct Shown(i64);

impl ToRow for Shown {
    fn space() -> Result<Space> {
        Ok(Space::of([
            Leaf::real::<f32>(&[2]).bounded_by(&[1f32, 1.0], &[2f32, 5.0]).named("pair"),
            Leaf::text(3).named("word"),
            Leaf::ragged::<f32>(&[2]).named("echoes"),
        ]))
    }

    fn write(&self, row: &mut Row<'_>) {
        let what = self.0;
        // 4 is within the bounds of the second element alone.
        [1.5f32, if what == OUT_OF_BOUNDS { 6.0 } else { 4.0 }].write(row);
        row.text(if what == LONG_TEXT { "long" } else { "abc" });
        let echoes = vec![1f32; if what == MANY_ECHOES { 3 } else { 2 }];
        row.ragged(Array::new(&[echoes.len()], &echoes).unwrap());
    }
}

#[derive(Default)]
struct Told(Option<f32>);

impl ToRow for Told {
    fn space() -> Result<Space> {
        Ok(Space::of([Leaf::real::<f32>(&[]).bounded(1.0, 2.0).named("told")]))
    }

    fn write(&self, row: &mut Row<'_>) {
        match self.0 {
            Some(value) => row.scalar(value),
            None => row.skip(),
        }
    }
}

impl Env for Obedient {
    type Config = ();
    type Obs = Shown;
    type Act = i64;
    type Info = Told;

    // Slots that are brief are stepped in one call.
    const CAPS: Caps = Caps::BRIEF;

    fn build(_: &(), _seed: i64) -> Result<Self> {
        Ok(Obedient)
    }

    fn action_space(_: &()) -> Result<Space> {
        Ok(Leaf::discrete(8).into())
    }

    fn step(&mut self, a: &i64) -> Result<(Step<Self>, Record)> {
        let info = match *a {
            ERROR => return Err(Error::Argument("as it was told".into())),
            TELLS => Told(Some(1.5)),
            TELLS_WRONG => Told(Some(3.0)),
            _ => Told(None),
        };
        let step = Step::new(*a, Shown(*a), 0.0, info).terminated_if(*a == END);
        Ok((step, Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Shown> {
        wants_reset(is_done).map(|_| Shown(SOUND))
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<Shown> {
        if ix as i64 == ERROR { Err(Error::Argument("as it was told".into())) } else { Ok(Shown(ix as i64)) }
    }
}

fn envs(num_slots: usize, autoreset: AutoresetMode) -> Serial {
    let source = EnvSource::<Obedient>::new("Obedient-v0", ()).unwrap();
    let autoreset = Some(autoreset);
    let config = VecConfig { num_slots, autoreset, debug: true, ..VecConfig::default() };
    Serial::new(&source, config).unwrap()
}

fn begin(envs: &mut Serial, with: &[i64]) -> Box<Batch> {
    let begins: Vec<Begin> = with.iter().map(|ix| Begin::Index(*ix as u64)).collect();
    envs.send_reset(&Slots::All, &begins, None).unwrap();
    envs.recv(Want::all()).unwrap().unwrap()
}

fn step(envs: &mut Serial, actions: &[i64]) -> Box<Batch> {
    let shape = [actions.len()];
    envs.step(&Slots::All, &[ColumnIn::scalars(actions, &shape)], Want::all()).unwrap().unwrap()
}

/// The slots that failed, and why.
fn failed(batch: &Batch) -> Vec<(usize, String)> {
    batch.failures.iter().map(|error| (error.slot, error.failure.message.clone())).collect()
}

#[test]
fn each_leaf_is_held_to_its_own_bounds() {
    for (what, said) in [
        (OUT_OF_BOUNDS, "observation leaf 'pair' has 6.0 at [1], outside 1.0 to 5.0"),
        (LONG_TEXT, "observation leaf 'word': a text of 4 characters where at most 3 fit"),
        (MANY_ECHOES, "observation leaf 'echoes': shape [3] is not within [2]"),
        (TELLS_WRONG, "info leaf 'told' is 3.0, outside 1.0 to 2.0"),
    ] {
        let mut envs = envs(3, AutoresetMode::NextStep);
        assert_eq!(failed(&begin(&mut envs, &[SOUND; 3])), []);
        let told = failed(&step(&mut envs, &[SOUND, what, SOUND]));
        assert_eq!(told, [(1, format!("{said}: mend the env, or its space"))]);
    }
}

#[test]
fn what_is_not_told_and_rows_without_a_step_are_not_looked_at() {
    for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep] {
        let mut envs = envs(3, mode);
        assert_eq!(failed(&begin(&mut envs, &[SOUND; 3])), []);
        for actions in [[TELLS, SOUND, END], [SOUND, END, SOUND], [TELLS, TELLS, TELLS], [END, SOUND, TELLS]]
        {
            assert_eq!(failed(&step(&mut envs, &actions)), []);
        }
    }
    // The row of slot 2, which awaits its reset, is seen beside a bad one.
    let mut envs = envs(3, AutoresetMode::NextStep);
    begin(&mut envs, &[SOUND; 3]);
    step(&mut envs, &[SOUND, SOUND, END]);
    let slots: Vec<usize> =
        failed(&step(&mut envs, &[SOUND, OUT_OF_BOUNDS, SOUND])).iter().map(|f| f.0).collect();
    assert_eq!(slots, [1]);
}

#[test]
fn an_envs_own_error_is_told_once_and_failures_are_in_the_order_of_slots() {
    let own = |slot: usize| (slot, "as it was told".to_string());
    let check = |told: Vec<(usize, String)>| {
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].0 == 0 && told[0].1.contains("'pair'"), "{told:?}");
        assert_eq!(told[1], own(1));
        assert!(told[2].0 == 2 && told[2].1.contains("'word'"), "{told:?}");
    };
    let mut stepped = envs(3, AutoresetMode::NextStep);
    begin(&mut stepped, &[SOUND; 3]);
    check(failed(&step(&mut stepped, &[OUT_OF_BOUNDS, ERROR, LONG_TEXT])));
    check(failed(&begin(&mut envs(3, AutoresetMode::NextStep), &[OUT_OF_BOUNDS, ERROR, LONG_TEXT])));
}
