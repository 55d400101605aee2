//! Breakout: a paddle at the bottom keeps a ball in play, which breaks three rows of bricks.
//!
//! Channels: 0 paddle, 1 ball, 2 the ball's trail, 3 bricks. The ball moves one cell along a
//! diagonal at each step. A wall or a brick reflects it; so does the paddle, back to where the ball
//! came from where it is hit from the side, by its edge. A brick that is broken gives 1. When the
//! last one is gone, and the ball is at the bottom, there are three rows again. The episode ends
//! when the ball passes the paddle.
//!
//! Chance: the ball starts at the left wall or at the right one.

use envcore::rng::Rng;
use serde::{Deserialize, Serialize};

use super::board::{SIDE, TOP_ROW, cell, is_on_board};
use super::game::{ChannelLook, MinAtarGame, MinAtarMove, MinAtarTurn};

/// Three rows of bricks, below the top row.
const WALL: u128 = TOP_ROW << SIDE | TOP_ROW << (2 * SIDE) | TOP_ROW << (3 * SIDE);

/// The paddle's row.
const BOTTOM: i8 = SIDE - 1;

/// The state of a game of Breakout.
#[derive(Clone, Serialize, Deserialize)]
pub struct Breakout {
    ball: (i8, i8),
    /// Where the ball was one step ago.
    trail: (i8, i8),
    flies_right: bool,
    flies_down: bool,
    paddle: i8,
    bricks: u128,
    /// Whether the ball has broken a brick in the step before: it breaks no two in a row.
    has_struck: bool,
}

impl MinAtarGame for Breakout {
    type Channels = [u128; 4];

    const MOVES: &'static [MinAtarMove] = &[MinAtarMove::Stay, MinAtarMove::Left, MinAtarMove::Right];

    const LOOKS: &'static [ChannelLook] = &[
        ChannelLook::body('=', [96, 165, 250]),
        ChannelLook::body('o', [250, 250, 250]),
        ChannelLook::speck('*', [148, 155, 175]),
        ChannelLook::body('#', [214, 104, 60]),
    ];

    fn begin(rng: &mut Rng) -> Self {
        let flies_right = rng.choice(2) == 0;
        let ball = (if flies_right { 0 } else { BOTTOM }, 3);
        Breakout {
            ball,
            trail: ball,
            flies_right,
            flies_down: true,
            paddle: 4,
            bricks: WALL,
            has_struck: false,
        }
    }

    #[inline]
    fn play(&mut self, choice: MinAtarMove, _ramps: bool, _rng: &mut Rng) -> MinAtarTurn {
        let mut turn = MinAtarTurn::default();
        self.paddle = (self.paddle + choice.way().0).clamp(0, SIDE - 1);
        self.trail = self.ball;
        let (x, y) = self.ball;
        let mut to_x = x + if self.flies_right { 1 } else { -1 };
        // A ball that was missed stays at the bottom.
        let mut to_y = (y + if self.flies_down { 1 } else { -1 }).min(BOTTOM);
        if !(0..SIDE).contains(&to_x) {
            to_x = to_x.clamp(0, SIDE - 1);
            self.flies_right = !self.flies_right;
        }
        let mut touches_brick = false;
        if to_y < 0 {
            to_y = 0;
            self.flies_down = true;
        } else if self.bricks & cell(to_x, to_y) != 0 {
            touches_brick = true;
            if !self.has_struck {
                self.has_struck = true;
                self.bricks &= !cell(to_x, to_y);
                self.flies_down = !self.flies_down;
                to_y = y;
                turn.reward = 1;
            }
        } else if to_y == BOTTOM {
            if self.bricks == 0 {
                self.bricks = WALL;
            }
            if self.paddle == x || self.paddle == to_x {
                // The edge sends it back.
                if self.paddle != x {
                    self.flies_right = !self.flies_right;
                }
                self.flies_down = false;
                to_y = y;
            } else {
                turn.is_over = true;
            }
        }
        self.has_struck &= touches_brick;
        self.ball = (to_x, to_y);
        turn
    }

    #[inline]
    fn channels(&self) -> [u128; 4] {
        let [ball, trail] = [self.ball, self.trail].map(|(x, y)| cell(x, y));
        [cell(self.paddle, BOTTOM), ball, trail, self.bricks]
    }

    fn is_sound(&self) -> bool {
        let places = [self.ball, self.trail, (self.paddle, BOTTOM)];
        places.iter().all(|(x, y)| is_on_board(*x, *y)) && self.bricks & !WALL == 0
    }
}
