//! The rules.

use envcore::rng::{Rng, Streams};
use envcore::{Caps, Config, Discrete, Env, Error, Frame, Record, Result, Step, state, wants_reset};
use serde::{Deserialize, Serialize};

use super::draw;

/// The cards of a suit.
const DECK: [u8; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10];
const MOST: u8 = 21;
/// From this sum on the dealer takes no card.
const DEALER_STICKS: u8 = 17;

/// Blackjack's options.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct BlackjackConfig {
    /// Whether a win by a natural is worth 1.5. Without effect under `sab`.
    pub natural: bool,
    /// Whether Sutton and Barto's rule for naturals holds.
    pub sab: bool,
}

impl Default for BlackjackConfig {
    /// As Gymnasium registers the env.
    fn default() -> Self {
        BlackjackConfig { natural: false, sab: true }
    }
}

/// The environment; see the module.
#[derive(Clone, Serialize, Deserialize)]
pub struct Blackjack {
    natural: bool,
    sab: bool,
    streams: Streams,
    dealer: Hand,
    player: Hand,
    /// How the dealer's open card looks: its suit, and of a ten which one it is.
    face: (u8, u8),
}

/// Some cards.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Hand {
    first: u8,
    count: u8,
    /// The sum, with aces as 1.
    sum: u8,
    has_ace: bool,
}

impl Hand {
    fn drawn(rng: &mut Rng) -> Self {
        let mut hand = Hand::default();
        hand.draw(rng);
        hand.first = hand.sum;
        hand.draw(rng);
        hand
    }

    #[inline]
    fn draw(&mut self, rng: &mut Rng) {
        let card = DECK[rng.choice(DECK.len())];
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(card);
        self.has_ace |= card == 1;
    }

    fn has_usable_ace(self) -> bool {
        self.has_ace && self.sum.saturating_add(10) <= MOST
    }

    /// The sum, with a usable ace as 11.
    fn best_sum(self) -> u8 {
        if self.has_usable_ace() { self.sum + 10 } else { self.sum }
    }

    fn is_bust(self) -> bool {
        self.best_sum() > MOST
    }

    /// What decides who wins.
    fn score(self) -> u8 {
        if self.is_bust() { 0 } else { self.best_sum() }
    }

    fn is_natural(self) -> bool {
        self.count == 2 && self.has_ace && self.best_sum() == MOST
    }
}

impl Blackjack {
    fn observation(&self) -> <Self as Env>::Obs {
        let ace = i64::from(self.player.has_usable_ace());
        (Discrete(self.player.best_sum().into()), Discrete(self.dealer.first.into()), Discrete(ace))
    }

    fn begin(&mut self) -> <Self as Env>::Obs {
        let rng = self.streams.rng();
        self.dealer = Hand::drawn(rng);
        self.player = Hand::drawn(rng);
        let suit = rng.choice(4) as u8;
        // Every open ten is a jack, a queen or a king.
        let ten = if self.dealer.first == 10 { rng.choice(3) as u8 } else { 0 };
        self.face = (suit, ten);
        self.observation()
    }

    /// Plays the dealer's hand, and gives the reward.
    fn settle(&mut self) -> f64 {
        while self.dealer.best_sum() < DEALER_STICKS {
            self.dealer.draw(self.streams.rng());
        }
        let reward = match self.player.score().cmp(&self.dealer.score()) {
            std::cmp::Ordering::Less => -1.0,
            std::cmp::Ordering::Equal => 0.0,
            std::cmp::Ordering::Greater => 1.0,
        };
        match (self.sab, self.natural) {
            (true, _) if self.player.is_natural() && !self.dealer.is_natural() => 1.0,
            (false, true) if self.player.is_natural() && reward == 1.0 => 1.5,
            _ => reward,
        }
    }
}

impl Env for Blackjack {
    type Config = BlackjackConfig;
    type Obs = (Discrete<32>, Discrete<11>, Discrete<2>);
    type Act = Discrete<2>;
    type Info = ();

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::BRIEF);

    fn build(config: &BlackjackConfig, seed: i64) -> Result<Self> {
        let &BlackjackConfig { natural, sab } = config;
        let (dealer, player) = (Hand::default(), Hand::default());
        Ok(Blackjack { natural, sab, streams: Streams::new(seed), dealer, player, face: (0, 0) })
    }

    #[inline(always)]
    fn step(&mut self, a: &Discrete<2>) -> Result<(Step<Self>, Record)> {
        let (reward, over) = if a.0 == 1 {
            self.player.draw(self.streams.rng());
            let bust = self.player.is_bust();
            (if bust { -1.0 } else { 0.0 }, bust)
        } else {
            (self.settle(), true)
        };
        Ok((Step::new(*a, self.observation(), reward, ()).terminated_if(over), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Self::Obs> {
        if !wants_reset(is_done)? {
            return Ok(self.observation());
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<Self::Obs> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn render(&mut self) -> Result<Frame> {
        let Blackjack { player, dealer, face, .. } = self;
        draw::table(player.best_sum(), player.has_usable_ace(), dealer.first, *face)
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(self)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let loaded: Self = state::from_bytes(bytes)?;
        let Blackjack { dealer, player, face, .. } = &loaded;
        if dealer.first > 10 || dealer.sum > 31 || player.sum > 31 || face.0 > 3 || face.1 > 2 {
            return Err(Error::State(format!("{player:?} against {dealer:?} is no game")));
        }
        *self = loaded;
        Ok(())
    }
}
