//! The options, which all levels share.

use envcore::{Config, Error, Result};
use serde::{Deserialize, Serialize};

use super::builder::LevelGenerator;
use super::levels::Empty;

/// What the image shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MiniGridView {
    /// Three numbers for each field that the agent may see: `(size, size, 3)`, columns first.
    Partial,
    /// The same for all fields of the grid, the agent among them: `(width, height, 3)`.
    Full,
    /// A picture of the grid, 8 pixels a field.
    Rgb,
    /// A picture of what the agent sees, 8 pixels a field.
    RgbPartial,
}

/// MiniGrid's options, the same for every level.
#[derive(Clone, Config)]
pub struct MiniGridConfig {
    /// Which level the id stands for.
    #[serde(skip)]
    pub(super) level: LevelChoice,
    /// What the image shows: "partial", what the agent sees, three numbers a field; "full", the
    /// same of the whole grid; "rgb" and "rgb_partial", pictures of these, 8 pixels a field.
    pub view: MiniGridView,
    /// The side of the square that the agent sees: odd, 3 to 63.
    #[option(low = 3, high = MAX_SIGHT)]
    pub agent_view_size: u32,
    /// Whether the agent sees through walls and doors; as the level says where it is none.
    pub see_through_walls: Option<bool>,
    /// After how many steps, from 1 on, an episode is cut; as the level says where it is none.
    #[option(low = 1)]
    pub max_steps: Option<u32>,
}

impl Default for MiniGridConfig {
    fn default() -> Self {
        MiniGridConfig {
            level: LevelChoice::default(),
            view: MiniGridView::Partial,
            agent_view_size: 7,
            see_through_walls: None,
            max_steps: None,
        }
    }
}

/// The level of an id.
#[derive(Clone, Copy)]
pub(super) struct LevelChoice(pub(super) &'static dyn LevelGenerator);

impl Default for LevelChoice {
    fn default() -> Self {
        LevelChoice(&Empty { size: 8, is_random: false })
    }
}

/// What of the grid is shown.
#[derive(Clone, Copy)]
pub(super) struct Sight {
    pub(super) view: MiniGridView,
    /// The side of the square that the agent sees.
    pub(super) size: usize,
    pub(super) through_walls: bool,
}

/// The largest side of the square that the agent sees: the bits of a row fit a word.
pub(super) const MAX_SIGHT: usize = 63;

impl MiniGridConfig {
    /// # Errors
    /// [`Error::OptionValue`] for a view size that is even or out of range.
    pub(super) fn sight(&self) -> Result<Sight> {
        let size = self.agent_view_size as usize;
        if size.is_multiple_of(2) || !(3..=MAX_SIGHT).contains(&size) {
            return Err(Error::OptionValue(format!(
                "MiniGrid: agent_view_size is {size}: it counts the fields per side of what the agent sees, \
                 and must be odd and from 3 to {MAX_SIGHT}"
            )));
        }
        let through_walls = self.see_through_walls.unwrap_or(self.level.0.see_through_walls());
        Ok(Sight { view: self.view, size, through_walls })
    }

    /// # Errors
    /// [`Error::OptionValue`] for 0.
    pub(super) fn max_steps(&self) -> Result<u32> {
        match self.max_steps {
            Some(0) => Err(Error::OptionValue(
                "MiniGrid: max_steps is 0: an episode is cut after 1 step or more".into(),
            )),
            Some(steps) => Ok(steps),
            None => Ok(self.level.0.max_steps()),
        }
    }
}
