//! Freeway: a chicken crosses a road of eight lanes.
//!
//! Channels: 0 chicken, 1 cars, 2 to 6 the cars' trails, by their speed: from a cell at every step
//! to a cell at every fifth one. The chicken walks up and down, a cell in three steps at most. At
//! the top it gets 1, begins again at the bottom, and the cars have other speeds. A car that hits
//! it sends it to the bottom. Cars that leave the road at one side come back at the other. The
//! episode ends after 2,500 steps, which is an end of the game: `terminated`.
//!
//! Chance: how fast each car is, and which way it goes.

use envcore::rng::Rng;
use serde::{Deserialize, Serialize};

use super::board::{SIDE, cell, is_on_board};
use super::game::{ChannelLook, MinAtarGame, MinAtarMove, MinAtarTurn};

/// The lanes; the first is row 1.
const LANES: usize = 8;

/// The chicken's column and the row where it begins.
const COLUMN: i8 = 4;
const BOTTOM: i8 = SIDE - 1;

/// Steps from one of its moves to the next.
const MOVE_INTERVAL: u8 = 3;

/// The steps of an episode, but for the last one.
const TIME: i16 = 2500;

/// The slowest car moves at every so many steps.
const SLOWEST: u8 = 5;

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Car {
    x: i8,
    goes_right: bool,
    /// Steps from one move to the next, and until the next.
    interval: u8,
    until_move: u8,
}

/// The state of a game of Freeway.
#[derive(Clone, Serialize, Deserialize)]
pub struct Freeway {
    chicken: i8,
    until_move: u8,
    cars: [Car; LANES],
    time_left: i16,
}

impl Freeway {
    /// New speeds and ways for all cars.
    fn hurry(&mut self, rng: &mut Rng) {
        for car in &mut self.cars {
            car.interval = rng.integers(1, i64::from(SLOWEST) + 1) as u8;
            car.until_move = car.interval;
        }
        for car in &mut self.cars {
            car.goes_right = rng.random() >= 0.5;
        }
    }
}

impl MinAtarGame for Freeway {
    type Channels = [u128; 7];

    const MOVES: &'static [MinAtarMove] = &[MinAtarMove::Stay, MinAtarMove::Up, MinAtarMove::Down];

    const LOOKS: &'static [ChannelLook] = &[
        ChannelLook::body('@', [250, 240, 200]),
        ChannelLook::body('C', [226, 76, 76]),
        ChannelLook::speck('1', [255, 214, 102]),
        ChannelLook::speck('2', [190, 220, 110]),
        ChannelLook::speck('3', [96, 200, 150]),
        ChannelLook::speck('4', [80, 150, 210]),
        ChannelLook::speck('5', [140, 110, 200]),
    ];

    fn begin(rng: &mut Rng) -> Self {
        let mut game = Freeway {
            chicken: BOTTOM,
            until_move: MOVE_INTERVAL,
            cars: [Car::default(); LANES],
            time_left: TIME,
        };
        game.hurry(rng);
        game
    }

    #[inline]
    fn play(&mut self, choice: MinAtarMove, _ramps: bool, rng: &mut Rng) -> MinAtarTurn {
        let mut turn = MinAtarTurn::default();
        let (_, down) = choice.way();
        if down != 0 && self.until_move == 0 {
            self.until_move = MOVE_INTERVAL;
            self.chicken = (self.chicken + down).clamp(0, BOTTOM);
        }
        if self.chicken == 0 {
            turn.reward = 1;
            self.hurry(rng);
            self.chicken = BOTTOM;
        }
        for (y, car) in (1..).zip(&mut self.cars) {
            let was_here = car.x == COLUMN;
            if car.until_move == 0 {
                car.until_move = car.interval;
                car.x += if car.goes_right { 1 } else { -1 };
                car.x = if car.x < 0 {
                    SIDE - 1
                } else if car.x == SIDE {
                    0
                } else {
                    car.x
                };
            } else {
                car.until_move -= 1;
            }
            if y == self.chicken && (was_here || car.x == COLUMN) {
                self.chicken = BOTTOM;
            }
        }
        self.until_move = self.until_move.saturating_sub(1);
        self.time_left -= 1;
        turn.is_over = self.time_left < 0;
        turn
    }

    #[inline]
    fn channels(&self) -> [u128; 7] {
        let mut channels = [0; 7];
        channels[0] = cell(COLUMN, self.chicken);
        for (y, car) in (1..).zip(&self.cars) {
            channels[1] |= cell(car.x, y);
            let behind = if car.goes_right { car.x - 1 } else { car.x + 1 };
            channels[usize::from(car.interval) + 1] |= cell(behind.rem_euclid(SIDE), y);
        }
        channels
    }

    fn is_sound(&self) -> bool {
        let is_car = |car: &Car| {
            is_on_board(car.x, 0) && (1..=SLOWEST).contains(&car.interval) && car.until_move <= SLOWEST
        };
        is_on_board(COLUMN, self.chicken)
            && self.until_move <= MOVE_INTERVAL
            && self.cars.iter().all(is_car)
            && (-1..=TIME).contains(&self.time_left)
    }
}
