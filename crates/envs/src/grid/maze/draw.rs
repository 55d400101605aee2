//! The background of a level: everything but the agent.
//!
//! Seen from above and a little from the front: a wall shows its top, lit along its upper and left
//! edges, and below it a strip of its front side, which shades the floor. The goal sheds light
//! around it.
//!
//! A frame for people is the same picture at a larger scale: walls and floor keep their large
//! pixels, the light and the sprites are drawn finer. Scale 1 is the observation.

use super::grid::{Direction, Grid};
use super::layout::{FRAME_SIDE, MazeLayout};
use super::sprite::Skin;
use super::theme::{BLACK, Rgb, THEMES, Theme, WHITE, mix};

/// What a background shows.
pub(super) struct Scene {
    pub(super) grid: Grid,
    pub(super) layout: MazeLayout,
    /// Which of the themes colours it.
    pub(super) theme: usize,
    /// Where it starts reading the table of grain; below [`GRAIN_STARTS`].
    pub(super) grain: usize,
    pub(super) goal: usize,
}

/// Where the cell's corridor begins in a frame.
pub(super) fn byte_at(layout: &MazeLayout, cell: usize, scale: usize) -> usize {
    let (x, y) = layout.corner(cell);
    (y * FRAME_SIDE * scale + x) * scale * 3
}

/// RGB bytes, rows first, of `FRAME_SIDE * scale` pixels a side; `skin` is of the same scale.
pub(super) fn background(scene: &Scene, scale: usize, skin: &Skin) -> Vec<u8> {
    let theme = &THEMES[scene.theme];
    let mut frame = paint_maze(scene, theme);
    if scale > 1 {
        frame = enlarge(&frame, scale);
    }
    shed_light(&mut frame, scene, theme, scale);
    let at = byte_at(&scene.layout, scene.goal, scale);
    skin.goal.blend(&mut frame, FRAME_SIDE * scale * 3, at);
    frame
}

/// What a screen pixel shows: where its colours begin in the palette, one per grain.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Material {
    Floor = 0,
    FloorOdd = 4,
    Shade = 8,
    ShadeOdd = 12,
    DeepShade = 16,
    DeepShadeOdd = 20,
    Top = 24,
    Lit = 28,
    Dim = 32,
    Face = 36,
    FaceFoot = 40,
}

/// A colour per material and grain; a power of two, so that no index needs a check.
type Palette = [Rgb; 64];

/// How many places there are for a level to start reading [`GRAIN`] from.
pub(super) const GRAIN_STARTS: usize = 4096;

/// Random numbers, 0 to 3, a frame of which roughens a level's surfaces.
static GRAIN: [u8; GRAIN_STARTS + FRAME_SIDE * FRAME_SIDE] = {
    let mut grain = [0; GRAIN_STARTS + FRAME_SIDE * FRAME_SIDE];
    let mut state = 0x9e37_79b9_u32;
    let mut i = 0;
    while i < grain.len() {
        // xorshift32 (Marsaglia 2003)
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        grain[i] = match state >> 28 {
            0..2 => 1,
            2..4 => 2,
            4 => 3,
            _ => 0,
        };
        i += 1;
    }
    grain
};

fn palette(theme: &Theme) -> Palette {
    let [even, odd] = theme.floor;
    let shadow = mix(theme.face, BLACK, 110);
    let mut palette = [BLACK; 64];
    for (material, colour, strength) in [
        (Material::Floor, even, 8),
        (Material::FloorOdd, odd, 8),
        (Material::Shade, mix(even, shadow, 50), 6),
        (Material::ShadeOdd, mix(odd, shadow, 50), 6),
        (Material::DeepShade, mix(even, shadow, 110), 4),
        (Material::DeepShadeOdd, mix(odd, shadow, 110), 4),
        (Material::Top, theme.top, 14),
        (Material::Lit, theme.lit, 14),
        (Material::Dim, theme.dim, 12),
        (Material::Face, theme.face, 10),
        (Material::FaceFoot, mix(theme.face, BLACK, 50), 8),
    ] {
        palette[material as usize..][..4].copy_from_slice(&[
            colour,
            mix(colour, WHITE, strength),
            mix(colour, BLACK, strength),
            mix(colour, BLACK, strength * 2),
        ]);
    }
    palette
}

/// One row of screen pixels, a bit each; bit 0 is the leftmost.
type PixelRow = u64;

/// The bits from `from` on, `count` of them.
fn span(from: usize, count: usize) -> PixelRow {
    ((1 << count) - 1) << from
}

/// The walls, by row of screen pixels.
fn wall_rows(grid: &Grid, layout: &MazeLayout) -> [PixelRow; FRAME_SIDE] {
    let mut rows = [PixelRow::MAX; FRAME_SIDE];
    for cell in 0..grid.size * grid.size {
        let (x, y) = layout.corner(cell);
        let mut clear = |from: usize, count: usize, bits: PixelRow| {
            for row in &mut rows[from..from + count] {
                *row &= !bits;
            }
        };
        clear(y, layout.corridor, span(x, layout.corridor));
        if grid.is_open(cell, Direction::Right) {
            clear(y, layout.corridor, span(x + layout.corridor, layout.wall));
        }
        if grid.is_open(cell, Direction::Down) {
            clear(y + layout.corridor, layout.wall, span(x, layout.corridor));
        }
    }
    rows
}

/// The dark squares of the chessboard in the topmost row of cells; the next row of cells has the
/// others.
fn odd_columns(layout: &MazeLayout) -> PixelRow {
    let mut odd = 0;
    for column in (1..layout.size).step_by(2) {
        odd |= span(layout.corner(column).0, layout.pitch());
    }
    odd
}

/// Walls and floor, at scale 1.
fn paint_maze(scene: &Scene, theme: &Theme) -> Vec<u8> {
    let Scene { grid, layout, .. } = scene;
    let palette = palette(theme);
    let rows = wall_rows(grid, layout);
    let columns = odd_columns(layout);
    let mut frame = vec![0; FRAME_SIDE * FRAME_SIDE * 3];
    for (y, (wall, out)) in rows.into_iter().zip(frame.chunks_exact_mut(FRAME_SIDE * 3)).enumerate() {
        let above = |by: usize| y.checked_sub(by).map_or(PixelRow::MAX, |y| rows[y]);
        let below = rows.get(y + 1).copied().unwrap_or(PixelRow::MAX);
        let (left, right) = (wall << 1 | 1, wall >> 1 | 1 << 63);
        // Floor at most so many pixels below a wall.
        let under = |reach: usize| (1..=reach).fold(0, |bits, by| bits | above(by)) & !wall;

        let lit = wall & !(above(1) & left);
        let dim = wall & !lit & !(below & right);
        let (face, foot, deep) = (under(layout.face - 1), under(layout.face), under(layout.face + 1));
        let shade = left & !wall & !deep;
        let floor = !(wall | deep | shade);
        let row_is_odd = y.saturating_sub(layout.margin) / layout.pitch() % 2 == 1;
        let odd = if row_is_odd { !columns } else { columns };

        let mut colours = [Material::Floor as u8; FRAME_SIDE];
        for (bits, material) in [
            (floor & odd, Material::FloorOdd),
            (shade & !odd, Material::Shade),
            (shade & odd, Material::ShadeOdd),
            (deep & !foot & !odd, Material::DeepShade),
            (deep & !foot & odd, Material::DeepShadeOdd),
            (foot & !face, Material::FaceFoot),
            (face, Material::Face),
            (wall & !lit & !dim, Material::Top),
            (lit, Material::Lit),
            (dim, Material::Dim),
        ] {
            let mut rest = bits;
            while rest != 0 {
                colours[rest.trailing_zeros() as usize] = material as u8;
                rest &= rest - 1;
            }
        }
        let grains = &GRAIN[scene.grain + y * FRAME_SIDE..][..FRAME_SIDE];
        for ((colour, grain), pixel) in colours.iter().zip(grains).zip(out.as_chunks_mut().0) {
            *pixel = palette[usize::from(colour + grain) % palette.len()];
        }
    }
    frame
}

/// Every pixel as a square of `scale` times `scale`.
fn enlarge(frame: &[u8], scale: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(frame.len() * scale * scale);
    for row in frame.chunks_exact(FRAME_SIDE * 3) {
        let wide: Vec<u8> = row.chunks_exact(3).flat_map(|pixel| pixel.repeat(scale)).collect();
        for _ in 0..scale {
            out.extend_from_slice(&wide);
        }
    }
    out
}

/// The goal's light on all that is near it.
fn shed_light(frame: &mut [u8], scene: &Scene, theme: &Theme, scale: usize) {
    let side = FRAME_SIDE * scale;
    let (x, y) = scene.layout.corner(scene.goal);
    // Twice the lengths, for a centre between pixels.
    let centre = |corner: usize| (2 * corner + scene.layout.corridor) * scale;
    let (cx, cy) = (centre(x) as i64, centre(y) as i64);
    let reach = (3 * scene.layout.pitch() * scale) as i64;
    // A division per pixel would cost more than all the rest of a level's painting.
    let per_share = (256 << 16) / (reach * reach);
    let near =
        |c: i64| (((c - reach) / 2).max(0) as usize)..(((c + reach) / 2 + 1).min(side as i64) as usize);
    for y in near(cy) {
        for x in near(cx) {
            let (dx, dy) = (2 * x as i64 + 1 - cx, 2 * y as i64 + 1 - cy);
            let left = reach * reach - dx * dx - dy * dy;
            if left > 0 {
                let share = (left * per_share) >> 16;
                let strength = (share * share * 165) >> 16;
                let pixel = &mut frame[(y * side + x) * 3..][..3];
                let mixed = mix([pixel[0], pixel[1], pixel[2]], theme.glow, strength as u32);
                pixel.copy_from_slice(&mixed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::many_levels;
    use super::*;

    /// How far apart two colours are.
    fn apart(one: Rgb, other: Rgb) -> u32 {
        one.into_iter().zip(other).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
    }

    #[test]
    fn the_picture_shows_which_passages_are_open() {
        for level in many_levels() {
            let Scene { grid, layout, theme, goal, .. } = &level.scene;
            let theme = &THEMES[*theme];
            let far_from_light = |x: usize, y: usize| {
                let (gx, gy) = layout.corner(*goal);
                x.abs_diff(gx).max(y.abs_diff(gy)) > 2 * layout.pitch()
            };
            for cell in 0..grid.size * grid.size {
                let (x, y) = layout.corner(cell);
                let (side, foot) = (x + layout.corridor, y + layout.corridor);
                for (direction, x, y) in
                    [(Direction::Right, side, foot - 1), (Direction::Down, side - 1, foot)]
                {
                    if x >= FRAME_SIDE || y >= FRAME_SIDE || !far_from_light(x, y) {
                        continue;
                    }
                    let pixel = &level.background[(y * FRAME_SIDE + x) * 3..][..3];
                    let nearest = |colours: &[Rgb]| {
                        let pixel = [pixel[0], pixel[1], pixel[2]];
                        colours.iter().map(|colour| apart(*colour, pixel)).min()
                    };
                    let is_floor = nearest(&theme.floor) < nearest(&[theme.top, theme.lit, theme.dim]);
                    assert_eq!(is_floor, grid.walk(cell, direction).is_some(), "{cell} {direction:?}");
                }
            }
        }
    }

    #[test]
    fn the_goal_shines_on_what_is_near_and_nothing_else() {
        for level in many_levels() {
            let Scene { layout, theme, goal, .. } = &level.scene;
            let dark = paint_maze(&level.scene, &THEMES[*theme]);
            let (gx, gy) = layout.corner(*goal);
            for (at, (with, without)) in level.background.iter().zip(&dark).enumerate() {
                let (x, y) = (at / 3 % FRAME_SIDE, at / 3 / FRAME_SIDE);
                let distance = x.abs_diff(gx).max(y.abs_diff(gy));
                assert!(with == without || distance <= 2 * layout.pitch() + 1, "({x}, {y})");
            }
            assert!(level.background[..] != dark[..]);
        }
    }
}
