//! Loops that the compiler vectorises for several kinds of CPU: once for any CPU of the
//! target, once for CPUs with AVX2 and, where asked for, once for CPUs with AVX-512. The
//! version for this CPU is chosen at run time.
//!
//! The choice does not change any result. The versions differ in the width of their
//! registers and not in their arithmetic. In particular no multiplication and addition
//! become a fused one, which rounds once where two operations round twice, unless the loop
//! says so (`f64::mul_add`). So all versions give the same bytes.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// A loop that is to be vectorised.
///
/// `run` and whatever it calls must be `#[inline(always)]`, because code that is not inlined
/// is compiled for any CPU.
pub trait Kernel {
    /// The result of the loop.
    type Output;
    /// Runs the loop.
    fn run(self) -> Self::Output;
}

/// Runs `kernel`, compiled for AVX2 where this CPU has it.
#[inline]
pub fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if SimdLevel::best() >= SimdLevel::Avx2 {
        // SAFETY: this CPU has what that level names.
        return unsafe { avx2(kernel) };
    }
    kernel.run()
}

/// Runs `kernel`, compiled for AVX-512 where this CPU has it, else as [`dispatch`] does.
///
/// This is for kernels that are most of the work. Many CPUs lower their clock for a
/// millisecond after such a loop, which slows down everything else (by 13%, measured on a
/// Cascade Lake).
#[inline]
pub fn dispatch_wide<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if SimdLevel::best() >= SimdLevel::Avx512 {
        // SAFETY: this CPU has what that level names.
        return unsafe { avx512(kernel) };
    }
    dispatch(kernel)
}

/// Whether `f64::mul_add` is one instruction in a loop that [`dispatch`] runs. Elsewhere it is a
/// call of a function, with the same result.
#[inline]
#[must_use]
pub fn has_fused() -> bool {
    #[cfg(target_arch = "x86_64")]
    return SimdLevel::best() >= SimdLevel::Avx2;
    #[cfg(not(target_arch = "x86_64"))]
    cfg!(target_arch = "aarch64")
}

/// Asks the CPU to load `value` into its cache, for use a little later.
#[inline]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..size_of::<T>().div_ceil(64).min(4) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint and reads nothing that the program sees; the line
        // belongs to `value`.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast::<i8>().byte_add(64 * line)) }
    }
    let _ = value;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

/// What a CPU supports.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SimdLevel {
    Any,
    Avx2,
    Avx512,
}

#[cfg(target_arch = "x86_64")]
impl SimdLevel {
    /// The best level of this CPU, or the level of `CORRAL_SIMD` (`any`, `avx2`, `avx512`) if
    /// that is lower, so that one machine can test all levels.
    #[inline]
    fn best() -> Self {
        static BEST: OnceLock<SimdLevel> = OnceLock::new();
        *BEST.get_or_init(|| {
            let asked = match std::env::var("CORRAL_SIMD").as_deref() {
                Ok("any") => SimdLevel::Any,
                Ok("avx2") => SimdLevel::Avx2,
                _ => SimdLevel::Avx512,
            };
            let has_512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            let has_256 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let has = match (has_256, has_512) {
                (true, true) => SimdLevel::Avx512,
                (true, false) => SimdLevel::Avx2,
                _ => SimdLevel::Any,
            };
            has.min(asked)
        })
    }
}

/// The sine and the cosine of an `x` from -π/4 to π/4, to 1 ulp, by the polynomials of
/// fdlibm's `k_sin.c` and `k_cos.c` (Sun Microsystems, 1993).
#[inline(always)]
pub fn sin_cos_near_0(x: f64) -> (f64, f64) {
    (sin_near_0(x), cos_near_0(x))
}

#[inline(always)]
fn sin_near_0(x: f64) -> f64 {
    const S: [f64; 6] = [
        -1.666_666_666_666_663_2e-1,
        8.333_333_333_322_49e-3,
        -1.984_126_982_985_795e-4,
        2.755_731_370_707_006_8e-6,
        -2.505_076_025_340_686_3e-8,
        1.589_690_995_211_55e-10,
    ];
    let z = x * x;
    let tail = S[1] + z * (S[2] + z * S[3]) + z * (z * z) * (S[4] + z * S[5]);
    x + (z * x) * (S[0] + z * tail)
}

#[inline(always)]
fn cos_near_0(x: f64) -> f64 {
    const C: [f64; 6] = [
        4.166_666_666_666_66e-2,
        -1.388_888_888_887_411e-3,
        2.480_158_728_947_673e-5,
        -2.755_731_435_139_066_3e-7,
        2.087_572_321_298_175e-9,
        -1.135_964_755_778_819_5e-11,
    ];
    let z = x * x;
    let w = z * z;
    let tail = z * (C[0] + z * (C[1] + z * C[2])) + (w * w) * (C[3] + z * (C[4] + z * C[5]));
    // `whole` is 1 - z/2; the next line adds what its rounding lost.
    let half = 0.5 * z;
    let whole = 1.0 - half;
    whole + (((1.0 - whole) - half) + z * tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A number as the sum of two, with twice the digits (after Dekker, 1971).
    #[derive(Clone, Copy)]
    struct Double(f64, f64);

    impl Double {
        fn sum(a: f64, b: f64) -> Self {
            let s = a + b;
            let t = s - a;
            Double(s, (a - (s - t)) + (b - t))
        }

        fn plus(self, other: Double) -> Self {
            let s = Double::sum(self.0, other.0);
            Double::sum(s.0, s.1 + (self.1 + other.1))
        }

        fn times(self, other: Double) -> Self {
            let p = self.0 * other.0;
            let rest = self.0.mul_add(other.0, -p) + (self.0 * other.1 + self.1 * other.0);
            Double::sum(p, rest)
        }

        fn over(self, n: f64) -> Self {
            let q = self.0 / n;
            let rest = (-q).mul_add(n, self.0) + self.1;
            Double::sum(q, rest / n)
        }
    }

    /// The Taylor series of the sine or the cosine, whose first term is `first`, a multiple of
    /// x to the power of `power`.
    fn series(x: f64, first: f64, mut power: f64) -> Double {
        let square = Double(x, 0.0).times(Double(-x, 0.0));
        let mut term = Double(first, 0.0);
        let mut sum = term;
        while power < 40.0 {
            term = term.times(square).over(power + 1.0).over(power + 2.0);
            sum = sum.plus(term);
            power += 2.0;
        }
        sum
    }

    fn ulps(ours: f64, truth: Double) -> f64 {
        let ulp = f64::from_bits(truth.0.abs().to_bits() + 1) - truth.0.abs();
        ((ours - truth.0) - truth.1).abs() / ulp
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn sine_and_cosine_are_right_to_1_ulp(
            x in prop_oneof![-std::f64::consts::FRAC_PI_4..=std::f64::consts::FRAC_PI_4, -1e-3..1e-3],
        ) {
            let (sin, cos) = sin_cos_near_0(x);
            prop_assert!(ulps(sin, series(x, x, 1.0)) <= 1.0, "sin {x}");
            prop_assert!(ulps(cos, series(x, 1.0, 0.0)) <= 1.0, "cos {x}");
        }
    }

    struct Sines<'a>(&'a [f64]);

    impl Kernel for Sines<'_> {
        type Output = Vec<u64>;

        #[inline(always)]
        fn run(self) -> Vec<u64> {
            self.0
                .iter()
                .map(|x| sin_cos_near_0(*x))
                .map(|(s, c)| (s / (c + 1.5) - s * c).to_bits())
                .collect()
        }
    }

    #[test]
    fn every_level_gives_the_same_bytes() {
        let angles: Vec<f64> = (0..1000).map(|k| (f64::from(k) - 500.0) * 1.5e-3).collect();
        let plain = Sines(&angles).run();
        assert_eq!(dispatch(Sines(&angles)), plain);
        assert_eq!(dispatch_wide(Sines(&angles)), plain);
    }
}
