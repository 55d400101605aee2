//! The table as a picture.

use std::f32::consts::FRAC_PI_4;

use envcore::{Frame, Result};

use crate::canvas::{Canvas, Rgb, WHITE};

const WIDTH: u32 = 384;
const HEIGHT: u32 = 376;
const FELT: Rgb = [46, 112, 72];
const RED: Rgb = [196, 48, 56];
const DARK: Rgb = [36, 36, 44];
const BACK: Rgb = [60, 84, 160];
const BACK_PATTERN: Rgb = [104, 128, 200];
const CARD: (f32, f32) = (84.0, 116.0);

/// The dealer's two cards, one of them face down, and the player's sum. `face` is the open card's
/// suit (clubs, diamonds, hearts, spades), and which ten it is (jack, queen, king).
pub(super) fn table(sum: u8, has_usable_ace: bool, open: u8, face: (u8, u8)) -> Result<Frame> {
    let mut canvas = Canvas::new(WIDTH, HEIGHT, FELT)?;
    canvas.text(24.0, 22.0, 3.0, &format!("DEALER {open}"), WHITE);
    canvas.moved(90.0, 60.0, |canvas| draw_open_card(canvas, open, face));
    canvas.moved(206.0, 60.0, draw_hidden_card);
    canvas.text(24.0, 204.0, 3.0, "PLAYER", WHITE);
    draw_centred(&mut canvas, 236.0, 10.0, &sum.to_string());
    if has_usable_ace {
        draw_centred(&mut canvas, 334.0, 3.0, "USABLE ACE");
    }
    canvas.frame()
}

fn draw_centred(canvas: &mut Canvas, y: f32, size: f32, text: &str) {
    let x = ((WIDTH as f32 - Canvas::text_width(text, size)) / 2.0).round();
    canvas.text(x, y, size, text, WHITE);
}

fn draw_open_card(canvas: &mut Canvas, card: u8, (suit, ten): (u8, u8)) {
    let name = match card {
        1 => "A".to_string(),
        10 => ["J", "Q", "K"][usize::from(ten)].to_string(),
        number => number.to_string(),
    };
    let rgb = if matches!(suit, 1 | 2) { RED } else { DARK };
    canvas.rect(0.0, 0.0, CARD.0, CARD.1, WHITE);
    canvas.text(8.0, 8.0, 4.0, &name, rgb);
    canvas.moved(CARD.0 / 2.0, 68.0, |canvas| draw_suit(canvas, suit, rgb));
}

fn draw_hidden_card(canvas: &mut Canvas) {
    canvas.rect(0.0, 0.0, CARD.0, CARD.1, WHITE);
    canvas.rect(5.0, 5.0, CARD.0 - 10.0, CARD.1 - 10.0, BACK);
    for row in 0..6 {
        for column in 0..4 {
            let (x, y) = (12.0 + 20.0 * column as f32, 16.0 + 17.0 * row as f32);
            canvas.turned(x, y, FRAC_PI_4, |canvas| canvas.rect(-4.0, -4.0, 8.0, 8.0, BACK_PATTERN));
        }
    }
}

/// Clubs, diamonds, hearts or spades, around the origin.
fn draw_suit(canvas: &mut Canvas, suit: u8, rgb: Rgb) {
    let heart = |canvas: &mut Canvas| {
        canvas.circle(-10.0, -6.0, 11.5, rgb);
        canvas.circle(10.0, -6.0, 11.5, rgb);
        canvas.polygon(&[(-20.5, -1.0), (0.0, -10.0), (20.5, -1.0), (0.0, 24.0)], rgb);
    };
    let stem = |canvas: &mut Canvas| canvas.polygon(&[(0.0, 0.0), (9.0, 28.0), (-9.0, 28.0)], rgb);
    match suit {
        0 => {
            for (x, y) in [(0.0, -14.0), (-13.0, 5.0), (13.0, 5.0)] {
                canvas.circle(x, y, 12.0, rgb);
            }
            stem(canvas);
        }
        1 => canvas.polygon(&[(0.0, -28.0), (20.0, 0.0), (0.0, 28.0), (-20.0, 0.0)], rgb),
        2 => heart(canvas),
        _ => {
            canvas.turned(0.0, 0.0, 4.0 * FRAC_PI_4, heart);
            stem(canvas);
        }
    }
}
