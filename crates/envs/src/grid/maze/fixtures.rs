//! What the tests of several files share.

use std::sync::Arc;

use super::config::MazeConfig;
use super::grid::Direction;
use super::level::Level;

/// Uniform integers from SplitMix64, good enough for tests.
pub(super) fn uniform(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |n| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

pub(super) fn level(index: u64, size: u32, loops: u32) -> Arc<Level> {
    Arc::new(Level::generate(&mut uniform(index), &MazeConfig { size, loops }).unwrap())
}

/// Levels of every size, from perfect mazes to ones without dead ends.
pub(super) fn many_levels() -> impl Iterator<Item = Arc<Level>> {
    (MazeConfig::MIN_SIZE..=MazeConfig::MAX_SIZE).flat_map(|size| {
        [0, 30, 100].into_iter().flat_map(move |loops| (0..20).map(move |i| level(i, size, loops)))
    })
}

/// Every cell's distance to `target`, by Bellman and Ford's relaxation over all passages, for
/// comparison with the breadth-first search; `None` where no way leads.
pub(super) fn relaxed_distances(level: &Level, target: usize) -> Vec<Option<u16>> {
    let cells = level.size() * level.size();
    let mut distances = vec![None; cells];
    distances[target] = Some(0);
    for _ in 0..cells {
        for cell in 0..cells {
            for direction in Direction::ALL {
                if let Some(to) = level.walk(cell, direction)
                    && let Some(there) = distances[to]
                    && distances[cell].is_none_or(|here| here > there + 1)
                {
                    distances[cell] = Some(there + 1);
                }
            }
        }
    }
    distances
}
