//! The town as a picture and as text.

use envcore::{Frame, Result};

use super::town::{IN_TAXI, Ride, SIDE, STANDS};
use crate::canvas::{Canvas, Rgb, WHITE};

const WIDTH: u32 = 536;
const HEIGHT: u32 = 456;
/// The town's top left corner, and the size of a field.
const ORIGIN: (f32, f32) = (48.0, 68.0);
const FIELD: (f32, f32) = (88.0, 64.0);

const MEADOW: Rgb = [206, 222, 180];
const STREET: Rgb = [96, 100, 110];
const SEAM: Rgb = [112, 116, 126];
const WALL: Rgb = [120, 72, 52];
const DARK: Rgb = [40, 42, 52];
const CAB: Rgb = [250, 196, 40];
const GLASS: Rgb = [150, 205, 230];
const PERSON: Rgb = [150, 60, 140];
const SKIN: Rgb = [245, 205, 170];
const STAND_COLOURS: [Rgb; 4] = [[214, 72, 72], [72, 168, 88], [226, 200, 60], [76, 116, 214]];

/// The top left corner of a field.
fn corner((row, column): (usize, usize)) -> (f32, f32) {
    (ORIGIN.0 + column as f32 * FIELD.0, ORIGIN.1 + row as f32 * FIELD.1)
}

/// The town, the passenger, his destination, and the taxi with its nose to `heading`.
pub(super) fn picture(ride: Ride, heading: u8) -> Result<Frame> {
    let mut canvas = Canvas::new(WIDTH, HEIGHT, MEADOW)?;
    draw_town(&mut canvas);
    let (x, y) = corner(STANDS[ride.destination]);
    draw_destination(&mut canvas, x, y, STAND_COLOURS[ride.destination]);
    if ride.passenger < IN_TAXI {
        let (x, y) = corner(STANDS[ride.passenger]);
        canvas.moved(x + 34.0, y + 36.0, draw_passenger);
    }
    let (x, y) = corner((ride.row, ride.column));
    // Turned clockwise from the east.
    let quarters = [1.0, 3.0, 0.0, 2.0][usize::from(heading)];
    canvas.turned(x + FIELD.0 / 2.0, y + FIELD.1 / 2.0, quarters * std::f32::consts::FRAC_PI_2, |canvas| {
        draw_taxi(canvas, ride.passenger == IN_TAXI);
    });
    canvas.frame()
}

fn draw_town(canvas: &mut Canvas) {
    let (width, height) = (SIDE as f32 * FIELD.0, SIDE as f32 * FIELD.1);
    canvas.rect(ORIGIN.0 - 6.0, ORIGIN.1 - 6.0, width + 12.0, height + 12.0, WALL);
    canvas.rect(ORIGIN.0, ORIGIN.1, width, height, STREET);
    for (stand, (letter, rgb)) in STANDS.iter().zip(["R", "G", "Y", "B"].iter().zip(STAND_COLOURS)) {
        let (x, y) = corner(*stand);
        canvas.rect(x + 4.0, y + 4.0, FIELD.0 - 8.0, FIELD.1 - 8.0, rgb);
        canvas.text(x + 8.0, y + 8.0, 2.0, letter, WHITE);
    }
    for row in 0..SIDE {
        for column in 0..SIDE {
            let (x, y) = corner((row, column));
            canvas.rect(x, y + FIELD.1 - 0.5, FIELD.0, 1.0, SEAM);
            let ride = Ride { row, column, passenger: 0, destination: 0 };
            if ride.is_open(2) {
                canvas.rect(x + FIELD.0 - 0.5, y, 1.0, FIELD.1, SEAM);
            } else {
                canvas.rect(x + FIELD.0 - 4.0, y, 8.0, FIELD.1, WALL);
            }
        }
    }
}

/// A house in the field's right half.
fn draw_destination(canvas: &mut Canvas, x: f32, y: f32, rgb: Rgb) {
    canvas.moved(x + 50.0, y + 10.0, |canvas| {
        canvas.rect(3.0, 18.0, 26.0, 26.0, WHITE);
        canvas.polygon(&[(-2.0, 20.0), (16.0, 0.0), (34.0, 20.0)], DARK);
        canvas.rect(12.0, 28.0, 8.0, 16.0, rgb);
    });
}

/// A person around the origin.
fn draw_passenger(canvas: &mut Canvas) {
    canvas.polygon(&[(-5.0, -6.0), (5.0, -6.0), (9.0, 16.0), (-9.0, 16.0)], PERSON);
    canvas.circle(0.0, -11.0, 7.0, SKIN);
}

/// A taxi around the origin, seen from above, its nose to the right.
fn draw_taxi(canvas: &mut Canvas, is_taken: bool) {
    for (x, y) in [(-18.0, -17.0), (10.0, -17.0), (-18.0, 12.0), (10.0, 12.0)] {
        canvas.rect(x, y, 9.0, 5.0, DARK);
    }
    canvas.rect(-27.0, -14.0, 52.0, 28.0, CAB);
    canvas.oval(18.0, -14.0, 14.0, 28.0, CAB);
    canvas.polygon(&[(6.0, -9.0), (15.0, -12.0), (15.0, 12.0), (6.0, 9.0)], GLASS);
    canvas.polygon(&[(-16.0, -9.0), (-22.0, -11.0), (-22.0, 11.0), (-16.0, 9.0)], GLASS);
    for k in 0..5 {
        let x = -15.0 + 4.0 * k as f32;
        canvas.rect(x, if k % 2 == 0 { -4.0 } else { 0.0 }, 4.0, 4.0, DARK);
    }
    canvas.circle(29.0, -9.0, 2.5, WHITE);
    canvas.circle(29.0, 9.0, 2.5, WHITE);
    if is_taken {
        canvas.circle(-5.0, 0.0, 8.0, PERSON);
        canvas.circle(-5.0, 0.0, 5.5, SKIN);
    }
}

const MAP: [&str; 7] =
    ["+---------+", "|R: | : :G|", "| : | : : |", "| : : : : |", "| | : | : |", "|Y| : |B: |", "+---------+"];

/// Gymnasium's text: the taxi's field is yellow, or green with the passenger in it; the passenger's
/// stand is blue and his destination magenta. Below is the last action.
pub(super) fn text(ride: Ride, action: Option<u8>) -> String {
    let place = |(row, column): (usize, usize)| (row + 1, 2 * column + 1);
    let taxi = place((ride.row, ride.column));
    let mut text = String::new();
    for (row, line) in MAP.iter().enumerate() {
        for (column, letter) in line.chars().enumerate() {
            let mut shown = letter.to_string();
            if (row, column) == taxi {
                shown = match (ride.passenger, letter) {
                    (IN_TAXI, ' ') => coloured("42", "_"),
                    (IN_TAXI, _) => coloured("42", &shown),
                    _ => coloured("43", &shown),
                };
            }
            if STANDS.get(ride.passenger).is_some_and(|stand| (row, column) == place(*stand)) {
                shown = coloured("34;1", &shown);
            }
            if (row, column) == place(STANDS[ride.destination]) {
                shown = coloured("35", &shown);
            }
            text.push_str(&shown);
        }
        text.push('\n');
    }
    let actions = ["South", "North", "East", "West", "Pickup", "Dropoff"];
    match action {
        Some(action) => text.push_str(&format!("  ({})\n", actions[usize::from(action)])),
        None => text.push('\n'),
    }
    text
}

/// A text under a terminal's attributes.
fn coloured(attributes: &str, text: &str) -> String {
    format!("\x1b[{attributes}m{text}\x1b[0m")
}
