//! NumPy's float32 sin and cos, which are not libm's.
//!
//! A step of Gymnasium computes in float64, but the observation of an Acrobot's
//! start is made of NumPy's float32 functions. NumPy reduces the angle by
//! multiples of π/2 in three parts (W. J. Cody and W. Waite, 1980) and evaluates a
//! polynomial by fused multiply-adds, on every CPU that has these (on others it
//! calls libm). The constants are NumPy 2.4's. Beyond 7·10⁴ rad NumPy calls libm,
//! and so do these functions.

/// sin of an angle in radians.
pub(super) fn sin(angle: f32) -> f32 {
    if angle.abs() <= 117_435.99 { quarter(angle, 0) } else { angle.sin() }
}

/// cos of an angle in radians.
pub(super) fn cos(angle: f32) -> f32 {
    if angle.abs() <= 71_476.06 { quarter(angle, 1) } else { angle.cos() }
}

/// π/2 in three parts, as the bits of floats; so are the terms of the polynomials, the highest
/// power first.
const HALF_PI: [u32; 3] = [0x3fc9_0fd8, 0x34a8_885a, 0x27c2_34c4];
const COS: [u32; 5] = [0x37cc_730b, 0xbab6_036e, 0x3d2a_aa9e, 0xbf00_0000, 0x3f80_0000];
const SIN: [u32; 4] = [0x363e_9dde, 0xb950_35dd, 0x3c08_88cd, 0xbe2a_aaab];

/// sin of `angle` and `more` quarters of a turn.
fn quarter(angle: f32, more: i32) -> f32 {
    let quarters = (angle * std::f32::consts::FRAC_2_PI).round_ties_even();
    let rest = HALF_PI.iter().fold(angle, |rest, part| quarters.mul_add(-f32::from_bits(*part), rest));
    let square = rest * rest;
    let at_square = |terms: &[u32]| {
        let terms = terms.iter().map(|bits| f32::from_bits(*bits));
        terms.reduce(|sum, term| sum.mul_add(square, term)).unwrap_or_default()
    };
    let whole = quarters as i32 + more;
    let value = if whole & 1 == 0 {
        let cubic = at_square(&SIN) * square;
        cubic.mul_add(rest, rest)
    } else {
        at_square(&COS)
    };
    if whole & 2 == 0 { value } else { -value }
}
