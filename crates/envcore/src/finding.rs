//! Which elements of a column of flags are true.

use crate::simd::{self, Kernel};

/// Writes the indices of the true elements of `holds`, plus `first`, to the front of
/// `found`, which must be at least as long. Returns how many there are.
pub(crate) fn find(holds: &[bool], first: usize, found: &mut [usize]) -> usize {
    find_value(true, holds, first, found)
}

/// As [`find`], of the elements that are `value`.
pub(crate) fn find_value(value: bool, holds: &[bool], first: usize, found: &mut [usize]) -> usize {
    simd::dispatch(Finding { value, holds, first, found })
}

struct Finding<'a> {
    value: bool,
    holds: &'a [bool],
    first: usize,
    found: &'a mut [usize],
}

impl Kernel for Finding<'_> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let Finding { value, holds, first, found } = self;
        let flip = if value { 0 } else { u64::MAX };
        let mut count = 0;
        let (chunks, rest) = bytemuck::cast_slice::<bool, u8>(holds).as_chunks::<64>();
        for (at, chunk) in chunks.iter().enumerate() {
            let mut bits = 0;
            for (k, word) in chunk.as_chunks::<8>().0.iter().enumerate() {
                bits |= bit_per_byte(u64::from_le_bytes(*word)) << (8 * k);
            }
            bits ^= flip;
            if bits == 0 {
                continue;
            }
            let from = first + 64 * at;
            // The chunks so far have at most 64 each, so that there is room for 64 more.
            let room = found[count..].first_chunk_mut::<64>().expect("room for all of holds");
            count += bits.count_ones() as usize;
            // Eight places are written at a time, even where fewer elements hold. The CPU cannot predict how many
            // of 64 hold, and can predict that at most eight do. The count leaves the surplus places out.
            for eight in room.as_chunks_mut::<8>().0 {
                for index in eight {
                    *index = from + bits.trailing_zeros() as usize;
                    bits &= bits.wrapping_sub(1);
                }
                if bits == 0 {
                    break;
                }
            }
        }
        let from = first + 64 * chunks.len();
        for (k, _) in rest.iter().enumerate().filter(|(_, byte)| (**byte != 0) == value) {
            found[count] = from + k;
            count += 1;
        }
        count
    }
}

/// The indices of the true elements, ascending.
#[must_use]
pub fn where_true(holds: &[bool]) -> Vec<usize> {
    let mut found = vec![0; holds.len()];
    let count = find(holds, 0, &mut found);
    found.truncate(count);
    found
}

/// Packs eight bytes that are 0 or 1 into a byte: byte j becomes bit j.
#[inline(always)]
fn bit_per_byte(bytes: u64) -> u64 {
    // The terms of the factor are 2⁷ to 2⁵⁶, a factor of 2⁷ apart. One term brings byte j
    // to bit 56 + j, where no other product falls, and no products meet below.
    bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn those_that_hold_are_found_in_order(
            holds in prop_oneof![
                prop::collection::vec(any::<bool>(), 0..300),
                prop::collection::vec(prop::bool::weighted(0.05), 0..300),
                prop::collection::vec(prop::bool::weighted(0.98), 0..300),
            ],
        ) {
            let mut found = vec![0; holds.len()];
            let count = find(&holds, 5, &mut found);
            let naive: Vec<usize> = (0..holds.len()).filter(|k| holds[*k]).map(|k| k + 5).collect();
            prop_assert_eq!(&found[..count], &naive[..]);
            let opposite: Vec<bool> = holds.iter().map(|holds| !holds).collect();
            let mut others = vec![0; holds.len()];
            let count = find_value(false, &opposite, 5, &mut others);
            prop_assert_eq!(&others[..count], &naive[..]);
            let from_0: Vec<usize> = naive.iter().map(|k| k - 5).collect();
            prop_assert_eq!(where_true(&holds), from_0);
        }
    }
}
