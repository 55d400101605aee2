//! The Rust code of docs/how-do-i.md, which quotes pieces of this file.

use envcore::rng::{Rng, Streams};
use envcore::{
    Array, Call, Caps, Discrete, Env, Error, Event, Frame, FromRow, Leaf, Options, Property, Record, Result,
    Row, Space, Step, Text, ToRow, Value, state, wants_reset,
};
use serde::{Deserialize, Serialize};

// ---- actions ----

#[derive(Clone, FromRow)]
struct Drive {
    /// A Box of shape (2,) and float32.
    #[leaf(low = -1.0, high = 1.0)]
    wheels: [f32; 2],
    /// A Discrete(3).
    gear: Discrete<3>,
    /// A MultiDiscrete([2, 2]).
    #[leaf(low = 0, high = 1, discrete)]
    lamps: [i64; 2],
}

// ---- observations ----

/// What a robot hears: a text, and as many echoes as there are.
struct Heard {
    word: Text,
    echoes: Vec<f32>,
}

impl ToRow for Heard {
    fn space() -> Result<Space> {
        Ok(Space::of([
            Leaf::text(16).named("word"),
            // At most eight echoes. Each row has its own number.
            Leaf::ragged::<f32>(&[8]).named("echoes"),
        ]))
    }

    fn write(&self, row: &mut Row<'_>) {
        row.text(self.word.clone());
        row.ragged(Array::new(&[self.echoes.len()], &self.echoes).expect("as many echoes as told"));
    }
}

// ---- an env ----

/// Options.
#[derive(Clone, Serialize, Deserialize)]
struct BallConfig {
    /// Metres per second, each second.
    gravity: f64,
}

impl Default for BallConfig {
    fn default() -> Self {
        BallConfig { gravity: 9.8 }
    }
}

/// A ball that falls.
#[derive(Clone, Serialize, Deserialize)]
struct Ball {
    gravity: f64,
    height: f64,
    bounces: u32,
    bounced: Vec<f64>,
    streams: Streams,
    /// Battery, which ends episodes that the rules do not end.
    battery: u32,
}

impl Ball {
    fn begin(&mut self) -> f64 {
        self.height = self.streams.rng().uniform(5.0, 10.0);
        (self.bounces, self.battery) = (0, 100);
        self.height
    }
}

impl Env for Ball {
    type Config = BallConfig;
    type Obs = f64;
    type Act = Drive;
    type Info = ();

    const CAPS: Caps = Caps::SAVE
        .union(Caps::CALL)
        .union(Caps::EVENTS)
        .union(Caps::OPTIONS)
        .union(Caps::RENDER)
        .union(Caps::ANSI);

    fn build(config: &BallConfig, seed: i64) -> Result<Self> {
        if !(0.0..=100.0).contains(&config.gravity) {
            let why = format!("Ball-v0: gravity is a number from 0 to 100, not {}", config.gravity);
            return Err(Error::OptionValue(why));
        }
        let streams = Streams::new(seed);
        Ok(Ball {
            gravity: config.gravity,
            height: 0.0,
            bounces: 0,
            bounced: Vec::new(),
            streams,
            battery: 0,
        })
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<f64> {
        if !wants_reset(is_done)? {
            return Ok(self.height);
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<f64> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn step(&mut self, a: &Drive) -> Result<(Step<Self>, Record)> {
        self.height -= 0.05 * self.gravity;
        if self.height < 0.0 {
            self.bounced.push(self.height);
            self.bounces += 1;
            self.height = -self.height;
        }
        self.battery -= 1;
        let is_over = self.bounces == 3;
        let mut record = Record::empty();
        if is_over {
            record.insert("battery_left", i64::from(self.battery));
        }
        let step = Step::new(a.clone(), self.height, f64::from(a.wheels[0]), ());
        Ok((step.terminated_if(is_over).truncated_if(self.battery == 0), record))
    }

    fn properties(_: &BallConfig) -> Vec<Property> {
        vec![Property::writable("gravity"), Property::read_only("height")]
    }

    fn call(&mut self, call: &Call) -> Result<Value> {
        match call.name.as_str() {
            "gravity" => call.property(&mut self.gravity),
            "height" => call.property(&mut self.height),
            "kick" => {
                self.height += call.arg::<f64>(0)?;
                Ok(Value::from(self.height))
            }
            _ => Err(call.unknown()),
        }
    }

    fn events(&mut self) -> Vec<Event> {
        self.bounced.drain(..).map(|depth| Event::new("bounced").with(depth)).collect()
    }

    fn set_options(&mut self, options: &Options) -> Result<()> {
        for (name, value) in options.iter() {
            match (name, value) {
                ("gravity", Value::Float(gravity)) => self.gravity = *gravity,
                ("gravity", _) => {
                    return Err(Error::OptionValue("Ball-v0: gravity is a number".into()));
                }
                _ => {
                    let why = format!("Ball-v0: unknown option '{name}': a reset takes gravity");
                    return Err(Error::UnknownOption(why));
                }
            }
        }
        Ok(())
    }

    fn render(&mut self) -> Result<Frame> {
        const SIDE: usize = 64;
        let mut pixels = vec![255; SIDE * SIDE * 3];
        // Row 0 is the sky, ten metres up.
        let row = SIDE - 1 - (self.height * 6.0) as usize;
        let at = (row * SIDE + SIDE / 2) * 3;
        pixels[at..at + 3].copy_from_slice(&[200, 30, 30]);
        Frame::new(SIDE, SIDE, pixels)
    }

    fn ansi(&mut self) -> Result<String> {
        Ok(format!("{}o\n", " ".repeat(self.height as usize)))
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(self)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        *self = state::from_bytes(bytes)?;
        Ok(())
    }
}

const DRIVE: Drive = Drive { wheels: [0.5, 0.0], gear: Discrete(1), lamps: [0, 1] };

fn ball() -> Ball {
    let mut ball = Ball::build(&BallConfig::default(), 1).unwrap();
    ball.reset_with_index(3).unwrap();
    ball
}

#[test]
fn spaces_are_those_that_the_page_names() {
    let drive = Drive::space().unwrap();
    let leaves: Vec<_> = drive.leaves().iter().map(|leaf| leaf.as_fixed().unwrap()).collect();
    assert_eq!(leaves.iter().map(|leaf| leaf.shape.clone()).collect::<Vec<_>>(), [vec![2], vec![], vec![2]]);
    assert_eq!(leaves.iter().map(|leaf| leaf.discrete).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!((DRIVE.gear.0, DRIVE.lamps), (1, [0, 1]));
    let heard = Heard { word: Text::from("hello"), echoes: vec![0.5; 3] };
    assert_eq!((heard.word.to_string(), heard.echoes.len()), ("hello".to_string(), 3));
    assert_eq!(Heard::space().unwrap().leaves().len(), 2);
}

#[test]
fn an_index_is_the_episode_of_its_seed_and_history_does_not_matter() {
    let mut seeded = Ball::build(&BallConfig::default(), 3).unwrap();
    let mut other = ball();
    other.step(&DRIVE).unwrap();
    assert_eq!(seeded.reset(None).unwrap(), other.reset_with_index(3).unwrap());
    assert_eq!(Rng::new(3).uniform(5.0, 10.0), ball().height);
}

#[test]
fn a_ball_bounces_tells_of_it_and_ends() {
    let mut ball = ball();
    let (mut bounces, mut steps) = (0, 0);
    loop {
        let (step, record) = ball.step(&DRIVE).unwrap();
        bounces += ball.events().len();
        steps += 1;
        if step.is_done() {
            assert!(step.is_terminated && !step.is_truncated);
            assert_eq!(record.get("battery_left"), Some(&Value::from(100 - steps)));
            break;
        }
    }
    assert_eq!(bounces, 3);
}

#[test]
fn a_ball_is_drawn_where_it_is() {
    let mut ball = ball();
    ball.height = 10.0;
    assert_eq!(ball.ansi().unwrap(), "          o\n");
    let frame = ball.render().unwrap();
    let red: Vec<usize> = (0..64 * 64).filter(|k| frame.pixels()[3 * k] == 200).collect();
    assert_eq!(red, [3 * 64 + 32]);
}

#[test]
fn options_and_properties_change_gravity() {
    let mut ball = ball();
    ball.set_options(&Options::new().with("gravity", 1.6)).unwrap();
    assert_eq!(ball.call(&Call::get("gravity")).unwrap(), Value::Float(1.6));
    assert!(ball.set_options(&Options::new().with("wind", 1.6)).is_err());
    ball.call(&Call::set("gravity", 0.0)).unwrap();
    for left in (0..100).rev() {
        assert_eq!(ball.step(&DRIVE).unwrap().0.is_truncated, left == 0);
    }
    assert!(matches!(Ball::build(&BallConfig { gravity: -1.0 }, 1), Err(Error::OptionValue(_))));
}

#[test]
fn a_saved_ball_goes_on_alike() {
    let (mut one, mut other) = (ball(), Ball::build(&BallConfig::default(), 9).unwrap());
    one.step(&DRIVE).unwrap();
    other.load(&one.save().unwrap()).unwrap();
    assert_eq!(one.step(&DRIVE).unwrap().0.obs, other.step(&DRIVE).unwrap().0.obs);
}
