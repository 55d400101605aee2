//! The board as a picture and as text.

use envcore::{Frame, Result};

use super::world::SnakeWorld;
use crate::canvas::{Canvas, Rgb, WHITE};

const LIGHT: Rgb = [170, 215, 81];
const DARK: Rgb = [162, 209, 73];
const SKIN: Rgb = [62, 92, 190];
const HEAD: Rgb = [44, 66, 150];
const BLACK: Rgb = [20, 20, 30];
const FRUIT: Rgb = [214, 52, 52];
const STALK: Rgb = [70, 110, 40];
/// About how many pixels the longer side of a picture has.
const PICTURE: f32 = 480.0;

/// The board, seen from above.
pub(super) fn picture(world: &SnakeWorld) -> Result<Frame> {
    let side = (PICTURE / world.rows.max(world.columns) as f32).floor();
    let pixels = |fields: usize| (fields as f32 * side) as u32;
    let mut canvas = Canvas::new(pixels(world.columns), pixels(world.rows), LIGHT)?;
    let corner =
        |field: usize| ((field % world.columns) as f32 * side, (field / world.columns) as f32 * side);
    let middle = |field: u16| {
        let (x, y) = corner(usize::from(field));
        (x + side / 2.0, y + side / 2.0)
    };
    for field in 0..world.rows * world.columns {
        if (field / world.columns + field % world.columns) % 2 == 1 {
            let (x, y) = corner(field);
            canvas.rect(x, y, side, side, DARK);
        }
    }
    if let Some(fruit) = world.fruit {
        let (x, y) = middle(fruit);
        canvas.line(&[(x, y - 0.25 * side), (x + 0.1 * side, y - 0.42 * side)], 0.1 * side, STALK);
        canvas.circle(x, y + 0.05 * side, 0.34 * side, FRUIT);
    }
    let body: Vec<(f32, f32)> = world.snake().map(middle).collect();
    canvas.line(&body, 0.66 * side, SKIN);
    draw_head(&mut canvas, &body, side);
    canvas.frame()
}

/// The head with its eyes to where it goes: upwards where it has gone nowhere yet.
fn draw_head(canvas: &mut Canvas, body: &[(f32, f32)], side: f32) {
    let [.., (x, y)] = *body else { return };
    canvas.circle(x, y, 0.4 * side, HEAD);
    let (ahead_x, ahead_y) = match *body {
        [.., (from_x, from_y), _] => ((x - from_x) / side, (y - from_y) / side),
        _ => (0.0, -1.0),
    };
    for aside in [-1.0, 1.0] {
        let eye_x = x + side * (0.14 * ahead_x - aside * 0.18 * ahead_y);
        let eye_y = y + side * (0.14 * ahead_y + aside * 0.18 * ahead_x);
        canvas.circle(eye_x, eye_y, 0.12 * side, WHITE);
        canvas.circle(eye_x + 0.04 * side * ahead_x, eye_y + 0.04 * side * ahead_y, 0.06 * side, BLACK);
    }
}

/// The board row by row: `@` is the head, `o` the body, `*` the fruit.
pub(super) fn text(world: &SnakeWorld) -> String {
    let mut fields = vec!['.'; world.rows * world.columns];
    world.snake().for_each(|field| fields[usize::from(field)] = 'o');
    fields[usize::from(world.head())] = '@';
    if let Some(fruit) = world.fruit {
        fields[usize::from(fruit)] = '*';
    }
    let line = |row: &[char]| row.iter().map(char::to_string).collect::<Vec<_>>().join(" ") + "\n";
    fields.chunks(world.columns).map(line).collect()
}
