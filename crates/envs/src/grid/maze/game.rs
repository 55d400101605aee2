//! The rules: one agent walks a level until it stands on the goal.

use std::sync::Arc;

use super::grid::Direction;
use super::level::Level;
use super::view::View;

/// What one step gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// 1.0 on the step that arrives at the goal, else 0.0.
    pub reward: f64,
    /// The agent stands on the goal: the episode is over.
    pub reached: bool,
}

/// All that a step changes. With the level, it is the whole state of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The agent's cell, numbered row by row from the top left.
    pub cell: u16,
    /// The way it faces: 0 up, 1 right, 2 down, 3 left.
    pub facing: u8,
}

pub struct Game {
    level: Arc<Level>,
    cell: usize,
    facing: Direction,
}

impl Game {
    /// At the level's start, facing the viewer.
    pub fn new(level: Arc<Level>) -> Self {
        Self { cell: level.start(), level, facing: Direction::Down }
    }

    /// Plays 0 stay, 1 up, 2 right, 3 down or 4 left. A move into a wall only turns the agent. Once
    /// the goal is reached, nothing moves any more and the reward is 0.
    ///
    /// Errors if the action is none of these; nothing moves.
    pub fn step(&mut self, action: u8) -> Result<Outcome, String> {
        let direction = match action {
            0 => None,
            1..=4 => Some(Direction::ALL[usize::from(action) - 1]),
            _ => {
                return Err(format!(
                    "Maze: action is {action}; it must be 0 (stay), 1 (up), 2 (right), 3 (down) or 4 (left)"
                ));
            }
        };
        let goal = self.level.goal();
        if self.cell == goal {
            return Ok(Outcome { reward: 0.0, reached: true });
        }
        if let Some(direction) = direction {
            self.facing = direction;
            self.cell = self.level.walk(self.cell, direction).unwrap_or(self.cell);
        }
        let reached = self.cell == goal;
        Ok(Outcome { reward: f64::from(u8::from(reached)), reached })
    }

    /// The number of steps on a shortest path from here to the goal.
    pub fn distance(&self) -> i32 {
        i32::from(self.level.distance(self.cell))
    }

    /// The agent's cell as (column, row), counted from the top left.
    pub fn position(&self) -> [i32; 2] {
        let size = self.level.size();
        [(self.cell % size) as i32, (self.cell / size) as i32]
    }

    /// What the player sees now.
    pub fn view(&self) -> View {
        View::new(Arc::clone(&self.level), self.cell, self.facing)
    }

    pub fn state(&self) -> State {
        State { cell: self.cell as u16, facing: self.facing as u8 }
    }

    /// The game on `level` that was in `state`.
    ///
    /// Errors if no game on this level can be in it.
    pub fn restore(level: Arc<Level>, state: State) -> Result<Self, String> {
        let State { cell, facing } = state;
        let cells = level.size() * level.size();
        if usize::from(cell) >= cells {
            return Err(format!(
                "Maze: the saved cell is {cell}, but the level has {cells} cells; was it saved with another size?"
            ));
        }
        let Some(&facing) = Direction::ALL.get(usize::from(facing)) else {
            return Err(format!("Maze: the saved facing is {facing}; it must be between 0 and 3"));
        };
        Ok(Self { level, cell: usize::from(cell), facing })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{level, many_levels};
    use super::*;

    fn game_at(level: &Arc<Level>, cell: usize) -> Game {
        Game::restore(Arc::clone(level), State { cell: cell as u16, facing: 2 }).unwrap()
    }

    #[test]
    fn the_way_down_the_distances_reaches_the_goal_with_one_reward() {
        for level in many_levels() {
            let mut game = Game::new(Arc::clone(&level));
            let mut rewards = Vec::new();
            loop {
                let here = game.distance();
                let action = (1..=4)
                    .find(|&action| {
                        let mut tried = game_at(&level, usize::from(game.state().cell));
                        tried.step(action).unwrap();
                        tried.distance() < here
                    })
                    .expect("a neighbour is nearer");
                let outcome = game.step(action).unwrap();
                rewards.push(outcome.reward);
                if outcome.reached {
                    break;
                }
            }
            assert_eq!(rewards.len(), usize::from(level.distance(level.start())));
            assert_eq!(rewards.pop(), Some(1.0));
            assert!(rewards.iter().all(|reward| *reward == 0.0));
        }
    }

    #[test]
    fn a_wall_stops_a_move_but_not_the_turn() {
        for level in many_levels() {
            for cell in (0..level.size() * level.size()).filter(|cell| *cell != level.goal()) {
                for action in 1..=4 {
                    let direction = Direction::ALL[usize::from(action) - 1];
                    let mut game = game_at(&level, cell);
                    game.step(action).unwrap();
                    let expected = level.walk(cell, direction).unwrap_or(cell);
                    assert_eq!(game.state(), State { cell: expected as u16, facing: action - 1 });
                }
            }
        }
    }

    #[test]
    fn actions_move_up_right_down_and_left() {
        // Each is tried from every cell of a maze; the moves that are not stopped agree.
        for (action, moved) in [(0, [0, 0]), (1, [0, -1]), (2, [1, 0]), (3, [0, 1]), (4, [-1, 0])] {
            let level = level(0, 7, 0);
            let mut moves = 0;
            for cell in (0..49).filter(|cell| *cell != level.goal()) {
                let mut game = game_at(&level, cell);
                let [x, y] = game.position();
                assert_eq!([x, y], [cell as i32 % 7, cell as i32 / 7]);
                game.step(action).unwrap();
                let [to_x, to_y] = game.position();
                if [to_x, to_y] != [x, y] {
                    assert_eq!([to_x - x, to_y - y], moved);
                    moves += 1;
                }
            }
            assert_eq!(moves > 0, action != 0);
        }
    }

    #[test]
    fn a_finished_game_stands_still_and_pays_nothing() {
        let level = level(3, 7, 0);
        let mut game = game_at(&level, level.goal());
        for action in 0..5 {
            assert_eq!(game.step(action), Ok(Outcome { reward: 0.0, reached: true }));
            assert_eq!(game.state(), State { cell: level.goal() as u16, facing: 2 });
        }
    }

    #[test]
    fn an_unknown_action_is_an_error_and_moves_nothing() {
        let mut game = Game::new(level(3, 7, 0));
        let before = game.state();
        assert!(game.step(5).is_err_and(|message| message.contains("action is 5")));
        assert_eq!(game.state(), before);
    }

    #[test]
    fn a_saved_state_goes_on_as_the_game_it_was_saved_from() {
        let level = level(5, 7, 50);
        let mut game = Game::new(Arc::clone(&level));
        for action in [1, 2, 3, 4, 3, 2] {
            game.step(action).unwrap();
        }
        let mut restored = Game::restore(level, game.state()).unwrap();
        for action in [4, 0, 1, 2, 3, 3, 4] {
            assert_eq!(game.step(action), restored.step(action));
            assert_eq!(game.state(), restored.state());
        }
    }

    #[test]
    fn a_state_of_another_level_size_is_an_error() {
        let restore = |cell, facing| Game::restore(level(0, 3, 0), State { cell, facing }).err();
        assert!(restore(9, 0).unwrap().contains("cell is 9"));
        assert!(restore(0, 4).unwrap().contains("facing is 4"));
        assert_eq!(restore(8, 3), None);
    }
}
