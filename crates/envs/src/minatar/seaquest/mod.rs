//! Seaquest: a submarine rescues divers and shoots at fish and at other submarines.
//!
//! Channels: 0 the submarine's front, 1 its back, 2 its bullets, 3 trails, 4 enemies' bullets, 5
//! fish, 6 enemy submarines, 7 oxygen (the bottom row from the left), 8 divers on board (the
//! bottom row from the right), 9 divers in the sea.
//!
//! An enemy that is shot gives 1. Under water the oxygen goes down. At the surface it is filled up
//! for one diver of those on board; with six of them all leave, and every cell of the oxygen
//! gives 1. Each time the enemies come and move faster from then on, unless `difficulty_ramping` is
//! false. The episode ends when an enemy or its bullet hits the submarine, when the oxygen is used
//! up, or at the surface without a diver. As in the package, one diver more than six leaves with the
//! six: the count is -1 then, which is not shown, and does not end the episode at the surface.
//!
//! Chance: where enemies and divers come from and in which row, and whether an enemy is a
//! submarine (one time in three), which shoots.

mod few;
mod swimmer;

use envcore::rng::Rng;
use serde::{Deserialize, Serialize};

use self::few::Few;
use self::swimmer::{Shooter, Swimmer};
use super::board::{BOARD, LEFT_COLUMN, RIGHT_COLUMN, SIDE, cell, cell_if_on_board, is_on_board};
use super::game::{ChannelLook, MinAtarGame, MinAtarMove, MinAtarTurn};

/// The row of the gauges.
const BOTTOM: i8 = SIDE - 1;

/// The rows where there may be enemies and divers.
const FIRST_ROW: i8 = 1;
const ROWS: usize = 8;

const MOST_OXYGEN: i16 = 200;
const MOST_DIVERS: i32 = 6;

/// Steps from one enemy to the next, and from one of its moves to the next, at first and at last.
const ENEMY_INTERVALS: (u8, u8) = (20, 1);
const MOVE_INTERVALS: (u8, u8) = (5, 2);

/// Steps from one diver to the next, and from one of its moves to the next.
const DIVER_INTERVAL: u8 = 30;
const DIVER_MOVE_INTERVAL: u8 = 5;

/// Steps from one shot to the next.
const SHOT_INTERVAL: u8 = 5;
const ENEMY_SHOT_INTERVAL: u8 = 10;

/// More enemies than there can be: one comes a step at most, and crosses the sea in 60 steps.
const ENEMIES: usize = 64;

/// More divers than there can be: one comes in 30 steps, and crosses the sea in 60.
const DIVERS: usize = 4;

/// More bullets than there can be: one comes in 5 steps, and crosses the sea in 10.
const BULLETS: usize = 4;

/// The state of a game of Seaquest.
#[derive(Clone, Serialize, Deserialize)]
pub struct Seaquest {
    place: (i8, i8),
    faces_right: bool,
    is_up: bool,
    oxygen: i16,
    /// Below 0 from when six have left until others come on board; see the module.
    divers_on_board: i32,
    until_shot: u8,
    enemy_interval: u8,
    until_enemy: u8,
    move_interval: u8,
    /// Whether the next rise of the difficulty makes enemies faster, too, and not only more
    /// frequent.
    ramps_speed: bool,
    until_diver: u8,
    bullets: Few<Swimmer, BULLETS>,
    /// The cells of those that go left, and of those that go right.
    enemy_bullets: [u128; 2],
    fish: Few<Swimmer, ENEMIES>,
    enemies: Few<Shooter, ENEMIES>,
    divers: Few<Swimmer, DIVERS>,
}

impl Seaquest {
    fn spawn_enemy(&mut self, rng: &mut Rng) {
        let goes_right = rng.random() < 0.5;
        let shoots = rng.random() < 1.0 / 3.0;
        let y = FIRST_ROW + rng.choice(ROWS) as i8;
        // No two in a row meet.
        let mut others = self.fish.iter().chain(self.enemies.iter().map(|enemy| &enemy.swimmer));
        if others.any(|other| other.y == y && other.goes_right != goes_right) {
            return;
        }
        let swimmer = Swimmer::new(y, goes_right, self.move_interval);
        if shoots {
            self.enemies.push(Shooter { swimmer, until_shot: ENEMY_SHOT_INTERVAL });
        } else {
            self.fish.push(swimmer);
        }
    }

    fn spawn_diver(&mut self, rng: &mut Rng) {
        let goes_right = rng.random() < 0.5;
        let y = FIRST_ROW + rng.choice(ROWS) as i8;
        self.divers.push(Swimmer::new(y, goes_right, DIVER_MOVE_INTERVAL));
    }

    /// The player's move.
    fn steer(&mut self, choice: MinAtarMove) {
        let (x, y) = self.place;
        if choice == MinAtarMove::Fire && self.until_shot == 0 {
            self.until_shot = SHOT_INTERVAL;
            self.bullets.push(Swimmer { x, y, goes_right: self.faces_right, until_move: 0 });
        }
        let (right, down) = choice.way();
        if right != 0 {
            self.faces_right = right > 0;
        }
        self.place = ((x + right).clamp(0, SIDE - 1), (y + down).clamp(0, BOTTOM - 1));
    }

    fn fly(&mut self, turn: &mut MinAtarTurn) {
        let Seaquest { bullets, fish, enemies, .. } = self;
        bullets.retain_backwards(|bullet| {
            if !bullet.advance() {
                return false;
            }
            let at = bullet.place();
            let hits = fish.remove_first(|fish| fish.place() == at)
                || enemies.remove_first(|enemy| enemy.swimmer.place() == at);
            turn.reward += u32::from(hits);
            !hits
        });
    }

    fn rescue(&mut self) {
        let (place, on_board) = (self.place, &mut self.divers_on_board);
        self.divers.retain_backwards(|diver| {
            let mut comes_on_board = |diver: &Swimmer| {
                let comes = diver.place() == place && *on_board < MOST_DIVERS;
                *on_board += i32::from(comes);
                comes
            };
            !comes_on_board(diver)
                && (!diver.is_due(DIVER_MOVE_INTERVAL) || diver.advance() && !comes_on_board(diver))
        });
    }

    fn hunt(&mut self, turn: &mut MinAtarTurn) {
        let (place, interval) = (self.place, self.move_interval);
        let Seaquest { bullets, enemy_bullets, fish, enemies, .. } = self;
        enemies.retain_backwards(|Shooter { swimmer, until_shot }| {
            let goes_on = swimmer.hunt(place, bullets, interval, turn);
            // One that is shot in this step shoots, too.
            if *until_shot == 0 {
                *until_shot = ENEMY_SHOT_INTERVAL;
                let side = usize::from(swimmer.goes_right);
                enemy_bullets[side] |= cell_if_on_board(swimmer.x, swimmer.y);
            } else {
                *until_shot -= 1;
            }
            goes_on
        });
        let [left, right] = *enemy_bullets;
        let moved = [(left & !LEFT_COLUMN) >> 1, (right & !RIGHT_COLUMN) << 1];
        let flown = left | right | moved[0] | moved[1];
        turn.is_over |= flown & cell(place.0, place.1) != 0;
        *enemy_bullets = moved;
        fish.retain_backwards(|fish| fish.hunt(place, bullets, interval, turn));
    }

    /// What depth does to the submarine: it breathes, or comes up.
    fn breathe(&mut self, ramps: bool, turn: &mut MinAtarTurn) {
        // What has just been used up does not last for the step to the surface.
        turn.is_over |= self.oxygen <= 0;
        if self.place.1 > 0 {
            self.oxygen -= 1;
            self.is_up = false;
        } else if !self.is_up {
            if self.divers_on_board == 0 {
                turn.is_over = true;
            } else {
                turn.reward += self.come_up(ramps);
            }
        }
    }

    /// The divers leave; the reward for that.
    fn come_up(&mut self, ramps: bool) -> u32 {
        self.is_up = true;
        let mut reward = 0;
        if self.divers_on_board == MOST_DIVERS {
            self.divers_on_board = 0;
            reward = self.oxygen_cells().max(0) as u32;
        }
        self.divers_on_board = self.divers_on_board.saturating_sub(1);
        self.oxygen = MOST_OXYGEN;
        let (fewest, fastest) = (ENEMY_INTERVALS.1, MOVE_INTERVALS.1);
        if ramps && (self.enemy_interval > fewest || self.move_interval > fastest) {
            if self.ramps_speed && self.move_interval > fastest {
                self.move_interval -= 1;
            }
            if self.enemy_interval > fewest {
                self.enemy_interval -= 1;
            }
            self.ramps_speed = !self.ramps_speed;
        }
        reward
    }

    /// How many cells of the gauge are full.
    fn oxygen_cells(&self) -> i16 {
        self.oxygen * i16::from(SIDE) / MOST_OXYGEN
    }
}

impl MinAtarGame for Seaquest {
    type Channels = [u128; 10];

    const MOVES: &'static [MinAtarMove] = MinAtarMove::ALL;

    const LOOKS: &'static [ChannelLook] = &[
        ChannelLook::body('S', [250, 220, 90]),
        ChannelLook::body('s', [190, 150, 50]),
        ChannelLook::speck('-', [250, 250, 250]),
        ChannelLook::speck('*', [110, 120, 145]),
        ChannelLook::speck('~', [245, 120, 90]),
        ChannelLook::body('F', [226, 76, 76]),
        ChannelLook::body('E', [170, 90, 200]),
        ChannelLook::body('O', [90, 190, 240]),
        ChannelLook::body('D', [110, 200, 110]),
        ChannelLook::body('d', [110, 200, 110]),
    ];

    fn begin(_rng: &mut Rng) -> Self {
        Seaquest {
            place: (5, 0),
            faces_right: false,
            is_up: true,
            oxygen: MOST_OXYGEN,
            divers_on_board: 0,
            until_shot: 0,
            enemy_interval: ENEMY_INTERVALS.0,
            until_enemy: ENEMY_INTERVALS.0,
            move_interval: MOVE_INTERVALS.0,
            ramps_speed: false,
            until_diver: DIVER_INTERVAL,
            bullets: Few::new(),
            enemy_bullets: [0; 2],
            fish: Few::new(),
            enemies: Few::new(),
            divers: Few::new(),
        }
    }

    #[inline]
    fn play(&mut self, choice: MinAtarMove, ramps: bool, rng: &mut Rng) -> MinAtarTurn {
        let mut turn = MinAtarTurn::default();
        if self.until_enemy == 0 {
            self.spawn_enemy(rng);
            self.until_enemy = self.enemy_interval;
        }
        if self.until_diver == 0 {
            self.spawn_diver(rng);
            self.until_diver = DIVER_INTERVAL;
        }
        self.steer(choice);
        self.fly(&mut turn);
        self.rescue();
        self.hunt(&mut turn);
        self.until_enemy -= 1;
        self.until_diver -= 1;
        self.until_shot = self.until_shot.saturating_sub(1);
        self.breathe(ramps, &mut turn);
        turn
    }

    #[inline]
    fn channels(&self) -> [u128; 10] {
        let mut channels = [0; 10];
        let (x, y) = self.place;
        channels[0] = cell(x, y);
        channels[1] = cell_if_on_board(if self.faces_right { x - 1 } else { x + 1 }, y);
        self.bullets.iter().for_each(|bullet| channels[2] |= cell(bullet.x, bullet.y));
        channels[4] = self.enemy_bullets[0] | self.enemy_bullets[1];
        let mut show = |swimmer: &Swimmer, channel: usize| {
            channels[channel] |= cell(swimmer.x, swimmer.y);
            channels[3] |= swimmer.trail();
        };
        self.fish.iter().for_each(|fish| show(fish, 5));
        self.enemies.iter().for_each(|enemy| show(&enemy.swimmer, 6));
        self.divers.iter().for_each(|diver| show(diver, 9));
        let full = self.oxygen_cells().clamp(0, i16::from(SIDE));
        channels[7] = ((1 << full) - 1) << (SIDE * BOTTOM);
        let on_board = self.divers_on_board.clamp(0, MOST_DIVERS) as i8;
        channels[8] = ((1 << on_board) - 1) << (SIDE * BOTTOM + BOTTOM - on_board);
        channels
    }

    fn is_sound(&self) -> bool {
        let is_swimmer =
            |swimmer: &Swimmer| is_on_board(swimmer.x, swimmer.y) && swimmer.until_move <= MOVE_INTERVALS.0;
        let is_within = |value: u8, (most, least): (u8, u8)| (least..=most).contains(&value);
        is_on_board(self.place.0, self.place.1)
            && self.place.1 < BOTTOM
            && (-1..=MOST_OXYGEN).contains(&self.oxygen)
            && self.divers_on_board <= MOST_DIVERS
            && is_within(self.enemy_interval, ENEMY_INTERVALS)
            && is_within(self.move_interval, MOVE_INTERVALS)
            && self.until_enemy <= ENEMY_INTERVALS.0
            && self.until_diver <= DIVER_INTERVAL
            && self.until_shot <= SHOT_INTERVAL
            && self.enemy_bullets.iter().all(|bullets| bullets & !BOARD == 0)
            && self.bullets.iter().chain(self.fish.iter()).chain(self.divers.iter()).all(is_swimmer)
            && self
                .enemies
                .iter()
                .all(|enemy| is_swimmer(&enemy.swimmer) && enemy.until_shot <= ENEMY_SHOT_INTERVAL)
    }
}
