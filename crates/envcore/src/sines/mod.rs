//! The sines and cosines of this machine's C library, bit for bit, in vector registers.
//!
//! Exact envs promise the trajectories that NumPy and Gymnasium give on this machine, which
//! are those of the C library's `sin` and `cos`. A call computes one number. But the functions
//! of glibc since 2.28 are short formulas over a small table (IBM's Accurate Mathematical
//! Library, as simplified by Wilco Dijkstra and Siddhesh Poyarekar), without a loop and with few
//! branches. [`sin`] and [`cos`] compute the same formulas with the same roundings, so that the
//! compiler can put several numbers into one register.
//!
//! Which formulas a C library has is found out and not assumed: [`SinesForm::of_this_machine`]
//! compares them with the library's own functions, once per process. glibc compiles its
//! functions twice, with fused multiply-adds for CPUs that have them and without. Other
//! libraries may agree with neither form. Then loops must call the library.

mod table;

use std::sync::OnceLock;

use table::TABLE;

/// Which formulas give the same bits as a C library's `sin` and `cos`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinesForm {
    /// Those with fused multiply-adds: `sin::<true>`.
    Fused,
    /// Those in which each operation rounds by itself: `sin::<false>`.
    Plain,
    /// Neither of them.
    Other,
}

/// Angles of at least this magnitude need more digits of π than the formulas have.
pub const FAR: f64 = f64::from_bits(0x4199_21FB_0000_0000);
/// Up to this magnitude the formulas need no reduction: [`sin_near`], [`cos_near`].
pub const NEAR: f64 = 0.855_468_75;

/// Up to where an angle is subtracted from π/2, instead of a reduction by π/2.
const MIDDLE: f64 = f64::from_bits(0x4003_68FD_0000_0000);
/// Up to where the sine is a polynomial.
const TINY: f64 = 0.126;
/// Adding this to an angle below 2 rounds it to a multiple of 1/128.
const BIG: f64 = 52_776_558_133_248.0;
/// π/2, and what its double lacks.
const HALF_PI: (f64, f64) = (std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);
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

/// The row of the table nearest to `|x|`, and how far `|x|` is beyond it.
#[inline(always)]
fn nearest(x: f64) -> (&'static [f64; 4], f64) {
    let sum = BIG + x.abs();
    (&TABLE[sum.to_bits() as usize % table::ROWS], x.abs() - (sum - BIG))
}

/// 1 less the cosine of the root of `square`, which is small.
#[inline(always)]
fn versine<const FUSED: bool>(square: f64) -> f64 {
    square * fma::<FUSED>(square, fma::<FUSED>(square, COS[2], COS[1]), COS[0])
}

/// The sine of x + rest.
#[inline(always)]
fn sin_of<const FUSED: bool>(x: f64, rest: f64) -> f64 {
    let q = x * x;
    let mut sum = TAYLOR[0];
    for factor in &TAYLOR[1..] {
        sum = fma::<FUSED>(q, sum, *factor);
    }
    let tiny = x + fma::<FUSED>(fma::<FUSED>(sum, x, -(0.5 * rest)), q, rest);

    let rest = if x <= 0.0 { -rest } else { rest };
    let (&[sn, ssn, cs, ccs], y) = nearest(x);
    let square = y * y;
    let s = y + fma::<FUSED>(y * square, fma::<FUSED>(square, SIN[1], SIN[0]), rest);
    let c = fma::<FUSED>(y, rest, versine::<FUSED>(square));
    let more = fma::<FUSED>(cs, s, fma::<FUSED>(-sn, c, fma::<FUSED>(s, ccs, ssn)));
    (if x.abs() < TINY { tiny } else { sn + more }).copysign(x)
}

/// The cosine of x + rest.
#[inline(always)]
fn cos_of<const FUSED: bool>(x: f64, rest: f64) -> f64 {
    let (&[sn, ssn, cs, ccs], y) = nearest(x);
    let y = y + if x < 0.0 { -rest } else { rest };
    let square = y * y;
    let s = fma::<FUSED>(y * square, fma::<FUSED>(square, SIN[1], SIN[0]), y);
    let c = versine::<FUSED>(square);
    cs + fma::<FUSED>(-sn, s, fma::<FUSED>(-cs, c, fma::<FUSED>(-s, ssn, ccs)))
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

/// The sines and cosines of `x`, all of which are below [`NEAR`] in magnitude, in radians.
///
/// The rows of the table are copied first, one after another: that is quicker than to gather
/// each number of a row by itself.
#[inline(always)]
pub fn sin_cos_near<const FUSED: bool, const N: usize>(x: &[f64; N], sin: &mut [f64; N], cos: &mut [f64; N]) {
    let mut rows = [[0.0; 4]; N];
    for i in 0..N {
        rows[i] = TABLE[(BIG + x[i].abs()).to_bits() as usize % table::ROWS];
    }
    for i in 0..N {
        let [sn, ssn, cs, ccs] = rows[i];
        let (x, q) = (x[i], x[i] * x[i]);
        let mut sum = TAYLOR[0];
        for factor in &TAYLOR[1..] {
            sum = fma::<FUSED>(q, sum, *factor);
        }
        let tiny = x + (sum * x) * q;
        let y = x.abs() - ((BIG + x.abs()) - BIG);
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

/// The sine of an `x` below [`NEAR`] in magnitude, in radians.
#[inline(always)]
pub fn sin_near<const FUSED: bool>(x: f64) -> f64 {
    sin_of::<FUSED>(x, 0.0)
}

/// The cosine of an `x` below [`NEAR`] in magnitude, in radians.
#[inline(always)]
pub fn cos_near<const FUSED: bool>(x: f64) -> f64 {
    cos_of::<FUSED>(x, 0.0)
}

/// The sine and the cosine of an `x` below [`FAR`] in magnitude, in radians.
#[inline(always)]
pub fn sin_cos<const FUSED: bool>(x: f64) -> (f64, f64) {
    let (is_near, is_middle) = (x.abs() < NEAR, x.abs() < MIDDLE);
    let (far, far_rest, n) = reduced::<FUSED>(x);
    // The angle from π/2, which the two functions take in different forms.
    let from = HALF_PI.0 - x.abs();
    let whole = from + HALF_PI.1;
    let part = (from - whole) + HALF_PI.1;
    let choose = |near: f64, middle: f64, far: f64| {
        if is_near {
            near
        } else if is_middle {
            middle
        } else {
            far
        }
    };
    let s = sin_of::<FUSED>(choose(x, whole, far), choose(0.0, part, far_rest));
    let c = cos_of::<FUSED>(choose(x, from, far), choose(0.0, HALF_PI.1, far_rest));
    let (odd, negative) = (n & 1 == 1, n & 2 == 2);
    let (far_sin, far_cos) = if odd { (c, s) } else { (s, c) };
    let far_sin = if negative { -far_sin } else { far_sin };
    let far_cos = if odd != negative { -far_cos } else { far_cos };
    (choose(s, c.copysign(x), far_sin), choose(c, s, far_cos))
}

/// The sine of an `x` below [`FAR`] in magnitude, in radians.
#[inline(always)]
pub fn sin<const FUSED: bool>(x: f64) -> f64 {
    sin_cos::<FUSED>(x).0
}

/// The cosine of an `x` below [`FAR`] in magnitude, in radians.
#[inline(always)]
pub fn cos<const FUSED: bool>(x: f64) -> f64 {
    sin_cos::<FUSED>(x).1
}

impl SinesForm {
    /// The formulas of this machine's C library, found out at the first call.
    #[inline]
    pub fn of_this_machine() -> Self {
        static FORM: OnceLock<SinesForm> = OnceLock::new();
        *FORM.get_or_init(|| SinesForm::of(f64::sin, f64::cos))
    }

    /// The formulas that agree with these functions at some ten thousand angles: all boundaries
    /// between formulas, powers of two, and angles spread over each range.
    pub fn of(sin: fn(f64) -> f64, cos: fn(f64) -> f64) -> Self {
        let agrees = |ours: fn(f64) -> (f64, f64)| {
            angles().all(|x| {
                let (s, c) = ours(x);
                // The compiler may not compute the library's answers by its own means.
                let x = std::hint::black_box(x);
                s.to_bits() == sin(x).to_bits() && c.to_bits() == cos(x).to_bits()
            })
        };
        if agrees(sin_cos::<true>) {
            SinesForm::Fused
        } else if agrees(sin_cos::<false>) {
            SinesForm::Plain
        } else {
            SinesForm::Other
        }
    }
}

/// The angles that are compared.
fn angles() -> impl Iterator<Item = f64> {
    const SPREAD: u32 = 2_000;
    let next = |x: f64, by: i64| f64::from_bits((x.to_bits() as i64 + by) as u64);
    let edges = [TINY, NEAR, MIDDLE, FAR, HALF_PI.0, 2.0 * HALF_PI.0, 3.0 * HALF_PI.0];
    let edges = edges.into_iter().flat_map(move |edge| (-2..=2).map(move |by| next(edge, by)));
    let powers = (-60..26).map(|power| f64::powi(2.0, power));
    let rows = (0..110).flat_map(move |k| {
        // A multiple of 1/128, and the angles beside which another row is the nearest.
        let row = f64::from(k) / 128.0;
        [row, row + 1.0 / 256.0, next(row + 1.0 / 256.0, -1), next(row + 1.0 / 256.0, 1)]
    });
    let spread = [TINY, NEAR, MIDDLE, 10.0, 1e3, FAR].into_iter().flat_map(|end| {
        // The golden ratio spreads them evenly and without a pattern.
        (1..=SPREAD).map(move |k| end * (f64::from(k) * 0.618_033_988_749_894_9).fract())
    });
    let all = edges.chain(powers).chain(rows).chain(spread).filter(|x| *x < FAR);
    all.flat_map(|x| [x, -x])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Random angles of every range, and of every magnitude.
    fn random(count: usize) -> impl Iterator<Item = f64> {
        let mut rng = Rng::new(5);
        let ends = [TINY, NEAR, MIDDLE, 10.0, 1e3, FAR];
        (0..count).map(move |k| {
            let magnitude = match k % 7 {
                6 => f64::powf(2.0, rng.uniform(-60.0, 26.5)),
                which => rng.uniform(0.0, ends[which]),
            };
            if rng.uniform(0.0, 1.0) < 0.5 { -magnitude } else { magnitude }
        })
    }

    fn differences(ours: impl Fn(f64) -> (f64, f64), angles: impl Iterator<Item = f64>) -> Vec<f64> {
        let differs = |x: &f64| {
            let (s, c) = ours(*x);
            let x = std::hint::black_box(*x);
            (s.to_bits(), c.to_bits()) != (x.sin().to_bits(), x.cos().to_bits())
        };
        angles.filter(|x| x.abs() < FAR).filter(differs).take(5).collect()
    }

    #[test]
    fn the_form_of_this_machine_gives_its_librarys_bits() {
        let ours: fn(f64) -> (f64, f64) = match SinesForm::of_this_machine() {
            SinesForm::Fused => sin_cos::<true>,
            SinesForm::Plain => sin_cos::<false>,
            SinesForm::Other => return,
        };
        assert_eq!(differences(ours, angles()), Vec::<f64>::new());
        assert_eq!(differences(ours, random(1_000_000)), Vec::<f64>::new());
        let near = |x: f64| match SinesForm::of_this_machine() {
            SinesForm::Fused => (sin_near::<true>(x), cos_near::<true>(x)),
            _ => (sin_near::<false>(x), cos_near::<false>(x)),
        };
        assert_eq!(differences(near, random(300_000).filter(|x| x.abs() < NEAR)), Vec::<f64>::new());
    }

    #[test]
    fn zeros_keep_their_signs() {
        for x in [0.0, -0.0] {
            let (s, c) = sin_cos::<true>(x);
            assert_eq!((s.to_bits(), c), (f64::to_bits(x), 1.0));
            assert_eq!(sin_near::<false>(x).to_bits(), f64::to_bits(x));
        }
    }

    /// A library whose answers differ at one of the angles.
    #[test]
    fn each_kind_of_library_is_told_from_the_others() {
        let (plain, fused) = ((sin::<false>, cos::<false>), (sin::<true>, cos::<true>));
        assert_eq!(SinesForm::of(fused.0, fused.1), SinesForm::Fused);
        assert_eq!(SinesForm::of(plain.0, plain.1), SinesForm::Plain);
        assert_eq!(SinesForm::of(fused.0, plain.1), SinesForm::Other);
        // The last bit of one number in a thousand.
        fn rounded_elsewhere(x: f64) -> f64 {
            let s = sin_cos::<true>(x).0;
            if x.to_bits() % 1000 == 7 { f64::from_bits(s.to_bits() ^ 1) } else { s }
        }
        assert_eq!(SinesForm::of(rounded_elsewhere, fused.1), SinesForm::Other);
    }

    #[test]
    fn the_table_is_right_to_the_last_digit_that_two_doubles_hold() {
        for (k, [sn, ssn, cs, ccs]) in TABLE.iter().enumerate() {
            let x = k as f64 / 128.0;
            assert!((sn - x.sin()).abs() <= f64::EPSILON && (cs - x.cos()).abs() <= f64::EPSILON);
            // sin² + cos² is 1, which tells whether the rests are right: twice the product of
            // number and rest, and what the squares lose.
            let squares = sn.mul_add(*sn, -(sn * sn)) + cs.mul_add(*cs, -(cs * cs));
            // Both differences are exact.
            let (sin, cos) = (sn * sn, cs * cs);
            let lost = (sin.max(cos) - 1.0) + sin.min(cos);
            assert!((lost + squares + 2.0 * (sn * ssn + cs * ccs)).abs() < 1e-31, "row {k}");
        }
    }
}
