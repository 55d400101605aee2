//! The sines and cosines of this machine's C library, bit for bit, in vector registers.
//!
//! Exact envs promise the trajectories that NumPy and Gymnasium give on this machine, which
//! are those of the C library's `sin` and `cos`. A call computes one number. But the functions
//! of glibc since 2.28 are short formulas over a small table (IBM's Accurate Mathematical
//! Library, as simplified by Wilco Dijkstra and Siddhesh Poyarekar), without a loop and with few
//! branches. [`sines`] and [`cosines`] compute the same formulas with the same roundings, so that the
//! compiler can put several numbers into one register.
//!
//! Which formulas a C library has is found out and not assumed: [`SinesForm::in_use`]
//! compares them with the library's own functions, once per process. glibc compiles its
//! functions twice, with fused multiply-adds for CPUs that have them and without. Other
//! libraries may agree with neither form. Then loops must call the library.

mod formulas;
pub mod squares;
mod table;

use std::sync::OnceLock;

pub use formulas::{Between, FAR, NEAR, cos, cosines, sin, sin_cos_near, sines, sines_and_cosines};
use formulas::{HALF_PI, MIDDLE, TINY};

use crate::simd::{self, Kernel};

/// Which formulas give the same bits as a C library's `sin` and `cos`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinesForm {
    /// Those with fused multiply-adds: `sines::<true, N>`.
    Fused,
    /// Those in which each operation rounds by itself: `sines::<false, N>`.
    Plain,
    /// Neither of them.
    Other,
}

/// The library's functions at many angles, in blocks of 64 and in vector registers.
struct Compute<'a, const FUSED: bool>(&'a [f64]);

impl<const FUSED: bool> Kernel for Compute<'_, FUSED> {
    /// By angle, the sine and the cosine: by [`sines`] and [`cosines`], by [`sines_and_cosines`], and by
    /// [`sin_cos_near`], which are of use below [`NEAR`].
    type Output = Vec<[[f64; 2]; 3]>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        const BLOCK: usize = 64;
        let mut all = Vec::with_capacity(self.0.len() + BLOCK);
        let mut between = Between::default();
        for some in self.0.chunks(BLOCK) {
            let (mut x, mut out) = ([0.0; BLOCK], [[[0.0; BLOCK]; 2]; 3]);
            x[..some.len()].copy_from_slice(some);
            let [[sin, cos], [sin_of_both, cos_of_both], [near_sin, near_cos]] = &mut out;
            sines::<FUSED, BLOCK>(&x, sin, &mut between);
            cosines::<FUSED, BLOCK>(&x, cos, &mut between);
            sines_and_cosines::<FUSED, BLOCK>(&x, sin_of_both, cos_of_both, &mut between);
            sin_cos_near::<FUSED, BLOCK>(&x, near_sin, near_cos, &mut between);
            all.extend((0..some.len()).map(|i| out.map(|way| way.map(|function| function[i]))));
        }
        all
    }
}

/// The first of `angles` at which the formulas differ from these functions, if there is one.
/// Angles from [`FAR`] on are no concern.
pub fn difference<const FUSED: bool>(
    sin: fn(f64) -> f64,
    cos: fn(f64) -> f64,
    angles: &[f64],
) -> Option<f64> {
    let differs = |(x, [alone, both, near]): &(&f64, [[f64; 2]; 3])| {
        // The compiler may not compute the library's answers by its own means.
        let right = [sin(std::hint::black_box(**x)), cos(std::hint::black_box(**x))].map(f64::to_bits);
        let is = |ours: &[f64; 2]| ours.map(f64::to_bits) == right;
        x.abs() < FAR && !(is(alone) && is(both) && (x.abs() >= NEAR || is(near)))
    };
    let ours = simd::dispatch(Compute::<FUSED>(angles));
    angles.iter().zip(ours).find(differs).map(|(x, _)| *x)
}

impl SinesForm {
    /// The formulas by which kernels of this process step exact envs, found out at the first call.
    /// [`Other`](Self::Other) where this CPU has no fused multiply-add, where
    /// `CORRAL_SIMD=any` asks for a CPU without, or where this machine's C library has functions of
    /// its own: then envs are stepped one by one.
    #[inline]
    pub fn in_use() -> Self {
        static FORM: OnceLock<SinesForm> = OnceLock::new();
        *FORM.get_or_init(|| {
            if simd::has_fused() && squares::agree(f64::powf, f32::powf) {
                SinesForm::of(f64::sin, f64::cos)
            } else {
                SinesForm::Other
            }
        })
    }

    /// The formulas that agree with these functions at some ten thousand angles: all boundaries
    /// between formulas, powers of two, and angles spread over each range.
    pub fn of(sin: fn(f64) -> f64, cos: fn(f64) -> f64) -> Self {
        let angles: Vec<f64> = angles().collect();
        if difference::<true>(sin, cos, &angles).is_none() {
            SinesForm::Fused
        } else if difference::<false>(sin, cos, &angles).is_none() {
            SinesForm::Plain
        } else {
            SinesForm::Other
        }
    }

    /// "fused", "plain" or "library": the C library's own.
    pub fn name(self) -> &'static str {
        match self {
            SinesForm::Fused => "fused",
            SinesForm::Plain => "plain",
            SinesForm::Other => "library",
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
    // The angles from π/2 of some of these are halfway between two rows.
    let halfway = (0..90).map(|k| HALF_PI.0 - (f64::from(k) + 0.5) / 128.0);
    let spread = [TINY, NEAR, MIDDLE, 10.0, 1e3, FAR].into_iter().flat_map(|end| {
        // The golden ratio spreads them evenly and without a pattern.
        (1..=SPREAD).map(move |k| end * (f64::from(k) * 0.618_033_988_749_894_9).fract())
    });
    let all = edges.chain(powers).chain(rows).chain(halfway).chain(spread).filter(|x| *x < FAR);
    all.flat_map(|x| [x, -x])
}

#[cfg(test)]
mod tests {
    use super::formulas::both_functions;
    use super::table::TABLE;
    use super::*;

    #[test]
    fn zeros_keep_their_signs() {
        for x in [0.0, -0.0] {
            assert_eq!((sin::<true>(x).to_bits(), cos::<true>(x)), (f64::to_bits(x), 1.0));
            assert_eq!(sin::<false>(x).to_bits(), f64::to_bits(x));
        }
    }

    #[test]
    fn angles_whose_formulas_need_different_rows_are_computed_one_by_one() {
        let at = |k: u32| [HALF_PI.0 - (f64::from(k) + 0.5) / 128.0];
        let (mut sin, mut cos, mut between) = ([0.0], [0.0], Between::default());
        let apart: Vec<u32> = (0..90)
            .filter(|k| !both_functions::<true, 1>(&at(*k), &mut sin, &mut cos, &mut between))
            .collect();
        assert!(!apart.is_empty());
        for k in apart {
            sines_and_cosines::<true, 1>(&at(k), &mut sin, &mut cos, &mut between);
            assert_eq!((sin[0], cos[0]), (super::sin::<true>(at(k)[0]), super::cos::<true>(at(k)[0])));
        }
    }

    #[test]
    fn each_kind_of_library_is_told_from_the_others() {
        let (plain, fused) = ((sin::<false>, cos::<false>), (sin::<true>, cos::<true>));
        assert_eq!(SinesForm::of(fused.0, fused.1), SinesForm::Fused);
        assert_eq!(SinesForm::of(plain.0, plain.1), SinesForm::Plain);
        assert_eq!(SinesForm::of(fused.0, plain.1), SinesForm::Other);
        // The last bit of one number in a thousand.
        fn rounded_elsewhere(x: f64) -> f64 {
            let s = sin::<true>(x);
            if x.to_bits() % 1000 == 7 { f64::from_bits(s.to_bits() ^ 1) } else { s }
        }
        assert_eq!(SinesForm::of(rounded_elsewhere, fused.1), SinesForm::Other);
    }

    #[test]
    fn the_table_is_right_to_the_last_digit_that_two_doubles_hold() {
        for (k, [sn, ssn, cs, ccs]) in TABLE.0[..table::ROWS].iter().enumerate() {
            let x = k as f64 / 128.0;
            assert!((sn - x.sin()).abs() <= f64::EPSILON && (cs - x.cos()).abs() <= f64::EPSILON);
            // sin² + cos² is 1, which tells whether the rests are right: twice the product of
            // number and rest, and what the squares lose.
            let squares = sn.mul_add(*sn, -(sn * sn)) + cs.mul_add(*cs, -(cs * cs));
            // Both differences are exact.
            let (sin, cos) = (sn * sn, cs * cs);
            let lost = (sin.max(cos) - 1.0) + sin.min(cos);
            assert!((lost + squares + 2.0 * (sn * ssn + cs * ccs)).abs() < 1e-31, "row {k}");
            assert_eq!(TABLE.0[table::ROWS + k], [*cs, *ccs, -*sn, -*ssn]);
        }
    }
}
