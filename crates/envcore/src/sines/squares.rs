//! The C library's `pow(x, 2.0)`, bit for bit, in vector registers.
//!
//! `pow` is not the product in the last bit now and then. But it is wrong by hardly more than half
//! a unit in the last place, so that it differs from the rounded product only where the product
//! lies nearly halfway between two floats. These few are the library's own, all others products.
//! [`agree`] finds out whether a library's functions are that good.

use std::hint::black_box;

/// How near to halfway, in units of the last place, the library is asked: `pow` promises an error
/// below 0.52 units.
const DOUBT: f64 = 1.0 / 64.0;
/// `powf` promises less.
const DOUBT_F32: f64 = 1.0 / 16.0;
/// Where squares are neither tiny nor huge, so that what a product loses is a float.
const USUAL: std::ops::Range<f64> = 1e-290..1e300;
/// Where `powf`'s error is as small as [`DOUBT_F32`] says.
const USUAL_F32: std::ops::Range<f32> = 0.001..1000.0;

/// The product, and whether `pow` may be another number.
#[inline(always)]
fn product(x: f64) -> (f64, bool) {
    let square = x * x;
    let rest = x.mul_add(x, -square);
    let power = f64::from_bits(square.to_bits() & (0x7FF << 52));
    let is_sure = rest.abs() < power * (f64::EPSILON * (0.5 - DOUBT));
    (square, !(is_sure & (square > USUAL.start) & (square < USUAL.end)))
}

/// The product, and whether `powf` may be another number.
#[inline(always)]
fn product_f32(x: f32) -> (f32, bool) {
    let exact = f64::from(x) * f64::from(x);
    let square = exact as f32;
    let rest = exact - f64::from(square);
    let power = f64::from(f32::from_bits(square.to_bits() & 0x7F80_0000));
    let is_sure = rest.abs() < power * (f64::from(f32::EPSILON) * (0.5 - DOUBT_F32));
    (square, !(is_sure & (x.abs() > USUAL_F32.start) & (x.abs() < USUAL_F32.end)))
}

/// Calls `each` for every `i` whose doubt is not 0.
#[inline(always)]
fn settle<const N: usize>(doubts: &[u8; N], mut each: impl FnMut(usize)) {
    const { assert!(N.is_multiple_of(8)) };
    for (at, eight) in doubts.as_chunks::<8>().0.iter().enumerate() {
        let mut left = u64::from_le_bytes(*eight);
        while left != 0 {
            each(8 * at + left.trailing_zeros() as usize / 8);
            left &= left - 1;
        }
    }
}

#[inline(never)]
fn library(x: f64) -> f64 {
    // The compiler makes a product of a pow whose exponent it knows.
    x.powf(black_box(2.0))
}

#[inline(never)]
fn library_f32(x: f32) -> f32 {
    x.powf(black_box(2.0))
}

/// The C library's squares of `x`.
#[inline(always)]
pub fn squares<const N: usize>(x: &[f64; N], out: &mut [f64; N]) {
    let mut doubts = [0; N];
    for i in 0..N {
        let (square, doubt) = product(x[i]);
        (out[i], doubts[i]) = (square, doubt.into());
    }
    settle(&doubts, |i| out[i] = library(x[i]));
}

/// The C library's squares of `x`, in float32.
#[inline(always)]
pub fn squares_f32<const N: usize>(x: &[f32; N], out: &mut [f32; N]) {
    let mut doubts = [0; N];
    for i in 0..N {
        let (square, doubt) = product_f32(x[i]);
        (out[i], doubts[i]) = (square, doubt.into());
    }
    settle(&doubts, |i| out[i] = library_f32(x[i]));
}

/// Whether these functions give the product wherever it is not nearly halfway, at some ten
/// thousand numbers.
pub fn agree(pow: fn(f64, f64) -> f64, powf: fn(f32, f32) -> f32) -> bool {
    let spread = |k: u32, end: f64| end * (f64::from(k) * 0.618_033_988_749_894_9).fract();
    (1..=20_000).all(|k| is_squared_by(pow, spread(k, 1.0)) && is_squared_by(pow, spread(k, 40.0)))
        && (1..=20_000).all(|k| {
            is_squared_f32_by(powf, spread(k, 2.0) as f32) && is_squared_f32_by(powf, spread(k, 100.0) as f32)
        })
}

/// Whether `pow` gives the product of `x` with itself, or is asked for it.
pub fn is_squared_by(pow: fn(f64, f64) -> f64, x: f64) -> bool {
    let (square, doubt) = product(x);
    doubt || pow(black_box(x), black_box(2.0)).to_bits() == square.to_bits()
}

/// Whether `powf` gives the product of `x` with itself, or is asked for it.
pub fn is_squared_f32_by(powf: fn(f32, f32) -> f32, x: f32) -> bool {
    let (square, doubt) = product_f32(x);
    doubt || powf(black_box(x), black_box(2.0)).to_bits() == square.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_squares_otherwise_is_told() {
        assert!(agree(|x, _| x * x, |x, _| x * x));
        assert!(!agree(|x, _| x * x * (1.0 + f64::EPSILON), |x, _| x * x));
        assert!(!agree(|x, _| x * x, |x, _| x * x * (1.0 + f32::EPSILON)));
    }

    #[test]
    fn squares_are_the_librarys() {
        let x: [f64; 4096] = std::array::from_fn(|k| (k as f64 - 2000.0) * 0.618_033_988_749_894_9 / 50.0);
        let extremes = [0.0, -0.0, 1e-200, 1e200, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE, -1.0];
        let mut out = [0.0; 4096];
        squares(&x, &mut out);
        assert!(x.iter().zip(out).all(|(x, square)| library(*x).to_bits() == square.to_bits()));
        let mut few = [0.0; 8];
        squares(&extremes, &mut few);
        assert_eq!(few.map(f64::to_bits), extremes.map(|x| library(x).to_bits()));
        let mut floats = [0.0; 4096];
        let x = x.map(|x| x as f32);
        squares_f32(&x, &mut floats);
        assert!(x.iter().zip(floats).all(|(x, square)| library_f32(*x).to_bits() == square.to_bits()));
    }
}
