//! A game as an [`Env`].

use envcore::rng::Streams;
use envcore::{Caps, Discrete, Env, Error, Frame, Leaf, Record, Result, Space, Step, state, wants_reset};

use super::board::MinAtarSeen;
use super::config::MinAtarConfig;
use super::draw;
use super::game::{MinAtarGame, MinAtarMove, MinAtarTurn};

/// The environment of game `G`; see the module.
pub struct MinAtar<G> {
    game: G,
    streams: Streams,
    /// What a sticky step plays again.
    last: MinAtarMove,
    stickiness: f64,
    ramps: bool,
    /// Whether actions stand for the game's own moves alone.
    is_minimal: bool,
}

impl<G: MinAtarGame> MinAtar<G> {
    fn begin(&mut self) -> MinAtarSeen<G::Channels> {
        self.last = MinAtarMove::Stay;
        self.game = G::begin(self.streams.rng());
        self.seen()
    }

    #[inline]
    fn seen(&self) -> MinAtarSeen<G::Channels> {
        MinAtarSeen(self.game.channels())
    }
}

/// The moves that actions stand for.
#[inline]
fn moves<G: MinAtarGame>(is_minimal: bool) -> &'static [MinAtarMove] {
    if is_minimal { G::MOVES } else { MinAtarMove::ALL }
}

impl<G: MinAtarGame> Env for MinAtar<G> {
    type Config = MinAtarConfig;
    type Obs = MinAtarSeen<G::Channels>;
    type Act = Discrete<6>;
    type Info = ();

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::ANSI).union(Caps::BRIEF);

    fn build(config: &MinAtarConfig, seed: i64) -> Result<Self> {
        let streams = Streams::new(seed);
        Ok(MinAtar {
            // A state to be replaced by the first reset, drawn from a stream of its own.
            game: G::begin(streams.clone().rng()),
            streams,
            last: MinAtarMove::Stay,
            stickiness: config.stickiness()?,
            ramps: config.difficulty_ramping,
            is_minimal: config.is_minimal(),
        })
    }

    fn action_space(config: &MinAtarConfig) -> Result<Space> {
        Ok(Leaf::discrete(moves::<G>(config.is_minimal()).len() as u64).into())
    }

    #[inline(always)]
    fn step(&mut self, a: &Discrete<6>) -> Result<(Step<Self>, Record)> {
        let rng = self.streams.rng();
        if rng.random() >= self.stickiness {
            // An action that nobody has checked may be any number.
            self.last = moves::<G>(self.is_minimal).get(a.0 as usize).copied().unwrap_or(MinAtarMove::Stay);
        }
        let MinAtarTurn { reward, is_over } = self.game.play(self.last, self.ramps, rng);
        let step = Step::new(*a, self.seen(), reward.into(), ());
        Ok((step.terminated_if(is_over), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Self::Obs> {
        if !wants_reset(is_done)? {
            return Ok(self.seen());
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<Self::Obs> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn reseed(&mut self, _config: &MinAtarConfig, seed: i64) -> Result<()> {
        self.streams = Streams::new(seed);
        Ok(())
    }

    fn render(&mut self) -> Result<Frame> {
        draw::picture(G::LOOKS, self.game.channels())
    }

    fn ansi(&mut self) -> Result<String> {
        Ok(draw::text(G::LOOKS, self.game.channels()))
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(&(&self.streams, self.last, &self.game))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let (streams, last, game): (Streams, MinAtarMove, G) = state::from_bytes(bytes)?;
        if !game.is_sound() {
            return Err(Error::State("no episode of this game has it".into()));
        }
        (self.streams, self.last, self.game) = (streams, last, game);
        Ok(())
    }
}
