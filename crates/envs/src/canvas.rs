//! [`Canvas`]: anti-aliased shapes, from which envs draw their pictures.

use envcore::{Error, Frame, Result};
use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, Transform,
};

use crate::glyphs;

/// Red, green and blue.
pub(crate) type Rgb = [u8; 3];

pub(crate) const BLACK: Rgb = [0, 0, 0];
pub(crate) const WHITE: Rgb = [255, 255, 255];

/// A picture in the making. Lengths are pixels, x goes right and y goes down from the top left.
/// A shape that is empty or not finite leaves no trace.
pub(crate) struct Canvas {
    pixels: Pixmap,
    /// From the coordinates of shapes to those of the picture.
    place: Transform,
}

impl Canvas {
    /// An empty picture.
    ///
    /// # Errors
    /// [`Error::Env`] for a picture without pixels.
    pub(crate) fn new(width: u32, height: u32, background: Rgb) -> Result<Self> {
        let mut pixels = Pixmap::new(width, height)
            .ok_or_else(|| Error::env(format!("there are no pictures of {width}×{height} pixels")))?;
        let [r, g, b] = background;
        pixels.fill(Color::from_rgba8(r, g, b, 255));
        Ok(Canvas { pixels, place: Transform::identity() })
    }

    /// Draws with (`x`, `y`) as the origin, turned clockwise by an angle in radians.
    pub(crate) fn turned(&mut self, x: f32, y: f32, angle: f32, draw: impl FnOnce(&mut Self)) {
        let outer = self.place;
        let inner = Transform::from_rotate(angle.to_degrees()).post_translate(x, y);
        self.place = inner.post_concat(outer);
        draw(self);
        self.place = outer;
    }

    /// Draws with (`x`, `y`) as the origin.
    pub(crate) fn moved(&mut self, x: f32, y: f32, draw: impl FnOnce(&mut Self)) {
        self.turned(x, y, 0.0, draw);
    }

    /// A filled rectangle, from its top left corner.
    pub(crate) fn rect(&mut self, x: f32, y: f32, width: f32, height: f32, rgb: Rgb) {
        self.fill(Rect::from_xywh(x, y, width, height).map(PathBuilder::from_rect), rgb);
    }

    /// A filled circle.
    pub(crate) fn circle(&mut self, x: f32, y: f32, radius: f32, rgb: Rgb) {
        self.fill(PathBuilder::from_circle(x, y, radius), rgb);
    }

    /// A filled ellipse in a rectangle.
    pub(crate) fn oval(&mut self, x: f32, y: f32, width: f32, height: f32, rgb: Rgb) {
        self.fill(Rect::from_xywh(x, y, width, height).and_then(PathBuilder::from_oval), rgb);
    }

    /// A filled polygon.
    pub(crate) fn polygon(&mut self, corners: &[(f32, f32)], rgb: Rgb) {
        self.fill(path(corners, true), rgb);
    }

    /// A line through points, with round ends.
    pub(crate) fn line(&mut self, points: &[(f32, f32)], width: f32, rgb: Rgb) {
        let stroke =
            Stroke { width, line_cap: LineCap::Round, line_join: LineJoin::Round, ..Stroke::default() };
        if let Some(path) = path(points, false) {
            self.pixels.stroke_path(&path, &paint(rgb), &stroke, self.place, None);
        }
    }

    /// Letters and digits from their top left corner, whose pixels are `size` wide and high.
    pub(crate) fn text(&mut self, x: f32, y: f32, size: f32, text: &str, rgb: Rgb) {
        for (k, letter) in text.chars().enumerate() {
            let left = x + (k * (glyphs::WIDTH + 1)) as f32 * size;
            for (down, row) in glyphs::rows(letter).into_iter().enumerate() {
                for right in (0..glyphs::WIDTH).filter(|right| row >> (glyphs::WIDTH - 1 - right) & 1 == 1) {
                    self.rect(left + right as f32 * size, y + down as f32 * size, size, size, rgb);
                }
            }
        }
    }

    /// The width of a text whose pixels are `size` wide.
    pub(crate) fn text_width(text: &str, size: f32) -> f32 {
        ((glyphs::WIDTH + 1) * text.chars().count()).saturating_sub(1) as f32 * size
    }

    /// The finished picture.
    ///
    /// # Errors
    /// Those of [`Frame::new`].
    pub(crate) fn frame(&self) -> Result<Frame> {
        let (width, height) = (self.pixels.width() as usize, self.pixels.height() as usize);
        let rgb = self.pixels.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
        Frame::new(height, width, rgb)
    }

    fn fill(&mut self, path: Option<Path>, rgb: Rgb) {
        if let Some(path) = path {
            self.pixels.fill_path(&path, &paint(rgb), FillRule::Winding, self.place, None);
        }
    }
}

fn paint(rgb: Rgb) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(rgb[0], rgb[1], rgb[2], 255);
    paint.anti_alias = true;
    paint
}

fn path(points: &[(f32, f32)], closed: bool) -> Option<Path> {
    let (&(x, y), rest) = points.split_first()?;
    let mut path = PathBuilder::new();
    path.move_to(x, y);
    rest.iter().for_each(|&(x, y)| path.line_to(x, y));
    if closed {
        path.close();
    }
    path.finish()
}
