//! The grid as a picture, and what the agent sees as one.

use std::sync::OnceLock;

use envcore::{Frame, Result};

use super::cell::{CELLS, GridCell};
use super::tile;
use super::world::GridWorld;

/// The pixels of a field's side in observations, and in rendered frames.
pub(super) const TILE: usize = 8;
const FRAME_TILE: usize = 32;

/// The agent as the picture of what it sees has it: to the north.
const NORTH: u8 = 3;

/// How many pictures a content has: without an agent or with one facing anywhere, seen or not.
const VARIANTS: usize = 5 * 2;

/// The pictures of fields of one size, each drawn at its first use.
struct Tiles {
    side: usize,
    tiles: [OnceLock<Box<[u8]>>; CELLS * VARIANTS],
}

impl Tiles {
    const fn new(side: usize) -> Self {
        Tiles { side, tiles: [const { OnceLock::new() }; CELLS * VARIANTS] }
    }

    fn tile(&self, cell: GridCell, agent: Option<u8>, is_seen: bool) -> &[u8] {
        let variant = agent.map_or(0, |facing| usize::from(facing) + 1) * 2 + usize::from(is_seen);
        self.tiles[usize::from(cell.code()) * VARIANTS + variant]
            .get_or_init(|| tile::draw(cell, agent, is_seen, self.side))
    }

    /// Copies a field's picture into that of a grid that is `columns` wide.
    fn put(&self, image: &mut [u8], columns: usize, (column, row): (usize, usize), tile: &[u8]) {
        let line = self.side * 3;
        let mut at = (row * columns * self.side + column) * line;
        for pixels in tile.chunks_exact(line) {
            image[at..at + line].copy_from_slice(pixels);
            at += columns * line;
        }
    }
}

static SMALL: Tiles = Tiles::new(TILE);
static LARGE: Tiles = Tiles::new(FRAME_TILE);

fn tiles(side: usize) -> &'static Tiles {
    if side == TILE { &SMALL } else { &LARGE }
}

/// Draws the whole grid, `side` pixels a field; what the agent sees is brighter.
pub(super) fn draw_grid(world: &GridWorld, side: usize, image: &mut [u8]) {
    // Grids have at most as many columns and rows as there are bits and words.
    let mut seen = [0u64; 64];
    world.look(|_, _, number, cell| {
        let spot = world.spot(number);
        if cell != GridCell::UNSEEN && world.has(spot) {
            seen[spot.1 as usize] |= 1 << spot.0;
        }
    });
    let tiles = tiles(side);
    let (x, y) = world.spot(world.agent);
    for (row, seen) in seen.iter().enumerate().take(world.height) {
        for (column, cell) in world.cells_of_row(row).iter().enumerate() {
            let agent = ((column, row) == (x as usize, y as usize)).then_some(world.facing);
            let tile = tiles.tile(*cell, agent, seen >> column & 1 == 1);
            tiles.put(image, world.width, (column, row), tile);
        }
    }
}

/// Draws what the agent sees, itself in the middle of the last row.
pub(super) fn draw_partial(world: &GridWorld, side: usize, image: &mut [u8]) {
    let (size, tiles) = (world.sight.size, tiles(side));
    world.look(|column, row, _, cell| {
        let agent = ((column, row) == (size / 2, size - 1)).then_some(NORTH);
        let is_seen = cell != GridCell::UNSEEN;
        let tile = tiles.tile(if is_seen { cell } else { GridCell::EMPTY }, agent, is_seen);
        tiles.put(image, size, (column, row), tile);
    });
}

/// The picture that [`Env::render`](envcore::Env::render) gives.
pub(super) fn frame(world: &GridWorld) -> Result<Frame> {
    let (width, height) = (world.width * FRAME_TILE, world.height * FRAME_TILE);
    let mut pixels = vec![0; width * height * 3];
    draw_grid(world, FRAME_TILE, &mut pixels);
    Frame::new(height, width, pixels)
}
