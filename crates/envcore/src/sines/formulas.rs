//! The formulas of sines and cosines, as loops over arrays.

use super::table::{self, TABLE};

/// Angles of at least this magnitude need more digits of π than the formulas have.
pub const FAR: f64 = f64::from_bits(0x4199_21FB_0000_0000);
/// Up to this magnitude the formulas need no reduction: [`sin_cos_near`].
pub const NEAR: f64 = 0.855_468_75;

/// Up to where an angle is subtracted from π/2, instead of a reduction by π/2.
pub(super) const MIDDLE: f64 = f64::from_bits(0x4003_68FD_0000_0000);
/// Up to where the sine is a polynomial.
pub(super) const TINY: f64 = 0.126;
/// Adding this to an angle below 2 rounds it to a multiple of 1/128.
const BIG: f64 = 52_776_558_133_248.0;
/// π/2, and what its double lacks.
pub(super) const HALF_PI: (f64, f64) = (std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);
/// The parts of π/2 that a reduction subtracts in turn.
const PARTS: [f64; 4] = [
    f64::from_bits(0x3FF9_21FB_5800_0000),
    f64::from_bits(0xBE4D_DE97_3C00_0000),
    f64::from_bits(0xBC8C_B3B3_9800_0000),
    f64::from_bits(0xBACD_747F_23E3_2ED7),
];
/// 2/π.
const TWO_OVER_PI: f64 = f64::from_bits(0x3FE4_5F30_6DC9_C883);
/// Adding this rounds a number to an integer, which stands in the last bits of the sum.
const TO_INTEGER: f64 = 6_755_399_441_055_744.0;

/// The polynomial of the sine below [`TINY`], from the power of 11 down to that of 3.
const TAYLOR: [f64; 5] = [
    f64::from_bits(0xBE5A_DDFF_C2FC_DF59),
    f64::from_bits(0x3EC7_1DE2_7B9A_7ED9),
    f64::from_bits(0xBF2A_01A0_19DB_08B8),
    f64::from_bits(0x3F81_1111_1111_0ECE),
    f64::from_bits(0xBFC5_5555_5555_5555),
];
/// The polynomials between two rows of the table: of the sine, and of 1 less the cosine.
const SIN: [f64; 2] = [-1.666_666_666_666_648_8e-1, 8.333_332_142_857_223e-3];
const COS: [f64; 3] = [0.5, -4.166_666_666_666_644e-2, 1.388_888_740_079_376e-3];

/// a·b + c, rounded once or twice.
#[inline(always)]
fn fma<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// 1 less the cosine of the root of `square`, which is small.
#[inline(always)]
fn versine<const FUSED: bool>(square: f64) -> f64 {
    square * fma::<FUSED>(square, fma::<FUSED>(square, COS[2], COS[1]), COS[0])
}

/// The sum of [`TAYLOR`] at a square.
#[inline(always)]
fn taylor<const FUSED: bool>(square: f64) -> f64 {
    let mut sum = TAYLOR[0];
    for factor in &TAYLOR[1..] {
        sum = fma::<FUSED>(square, sum, *factor);
    }
    sum
}

/// `x` less the nearest multiple of π/2, in two parts, and that multiple's number.
#[inline(always)]
fn reduced<const FUSED: bool>(x: f64) -> (f64, f64, u64) {
    let sum = fma::<FUSED>(x, TWO_OVER_PI, TO_INTEGER);
    let n = sum - TO_INTEGER;
    let y = fma::<FUSED>(-n, PARTS[1], fma::<FUSED>(-n, PARTS[0], x));
    let nearer = fma::<FUSED>(-n, PARTS[2], y);
    let rest = fma::<FUSED>(-n, PARTS[2], y - nearer);
    let high = fma::<FUSED>(-n, PARTS[3], nearer);
    (high, rest + fma::<FUSED>(-n, PARTS[3], nearer - high), sum.to_bits())
}

const SIGN: u64 = 1 << 63;
const ROWS: u64 = table::ROWS as u64;

/// Whether the result is of the cosine's formula.
const BY_COSINE: u64 = 1;
/// Whether the result is negative.
const IS_NEGATIVE: u64 = 2;

/// What the functions below leave from one loop for the next. A caller makes it once for many calls.
#[repr(align(64))]
pub struct Between<const N: usize> {
    /// The angles near 0, of the sine's formula and of the cosine's, and what each double lacks.
    of_sine: [[f64; N]; 2],
    of_cosine: [[f64; N]; 2],
    /// The sines of tiny angles.
    tiny: [f64; N],
    row_of: [u64; N],
    /// The rows of the table.
    rows: [[f64; 4]; N],
    /// Signs, or which formula the results are of.
    which: [u64; N],
}

impl<const N: usize> Default for Between<N> {
    fn default() -> Self {
        let zeros = [[0.0; N]; 2];
        Between {
            of_sine: zeros,
            of_cosine: zeros,
            tiny: [0.0; N],
            row_of: [0; N],
            rows: [[0.0; 4]; N],
            which: [0; N],
        }
    }
}

/// How far the magnitude of `x` is from the double of π/2; and how far from π/2, in two parts.
#[inline(always)]
fn from_half_pi(x: f64) -> (f64, [f64; 2]) {
    let from = HALF_PI.0 - x.abs();
    let whole = from + HALF_PI.1;
    (from, [whole, (from - whole) + HALF_PI.1])
}

/// The row of the table that is the nearest to an angle near 0.
#[inline(always)]
fn row_near(angle: f64) -> u64 {
    (BIG + angle.abs()).to_bits() % ROWS
}

/// What an angle near 0 has beyond its row of the table.
#[inline(always)]
fn beyond_row(angle: f64) -> f64 {
    angle.abs() - ((BIG + angle.abs()) - BIG)
}

/// `rest` with the sign of `angle` on it.
#[inline(always)]
fn towards(angle: f64, rest: f64) -> f64 {
    f64::from_bits(rest.to_bits() ^ (angle.to_bits() & SIGN))
}

/// Copies rows of the table one after another, for that is quicker than to gather each number of a row by
/// itself.
#[inline(always)]
fn take_rows<const N: usize>(row_of: &[u64; N], rows: &mut [[f64; 4]; N]) {
    for i in 0..N {
        rows[i] = TABLE.0[row_of[i] as usize % TABLE.0.len()];
    }
}

/// The sine of a tiny angle, which is `angle` and `rest`.
#[inline(always)]
fn tiny_sine<const FUSED: bool>(angle: f64, rest: f64) -> f64 {
    let square = angle * angle;
    let sum = fma::<FUSED>(taylor::<FUSED>(square), angle, -(0.5 * rest));
    angle + fma::<FUSED>(sum, square, rest)
}

/// The sines of `x` or, with `COSINE`, the cosines.
///
/// Each is the sine or the cosine of an angle near 0, which has two parts. These two formulas
/// differ in a few places and in the row of the table: rows of cosines follow those of sines.
#[inline(always)]
fn one_function<const FUSED: bool, const COSINE: bool, const N: usize>(
    x: &[f64; N],
    out: &mut [f64; N],
    between: &mut Between<N>,
) {
    let Between { of_sine: [angle, rest], row_of, rows, which: sign, .. } = between;
    for i in 0..N {
        let x = x[i];
        let (is_near, is_middle) = (x.abs() < NEAR, x.abs() < MIDDLE);
        let (far, far_rest, n) = reduced::<FUSED>(x);
        // The angle from π/2, which the two functions take in different forms.
        let (from, [whole, part]) = from_half_pi(x);
        let (middle, middle_rest) = if COSINE { (whole, part) } else { (from, HALF_PI.1) };
        let (u, r) = if is_middle { (middle, middle_rest) } else { (far, far_rest) };
        let (u, r) = if is_near { (x, 0.0) } else { (u, r) };
        // The last two bits of the number of quarter turns say both; a cosine is a quarter turn ahead.
        let far = if COSINE { n.wrapping_add(1) } else { n };
        let middle = if COSINE { 0 } else { BY_COSINE | ((x.to_bits() >> 63) * IS_NEGATIVE) };
        let near = if COSINE { BY_COSINE } else { 0 };
        let which = if is_middle { middle } else { far };
        let which = if is_near { near } else { which };
        (angle[i], rest[i]) = (u, r);
        row_of[i] = row_near(u) | ((which & BY_COSINE) * ROWS);
        // The sine's formula keeps its angle's sign.
        let own = u.to_bits() & (which & BY_COSINE).wrapping_sub(1);
        sign[i] = (own ^ which << 62) & SIGN;
    }
    take_rows(row_of, rows);
    for i in 0..N {
        let [a, a_rest, b, b_rest] = rows[i];
        let (u, rest, cosine) = (angle[i], rest[i], row_of[i] >= ROWS);
        let r = towards(u, rest);
        let y = beyond_row(u);
        let y = if cosine { y + r } else { y };
        let r = if cosine { 0.0 } else { r };
        let square = y * y;
        let (cube, tail) = (y * square, fma::<FUSED>(square, SIN[1], SIN[0]));
        let s = if cosine { fma::<FUSED>(cube, tail, y) } else { y + fma::<FUSED>(cube, tail, r) };
        let c = fma::<FUSED>(y, r, versine::<FUSED>(square));
        let value = a + fma::<FUSED>(b, s, fma::<FUSED>(-a, c, fma::<FUSED>(s, b_rest, a_rest)));
        let is_tiny = !cosine & (u.abs() < TINY);
        let value = if is_tiny { tiny_sine::<FUSED>(u, rest) } else { value };
        out[i] = f64::from_bits((value.to_bits() & !SIGN) ^ sign[i]);
    }
}

/// The sines of angles below [`FAR`] in magnitude, in radians.
#[inline(always)]
pub fn sines<const FUSED: bool, const N: usize>(x: &[f64; N], out: &mut [f64; N], between: &mut Between<N>) {
    one_function::<FUSED, false, N>(x, out, between);
}

/// The cosines of angles below [`FAR`] in magnitude, in radians.
#[inline(always)]
pub fn cosines<const FUSED: bool, const N: usize>(
    x: &[f64; N],
    out: &mut [f64; N],
    between: &mut Between<N>,
) {
    one_function::<FUSED, true, N>(x, out, between);
}

/// The sines and the cosines of angles below [`FAR`] in magnitude, in radians: in two thirds of the
/// time that [`sines`] and [`cosines`] take.
///
/// Of the two results of one angle, one is of the sine's formula and the other of the cosine's, so that
/// each formula is computed once and the results change places.
#[inline(always)]
pub fn sines_and_cosines<const FUSED: bool, const N: usize>(
    x: &[f64; N],
    sin: &mut [f64; N],
    cos: &mut [f64; N],
    between: &mut Between<N>,
) {
    if !both_functions::<FUSED, N>(x, sin, cos, between) {
        sines::<FUSED, N>(x, sin, between);
        cosines::<FUSED, N>(x, cos, between);
    }
}

/// False where the two formulas need different rows of the table for an angle. Both have the same angle
/// near 0, except between [`NEAR`] and [`MIDDLE`], where one has the rounded sum of its parts. That
/// sum may be nearer to another row, for one angle of 10¹⁵.
#[inline(always)]
pub(super) fn both_functions<const FUSED: bool, const N: usize>(
    x: &[f64; N],
    sin: &mut [f64; N],
    cos: &mut [f64; N],
    between: &mut Between<N>,
) -> bool {
    let Between { of_sine, of_cosine, tiny, row_of, rows, which } = between;
    let mut different = 0;
    for i in 0..N {
        let x = x[i];
        let (is_near, is_middle) = (x.abs() < NEAR, x.abs() < MIDDLE);
        let (far, far_rest, n) = reduced::<FUSED>(x);
        let (from, [whole, part]) = from_half_pi(x);
        let (s, s_rest) = if is_middle { (whole, part) } else { (far, far_rest) };
        let (c, c_rest) = if is_middle { (from, HALF_PI.1) } else { (far, far_rest) };
        let (s, s_rest) = if is_near { (x, 0.0) } else { (s, s_rest) };
        let (c, c_rest) = if is_near { (x, 0.0) } else { (c, c_rest) };
        // Two bits of the sine, and above them two of the cosine.
        let far = (n & 3) | (n.wrapping_add(1) & 3) << 2;
        let middle = BY_COSINE | ((x.to_bits() >> 63) * IS_NEGATIVE);
        let both = if is_middle { middle } else { far };
        which[i] = if is_near { BY_COSINE << 2 } else { both };
        (of_sine[0][i], of_sine[1][i], of_cosine[0][i], of_cosine[1][i]) = (s, s_rest, c, c_rest);
        row_of[i] = row_near(s);
        different |= row_near(s) ^ row_near(c);
    }
    if different != 0 {
        return false;
    }
    take_rows(row_of, rows);
    for i in 0..N {
        tiny[i] = tiny_sine::<FUSED>(of_sine[0][i], of_sine[1][i]);
    }
    for i in 0..N {
        let [sn, ssn, cs, ccs] = rows[i];
        let (u, r) = (of_sine[0][i], towards(of_sine[0][i], of_sine[1][i]));
        let y = beyond_row(u);
        let square = y * y;
        let tail = fma::<FUSED>(square, SIN[1], SIN[0]);
        let s = y + fma::<FUSED>(y * square, tail, r);
        let c = fma::<FUSED>(y, r, versine::<FUSED>(square));
        let sine = sn + fma::<FUSED>(cs, s, fma::<FUSED>(-sn, c, fma::<FUSED>(s, ccs, ssn)));
        let sine = if u.abs() < TINY { tiny[i] } else { sine };
        let sine = (sine.to_bits() & !SIGN) | (u.to_bits() & SIGN);

        let (u, r) = (of_cosine[0][i], towards(of_cosine[0][i], of_cosine[1][i]));
        let y = beyond_row(u) + r;
        let square = y * y;
        let s = fma::<FUSED>(y * square, fma::<FUSED>(square, SIN[1], SIN[0]), y);
        let c = versine::<FUSED>(square);
        let cosine = cs + fma::<FUSED>(-sn, s, fma::<FUSED>(-cs, c, fma::<FUSED>(s, -ssn, ccs)));
        let cosine = cosine.to_bits() & !SIGN;

        let result = |which: u64| {
            let size = if which & BY_COSINE != 0 { cosine } else { sine };
            f64::from_bits(size ^ (which << 62 & SIGN))
        };
        (sin[i], cos[i]) = (result(which[i]), result(which[i] >> 2));
    }
    true
}

/// The sines and cosines of `x`, all of which are below [`NEAR`] in magnitude, in radians.
#[inline(always)]
pub fn sin_cos_near<const FUSED: bool, const N: usize>(
    x: &[f64; N],
    sin: &mut [f64; N],
    cos: &mut [f64; N],
    between: &mut Between<N>,
) {
    let Between { row_of, rows, .. } = between;
    for i in 0..N {
        row_of[i] = row_near(x[i]);
    }
    take_rows(row_of, rows);
    for i in 0..N {
        let [sn, ssn, cs, ccs] = rows[i];
        let (x, q) = (x[i], x[i] * x[i]);
        let tiny = x + (taylor::<FUSED>(q) * x) * q;
        let y = beyond_row(x);
        let square = y * y;
        let cube = y * square;
        let tail = fma::<FUSED>(square, SIN[1], SIN[0]);
        let c = versine::<FUSED>(square);
        let s = y + cube * tail;
        let more = fma::<FUSED>(cs, s, fma::<FUSED>(-sn, c, fma::<FUSED>(s, ccs, ssn)));
        sin[i] = (if x.abs() < TINY { tiny } else { sn + more }).copysign(x);
        let s = fma::<FUSED>(cube, tail, y);
        cos[i] = cs + fma::<FUSED>(-sn, s, fma::<FUSED>(-cs, c, fma::<FUSED>(-s, ssn, ccs)));
    }
}

/// The sine of an `x` below [`FAR`] in magnitude, in radians.
pub fn sin<const FUSED: bool>(x: f64) -> f64 {
    let mut out = [0.0];
    sines::<FUSED, 1>(&[x], &mut out, &mut Between::default());
    out[0]
}

/// The cosine of an `x` below [`FAR`] in magnitude, in radians.
pub fn cos<const FUSED: bool>(x: f64) -> f64 {
    let mut out = [0.0];
    cosines::<FUSED, 1>(&[x], &mut out, &mut Between::default());
    out[0]
}
