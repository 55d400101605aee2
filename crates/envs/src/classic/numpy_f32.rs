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

#[cfg(test)]
mod tests {
    use super::*;

    /// Angles, their sines and cosines, as NumPy 2.4.6 on x86-64 gives them, as the bits of floats.
    const RECORDED: [[u32; 3]; 24] = [
        [0x0000_0000, 0x0000_0000, 0x3f80_0000],
        [0xbd4c_cccd, 0xbd4c_b6f5, 0x3f7f_ae19],
        [0x3dcc_cccd, 0x3dcc_7577, 0x3f7e_b898],
        [0x3f49_0fdb, 0x3f35_04f3, 0x3f35_04f3],
        [0x3f49_0fdc, 0x3f35_04f4, 0x3f35_04f2],
        [0x3fc9_0fdb, 0x3f80_0000, 0xb33b_bd2e],
        [0xc016_cbe4, 0xbf35_04f3, 0xbf35_04f3],
        [0x4049_0fdb, 0xb3bb_bd2e, 0xbf80_0000],
        [0x4120_0000, 0xbf0b_44f7, 0xbf56_cd64],
        [0xc49a_5000, 0xbe14_e299, 0xbf7d_4796],
        [0x478a_ac00, 0x3bc5_8d87, 0x3f7f_fecf],
        [0x478b_9a06, 0xbf7e_adee, 0x3dcf_c0db],
        [0x478b_9a80, 0xbefc_a5c6, 0x3f5e_a96f],
        [0xc7e5_5df3, 0x3cc0_1d62, 0xbf7f_edfa],
        [0x47e5_5e40, 0xbf15_c9cb, 0xbf4f_9aa9],
        [0x4b18_9680, 0x3ed7_520a, 0xbf68_42df],
        [0x406a_3e04, 0xbefd_b5d4, 0xbf5e_5c0c],
        [0x406c_7f9f, 0xbf06_9d22, 0xbf59_c009],
        [0x3e3c_520c, 0x3e3b_42c0, 0x3f7b_aeda],
        [0xc024_812a, 0xbf0a_6803, 0xbf57_5c05],
        [0xc0ab_4a65, 0x3f4d_44d4, 0x3f18_f90d],
        [0xbfb3_2539, 0xbf7c_41ad, 0x3e2e_7a0e],
        [0xbf8c_95cd, 0xbf63_f430, 0x3ee9_01bb],
        [0xc0ae_9d44, 0x3f3c_4d70, 0x3f2d_6e3c],
    ];

    #[test]
    fn the_bits_are_numpys_near_and_far_from_zero() {
        for bits in RECORDED {
            let [angle, expected_sin, expected_cos] = bits.map(f32::from_bits);
            assert_eq!(sin(angle).to_bits(), expected_sin.to_bits(), "sin {angle}");
            assert_eq!(cos(angle).to_bits(), expected_cos.to_bits(), "cos {angle}");
        }
    }
}
