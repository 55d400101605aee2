//! The agent and the goal: small shapes, rasterised once per size and theme.
//!
//! A shape is a function from a point to a colour and an opacity. Points are in 64ths of a screen
//! pixel, from the top left of the corridor the sprite stands in. Each pixel is the mean of a grid of points,
//! so one shape serves every size and every scale.

use std::sync::OnceLock;

use super::config::MazeConfig;
use super::layout::{MazeLayout, SIZES};
use super::theme::{BLACK, Rgb, THEMES, Theme, WHITE, mix};

const UNIT: i64 = 64;

/// A colour and how opaque it is, 0 to 255.
type Paint = (Rgb, u32);
const NOTHING: Paint = (BLACK, 0);

/// Pixels to blend over others: `under * keep / 256 + add`.
pub(super) struct Sprite {
    row_bytes: usize,
    add: Vec<u8>,
    keep: Vec<u8>,
}

impl Sprite {
    /// A square of `corridor * scale` pixels a side.
    fn raster(corridor: usize, scale: usize, shape: impl Fn(i64, i64) -> Paint) -> Self {
        let side = corridor * scale;
        let fine = (8 / scale).max(4) as i64;
        let at =
            |pixel: usize, sub: i64| ((pixel as i64 * fine + sub) * 2 + 1) * UNIT / (2 * fine * scale as i64);
        let mut sprite = Self { row_bytes: side * 3, add: Vec::new(), keep: Vec::new() };
        for y in 0..side {
            for x in 0..side {
                let mut sum = [0u32; 3];
                let mut opaque = 0u32;
                for sub in 0..fine * fine {
                    let (rgb, alpha) = shape(at(x, sub % fine), at(y, sub / fine));
                    for (sum, channel) in sum.iter_mut().zip(rgb) {
                        *sum += u32::from(channel) * alpha;
                    }
                    opaque += alpha;
                }
                let points = (fine * fine) as u32;
                sprite.add.extend(sum.map(|sum| (sum / (points * 255)) as u8));
                sprite.keep.extend([255 - (opaque / points) as u8; 3]);
            }
        }
        sprite
    }

    /// Draws onto `frame`, rows of `frame_row` bytes, from the byte `at` on.
    #[inline]
    pub(super) fn blend(&self, frame: &mut [u8], frame_row: usize, at: usize) {
        let rows = self.add.chunks_exact(self.row_bytes).zip(self.keep.chunks_exact(self.row_bytes));
        for (under, (add, keep)) in frame[at..].chunks_mut(frame_row).zip(rows) {
            for ((under, add), keep) in under.iter_mut().zip(add).zip(keep) {
                // + 255: keeps all at 255 and nothing at 0.
                *under = *add + ((u16::from(*under) * u16::from(*keep) + 255) >> 8) as u8;
            }
        }
    }
}

/// The sprites of one size and theme.
pub(super) struct Skin {
    /// Facing up, right, down, left.
    pub(super) agent: [Sprite; 4],
    pub(super) goal: Sprite,
}

impl Skin {
    pub(super) fn new(layout: MazeLayout, theme: &Theme, scale: usize) -> Self {
        let agent = |facing: usize| {
            let shape = agent(layout.corridor as i64, facing, theme);
            Sprite::raster(layout.corridor, scale, shape)
        };
        Self {
            agent: std::array::from_fn(agent),
            goal: Sprite::raster(layout.corridor, scale, gem(layout.corridor as i64, theme)),
        }
    }

    /// The skin at scale 1. It is made once in a process: rasterising costs far more than the rest
    /// of a level.
    pub(super) fn shared(layout: MazeLayout, theme: usize) -> &'static Self {
        static SKINS: [[OnceLock<Skin>; THEMES.len()]; SIZES] =
            [const { [const { OnceLock::new() }; THEMES.len()] }; SIZES];
        let slot = &SKINS[layout.size - MazeConfig::MIN_SIZE as usize][theme];
        slot.get_or_init(|| Self::new(layout, &THEMES[theme], 1))
    }
}

/// Is (x, y) in the ellipse around the origin?
fn in_ellipse(x: i64, y: i64, rx: i64, ry: i64) -> bool {
    x * x * ry * ry + y * y * rx * rx <= rx * rx * ry * ry
}

/// Is (x, y) in a body `2 * half` wide and `height` tall that stands with its feet's middle at the
/// origin: round above, nearly square below?
fn in_body(x: i64, y: i64, half: i64, height: i64) -> bool {
    let foot = half / 2;
    if x.abs() > half || y > 0 || y < -height {
        false
    } else if y < half - height {
        in_ellipse(x, y + height - half, half, half)
    } else if y > -foot && x.abs() > half - foot {
        in_ellipse(x.abs() - (half - foot), y + foot, foot, foot)
    } else {
        true
    }
}

/// Where the eyes are, in whole screen pixels from the top left, or they would blur away at the
/// small sizes.
struct Eyes {
    wide: i64,
    tall: i64,
    top: i64,
    /// Their left edges, seen from the front.
    front: [i64; 2],
    /// Their left edges when it looks to the right.
    right: [i64; 2],
}

impl Eyes {
    fn new(corridor: i64) -> Self {
        let (wide, tall, top, front, right) = match corridor {
            ..=4 => (1, 1, 1, [1, 2], [2, 3]),
            5 => (1, 2, 1, [1, 3], [2, 4]),
            6 => (1, 2, 2, [1, 4], [2, 4]),
            7 => (1, 2, 2, [2, 4], [3, 5]),
            8 => (1, 3, 2, [2, 5], [4, 6]),
            9..=11 => (2, 3, 3, [2, 7], [5, 8]),
            _ => (2, 4, 4, [4, 9], [7, 11]),
        };
        Self { wide, tall, top, front, right }
    }

    /// Is (x, y) in an eye?
    fn contain(&self, x: i64, y: i64, facing: usize, side: i64) -> bool {
        let (x, edges) = match facing {
            0 => return false,
            1 => (x, self.right),
            2 => (x, self.front),
            _ => (side - x, self.right),
        };
        let is_beside = |edge: i64| (edge * UNIT..(edge + self.wide) * UNIT).contains(&x);
        edges.into_iter().any(is_beside) && (self.top * UNIT..(self.top + self.tall) * UNIT).contains(&y)
    }
}

/// A little creature seen from the front, the side or behind.
fn agent(corridor: i64, facing: usize, theme: &Theme) -> impl Fn(i64, i64) -> Paint {
    let side = corridor * UNIT;
    let middle = side / 2;
    let half = if corridor < 6 { middle } else { middle - UNIT / 4 };
    let floor = side - UNIT / 4;
    let height = floor - if corridor < 6 { 0 } else { UNIT / 4 };
    let rim = side / 14;
    let eyes = Eyes::new(corridor);
    let (colour, eye) = (theme.agent, theme.eyes);
    let dark = mix(colour, BLACK, 100);
    move |x, y| {
        let (dx, dy) = (x - middle, y - floor);
        if !in_body(dx, dy, half, height) {
            let shade = in_ellipse(dx, dy, half + UNIT / 4, side / 8);
            return if shade { (BLACK, 90) } else { NOTHING };
        }
        if eyes.contain(x, y, facing, side) {
            (eye, 255)
        } else if !in_body(dx, dy + rim, half - rim, height - 2 * rim) {
            (dark, 255)
        } else if in_ellipse(dx + half / 3, dy + height - half * 2 / 3, half / 2, half / 3) {
            (mix(colour, WHITE, 130), 255)
        } else if dy > -height / 4 {
            (mix(colour, dark, 110), 255)
        } else {
            (colour, 255)
        }
    }
}

/// A cut gem, pointing down.
fn gem(corridor: i64, theme: &Theme) -> impl Fn(i64, i64) -> Paint {
    let side = corridor * UNIT;
    let middle = side / 2;
    let half = middle - if corridor < 8 { 0 } else { UNIT / 2 };
    let top = if corridor < 8 { UNIT / 2 } else { UNIT };
    let girdle = side * 3 / 8;
    let point = side - UNIT / 4;
    let rim = side / 16;
    let colour = theme.gem;
    // Half the gem's width at a height; negative above and below it.
    let reach = move |y: i64, shrink: i64| {
        if y < top + shrink || y > point - shrink {
            -1
        } else if y < girdle {
            half - (girdle - y) - shrink
        } else {
            half * (point - y) / (point - girdle) - shrink
        }
    };
    move |x, y| {
        let (dx, across) = (x - middle, (x - middle).abs());
        if across > reach(y, 0) {
            let shade = in_ellipse(dx, y - point + side / 16, side / 4, side / 12);
            return if shade { (BLACK, 80) } else { NOTHING };
        }
        let facet = if across > reach(y, rim) {
            mix(colour, BLACK, 90)
        } else if y < girdle {
            mix(colour, WHITE, if dx < -half / 4 { 210 } else { 110 })
        } else if dx * 3 < -half * (point - y) / (point - girdle) {
            mix(colour, WHITE, 80)
        } else if dx * 3 < half * (point - y) / (point - girdle) {
            colour
        } else {
            mix(colour, BLACK, 60)
        };
        (facet, 255)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sprite(paint: Paint) -> Sprite {
        Sprite::raster(4, 1, |_, _| paint)
    }

    #[test]
    fn a_sprite_changes_only_its_square() {
        let mut frame = vec![9; 8 * 8 * 3];
        sprite(([50, 60, 70], 255)).blend(&mut frame, 8 * 3, (2 * 8 + 3) * 3);
        for (at, pixel) in frame.chunks_exact(3).enumerate() {
            let inside = (3..7).contains(&(at % 8)) && (2..6).contains(&(at / 8));
            assert_eq!(pixel, if inside { [50, 60, 70] } else { [9; 3] });
        }
    }

    #[test]
    fn nothing_keeps_every_value_and_the_last_square_fits() {
        let mut frame: Vec<u8> = (0..=255).cycle().take(8 * 8 * 3).collect();
        let before = frame.clone();
        sprite(NOTHING).blend(&mut frame, 8 * 3, (4 * 8 + 4) * 3);
        assert_eq!(frame, before);
    }

    #[test]
    fn blending_never_overflows() {
        for alpha in 0..=255 {
            for under in 0..=255 {
                let mut frame = vec![under; 4 * 4 * 3];
                sprite((WHITE, alpha)).blend(&mut frame, 4 * 3, 0);
                assert!(frame[0] >= under, "{under} under {alpha}");
            }
        }
    }

    #[test]
    fn the_agent_stands_out_from_every_floor() {
        for theme in &THEMES {
            for floor in theme.floor {
                let contrast: u32 = (0..3).map(|i| u32::from(theme.agent[i].abs_diff(floor[i]))).sum();
                assert!(contrast > 120, "{:?} on {floor:?}", theme.agent);
            }
        }
    }
}
