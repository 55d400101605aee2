//! Loops that the compiler vectorises for several kinds of CPU: once for any CPU of the
//! target, once for CPUs with AVX2 and, where asked for, once for CPUs with AVX-512. The
//! version for this CPU is chosen at run time.
//!
//! The choice does not change any result. The versions differ in the width of their
//! registers and not in their arithmetic. In particular no multiplication and addition
//! become a fused one, which rounds once where two operations round twice, unless the loop
//! says so (`f64::mul_add`). So all versions give the same bytes.

#![allow(unsafe_code)]

use std::marker::PhantomData;
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// A value that begins a cache line, so that no wide load or store of an array touches two lines more
/// often than it must.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Aligned<T>(pub T);

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

/// The vector registers that [`dispatch_wide`] uses in this process: "avx512", "avx2" or "any", which
/// are those of any CPU of the target.
#[must_use]
pub fn registers() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    match SimdLevel::best() {
        SimdLevel::Avx512 => return "avx512",
        SimdLevel::Avx2 => return "avx2",
        SimdLevel::Any => {}
    }
    "any"
}

/// Asks the CPU to load `value`, or the first lines of it, into its cache, for use a little later.
#[inline]
pub fn prefetch<T>(value: &T) {
    for line in 0..size_of::<T>().div_ceil(LINE).min(4) {
        prefetch_line(std::ptr::from_ref(value).cast::<u8>().wrapping_add(LINE * line));
    }
}

/// Bytes of a line of the CPU's caches.
pub const LINE: usize = 64;

/// Asks the CPU to load the line at `address`, which may be any, into its cache, for use a little
/// later.
#[inline(always)]
pub fn prefetch_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint and reads nothing that the program sees, at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast::<i8>()) }
    }
    let _ = address;
}

/// Stores that other threads may see later than stores that come after them. Dropping this value ends
/// that, on the thread that made them: no later store of the thread is seen before them.
#[must_use]
pub struct LateStores {
    past_caches: bool,
    /// A fence on another thread would do nothing.
    of_this_thread: PhantomData<*const ()>,
}

impl Drop for LateStores {
    fn drop(&mut self) {
        if self.past_caches {
            // SAFETY: every CPU of the target has the instruction.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                std::arch::x86_64::_mm_sfence();
            }
        }
    }
}

/// Copies `bytes` bytes for a reader who comes later, by loads and stores. The copy of glibc is one
/// instruction of the CPU from 4 KB on, which takes a quarter more time where the memory is in none of
/// the nearer caches (0.31 µs, not 0.25, for 8 KB on a Zen 3).
///
/// `past_caches` is for a reader who comes much later: memory that is in no cache is not fetched first,
/// and what is in the caches stays there.
///
/// # Safety
/// As [`std::ptr::copy_nonoverlapping`]. Nobody may use the copy before the value that is returned is
/// dropped.
pub unsafe fn copy_for_later(from: *const u8, to: *mut u8, bytes: usize, past_caches: bool) -> LateStores {
    // SAFETY: the caller guarantees what both functions require.
    unsafe {
        if past_caches {
            copy_lines::<true>(from, to, bytes);
        } else {
            copy_lines::<false>(from, to, bytes);
        }
    }
    LateStores { past_caches, of_this_thread: PhantomData }
}

/// Copies line by line of the cache.
///
/// # Safety
/// As [`std::ptr::copy_nonoverlapping`].
#[cfg(target_arch = "x86_64")]
unsafe fn copy_lines<const PAST_CACHES: bool>(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_store_si128, _mm_stream_si128};
    let head = to.align_offset(64).min(bytes);
    let lines = (bytes - head) / 64;
    let tail = head + lines * 64;
    // SAFETY: head, lines and tail divide the bytes of both; `to` is aligned to a line after the
    // head.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        for line in 0..lines {
            let (from, to) = (from.add(head + line * 64), to.add(head + line * 64));
            for part in (0..64).step_by(16) {
                let value = _mm_loadu_si128(from.add(part).cast::<__m128i>());
                let to = to.add(part).cast::<__m128i>();
                if PAST_CACHES { _mm_stream_si128(to, value) } else { _mm_store_si128(to, value) }
            }
        }
        std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), bytes - tail);
    }
}

/// Copies.
///
/// # Safety
/// As [`std::ptr::copy_nonoverlapping`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_lines<const PAST_CACHES: bool>(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller guarantees what this function requires.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "fma,bmi1,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
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
            let has_256 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt");
            let has = match (has_256, has_512) {
                (true, true) => SimdLevel::Avx512,
                (true, false) => SimdLevel::Avx2,
                _ => SimdLevel::Any,
            };
            has.min(asked)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_bytes_wherever_it_begins_and_ends() {
        let from: Vec<u8> = (0..300).map(|k| k as u8).collect();
        for (first, last) in (0..70).flat_map(|first| (first..300).step_by(7).map(move |last| (first, last)))
        {
            for past_caches in [false, true] {
                let mut to = vec![0xAA; 300];
                let n = last - first;
                // SAFETY: both have as many bytes, and they are two allocations.
                drop(unsafe {
                    let (from, to) = (from.as_ptr().add(3.min(300 - n)), to.as_mut_ptr().add(first));
                    copy_for_later(from, to, n, past_caches)
                });
                assert_eq!(to[first..last], from[3.min(300 - n)..][..n]);
                assert!(to[..first].iter().chain(&to[last..]).all(|&byte| byte == 0xAA));
            }
        }
    }

    struct Quotients<'a>(&'a [f64]);

    impl Kernel for Quotients<'_> {
        type Output = Vec<u64>;

        #[inline(always)]
        fn run(self) -> Vec<u64> {
            self.0.iter().map(|x| (x / (x * x + 1.5) - x.mul_add(*x, 0.1)).to_bits()).collect()
        }
    }

    #[test]
    fn every_level_gives_the_same_bytes() {
        let numbers: Vec<f64> = (0..1000).map(|k| (f64::from(k) - 500.0) * 1.5e-3).collect();
        let plain = Quotients(&numbers).run();
        assert_eq!(dispatch(Quotients(&numbers)), plain);
        assert_eq!(dispatch_wide(Quotients(&numbers)), plain);
    }
}
