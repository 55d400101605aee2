//! The sines and cosines of k/128, each as a sum of two doubles.

use crate::simd::Aligned;

/// The rows of sines: more than are used, so that seven bits of a number are always a row.
pub(super) const ROWS: usize = 128;

/// Of row k: sin(k/128) rounded, the rest of it rounded, and the same of cos(k/128). Of row
/// [`ROWS`] + k, the same of cos(k/128) and of -sin(k/128), which is the cosine's slope.
pub(super) static TABLE: Aligned<[[f64; 4]; 2 * ROWS]> = Aligned(table());

/// The fixed point of the numbers below: 2 to the power of 126 is 1.
const BITS: u32 = 126;

const fn table() -> [[f64; 4]; 2 * ROWS] {
    let mut rows = [[0.0; 4]; 2 * ROWS];
    let mut k = 0;
    while k < ROWS {
        let (sin, cos) = (series(k as u128, 1), series(k as u128, 0));
        let ((sn, ssn), (cs, ccs)) = (split(sin), split(cos));
        rows[k] = [sn, ssn, cs, ccs];
        rows[ROWS + k] = [cs, ccs, -sn, -ssn];
        k += 1;
    }
    rows
}

/// The Taylor series of the sine (`power` is 1) or the cosine (0) of k/128, in fixed point.
/// Each term is cut by less than one unit in the last place.
const fn series(k: u128, mut power: u128) -> u128 {
    let mut term = if power == 1 { k << (BITS - 7) } else { 1 << BITS };
    let (mut plus, mut minus) = (term, 0);
    let mut is_minus = true;
    while term > 0 {
        // The next term is term·k²/below, whose product would not fit into 128 bits.
        let below = ((power + 1) * (power + 2)) << 14;
        term = (term / below) * (k * k) + (term % below) * (k * k) / below;
        if is_minus {
            minus += term;
        } else {
            plus += term;
        }
        is_minus = !is_minus;
        power += 2;
    }
    plus - minus
}

/// A fixed-point number as the nearest double, and the double nearest to the rest.
const fn split(number: u128) -> (f64, f64) {
    let high = number as f64;
    let rest = number as i128 - high as i128;
    // 2 to the power of -126, by which a product is exact.
    let unit = f64::from_bits(((1023 - BITS) as u64) << 52);
    (high * unit, rest as f64 * unit)
}
