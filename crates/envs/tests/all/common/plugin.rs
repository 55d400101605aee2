//! The built-in envs, and one with texts, through the plugin's table of
//! functions, as if from another library.

#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use envcore::abi::plugin::{export, load::Plugin, sys};
use envcore::{
    Array, Caps, Chunk, Env, Error, Failure, FromRow, Leaf, Options, Record, ResetArgs, Result, Row, RowsMut,
    Side, Source, SourceSpec, Space, Step, StepArgs, ToRow, Value, rng::Streams, wants_reset,
};

/// What it shows: a text, a ragged array and a number.
pub struct Words {
    text: String,
    heard: usize,
}

impl ToRow for Words {
    fn space() -> Result<Space> {
        Ok(Space::of([
            Leaf::text(64).named("text"),
            Leaf::ragged::<i16>(&[12]).named("lengths"),
            Leaf::real::<i32>(&[]).named("heard"),
        ]))
    }

    fn write(&self, row: &mut Row<'_>) {
        let lengths: Vec<i16> = self.text.split(' ').map(|word| word.len() as i16).collect();
        row.text(self.text.clone());
        row.ragged(Array::from_slice(&lengths));
        row.scalar(self.heard as i32);
    }
}

/// What it takes: a word and how often.
#[derive(Clone)]
pub struct Say {
    word: String,
    times: i64,
}

impl FromRow for Say {
    fn space() -> Result<Space> {
        Ok(Space::of([Leaf::text(8).named("word"), Leaf::discrete(3).named("times")]))
    }

    fn read(row: &mut envcore::ActRow<'_>) -> Self {
        let Value::Text(word) = row.value() else { unreachable!("the waist checked it") };
        Say { word: word.to_string(), times: row.scalar() }
    }
}

/// What it tells: the longest word so far.
pub struct Longest(String);

impl ToRow for Longest {
    fn space() -> Result<Space> {
        Ok(Space::of([Leaf::text(8).named("longest")]))
    }

    fn write(&self, row: &mut Row<'_>) {
        row.text(self.0.clone());
    }
}

/// Repeats what it is told, from a random word on; ends at ten words.
pub struct Echo {
    streams: Streams,
    text: String,
}

impl Echo {
    fn begin(&mut self) -> Words {
        self.text = format!("word{}", self.streams.rng().integers(0, 1000));
        self.words()
    }

    fn words(&self) -> Words {
        Words { text: self.text.clone(), heard: self.text.split(' ').count() }
    }
}

impl Env for Echo {
    type Config = ();
    type Obs = Words;
    type Act = Say;
    type Info = Longest;

    fn build(_: &(), seed: i64) -> Result<Self> {
        Ok(Echo { streams: Streams::new(seed), text: String::new() })
    }

    fn step(&mut self, a: &Say) -> Result<(Step<Self>, Record)> {
        if a.word == "süß" && a.times == 2 {
            return Err(Error::env("too sweet"));
        }
        (0..a.times).for_each(|_| self.text.extend([" ", &a.word]));
        let words = self.words();
        let done = words.heard >= 10;
        let longest = self.text.split(' ').max_by_key(|word| word.len()).unwrap_or_default();
        let mut record = Record::empty();
        if done {
            let deep = Options::new().with("words", vec![Value::from(longest), Value::None]);
            record.insert("end", Value::Map(deep));
        }
        let info = Longest(longest.chars().take(8).collect());
        Ok((Step::new(a.clone(), words, 0.25, info).terminated_if(done), record))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Words> {
        if wants_reset(is_done)? {
            self.streams.begin_own();
            return Ok(self.begin());
        }
        Ok(self.words())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<Words> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    const CAPS: Caps = Caps::empty();
}

/// Panics where no guard of an env's is: a bug of the plugin itself.
struct Rude(SourceSpec);

impl Source for Rude {
    fn spec(&self) -> &SourceSpec {
        &self.0
    }

    fn chunk(&self, _: usize, _: &[i64]) -> Result<Box<dyn Chunk>> {
        Ok(Box::new(RudeChunk))
    }
}

struct RudeChunk;

impl Chunk for RudeChunk {
    fn step(&mut self, _: Range<usize>, _: &[bool], _: StepArgs<'_>, _: &mut RowsMut<'_>, _: &mut Side) {
        panic!("a bug in a step");
    }

    fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, _: &mut Side) {
        resets.iter().for_each(|reset| rows.observation(reset.row).scalar(1u8));
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        panic!("a bug in a close");
    }
}

fn rude(entry: &envcore::Entry, _: &Options) -> Result<Box<dyn Source>> {
    Ok(Box::new(Rude(SourceSpec {
        id: entry.id.into(),
        observation: Leaf::real::<u8>(&[]).into(),
        action: Leaf::discrete(2).into(),
        info: Space::empty(),
        caps: Caps::ENV,
        autoreset: None,
        max_episode_steps: None,
        metadata: Options::new(),
        num_agents: 1,
        config: "null".into(),
    })))
}

static TABLE: LazyLock<Vec<envcore::Entry>> = LazyLock::new(|| {
    let echo = envcore::Entry::new::<Echo>("Echo-v0", "Repeats what it is told.").steps(9);
    let rude = envcore::Entry::custom("Rude-v0", "Panics.", rude);
    envs::TABLE.iter().copied().chain([echo, rude]).collect()
});

/// The table of functions.
pub fn raw() -> *const sys::Plugin {
    export::plugin(&TABLE, "the-tests", "1.2.3")
}

/// The plugin, as its host sees it.
pub fn plugin() -> &'static Plugin {
    static PLUGIN: OnceLock<Plugin> = OnceLock::new();
    // SAFETY: the table is this binary's own.
    PLUGIN.get_or_init(|| unsafe { Plugin::over(raw(), "here".into()) }.unwrap())
}

/// The source of this id by way of the plugin, with options for its config.
pub fn through_plugin(id: &str, options: &Options) -> Box<dyn Source> {
    let plugin = plugin();
    Box::new(plugin.source("the_tests", id, options).unwrap())
}
