//! The colours. A level picks one theme; the agent and the goal contrast with the floor in each.

pub(super) use crate::canvas::Rgb;

pub(super) struct Theme {
    /// Two shades, as a chessboard.
    pub(super) floor: [Rgb; 2],
    /// A wall's top, its lit edge, its unlit edge, its front side.
    pub(super) top: Rgb,
    pub(super) lit: Rgb,
    pub(super) dim: Rgb,
    pub(super) face: Rgb,
    pub(super) glow: Rgb,
    pub(super) gem: Rgb,
    pub(super) agent: Rgb,
    pub(super) eyes: Rgb,
}

pub(super) const BLACK: Rgb = [0; 3];
pub(super) const WHITE: Rgb = [255; 3];

const fn hex(rgb: u32) -> Rgb {
    [(rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8]
}

pub(super) static THEMES: [Theme; 8] = [
    // Garden: hedges and sand.
    Theme {
        floor: [hex(0xe8d5a3), hex(0xdfca95)],
        top: hex(0x4f9d4a),
        lit: hex(0x8ccb5e),
        dim: hex(0x35794a),
        face: hex(0x2a5c40),
        glow: hex(0xc4ecff),
        gem: hex(0x2f8df0),
        agent: hex(0xf0524f),
        eyes: hex(0x3a1626),
    },
    // Dungeon: slate, torch yellow, emerald.
    Theme {
        floor: [hex(0x34324a), hex(0x2e2c42)],
        top: hex(0x8187a6),
        lit: hex(0xb4bbd2),
        dim: hex(0x5d6180),
        face: hex(0x474a68),
        glow: hex(0x49e0a0),
        gem: hex(0x3fe89a),
        agent: hex(0xffcf4d),
        eyes: hex(0x3a2418),
    },
    // Ice.
    Theme {
        floor: [hex(0x2c64a0), hex(0x285b94)],
        top: hex(0xcdeaf8),
        lit: hex(0xffffff),
        dim: hex(0x9bcbe6),
        face: hex(0x6aa5d2),
        glow: hex(0xff8fd0),
        gem: hex(0xff5fae),
        agent: hex(0xffa340),
        eyes: hex(0x402010),
    },
    // Desert: terracotta, pale sand, ruby.
    Theme {
        floor: [hex(0xf7e6c4), hex(0xf1dab2)],
        top: hex(0xc8703f),
        lit: hex(0xeea066),
        dim: hex(0xa35433),
        face: hex(0x7e3d2e),
        glow: hex(0xffb8b0),
        gem: hex(0xe81e50),
        agent: hex(0x3f6fe0),
        eyes: hex(0xffffff),
    },
    // Night.
    Theme {
        floor: [hex(0x1d1738), hex(0x191330)],
        top: hex(0x6246b0),
        lit: hex(0xa37cf5),
        dim: hex(0x452f86),
        face: hex(0x33216a),
        glow: hex(0xff4fb8),
        gem: hex(0xff5fc4),
        agent: hex(0x5cf0e0),
        eyes: hex(0x0a2a3a),
    },
    // Candy.
    Theme {
        floor: [hex(0xfff1e6), hex(0xfbe4dc)],
        top: hex(0xf08cb2),
        lit: hex(0xffc4da),
        dim: hex(0xd26592),
        face: hex(0xa94c7c),
        glow: hex(0xffd666),
        gem: hex(0xffa000),
        agent: hex(0x20b8ac),
        eyes: hex(0x0c2c3c),
    },
    // Lava: basalt over embers, a diamond.
    Theme {
        floor: [hex(0xdc6a34), hex(0xd25f2e)],
        top: hex(0x5a4a56),
        lit: hex(0x8a7480),
        dim: hex(0x443643),
        face: hex(0x33222e),
        glow: hex(0xfff0a8),
        gem: hex(0x9ff4ff),
        agent: hex(0xfff6e8),
        eyes: hex(0x30182a),
    },
    // Reef: coral in deep water.
    Theme {
        floor: [hex(0x12636c), hex(0x105a64)],
        top: hex(0xfa8a70),
        lit: hex(0xffbda0),
        dim: hex(0xd8645c),
        face: hex(0xa04858),
        glow: hex(0xa48cff),
        gem: hex(0xc8a8ff),
        agent: hex(0xffe25c),
        eyes: hex(0x14343c),
    },
];

/// `from` with `weight`/256 of `to` in it.
pub(super) fn mix(from: Rgb, to: Rgb, weight: u32) -> Rgb {
    std::array::from_fn(|i| ((u32::from(from[i]) * (256 - weight) + u32::from(to[i]) * weight) >> 8) as u8)
}
