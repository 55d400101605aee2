//! What the agent is to do, beside reaching a goal, and what becomes of the episode.

use envcore::rng::Rng;
use serde::{Deserialize, Serialize};

use super::cell::{GridCell, Thing};
use super::world::{Area, DONE, DROP, FORWARD, GridWorld, LEFT, PICK_UP, TOGGLE, Verdict};

/// The most balls that roll about.
pub(super) const MAX_BALLS: usize = 8;

/// How often a ball looks for a field to roll to.
const BALL_TRIES: u32 = 100;

/// An episode's task. Fields are given by their numbers, things by their codes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Aim {
    /// Reach a goal.
    Goal,
    /// Open the door.
    Open { door: u16 },
    /// Pick the thing up.
    PickUp { thing: u8 },
    /// Pick the thing up, and nothing else before.
    Fetch { thing: u8 },
    /// Say "done" beside the field.
    Beside { place: u16 },
    /// Put the thing beside the field, and touch nothing else.
    PutNear { thing: u8, place: u16 },
    /// Open the red door, then the blue one.
    RedThenBlue { red: u16, blue: u16 },
    /// Walk to the right one of two fields. To pick up is to toggle.
    WalkTo { right: u16, wrong: u16 },
    /// Reach a goal, and run into nothing. The balls roll about; the agent only turns and walks.
    Dodge { balls: [u16; MAX_BALLS], count: u8 },
}

impl Aim {
    /// The fields that the task names.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        let (places, count) = match *self {
            Aim::Goal | Aim::PickUp { .. } | Aim::Fetch { .. } => ([0; MAX_BALLS], 0),
            Aim::Open { door: place } | Aim::Beside { place } | Aim::PutNear { place, .. } => {
                ([place; MAX_BALLS], 1)
            }
            Aim::RedThenBlue { red: one, blue: other } | Aim::WalkTo { right: one, wrong: other } => {
                let mut places = [one; MAX_BALLS];
                places[1] = other;
                (places, 2)
            }
            Aim::Dodge { balls, count } => (balls, usize::from(count)),
        };
        places.into_iter().take(count).map(usize::from)
    }
}

impl GridWorld {
    /// Plays one action.
    #[inline]
    pub(super) fn play(&mut self, action: u8, rng: &mut Rng) -> Verdict {
        self.steps += 1;
        match self.aim {
            Aim::Goal => self.act(action),
            Aim::Open { door } => {
                let verdict = self.act(action);
                let is_open = action == TOGGLE && self.at(door.into()).is_open_door();
                if is_open { self.won() } else { verdict }
            }
            Aim::PickUp { thing } => {
                let verdict = self.act(action);
                let is_held = action == PICK_UP && self.carried.code() == thing;
                if is_held { self.won() } else { verdict }
            }
            Aim::Fetch { thing } => {
                let verdict = self.act(action);
                match self.carried {
                    GridCell::EMPTY => verdict,
                    held if held.code() == thing => self.won(),
                    _ => Verdict::OVER,
                }
            }
            Aim::Beside { place } => {
                let verdict = self.act(action);
                match action {
                    DONE if self.is_beside(place.into()) => self.won(),
                    DONE | TOGGLE => Verdict::OVER,
                    _ => verdict,
                }
            }
            Aim::PutNear { thing, place } => self.put_near(action, thing, place.into()),
            Aim::RedThenBlue { red, blue } => {
                let was_open = self.at(red.into()).is_open_door();
                let verdict = self.act(action);
                match self.at(blue.into()).is_open_door() {
                    true if was_open => self.won(),
                    true => Verdict::OVER,
                    false => verdict,
                }
            }
            Aim::WalkTo { right, wrong } => {
                let verdict = self.act(if action == PICK_UP { TOGGLE } else { action });
                match self.agent {
                    agent if agent == usize::from(right) => self.won(),
                    agent if agent == usize::from(wrong) => Verdict::OVER,
                    _ => verdict,
                }
            }
            Aim::Dodge { balls, count } => self.dodge(action, balls, count, rng),
        }
    }

    /// Whether the agent is on one of the four fields around `place`.
    fn is_beside(&self, place: usize) -> bool {
        (0..4).any(|facing| place.wrapping_add_signed(self.way(facing)) == self.agent)
    }

    fn put_near(&mut self, action: u8, thing: u8, place: usize) -> Verdict {
        let before = self.carried;
        let verdict = self.act(action);
        let holds = self.carried != GridCell::EMPTY;
        match action {
            PICK_UP if holds && self.carried.code() != thing => Verdict::OVER,
            DROP if before != GridCell::EMPTY => {
                let ((x, y), (to_x, to_y)) = (self.spot(self.front()), self.spot(place));
                let is_near = (x - to_x).abs() <= 1 && (y - to_y).abs() <= 1;
                if !holds && is_near { self.won() } else { Verdict::OVER }
            }
            _ => verdict,
        }
    }

    fn dodge(&mut self, action: u8, mut balls: [u16; MAX_BALLS], count: u8, rng: &mut Rng) -> Verdict {
        let action = if action > FORWARD { LEFT } else { action };
        let is_blocked = !matches!(self.at(self.front()).thing(), Thing::Empty | Thing::Goal);
        for ball in &mut balls[..usize::from(count)] {
            let from = usize::from(*ball);
            let (x, y) = self.spot(from);
            let around = Area { top: (x - 1, y - 1), size: (3, 3) };
            if let Some(to) = self.place(rng, self.at(from), around, BALL_TRIES, |_| false) {
                self.set(from, GridCell::EMPTY);
                *ball = to as u16;
            }
        }
        self.aim = Aim::Dodge { balls, count };
        let verdict = self.act(action);
        if action == FORWARD && is_blocked { Verdict { reward: -1.0, terminated: true } } else { verdict }
    }
}
