//! What crosses the sea from one side to the other.

use serde::{Deserialize, Serialize};

use super::few::Few;
use crate::minatar::board::{SIDE, cell_if_on_board, is_on_board};
use crate::minatar::game::MinAtarTurn;

/// A fish, a diver, a bullet of the player, or the body of an enemy submarine.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Swimmer {
    pub(super) x: i8,
    pub(super) y: i8,
    pub(super) goes_right: bool,
    /// Steps until its next move.
    pub(super) until_move: u8,
}

/// An enemy submarine.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Shooter {
    pub(super) swimmer: Swimmer,
    pub(super) until_shot: u8,
}

impl Swimmer {
    /// One at the side that it comes from.
    pub(super) fn new(y: i8, goes_right: bool, until_move: u8) -> Self {
        Swimmer { x: if goes_right { 0 } else { SIDE - 1 }, y, goes_right, until_move }
    }

    pub(super) fn place(&self) -> (i8, i8) {
        (self.x, self.y)
    }

    /// Where it comes from; nothing beside the board.
    pub(super) fn trail(&self) -> u128 {
        cell_if_on_board(self.x - self.way(), self.y)
    }

    fn way(&self) -> i8 {
        if self.goes_right { 1 } else { -1 }
    }

    /// Moves by one cell; whether it is still in the sea.
    pub(super) fn advance(&mut self) -> bool {
        self.x += self.way();
        is_on_board(self.x, self.y)
    }

    /// Whether it moves in this step. After a move it waits for `interval` steps.
    pub(super) fn is_due(&mut self, interval: u8) -> bool {
        let is_due = self.until_move == 0;
        self.until_move = if is_due { interval } else { self.until_move - 1 };
        is_due
    }

    /// A step of an enemy. It ends the episode where the enemy is at the player before or after its
    /// move. An enemy that moves into one of the player's `bullets` is shot. Whether it goes on.
    pub(super) fn hunt<const MOST: usize>(
        &mut self,
        player: (i8, i8),
        bullets: &mut Few<Swimmer, MOST>,
        interval: u8,
        turn: &mut MinAtarTurn,
    ) -> bool {
        turn.is_over |= self.place() == player;
        if !self.is_due(interval) {
            return true;
        }
        if !self.advance() {
            return false;
        }
        let place = self.place();
        turn.is_over |= place == player;
        let is_shot = bullets.remove_first(|bullet| bullet.place() == place);
        turn.reward += u32::from(is_shot);
        !is_shot
    }
}
