//! The options of Maze-v0.

/// What a level is generated from, beside its index.
#[derive(Clone, Debug, PartialEq, Eq, envcore::Config)]
pub struct MazeConfig {
    /// Cells per side, 3 to 12. More cells are smaller on the screen, which keeps its 64×64 pixels.
    #[option(low = Self::MIN_SIZE, high = Self::MAX_SIZE)]
    pub size: u32,
    /// Percentage of dead ends that are opened into loops, 0 to 100. At 0 exactly one path joins
    /// any two cells; at 100 there is no dead end.
    #[option(low = 0, high = 100)]
    pub loops: u32,
}

impl Default for MazeConfig {
    fn default() -> Self {
        Self { size: 7, loops: 0 }
    }
}

impl MazeConfig {
    /// The least `size`.
    pub const MIN_SIZE: u32 = 3;
    /// The greatest `size`.
    pub const MAX_SIZE: u32 = 12;

    /// Errors if an option is out of its range; the message names the option, its value and the
    /// range.
    pub fn check(&self) -> Result<(), String> {
        let Self { size, loops } = self;
        let (least, most) = (Self::MIN_SIZE, Self::MAX_SIZE);
        if !(least..=most).contains(size) {
            return Err(format!(
                "Maze: size is {size}; it counts the cells per side and must be between {least} and {most}"
            ));
        }
        if *loops > 100 {
            return Err(format!(
                "Maze: loops is {loops}; it is a percentage of the dead ends and must be between 0 and 100"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_out_of_range_is_named_with_its_value_and_range() {
        let message = MazeConfig { size: 13, loops: 0 }.check().unwrap_err();
        assert!(message.contains("size is 13") && message.contains("between 3 and 12"));
        let message = MazeConfig { size: 2, loops: 0 }.check().unwrap_err();
        assert!(message.contains("size is 2"));
        let message = MazeConfig { size: 8, loops: 101 }.check().unwrap_err();
        assert!(message.contains("loops is 101") && message.contains("between 0 and 100"));
    }

    #[test]
    fn the_default_is_valid() {
        assert_eq!(MazeConfig::default().check(), Ok(()));
    }
}
