//! The picture of one field: shapes that each pixel's nine samples lie in or not.

use std::f64::consts::FRAC_PI_2;

use super::cell::{Colour, GridCell, Thing};

type TileSample = [u8; 3];

/// The samples of a pixel's side.
const SAMPLES: usize = 3;

const BLACK: TileSample = [0, 0, 0];
const LINE: TileSample = [100, 100, 100];
const AGENT: TileSample = [255, 0, 0];
const FIRE: TileSample = [255, 128, 0];

fn rgb(colour: Colour) -> TileSample {
    match colour {
        Colour::Red => [255, 0, 0],
        Colour::Green => [0, 255, 0],
        Colour::Blue => [0, 0, 255],
        Colour::Purple => [112, 39, 195],
        Colour::Yellow => [255, 255, 0],
        Colour::Grey => [100, 100, 100],
    }
}

/// A square of samples, whose coordinates go from 0 to 1.
struct Samples {
    side: usize,
    samples: Vec<TileSample>,
}

impl Samples {
    fn fill(&mut self, colour: TileSample, is_inside: impl Fn(f64, f64) -> bool) {
        let side = self.side as f64;
        for (k, sample) in self.samples.iter_mut().enumerate() {
            let (row, column) = (k / self.side, k % self.side);
            if is_inside((column as f64 + 0.5) / side, (row as f64 + 0.5) / side) {
                *sample = colour;
            }
        }
    }

    fn rect(&mut self, [left, right, top, bottom]: [f64; 4], colour: TileSample) {
        self.fill(colour, |x, y| x >= left && x <= right && y >= top && y <= bottom);
    }

    fn disc(&mut self, [cx, cy, radius]: [f64; 3], colour: TileSample) {
        self.fill(colour, |x, y| (x - cx) * (x - cx) + (y - cy) * (y - cy) <= radius * radius);
    }

    /// A stroke with round ends. Its ends are of single precision, as the package has them.
    fn stroke(&mut self, [x0, y0, x1, y1]: [f64; 4], radius: f64, colour: TileSample) {
        let (start, end) = ([x0 as f32, y0 as f32], [x1 as f32, y1 as f32]);
        let way = [end[0] - start[0], end[1] - start[1]];
        let length = (way[0] * way[0] + way[1] * way[1]).sqrt();
        let way = [f64::from(way[0] / length), f64::from(way[1] / length)];
        let start = start.map(f64::from);
        let (left, right) = (x0.min(x1) - radius, x0.max(x1) + radius);
        let (top, bottom) = (y0.min(y1) - radius, y0.max(y1) + radius);
        self.fill(colour, |x, y| {
            if x < left || x > right || y < top || y > bottom {
                return false;
            }
            let along = (x - start[0]) * way[0] + (y - start[1]) * way[1];
            let along = along.clamp(0.0, length.into());
            let (dx, dy) = (x - (start[0] + along * way[0]), y - (start[1] + along * way[1]));
            (dx * dx + dy * dy).sqrt() <= radius
        });
    }

    /// The agent: a triangle with its point to the east, turned clockwise by quarters.
    fn agent(&mut self, facing: u8) {
        let corners: [[f32; 2]; 3] = [[0.12, 0.19], [0.87, 0.50], [0.12, 0.81]];
        let [a, b, c] = corners;
        let (v0, v1) = ([c[0] - a[0], c[1] - a[1]], [b[0] - a[0], b[1] - a[1]]);
        let dot = |p: [f32; 2], q: [f32; 2]| p[0] * q[0] + p[1] * q[1];
        let (dot00, dot01, dot11) = (dot(v0, v0), dot(v0, v1), dot(v1, v1));
        let scale = f64::from(1.0 / (dot00 * dot11 - dot01 * dot01));
        let [dot00, dot01, dot11] = [dot00, dot01, dot11].map(f64::from);
        let [a, v0, v1] = [a, v0, v1].map(|corner| corner.map(f64::from));
        let (sin, cos) = (-FRAC_PI_2 * f64::from(facing)).sin_cos();
        self.fill(AGENT, |x, y| {
            let (x, y) = (x - 0.5, y - 0.5);
            let (x, y) = (0.5 + x * cos - y * sin, 0.5 + y * cos + x * sin);
            let (x, y) = (x - a[0], y - a[1]);
            let (dot02, dot12) = (v0[0] * x + v0[1] * y, v1[0] * x + v1[1] * y);
            let u = (dot11 * dot02 - dot01 * dot12) * scale;
            let v = (dot00 * dot12 - dot01 * dot02) * scale;
            u >= 0.0 && v >= 0.0 && u + v < 1.0
        });
    }

    fn thing(&mut self, cell: GridCell) {
        let colour = rgb(cell.colour());
        match cell.thing() {
            Thing::Unseen | Thing::Empty => {}
            Thing::Wall | Thing::Goal => self.rect([0.0, 1.0, 0.0, 1.0], colour),
            Thing::Lava => self.lava(),
            Thing::OpenDoor => {
                self.rect([0.88, 1.00, 0.00, 1.00], colour);
                self.rect([0.92, 0.96, 0.04, 0.96], BLACK);
            }
            Thing::LockedDoor => {
                self.rect([0.00, 1.00, 0.00, 1.00], colour);
                self.rect([0.06, 0.94, 0.06, 0.94], colour.map(|part| (0.45 * f64::from(part)) as u8));
                self.rect([0.52, 0.75, 0.50, 0.56], colour);
            }
            Thing::ClosedDoor => {
                self.rect([0.00, 1.00, 0.00, 1.00], colour);
                self.rect([0.04, 0.96, 0.04, 0.96], BLACK);
                self.rect([0.08, 0.92, 0.08, 0.92], colour);
                self.rect([0.12, 0.88, 0.12, 0.88], BLACK);
                self.disc([0.75, 0.50, 0.08], colour);
            }
            Thing::Key => {
                self.rect([0.50, 0.63, 0.31, 0.88], colour);
                self.rect([0.38, 0.50, 0.59, 0.66], colour);
                self.rect([0.38, 0.50, 0.81, 0.88], colour);
                self.disc([0.56, 0.28, 0.190], colour);
                self.disc([0.56, 0.28, 0.064], BLACK);
            }
            Thing::Ball => self.disc([0.5, 0.5, 0.31], colour),
            Thing::Box => {
                self.rect([0.12, 0.88, 0.12, 0.88], colour);
                self.rect([0.18, 0.82, 0.18, 0.82], BLACK);
                self.rect([0.16, 0.84, 0.47, 0.53], colour);
            }
        }
    }

    /// Three waves on fire.
    fn lava(&mut self) {
        self.rect([0.0, 1.0, 0.0, 1.0], FIRE);
        for wave in 0..3 {
            let (low, high) = (0.3 + 0.2 * f64::from(wave), 0.4 + 0.2 * f64::from(wave));
            for (left, from, right, to) in
                [(0.1, low, 0.3, high), (0.3, high, 0.5, low), (0.5, low, 0.7, high), (0.7, high, 0.9, low)]
            {
                self.stroke([left, from, right, to], 0.03, BLACK);
            }
        }
    }

    /// Each pixel's mean, rounded down.
    fn pixels(&self, side: usize) -> Box<[u8]> {
        let mean = |parts: [f64; SAMPLES]| ((parts[0] + parts[1]) + parts[2]) / SAMPLES as f64;
        let sample =
            |row: usize, column: usize, part: usize| f64::from(self.samples[row * self.side + column][part]);
        let pixel = |k: usize| {
            let (row, column, part) = (k / 3 / side * SAMPLES, k / 3 % side * SAMPLES, k % 3);
            mean([0, 1, 2].map(|y| mean([0, 1, 2].map(|x| sample(row + y, column + x, part))))) as u8
        };
        (0..side * side * 3).map(pixel).collect()
    }
}

/// The picture of a field, `side` pixels wide and high: what it holds, the agent on it if it is
/// there, and whether the agent sees it.
pub(super) fn draw(cell: GridCell, agent: Option<u8>, is_seen: bool, side: usize) -> Box<[u8]> {
    let samples = side * SAMPLES;
    let mut tile = Samples { side: samples, samples: vec![BLACK; samples * samples] };
    tile.rect([0.0, 0.031, 0.0, 1.0], LINE);
    tile.rect([0.0, 1.0, 0.0, 0.031], LINE);
    tile.thing(cell);
    if let Some(facing) = agent {
        tile.agent(facing);
    }
    if is_seen {
        let brighter = |part: u8| (f64::from(part) + 0.30 * f64::from(255 - part)) as u8;
        tile.samples.iter_mut().for_each(|sample| *sample = sample.map(brighter));
    }
    tile.pixels(side)
}
