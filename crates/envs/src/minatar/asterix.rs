//! Asterix: the player runs about, collects treasure and keeps clear of enemies.
//!
//! Channels: 0 player, 1 enemies, 2 trails, 3 treasure. Enemies and treasure cross the rows 1 to 8,
//! one at a time in each, from the left or from the right; their trail is where they come from.
//! Treasure gives 1 to the player who meets it. The episode ends when an enemy meets the player.
//! As time goes on they come and move faster, unless `difficulty_ramping` is false.
//!
//! Chance: when something comes, whether from the left, whether it is treasure (one time in three)
//! and in which free row.

use envcore::rng::Rng;
use serde::{Deserialize, Serialize};

use super::board::{SIDE, cell, cell_if_on_board, is_on_board};
use super::game::{ChannelLook, MinAtarGame, MinAtarMove, MinAtarTurn};

/// The rows that things cross; the first is row 1.
const LANES: usize = 8;

/// Steps from one thing that comes to the next, from one of their moves to the next, and from one
/// rise of the difficulty to the next.
const SPAWN_INTERVAL: u8 = 10;
const MOVE_INTERVAL: u8 = 5;
const RAMP_INTERVAL: i8 = 100;

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Crosser {
    x: i8,
    goes_right: bool,
    is_treasure: bool,
}

/// The state of a game of Asterix.
#[derive(Clone, Serialize, Deserialize)]
pub struct Asterix {
    player: (i8, i8),
    lanes: [Option<Crosser>; LANES],
    spawn_interval: u8,
    move_interval: u8,
    until_spawn: u8,
    until_move: u8,
    until_ramp: i8,
    /// Whether the next rise makes things faster, too, and not only more frequent.
    ramps_speed: bool,
}

impl Asterix {
    fn spawn(&mut self, rng: &mut Rng) {
        let goes_right = rng.random() < 0.5;
        let is_treasure = rng.random() < 1.0 / 3.0;
        let free = self.lanes.iter().filter(|lane| lane.is_none()).count();
        if free == 0 {
            return;
        }
        let x = if goes_right { 0 } else { SIDE - 1 };
        let chosen = rng.choice(free);
        if let Some(lane) = self.lanes.iter_mut().filter(|lane| lane.is_none()).nth(chosen) {
            *lane = Some(Crosser { x, goes_right, is_treasure });
        }
    }

    /// The player takes the treasure of its cell, or loses to the enemy there.
    fn meet(&mut self, turn: &mut MinAtarTurn) {
        let (x, y) = self.player;
        let lane = &mut self.lanes[y as usize - 1];
        match lane {
            Some(met) if met.x == x && met.is_treasure => {
                *lane = None;
                turn.reward += 1;
            }
            Some(met) if met.x == x => turn.is_over = true,
            _ => {}
        }
    }

    fn ramp(&mut self) {
        if self.spawn_interval <= 1 && self.move_interval <= 1 {
            return;
        }
        if self.until_ramp >= 0 {
            self.until_ramp -= 1;
            return;
        }
        if self.ramps_speed && self.move_interval > 1 {
            self.move_interval -= 1;
        }
        if self.spawn_interval > 1 {
            self.spawn_interval -= 1;
        }
        self.ramps_speed = !self.ramps_speed;
        self.until_ramp = RAMP_INTERVAL;
    }
}

impl MinAtarGame for Asterix {
    type Channels = [u128; 4];

    const MOVES: &'static [MinAtarMove] =
        &[MinAtarMove::Stay, MinAtarMove::Left, MinAtarMove::Up, MinAtarMove::Right, MinAtarMove::Down];

    const LOOKS: &'static [ChannelLook] = &[
        ChannelLook::body('A', [96, 165, 250]),
        ChannelLook::body('X', [226, 76, 76]),
        ChannelLook::speck('*', [148, 155, 175]),
        ChannelLook::body('$', [245, 200, 66]),
    ];

    fn begin(_rng: &mut Rng) -> Self {
        Asterix {
            player: (5, 5),
            lanes: [None; LANES],
            spawn_interval: SPAWN_INTERVAL,
            move_interval: MOVE_INTERVAL,
            until_spawn: SPAWN_INTERVAL,
            until_move: MOVE_INTERVAL,
            until_ramp: RAMP_INTERVAL,
            ramps_speed: false,
        }
    }

    #[inline]
    fn play(&mut self, choice: MinAtarMove, ramps: bool, rng: &mut Rng) -> MinAtarTurn {
        let mut turn = MinAtarTurn::default();
        if self.until_spawn == 0 {
            self.spawn(rng);
            self.until_spawn = self.spawn_interval;
        }
        let (right, down) = choice.way();
        let (x, y) = self.player;
        self.player = ((x + right).clamp(0, SIDE - 1), (y + down).clamp(1, LANES as i8));
        self.meet(&mut turn);
        if self.until_move == 0 {
            self.until_move = self.move_interval;
            for lane in &mut self.lanes {
                if let Some(crosser) = lane {
                    crosser.x += if crosser.goes_right { 1 } else { -1 };
                    if !(0..SIDE).contains(&crosser.x) {
                        *lane = None;
                    }
                }
            }
            self.meet(&mut turn);
        }
        self.until_spawn -= 1;
        self.until_move -= 1;
        if ramps {
            self.ramp();
        }
        turn
    }

    #[inline]
    fn channels(&self) -> [u128; 4] {
        let [mut enemies, mut trails, mut treasure] = [0; 3];
        for (y, crosser) in (1..).zip(&self.lanes) {
            let Some(Crosser { x, goes_right, is_treasure }) = *crosser else { continue };
            *(if is_treasure { &mut treasure } else { &mut enemies }) |= cell(x, y);
            trails |= cell_if_on_board(if goes_right { x - 1 } else { x + 1 }, y);
        }
        [cell(self.player.0, self.player.1), enemies, trails, treasure]
    }

    fn is_sound(&self) -> bool {
        let (x, y) = self.player;
        is_on_board(x, y)
            && (1..=LANES as i8).contains(&y)
            && self.lanes.iter().flatten().all(|crosser| is_on_board(crosser.x, 0))
            && (1..=SPAWN_INTERVAL).contains(&self.spawn_interval)
            && (1..=MOVE_INTERVAL).contains(&self.move_interval)
            && self.until_spawn <= SPAWN_INTERVAL
            && self.until_move <= MOVE_INTERVAL
            && (-1..=RAMP_INTERVAL).contains(&self.until_ramp)
    }
}
