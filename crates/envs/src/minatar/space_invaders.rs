//! Space Invaders: a cannon at the bottom shoots at a swarm of aliens, which shoot back.
//!
//! Channels: 0 cannon, 1 aliens, 2 aliens that go left, 3 aliens that go right, 4 the cannon's
//! bullets, 5 the aliens' bullets. The swarm goes sideways; where it is at a wall, it turns, and
//! comes a row down. It goes faster as fewer aliens are left. An alien that is shot gives 1. When all
//! are shot, there are as many again, which begin a little faster, unless `difficulty_ramping` is
//! false. The episode ends when a bullet or an alien hits the cannon, or when the swarm is at the
//! bottom and would come lower.
//!
//! Chance: sticky actions alone.

use envcore::rng::Rng;
use serde::{Deserialize, Serialize};

use super::board::{BOARD, LEFT_COLUMN, RIGHT_COLUMN, SIDE, TOP_ROW, cell, is_on_board};
use super::game::{ChannelLook, MinAtarGame, MinAtarMove, MinAtarTurn};

/// A new swarm: rows 0 to 3, columns 2 to 7.
const SWARM: u128 = {
    let row: u128 = 0b11_1111 << 2;
    row | row << SIDE | row << (2 * SIDE) | row << (3 * SIDE)
};

const BOTTOM: i8 = SIDE - 1;
const BOTTOM_ROW: u128 = TOP_ROW << (SIDE * BOTTOM);

/// Steps from one shot of the cannon, or of the aliens, to the next.
const CANNON_INTERVAL: u8 = 5;
const ALIEN_SHOT_INTERVAL: u8 = 10;

/// Steps from one move of the swarm to the next, at most: of the first swarm, and of the last.
const FIRST_INTERVAL: u8 = 12;
const LAST_INTERVAL: u8 = 6;

/// The state of a game of Space Invaders.
#[derive(Clone, Serialize, Deserialize)]
pub struct SpaceInvaders {
    cannon: i8,
    bullets: u128,
    alien_bullets: u128,
    aliens: u128,
    goes_right: bool,
    move_interval: u8,
    until_move: u8,
    until_alien_shot: u8,
    until_shot: u8,
}

impl SpaceInvaders {
    /// The swarm's move.
    fn advance(&mut self, turn: &mut MinAtarTurn) {
        self.until_move = self.move_interval.min(self.aliens.count_ones() as u8);
        let wall = if self.goes_right { RIGHT_COLUMN } else { LEFT_COLUMN };
        if self.aliens & wall != 0 {
            self.goes_right = !self.goes_right;
            if self.aliens & BOTTOM_ROW != 0 {
                turn.is_over = true;
            }
            self.aliens = self.aliens << SIDE & BOARD;
        } else if self.goes_right {
            self.aliens <<= 1;
        } else {
            self.aliens >>= 1;
        }
        turn.is_over |= self.aliens & cell(self.cannon, BOTTOM) != 0;
    }

    /// The lowest alien of the column nearest to the cannon's; of two that are as near, of the left
    /// one.
    fn shooter(&self) -> u128 {
        for far in 0..SIDE {
            for x in [self.cannon - far, self.cannon + far] {
                if !(0..SIDE).contains(&x) {
                    continue;
                }
                let column = self.aliens & LEFT_COLUMN << x;
                if column != 0 {
                    return 1 << (u128::BITS - 1 - column.leading_zeros());
                }
            }
        }
        0
    }
}

impl MinAtarGame for SpaceInvaders {
    type Channels = [u128; 6];

    const MOVES: &'static [MinAtarMove] =
        &[MinAtarMove::Stay, MinAtarMove::Left, MinAtarMove::Right, MinAtarMove::Fire];

    const LOOKS: &'static [ChannelLook] = &[
        ChannelLook::body('A', [96, 165, 250]),
        ChannelLook::body('W', [110, 200, 110]),
        ChannelLook::hidden(),
        ChannelLook::hidden(),
        ChannelLook::speck('^', [250, 250, 250]),
        ChannelLook::speck('v', [245, 120, 90]),
    ];

    fn begin(_rng: &mut Rng) -> Self {
        SpaceInvaders {
            cannon: 5,
            bullets: 0,
            alien_bullets: 0,
            aliens: SWARM,
            goes_right: false,
            move_interval: FIRST_INTERVAL,
            until_move: FIRST_INTERVAL,
            until_alien_shot: ALIEN_SHOT_INTERVAL,
            until_shot: 0,
        }
    }

    #[inline]
    fn play(&mut self, choice: MinAtarMove, ramps: bool, _rng: &mut Rng) -> MinAtarTurn {
        let mut turn = MinAtarTurn::default();
        if choice == MinAtarMove::Fire && self.until_shot == 0 {
            self.bullets |= cell(self.cannon, BOTTOM);
            self.until_shot = CANNON_INTERVAL;
        }
        self.cannon = (self.cannon + choice.way().0).clamp(0, SIDE - 1);
        let cannon = cell(self.cannon, BOTTOM);
        self.bullets >>= SIDE;
        self.alien_bullets = self.alien_bullets << SIDE & BOARD;
        turn.is_over = (self.alien_bullets | self.aliens) & cannon != 0;
        if self.until_move == 0 {
            self.advance(&mut turn);
        }
        if self.until_alien_shot == 0 {
            self.until_alien_shot = ALIEN_SHOT_INTERVAL;
            self.alien_bullets |= self.shooter();
        }
        let hit = self.aliens & self.bullets;
        turn.reward = hit.count_ones();
        self.aliens &= !hit;
        self.bullets &= !hit;
        self.until_shot = self.until_shot.saturating_sub(1);
        self.until_move -= 1;
        self.until_alien_shot -= 1;
        if self.aliens == 0 {
            if ramps && self.move_interval > LAST_INTERVAL {
                self.move_interval -= 1;
            }
            self.aliens = SWARM;
        }
        turn
    }

    #[inline]
    fn channels(&self) -> [u128; 6] {
        let (left, right) = if self.goes_right { (0, self.aliens) } else { (self.aliens, 0) };
        [cell(self.cannon, BOTTOM), self.aliens, left, right, self.bullets, self.alien_bullets]
    }

    fn is_sound(&self) -> bool {
        is_on_board(self.cannon, BOTTOM)
            && (self.bullets | self.alien_bullets | self.aliens) & !BOARD == 0
            && self.aliens != 0
            && (LAST_INTERVAL..=FIRST_INTERVAL).contains(&self.move_interval)
            && self.until_move <= FIRST_INTERVAL
            && self.until_alien_shot <= ALIEN_SHOT_INTERVAL
            && self.until_shot <= CANNON_INTERVAL
    }
}
