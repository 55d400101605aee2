//! Pictures of envs, and the call that gives one as text.

use crate::error::{Error, Result};

/// The name of the call that draws an env as text, of sources with
/// [`Caps::ANSI`](crate::Caps::ANSI).
pub const ANSI: &str = "ansi";

/// A picture: RGB, `uint8`, `[height, width, 3]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    height: usize,
    width: usize,
    pixels: Vec<u8>,
}

impl Frame {
    /// A picture from its rows, the top row first; each pixel is three bytes.
    ///
    /// # Errors
    /// [`Error::Space`] where there are not `height · width · 3` bytes.
    pub fn new(height: usize, width: usize, pixels: Vec<u8>) -> Result<Self> {
        let bytes = height.checked_mul(width).and_then(|count| count.checked_mul(3));
        if bytes != Some(pixels.len()) {
            return Err(Error::Space(format!("{} bytes are no {height}×{width} RGB frame", pixels.len())));
        }
        Ok(Frame { height, width, pixels })
    }

    /// Height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The bytes of the pixels.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The bytes of the pixels, without a copy.
    pub fn into_pixels(self) -> Vec<u8> {
        self.pixels
    }
}
