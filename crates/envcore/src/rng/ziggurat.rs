//! The standard normal distribution, as `Generator.standard_normal` draws it.
//!
//! G. Marsaglia and W. W. Tsang, *The Ziggurat Method for Generating Random Variables*
//! (2000): the area under the bell curve is covered by 256 layers of equal area. Nearly
//! every draw falls well inside its layer and costs one word and one multiplication. About
//! one draw in a hundred falls on a layer's edge, which needs `exp`, or into the tail beyond
//! 3.65, which needs `log1p`. Both functions are std's, which uses the platform's libm, as
//! NumPy does.
//!
//! The tables are NumPy's own doubles (`ziggurat_constants.h`), written as bits. They are
//! data because they cannot be computed exactly: in float64 the construction misses a third
//! to a half of the entries, and would depend on the platform's libm.

use super::Pcg64;

const LAYERS: usize = 256;

/// The start of the tail, and its inverse.
const TAIL: f64 = 3.654152885361009;
const TAIL_INVERSE: f64 = 0.2736612373297583;

#[inline]
pub(super) fn standard_normal(bits: &mut Pcg64) -> f64 {
    loop {
        let draw = Draw::new(bits.next_u64());
        if draw.number < INSIDE[draw.layer] {
            return draw.x;
        }
        if let Some(x) = at_the_edge(&draw, bits) {
            return x;
        }
    }
}

/// The parts of one word: 8 bits of layer, a sign, 52 bits of position within the layer.
struct Draw {
    layer: usize,
    number: u64,
    x: f64,
}

impl Draw {
    #[inline]
    fn new(word: u64) -> Self {
        let layer = (word & 0xff) as usize;
        let negative = word & 0x100 != 0;
        let number = word >> 9 & 0x000f_ffff_ffff_ffff;
        let x = number as f64 * WIDTH[layer];
        Self { layer, number, x: if negative { -x } else { x } }
    }
}

/// A draw that may be outside the bell curve; `None` if it is.
#[cold]
fn at_the_edge(draw: &Draw, bits: &mut Pcg64) -> Option<f64> {
    if draw.layer == 0 {
        // NumPy does not use the word's own sign bit for the tail, but a bit of the number.
        let x = tail(bits);
        return Some(if draw.number & 0x100 != 0 { -x } else { x });
    }
    let [above, below] = [HEIGHT[draw.layer - 1], HEIGHT[draw.layer]];
    let height = (above - below) * bits.next_f64() + below;
    (height < (-0.5 * draw.x * draw.x).exp()).then_some(draw.x)
}

/// Marsaglia's method for the tail. Beyond `TAIL`, the bell curve is below an exponential
/// curve.
fn tail(bits: &mut Pcg64) -> f64 {
    loop {
        let x = -TAIL_INVERSE * (-bits.next_f64()).ln_1p();
        let y = -(-bits.next_f64()).ln_1p();
        if y + y > x * x {
            return TAIL + x;
        }
    }
}

const fn doubles(bits: [u64; LAYERS]) -> [f64; LAYERS] {
    let mut doubles = [0.0; LAYERS];
    let mut i = 0;
    while i < LAYERS {
        doubles[i] = f64::from_bits(bits[i]);
        i += 1;
    }
    doubles
}

/// `ki_double`: a layer's 52-bit number below this limit is certainly within the layer.
#[rustfmt::skip]
static INSIDE: [u64; LAYERS] = [
    0x000e_f33d_8025_ef6a, 0x0000_0000_0000_0000, 0x000c_08be_98fb_c6a8, 0x000d_a354_fabd_8142,
    0x000e_51f6_7ec1_eeea, 0x000e_b255_e9d3_f77e, 0x000e_ef4b_817e_cab9, 0x000f_1947_0afa_44aa,
    0x000f_37ed_61ff_cb18, 0x000f_4f46_9561_255c, 0x000f_61a5_e41b_a396, 0x000f_707a_7553_96a4,
    0x000f_7cb2_ec28_449a, 0x000f_86f1_0c63_57d3, 0x000f_8fa6_5783_25de, 0x000f_9724_c74d_d0da,
    0x000f_9da9_07db_f509, 0x000f_a360_f581_fa74, 0x000f_a86f_de5b_4bf8, 0x000f_acf1_60d3_54dc,
    0x000f_b0fb_6718_b90f, 0x000f_b49f_8d53_74c6, 0x000f_b7ec_2366_fe77, 0x000f_baec_e9a1_e50e,
    0x000f_bdab_9d04_0bed, 0x000f_c030_60ff_6c57, 0x000f_c282_1037_a248, 0x000f_c4a6_7ae2_5bd1,
    0x000f_c6a2_977a_ee31, 0x000f_c87a_a928_96a4, 0x000f_ca32_5e4b_de85, 0x000f_cbcc_e902_231a,
    0x000f_cd4d_12f8_39c4, 0x000f_ceb5_4d8f_ec99, 0x000f_d007_bf1d_c930, 0x000f_d146_4dd6_c4e6,
    0x000f_d272_a8e2_f450, 0x000f_d38e_4ff0_c91e, 0x000f_d49a_9990_b478, 0x000f_d598_b892_0f53,
    0x000f_d689_c08e_99ec, 0x000f_d76e_a9c8_e832, 0x000f_d848_547b_08e8, 0x000f_d917_8bad_2c8c,
    0x000f_d9dd_07a7_add2, 0x000f_da99_7010_5e8c, 0x000f_db4d_5dc0_2e20, 0x000f_dbf9_5c5b_fcd0,
    0x000f_dc9d_ebb9_9a7d, 0x000f_dd3b_8118_729d, 0x000f_ddd2_8834_2f90, 0x000f_de63_6436_9f64,
    0x000f_deee_708d_514e, 0x000f_df74_01a6_b42e, 0x000f_dff4_6599_ed40, 0x000f_e06f_e4bc_24f2,
    0x000f_e0e6_c225_a258, 0x000f_e159_3c28_b84c, 0x000f_e1c7_8cbc_3f99, 0x000f_e231_e9db_1caa,
    0x000f_e298_85da_1b91, 0x000f_e2fb_8fb5_4186, 0x000f_e35b_3355_8d4a, 0x000f_e3b7_99d0_002a,
    0x000f_e410_e99e_ad7f, 0x000f_e467_46d4_7734, 0x000f_e4ba_d34c_095c, 0x000f_e50b_aed2_9524,
    0x000f_e559_f74e_bc78, 0x000f_e5a5_c8e4_1212, 0x000f_e5ef_3e13_8689, 0x000f_e636_6fd9_1078,
    0x000f_e67b_75c6_d578, 0x000f_e6be_661e_11aa, 0x000f_e6ff_55e5_f4f2, 0x000f_e73e_5900_a702,
    0x000f_e77b_823e_9e39, 0x000f_e7b6_e370_70a2, 0x000f_e7f0_8d77_4243, 0x000f_e828_9053_f08c,
    0x000f_e85e_fb35_173a, 0x000f_e893_dc84_0864, 0x000f_e8c7_41f0_cebc, 0x000f_e8f9_387d_4ef6,
    0x000f_e929_cc87_9b1d, 0x000f_e959_09d3_88ea, 0x000f_e986_fb93_9aa2, 0x000f_e9b3_ac71_4866,
    0x000f_e9df_2694_b6d5, 0x000f_ea09_73ab_e67c, 0x000f_ea32_9cf1_66a4, 0x000f_ea5a_ab32_952c,
    0x000f_ea81_a6d5_741a, 0x000f_eaa7_97de_1cf0, 0x000f_eacc_85f3_d920, 0x000f_eaf0_7865_e63c,
    0x000f_eb13_762f_ec13, 0x000f_eb35_85fe_2a4a, 0x000f_eb56_ae31_62b4, 0x000f_eb76_f4e2_84fa,
    0x000f_eb96_5fe6_2014, 0x000f_ebb4_f4cf_9d7c, 0x000f_ebd2_b8f4_49d0, 0x000f_ebef_b16e_2e3e,
    0x000f_ec0b_e31e_bde8, 0x000f_ec27_52b1_5a15, 0x000f_ec42_049d_afd3, 0x000f_ec5b_fd29_f196,
    0x000f_ec75_406c_eef4, 0x000f_ec8d_d250_0cb4, 0x000f_eca5_b691_1f12, 0x000f_ecbc_f0c4_27fe,
    0x000f_ecd3_8454_fb15, 0x000f_ece9_7488_c8b3, 0x000f_ecfe_c47f_91b7, 0x000f_ed13_7735_8528,
    0x000f_ed27_8f84_4903, 0x000f_ed3b_1024_2f4c, 0x000f_ed4d_fbad_586e, 0x000f_ed60_5498_c3dd,
    0x000f_ed72_1d41_4fe8, 0x000f_ed83_57e4_a982, 0x000f_ed94_06a4_2cc8, 0x000f_eda4_2b85_b704,
    0x000f_edb3_c874_6ab4, 0x000f_edc2_df41_6652, 0x000f_edd1_71a4_6e52, 0x000f_eddf_813c_8ad3,
    0x000f_eded_0f90_9980, 0x000f_edfa_1e0f_d414, 0x000f_ee06_ae12_4bc4, 0x000f_ee12_c0d9_5a06,
    0x000f_ee1e_5790_06e0, 0x000f_ee29_734b_6524, 0x000f_ee34_150a_e4bc, 0x000f_ee3e_3db8_9b3c,
    0x000f_ee47_ee29_82f4, 0x000f_ee51_271d_b086, 0x000f_ee59_e940_7f41, 0x000f_ee62_3528_b42e,
    0x000f_ee6a_0b58_97f1, 0x000f_ee71_6c3e_077a, 0x000f_ee78_5832_7b82, 0x000f_ee7e_cf7b_06ba,
    0x000f_ee84_d248_4ab2, 0x000f_ee8a_60b6_6343, 0x000f_ee8f_7acc_c851, 0x000f_ee94_207e_25da,
    0x000f_ee98_51a8_29ea, 0x000f_ee9c_0e13_485c, 0x000f_ee9f_5572_73f4, 0x000f_eea2_2762_ccae,
    0x000f_eea4_836b_42ac, 0x000f_eea6_68fc_2d71, 0x000f_eea7_d76e_d6fa, 0x000f_eea8_ce04_fa0a,
    0x000f_eea9_4be8_333b, 0x000f_eea9_5029_6410, 0x000f_eea8_d9c0_075e, 0x000f_eea7_e789_7654,
    0x000f_eea6_7848_1d24, 0x000f_eea4_8aa2_9e83, 0x000f_eea2_1d22_e4da, 0x000f_ee9f_2e35_2024,
    0x000f_ee9b_bc26_af2e, 0x000f_ee97_c524_f2e4, 0x000f_ee93_473c_0a3a, 0x000f_ee8e_4055_7516,
    0x000f_ee88_ae36_9c7a, 0x000f_ee82_8e7f_3dfd, 0x000f_ee7b_dea7_b888, 0x000f_ee74_9bff_37ff,
    0x000f_ee6c_c3a9_bd5e, 0x000f_ee64_529e_007e, 0x000f_ee5b_45a3_2888, 0x000f_ee51_994e_57b6,
    0x000f_ee47_4a00_06cf, 0x000f_ee3c_53e1_2c50, 0x000f_ee30_b2e0_2ad8, 0x000f_ee24_62ad_8205,
    0x000f_ee17_5eb8_3c5a, 0x000f_ee09_a22a_1447, 0x000f_edfb_27e3_49cc, 0x000f_edeb_ea76_216c,
    0x000f_eddb_e422_047e, 0x000f_edcb_0ece_39d3, 0x000f_edb9_6404_2cf4, 0x000f_eda6_dce9_38c9,
    0x000f_ed93_7237_e98d, 0x000f_ed7f_1c38_a836, 0x000f_ed69_d2b9_c02b, 0x000f_ed53_8d06_ae00,
    0x000f_ed3c_41de_a422, 0x000f_ed23_e76a_2fd8, 0x000f_ed0a_732f_e644, 0x000f_ecef_da07_fe34,
    0x000f_ecd4_100e_b7b8, 0x000f_ecb7_0895_6eb4, 0x000f_ec98_b612_30c1, 0x000f_ec79_0a0d_a978,
    0x000f_ec57_f50f_31fe, 0x000f_ec35_6686_c962, 0x000f_ec11_4cb4_b335, 0x000f_ebeb_948e_6fd0,
    0x000f_ebc4_29a0_b692, 0x000f_eb9a_f5ee_0cdc, 0x000f_eb6f_e1c9_8542, 0x000f_eb42_d3ad_1f9e,
    0x000f_eb13_b00b_2d4b, 0x000f_eae2_591a_02e9, 0x000f_eaae_ae99_2257, 0x000f_ea78_8d8e_e326,
    0x000f_ea3f_cffd_73e5, 0x000f_ea04_4c8d_d9f6, 0x000f_e9c5_d62f_563b, 0x000f_e984_3ba9_47a4,
    0x000f_e93f_471d_4728, 0x000f_e8f6_bd76_c5d6, 0x000f_e8aa_5dc4_e8e6, 0x000f_e859_e07a_b1ea,
    0x000f_e804_f690_a940, 0x000f_e7ab_4882_33c0, 0x000f_e74c_751f_6aa5, 0x000f_e6e8_102a_a202,
    0x000f_e67d_a0b6_abd8, 0x000f_e60c_9f38_307e, 0x000f_e594_7338_f742, 0x000f_e514_7097_7280,
    0x000f_e48b_d436_f458, 0x000f_e3f9_bffd_1e37, 0x000f_e35d_35ee_b19c, 0x000f_e2b5_122f_e4fe,
    0x000f_e200_0399_5557, 0x000f_e13c_8278_8314, 0x000f_e068_c4ee_67b0, 0x000f_df82_b02b_71aa,
    0x000f_de87_c57e_feaa, 0x000f_dd75_09c6_3bfd, 0x000f_dc46_e529_bf13, 0x000f_daf8_f82e_0282,
    0x000f_d985_e1b2_ba75, 0x000f_d7e6_ef48_cf04, 0x000f_d613_adbd_650b, 0x000f_d401_49e2_f012,
    0x000f_d1a1_a7b4_c7ac, 0x000f_cee2_0476_1f9e, 0x000f_cba8_d85e_11b2, 0x000f_c7d2_6ecd_2d22,
    0x000f_c32b_2f1e_22ed, 0x000f_bd65_81c0_b83a, 0x000f_b606_c400_5434, 0x000f_ac40_582a_2874,
    0x000f_9e97_1e01_4598, 0x000f_89fa_48a4_1dfc, 0x000f_66c5_f7f0_302c, 0x000f_1a5a_4b33_1c4a,
];

/// `wi_double`, as bits: a layer's width divided by 2⁵².
#[rustfmt::skip]
static WIDTH: [f64; LAYERS] = doubles([
    0x3ccf_493b_7815_d979, 0x3c8b_8d0b_e3fd_f6c6, 0x3c92_50af_3c2c_5bb4, 0x3c95_7cb9_3844_3b61,
    0x3c98_01fc_e82f_a70c, 0x3c9a_230c_2e4c_d0bc, 0x3c9c_004d_2f38_61f7, 0x3c9d_ac2f_5a74_7274,
    0x3c9f_3248_2d4c_d5c3, 0x3ca0_4d32_278e_bbad, 0x3ca0_f505_3b02_5d43, 0x3ca1_92a6_9741_3677,
    0x3ca2_27a2_8f7a_1af5, 0x3ca2_b52e_3863_d880, 0x3ca3_3c3f_c057_91f5, 0x3ca3_bd9e_c1a2_b12f,
    0x3ca4_39ef_8dff_9b55, 0x3ca4_b1bb_363d_fea7, 0x3ca5_2575_621a_d374, 0x3ca5_9580_a707_ce96,
    0x3ca6_0231_cfd9_7eea, 0x3ca6_6bd2_61a3_7c3d, 0x3ca6_d2a2_9200_0570, 0x3ca7_36da_d346_f8a6,
    0x3ca7_98ad_10b3_2a77, 0x3ca7_f845_ad46_f543, 0x3ca8_55cc_5343_0a77, 0x3ca8_b164_9e7b_769a,
    0x3ca9_0b2e_a94e_cf98, 0x3ca9_6347_822c_1eea, 0x3ca9_b9c9_8e38_c546, 0x3caa_0ecc_dca4_a72c,
    0x3caa_6267_6d77_cd59, 0x3caa_b4ad_6e10_1630, 0x3cab_05b1_6d13_6c9c, 0x3cab_5584_8742_7a29,
    0x3cab_a436_8e52_9f3a, 0x3cab_f1d6_2abf_8232, 0x3cac_3e70_f959_4ef3, 0x3cac_8a13_a532_3b61,
    0x3cac_d4c9_fe72_268b, 0x3cad_1e9f_0e80_b748, 0x3cad_679d_29e4_1f10, 0x3cad_afce_0023_b8c3,
    0x3cad_f73a_a9f1_7653, 0x3cae_3deb_b5d2_edfe, 0x3cae_83e9_337a_6f00, 0x3cae_c93a_bdf9_82ce,
    0x3caf_0de7_84f0_6226, 0x3caf_51f6_54d8_f688, 0x3caf_956d_9e87_d7ae, 0x3caf_d853_7dfa_2eac,
    0x3cb0_0d56_e042_34ec, 0x3cb0_2e40_f539_8f9a, 0x3cb0_4eea_9e16_a5fc, 0x3cb0_6f56_5b72_a010,
    0x3cb0_8f86_9071_f40b, 0x3cb0_af7d_84bc_6113, 0x3cb0_cf3d_664b_cc7f, 0x3cb0_eec8_4b16_086b,
    0x3cb1_0e20_3295_15ee, 0x3cb1_2d47_0731_0fbe, 0x3cb1_4c3e_9f8e_9141, 0x3cb1_6b08_bfc4_201e,
    0x3cb1_89a7_1a78_da34, 0x3cb1_a81b_51ee_6d88, 0x3cb1_c666_f8f8_2acb, 0x3cb1_e48b_93e0_d42e,
    0x3cb2_028a_9940_a09f, 0x3cb2_2065_72c4_c6e9, 0x3cb2_3e1d_7de9_c31f, 0x3cb2_5bb4_0ca9_6bfb,
    0x3cb2_792a_661d_d37f, 0x3cb2_9681_c719_d71b, 0x3cb2_b3bb_62b8_2eda, 0x3cb2_d0d8_62e1_b853,
    0x3cb2_edd9_e8cb_a98e, 0x3cb3_0ac1_0d6e_48d7, 0x3cb3_278e_e1f4_b930, 0x3cb3_4444_7026_5ea1,
    0x3cb3_60e2_baca_52d5, 0x3cb3_7d6a_be05_586a, 0x3cb3_99dd_6fb2_b264, 0x3cb3_b63b_bfb8_3d03,
    0x3cb3_d286_9856_1de0, 0x3cb3_eebe_de72_5a83, 0x3cb4_0ae5_71e0_9e74, 0x3cb4_26fb_2da6_745d,
    0x3cb4_4300_e83c_30a4, 0x3cb4_5ef7_73ca_c75d, 0x3cb4_7adf_9e66_c336, 0x3cb4_96ba_3248_8f2f,
    0x3cb4_b287_f602_415d, 0x3cb4_ce49_acb3_11dc, 0x3cb4_ea00_1638_a605, 0x3cb5_05ab_ef5e_5562,
    0x3cb5_214d_f20a_8b5a, 0x3cb5_3ce6_d56a_664f, 0x3cb5_5877_4e1b_b2c8, 0x3cb5_7400_0e55_5f78,
    0x3cb5_8f81_c60e_8514, 0x3cb5_aafd_2324_1b59, 0x3cb5_c672_d17d_733d, 0x3cb5_e1e3_7b2f_8cd3,
    0x3cb5_fd4f_c89f_5e38, 0x3cb6_18b8_60a3_1fc3, 0x3cb6_341d_e8a2_b0a2, 0x3cb6_4f81_04b7_260b,
    0x3cb6_6ae2_57c9_9672, 0x3cb6_8642_83b1_3137, 0x3cb6_a1a2_2950_b2b1, 0x3cb6_bd01_e8b3_43bb,
    0x3cb6_d862_6128_d352, 0x3cb6_f3c4_3161_f854, 0x3cb7_0f27_f78b_68eb, 0x3cb7_2a8e_5169_14c6,
    0x3cb7_45f7_dc70_eedc, 0x3cb7_6165_35e5_731f, 0x3cb7_7cd6_faef_f449, 0x3cb7_984d_c8ba_bd93,
    0x3cb7_b3ca_3c8b_1409, 0x3cb7_cf4c_f3db_22fb, 0x3cb7_ead6_8c73_dee7, 0x3cb8_0667_a486_ea1f,
    0x3cb8_2200_dac8_8676, 0x3cb8_3da2_ce89_9f15, 0x3cb8_594e_1fd1_f5bd, 0x3cb8_7503_6f7a_7ec5,
    0x3cb8_90c3_5f47_f72d, 0x3cb8_ac8e_9205_c043, 0x3cb8_c865_aba1_0c9c, 0x3cb8_e449_5144_6a27,
    0x3cb9_003a_2973_b58f, 0x3cb9_1c38_dc28_8347, 0x3cb9_3846_12ef_0afc, 0x3cb9_5462_7903_a28a,
    0x3cb9_708e_bb70_d5ee, 0x3cb9_8ccb_892e_2a31, 0x3cb9_a919_933f_99bf, 0x3cb9_c579_8cd5_d92c,
    0x3cb9_e1ec_2b6f_7411, 0x3cb9_fe72_26fa_d24a, 0x3cba_1b0c_39f9_3692, 0x3cba_37bb_21a2_c85b,
    0x3cba_547f_9e0b_bb88, 0x3cba_715a_724a_a9a4, 0x3cba_8e4c_64a0_313d, 0x3cba_ab56_3e9f_f108,
    0x3cba_c878_cd5a_f5ce, 0x3cba_e5b4_e18b_b336, 0x3cbb_030b_4fc3_a11a, 0x3cbb_207c_f09a_985b,
    0x3cbb_3e0a_a0e0_0c00, 0x3cbb_5bb5_41ce_3d03, 0x3cbb_797d_b93f_8927, 0x3cbb_9764_f1e5_f73c,
    0x3cbb_b56b_db85_256e, 0x3cbb_d393_6b2e_c0a2, 0x3cbb_f1dc_9b81_ae83, 0x3cbc_1048_6cec_16a0,
    0x3cbc_2ed7_e5f0_7a2d, 0x3cbc_4d8c_136e_0d1c, 0x3cbc_6c66_08ec_8705, 0x3cbc_8b66_e0eb_a617,
    0x3cbc_aa8f_bd36_a2ab, 0x3cbc_c9e1_c73b_d690, 0x3cbc_e95e_3068_e037, 0x3cbd_0906_328b_8f6e,
    0x3cbd_28db_1037_ef20, 0x3cbd_48de_1533_c647, 0x3cbd_6910_96e7_f123, 0x3cbd_8973_f4d7_fba5,
    0x3cbd_aa09_9920_6e70, 0x3cbd_cad2_f8fc_490e, 0x3cbd_ebd1_9552_2e37, 0x3cbe_0d06_fb49_d21c,
    0x3cbe_2e74_c4ea_46f6, 0x3cbe_501c_99c1_d188, 0x3cbe_7200_2f97_fe25, 0x3cbe_9421_4b2a_bf0a,
    0x3cbe_b681_c0f7_6f08, 0x3cbe_d923_7610_a73a, 0x3cbe_fc08_6101_eca9, 0x3cbf_1f32_8ac2_5321,
    0x3cbf_42a4_0fb7_4d6d, 0x3cbf_665f_20c9_0168, 0x3cbf_8a66_0489_9782, 0x3cbf_aebb_1871_22bf,
    0x3cbf_d360_d22f_e785, 0x3cbf_f859_c118_f60b, 0x3cc0_0ed4_47d3_a075, 0x3cc0_21a8_028f_c947,
    0x3cc0_34a9_83a9_02ab, 0x3cc0_47da_4e3e_f5c7, 0x3cc0_5b3b_f6ad_b37e, 0x3cc0_6ed0_23a7_2668,
    0x3cc0_8298_8f63_2e17, 0x3cc0_9697_08e8_a254, 0x3cc0_aacd_7571_c0c4, 0x3cc0_bf3d_d1ee_d448,
    0x3cc0_d3ea_34aa_3d30, 0x3cc0_e8d4_cf11_6593, 0x3cc0_fdff_efa6_9fb6, 0x3cc1_136e_0420_7041,
    0x3cc1_2921_9bbb_5d35, 0x3cc1_3f1d_69c4_096d, 0x3cc1_5564_4860_2e3b, 0x3cc1_6bf9_3b9d_eef3,
    0x3cc1_82df_74d2_1261, 0x3cc1_9a1a_564e_ebac, 0x3cc1_b1ad_777f_2f8e, 0x3cc1_c99c_a971_a694,
    0x3cc1_e1eb_fbe4_ae39, 0x3cc1_fa9f_c2e2_d901, 0x3cc2_13bc_9d04_cc81, 0x3cc2_2d47_7a6f_d3ee,
    0x3cc2_4745_a4ac_9c24, 0x3cc2_61bc_c776_58e0, 0x3cc2_7cb2_faa8_592e, 0x3cc2_982e_cd77_0e78,
    0x3cc2_b437_532a_0a52, 0x3cc2_d0d4_3196_db97, 0x3cc2_ee0d_b1a9_78f5, 0x3cc3_0bec_d256_aeee,
    0x3cc3_2a7b_5e68_a4a3, 0x3cc3_49c4_05ae_12a3, 0x3cc3_69d2_7a33_a840, 0x3cc3_8ab3_9256_410a,
    0x3cc3_ac75_70ae_88fa, 0x3cc3_cf27_b317_04a6, 0x3cc3_f2db_aa60_f475, 0x3cc4_17a4_9cb9_e5da,
    0x3cc4_3d98_1554_5e94, 0x3cc4_64ce_44a7_3a15, 0x3cc4_8d62_759c_43bc, 0x3cc4_b773_9d6b_5a27,
    0x3cc4_e325_0dcd_8902, 0x3cc5_109f_53e9_ac41, 0x3cc5_4011_523a_7e42, 0x3cc5_71b1_a94a_e41b,
    0x3cc5_a5c0_8b71_8dd9, 0x3cc5_dc8a_243a_d0fe, 0x3cc6_1669_cf86_1e4c, 0x3cc6_53ce_7b00_6aea,
    0x3cc6_9540_be9f_e5c3, 0x3cc6_db6b_8d09_e232, 0x3cc7_2728_f05f_7a34, 0x3cc7_7995_5609_0673,
    0x3cc7_d42d_f4d6_ce8c, 0x3cc8_3903_0529_f234, 0x3cc8_ab0f_bfaa_7c14, 0x3cc9_2ee0_946f_4496,
    0x3cc9_cbee_0140_57ab, 0x3cca_8fdc_7894_775a, 0x3ccb_981f_3878_fdb1, 0x3ccd_3bb4_8209_ad33,
]);

/// `fi_double`, as bits: exp(-x²/2) at a layer's edge.
#[rustfmt::skip]
static HEIGHT: [f64; LAYERS] = doubles([
    0x3ff0_0000_0000_0000, 0x3fef_446a_c979_f087, 0x3fee_b754_5b6c_a915, 0x3fee_3f11_e027_f077,
    0x3fed_d36f_a704_de95, 0x3fed_7092_0657_bcf2, 0x3fed_1449_78a1_19dc, 0x3fec_bd33_a8a7_2deb,
    0x3fec_6a5e_cea9_787f, 0x3fec_1b1c_d9ee_baea, 0x3feb_ceeb_4ee1_dc82, 0x3feb_8565_3a8f_f552,
    0x3feb_3e3a_8234_dd10, 0x3fea_f92a_3f6c_e8a2, 0x3fea_b5fe_f17a_2504, 0x3fea_748b_d550_c9e1,
    0x3fea_34aa_fdf5_af0f, 0x3fe9_f63b_ee65_1fd8, 0x3fe9_b922_8d24_0681, 0x3fe9_7d46_5761_7ac1,
    0x3fe9_4291_c21b_7a47, 0x3fe9_08f1_bd31_714f, 0x3fe8_d055_4fe6_0aa8, 0x3fe8_98ad_48ba_df02,
    0x3fe8_61eb_fc37_bcac, 0x3fe8_2c05_0f56_cf6e, 0x3fe7_f6ed_4b20_e2cb, 0x3fe7_c29a_779c_6858,
    0x3fe7_8f03_3ca0_b0d5, 0x3fe7_5c1f_0770_d856, 0x3fe7_29e5_f43f_6d12, 0x3fe6_f850_baea_7aee,
    0x3fe6_c758_9e63_5a89, 0x3fe6_96f7_5e51_3b2a, 0x3fe6_6727_2a92_e323, 0x3fe6_37e2_9855_0c18,
    0x3fe6_0924_9880_2665, 0x3fe5_dae8_6f4a_ff6a, 0x3fe5_ad29_acc8_5c89, 0x3fe5_7fe4_264c_8d8f,
    0x3fe5_5313_f08d_9e46, 0x3fe5_26b5_5a65_6cd5, 0x3fe4_fac4_e820_b667, 0x3fe4_cf3f_4f49_4ec0,
    0x3fe4_a421_72dc_5278, 0x3fe4_7968_5fdf_5012, 0x3fe4_4f11_4a49_3679, 0x3fe4_2519_8a35_5fe3,
    0x3fe3_fb7e_9958_5b82, 0x3fe3_d23e_10af_31a3, 0x3fe3_a955_a662_cd0e, 0x3fe3_80c3_2bda_00d5,
    0x3fe3_5884_8bf5_50e9, 0x3fe3_3097_c970_3a35, 0x3fe3_08fa_fd64_38ef, 0x3fe2_e1ac_55ea_3bee,
    0x3fe2_baaa_14d7_954a, 0x3fe2_93f2_8e93_cd15, 0x3fe2_6d84_2905_04ed, 0x3fe2_475d_5a90_db84,
    0x3fe2_217c_a92f_f7f2, 0x3fe1_fbe0_a992_9620, 0x3fe1_d687_fe54_9969, 0x3fe1_b171_573f_d111,
    0x3fe1_8c9b_709b_3c50, 0x3fe1_6805_1286_39da, 0x3fe1_43ad_105e_a99c, 0x3fe1_1f92_4831_1f38,
    0x3fe0_fbb3_a232_5913, 0x3fe0_d810_1041_42a0, 0x3fe0_b4a6_8d70_d9ae, 0x3fe0_9176_1d99_5d81,
    0x3fe0_6e7d_ccf0_3c36, 0x3fe0_4bbc_afa6_3f2e, 0x3fe0_2931_e18b_822a, 0x3fe0_06dc_85b8_cac4,
    0x3fdf_c977_8c7b_bda1, 0x3fdf_859d_a7a9_00ca, 0x3fdf_4229_cb2f_7af3, 0x3fde_ff1a_717e_8f95,
    0x3fde_bc6e_20bd_1f54, 0x3fde_7a23_6a4e_c3c5, 0x3fde_3838_ea5f_9b85, 0x3fdd_f6ad_4776_3a09,
    0x3fdd_b57f_320b_56b1, 0x3fdd_74ad_6426_de33, 0x3fdd_3436_a102_1080, 0x3fdc_f419_b4ae_5b6d,
    0x3fdc_b455_73c0_a848, 0x3fdc_74e8_bb00_d7c7, 0x3fdc_35d2_6f1d_2cb8, 0x3fdb_f711_7c61_6a17,
    0x3fdb_b8a4_d671_6d91, 0x3fdb_7a8b_7807_131b, 0x3fdb_3cc4_62b3_31ca, 0x3fda_ff4e_9ea1_8552,
    0x3fda_c229_3a5f_5a9e, 0x3fda_8553_4aa4_d880, 0x3fda_48cb_ea20_c04d, 0x3fda_0c92_3946_843e,
    0x3fd9_d0a5_5e1e_93df, 0x3fd9_9504_8418_c0c6, 0x3fd9_59ae_dbe0_9f93, 0x3fd9_1ea3_9b33_cb17,
    0x3fd8_e3e1_fcb9_f115, 0x3fd8_a969_3fde_9188, 0x3fd8_6f38_a8ac_5ab6, 0x3fd8_354f_7faa_0dd9,
    0x3fd7_fbad_11b8_d911, 0x3fd7_c250_aff4_14b0, 0x3fd7_8939_af92_52eb, 0x3fd7_5067_69c7_b1ed,
    0x3fd7_17d9_3ba9_614c, 0x3fd6_df8e_8612_4caa, 0x3fd6_a786_ad88_de21, 0x3fd6_6fc1_1a25_cbe2,
    0x3fd6_383d_377b_e515, 0x3fd6_00fa_7480_d2c8, 0x3fd5_c9f8_4376_c244, 0x3fd5_9336_19d6_eebe,
    0x3fd5_5cb3_703d_0100, 0x3fd5_266f_c253_3bed, 0x3fd4_f06a_8ebf_6d92, 0x3fd4_baa3_5710_9ca2,
    0x3fd4_8519_9fad_6ad4, 0x3fd4_4fcc_efc3_24fe, 0x3fd4_1abc_d135_7a19, 0x3fd3_e5e8_d08e_d2db,
    0x3fd3_b150_7cf1_43ae, 0x3fd3_7cf3_6808_1379, 0x3fd3_48d1_25f9_d19e, 0x3fd3_14e9_4d5a_f62f,
    0x3fd2_e13b_7721_0766, 0x3fd2_adc7_3e96_3fdd, 0x3fd2_7a8c_414d_b11e, 0x3fd2_478a_1f17_de89,
    0x3fd2_14c0_79f7_cc9e, 0x3fd1_e22e_f618_8116, 0x3fd1_afd5_39c2_f050, 0x3fd1_7db2_ed54_54e8,
    0x3fd1_4bc7_bb34_ee67, 0x3fd1_1a13_4fcf_2423, 0x3fd0_e895_5987_09c4, 0x3fd0_b74d_88b2_42da,
    0x3fd0_863b_8f90_4336, 0x3fd0_555f_2242_e9d9, 0x3fd0_24b7_f6c7_747e, 0x3fcf_e88b_89df_93c5,
    0x3fcf_8810_8cb8_3235, 0x3fcf_27fe_6ce9_98d2, 0x3fce_c854_a4c9_9c44, 0x3fce_6912_b228_3cdd,
    0x3fce_0a38_1645_7184, 0x3fcd_abc4_55c7_900a, 0x3fcd_4db6_f8b2_514f, 0x3fcc_f00f_8a5e_6fcc,
    0x3fcc_92cd_9971_df53, 0x3fcc_35f0_b7d8_9d47, 0x3fcb_d978_7abe_18a1, 0x3fcb_7d64_7a87_31aa,
    0x3fcb_21b4_52cc_d13a, 0x3fca_c667_a257_1807, 0x3fca_6b7e_0b19_267e, 0x3fca_10f7_322d_7e3d,
    0x3fc9_b6d2_bfd2_fe5a, 0x3fc9_5d10_5f6a_7c27, 0x3fc9_03af_bf74_fa69, 0x3fc8_aab0_9192_815b,
    0x3fc8_5212_8a81_9a38, 0x3fc7_f9d5_621f_7175, 0x3fc7_a1f8_d368_a323, 0x3fc7_4a7c_9c7a_b5a6,
    0x3fc6_f360_7e96_4716, 0x3fc6_9ca4_3e21_f25c, 0x3fc6_4647_a2ad_f19c, 0x3fc5_f04a_76f8_83f9,
    0x3fc5_9aac_88f3_1d6c, 0x3fc5_456d_a9c8_6835, 0x3fc4_f08d_ade3_1fc1, 0x3fc4_9c0c_6cf5_ce2d,
    0x3fc4_47e9_c203_75d5, 0x3fc3_f425_8b69_31ae, 0x3fc3_a0bf_aae8_d7ee, 0x3fc3_4db8_05b4_ab88,
    0x3fc2_fb0e_847c_2a65, 0x3fc2_a8c3_137a_071a, 0x3fc2_56d5_a283_5eb7, 0x3fc2_0546_2518_3c34,
    0x3fc1_b414_9275_7d42, 0x3fc1_6340_e5a8_2d63, 0x3fc1_12cb_1da2_6eb9, 0x3fc0_c2b3_3d52_09ba,
    0x3fc0_72f9_4bb8_bf85, 0x3fc0_239d_5406_7d2a, 0x3fbf_a93e_cb6b_222c, 0x3fbf_0bff_2952_0e1c,
    0x3fbe_6f7b_f29a_a54b, 0x3fbd_d3b5_6176_e88f, 0x3fbd_38ab_b9bd_91e5, 0x3fbc_9e5f_493b_740a,
    0x3fbc_04d0_680b_1015, 0x3fbb_6bff_78f2_e233, 0x3fba_d3ec_e9ca_f633, 0x3fba_3c99_33ea_6286,
    0x3fb9_a604_dc9d_5b19, 0x3fb9_1030_75a4_a0ab, 0x3fb8_7b1c_9dbf_2852, 0x3fb7_e6ca_013e_efd6,
    0x3fb7_5339_5aaa_1176, 0x3fb6_c06b_7369_4a4c, 0x3fb6_2e61_2485_4d18, 0x3fb5_9d1b_5774_66a4,
    0x3fb5_0c9b_06fa_2bae, 0x3fb4_7ce1_401b_2213, 0x3fb3_edef_2326_9a86, 0x3fb3_5fc5_e4d9_3e70,
    0x3fb2_d266_cf9b_3111, 0x3fb2_45d3_44dd_0d91, 0x3fb1_ba0c_be97_897d, 0x3fb1_2f14_d0f2_179d,
    0x3fb0_a4ed_2c15_9625, 0x3fb0_1b97_9e30_e497, 0x3faf_262c_2b6c_6e35, 0x3fae_16d5_47b2_5181,
    0x3fad_092e_fead_f162, 0x3fab_fd3e_0f28_2a2c, 0x3faa_f307_9038_5f70, 0x3fa9_ea90_f929_5563,
    0x3fa8_e3e0_2a68_b5ab, 0x3fa7_defb_77af_271e, 0x3fa6_dbe9_b398_d064, 0x3fa5_dab2_3cf2_add4,
    0x3fa4_db5d_0e11_275d, 0x3fa3_ddf2_ce98_eecb, 0x3fa2_e27c_e83d_f497, 0x3fa1_e905_9f1f_6abc,
    0x3fa0_f198_2e96_8011, 0x3f9f_f881_d718_a5c4, 0x3f9e_121a_db82_8c75, 0x3f9c_3019_83cd_091a,
    0x3f9a_529f_4e22_ebf8, 0x3f98_79d1_b600_c10a, 0x3f96_a5da_f40b_bf82, 0x3f94_d6ea_f2fb_b064,
    0x3f93_0d38_8dab_5e13, 0x3f91_4903_3460_3012, 0x3f8f_152a_4f72_dd49, 0x3f8b_a48d_274f_8fac,
    0x3f88_4104_0d8d_a478, 0x3f84_eb96_421a_cfe0, 0x3f81_a592_2995_2f92, 0x3f7c_e160_f8ec_6837,
    0x3f76_9ea8_d90c_b85d, 0x3f70_8a1f_03b0_b1fd, 0x3f65_5f9f_43c1_b067, 0x3f54_a605_b6b9_f70f,
]);

#[cfg(test)]
mod tests {
    use super::*;

    /// The recorded tables come from NumPy's compiled library; see
    /// `tests/data/make_rng_vectors.py`.
    #[test]
    fn every_table_entry_is_numpys() {
        let recorded: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/data/rng.json")).unwrap();
        let recorded = |name: &str| -> Vec<u64> {
            let table = recorded["ziggurat"][name].as_array().unwrap();
            table.iter().map(|entry| entry.as_u64().unwrap()).collect()
        };
        assert_eq!(recorded("ki_double"), INSIDE);
        assert_eq!(recorded("wi_double"), WIDTH.map(f64::to_bits));
        assert_eq!(recorded("fi_double"), HEIGHT.map(f64::to_bits));
    }
}
