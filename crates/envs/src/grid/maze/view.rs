//! What the player sees: a level's background and the agent on it.

use std::sync::Arc;

use super::draw::{background, byte_at};
use super::grid::Direction;
use super::layout::FRAME_SIDE;
use super::level::Level;
use super::sprite::Skin;
use super::theme::THEMES;

/// An observation's bytes: RGB, rows first.
#[cfg(test)]
const FRAME_BYTES: usize = FRAME_SIDE * FRAME_SIDE * 3;
/// The largest scale of [`View::frame`]: 1024×1024 pixels.
pub const MAX_SCALE: usize = 16;

/// What the player sees: a snapshot that draws itself. Cheap to make and to clone.
#[derive(Clone)]
pub struct View {
    level: Arc<Level>,
    cell: usize,
    facing: Direction,
}

impl View {
    pub(super) fn new(level: Arc<Level>, cell: usize, facing: Direction) -> Self {
        Self { level, cell, facing }
    }

    /// Writes every byte of `out`, one 64×64×3 frame. Panics unless it is 12,288 long.
    pub fn draw(&self, out: &mut [u8]) {
        out.copy_from_slice(&self.level.background);
        self.draw_agent(out, 1, self.level.skin);
    }

    /// The same picture for people, `scale` times as large and the round things drawn finer: height,
    /// width and RGB bytes. At scale 1 it is the observation.
    ///
    /// Errors unless the scale is between 1 and 16.
    pub fn frame(&self, scale: usize) -> Result<(usize, usize, Vec<u8>), String> {
        if !(1..=MAX_SCALE).contains(&scale) {
            return Err(format!("Maze: the frame's scale is {scale}; it must be between 1 and {MAX_SCALE}"));
        }
        let scene = &self.level.scene;
        let skin = Skin::new(scene.layout, &THEMES[scene.theme], scale);
        let mut frame = background(scene, scale, &skin);
        self.draw_agent(&mut frame, scale, &skin);
        Ok((FRAME_SIDE * scale, FRAME_SIDE * scale, frame))
    }

    #[inline]
    fn draw_agent(&self, frame: &mut [u8], scale: usize, skin: &Skin) {
        let sprite = &skin.agent[self.facing as usize];
        sprite.blend(frame, FRAME_SIDE * scale * 3, byte_at(&self.level.scene.layout, self.cell, scale));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::fixtures::{level, many_levels};
    use super::super::game::{Game, State};
    use super::*;

    fn drawn(view: &View) -> Vec<u8> {
        let mut frame = vec![0; FRAME_BYTES];
        view.draw(&mut frame);
        frame
    }

    /// FNV-1a, 64 bits.
    fn hash(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    #[test]
    fn a_frame_overwrites_every_byte() {
        for level in many_levels() {
            let view = Game::new(level).view();
            let mut full = vec![255; FRAME_BYTES];
            view.draw(&mut full);
            assert!(full == drawn(&view));
        }
    }

    #[test]
    fn every_state_has_its_own_picture() {
        for (index, size) in (3..=12).enumerate() {
            let level = level(index as u64, size, 0);
            let mut seen = HashSet::new();
            for cell in 0..(size * size) as u16 {
                for facing in 0..4 {
                    let game = Game::restore(Arc::clone(&level), State { cell, facing }).unwrap();
                    assert!(seen.insert(drawn(&game.view())), "{cell} {facing} at size {size}");
                }
            }
        }
    }

    #[test]
    fn a_view_keeps_what_it_saw() {
        let mut game = Game::new(level(1, 7, 100));
        let (view, before) = (game.view(), drawn(&game.view()));
        for action in 1..=4 {
            game.step(action).unwrap();
        }
        assert!(drawn(&view) == before && drawn(&game.view()) != before);
    }

    #[test]
    fn the_frame_at_scale_1_is_the_observation() {
        for level in many_levels() {
            let view = Game::new(level).view();
            assert!(view.frame(1) == Ok((64, 64, drawn(&view))));
        }
    }

    #[test]
    fn a_larger_frame_shows_the_same_picture() {
        for (index, scale) in [2, 3, 8, MAX_SCALE].into_iter().enumerate() {
            let view = Game::new(level(index as u64, 7, 0)).view();
            let (height, width, frame) = view.frame(scale).unwrap();
            assert_eq!((height, width, frame.len()), (64 * scale, 64 * scale, 64 * 64 * scale * scale * 3));
            let mean_difference: u64 = drawn(&view)
                .iter()
                .enumerate()
                .map(|(at, small)| {
                    let (y, x, channel) = (at / 192, at % 192 / 3, at % 3);
                    let block = (0..scale * scale).map(|i| {
                        let (y, x) = (y * scale + i / scale, x * scale + i % scale);
                        u64::from(frame[(y * width + x) * 3 + channel])
                    });
                    (block.sum::<u64>() / (scale * scale) as u64).abs_diff(u64::from(*small))
                })
                .sum::<u64>()
                * 100
                / FRAME_BYTES as u64;
            assert!(mean_difference < 50, "{mean_difference} hundredths at scale {scale}");
        }
    }

    #[test]
    fn a_scale_out_of_range_is_an_error() {
        let view = Game::new(level(0, 3, 0)).view();
        for scale in [0, 17] {
            assert!(view.frame(scale).is_err_and(|e| e.contains(&format!("scale is {scale}"))));
        }
    }

    /// Recorded from this code on x86-64 (2026), from the fixtures' own random numbers; they say
    /// that another machine draws the same bytes. A change of the pictures must change them, and
    /// the environment's version.
    #[test]
    fn the_frames_are_the_same_bytes_everywhere() {
        for (index, size, loops, facing, scale, expected) in [
            (0, 7, 0, 2, 1, 0xbe04_7632_39e1_fc64u64),
            (1, 3, 0, 0, 1, 0x8578_c3f5_1bd4_a2b7),
            (2, 12, 30, 1, 1, 0x2150_b43c_f1f7_ed1d),
            (3, 8, 100, 3, 1, 0xfd16_84c9_39fd_9067),
            (4, 7, 0, 2, 3, 0x67ae_fdff_e5d1_f438),
        ] {
            let level = level(index, size, loops);
            let state = State { cell: level.start() as u16, facing };
            let view = Game::restore(level, state).unwrap().view();
            let found = hash(&view.frame(scale).unwrap().2);
            assert_eq!(found, expected, "{found:#018x} for level {index} at size {size}");
        }
    }
}
