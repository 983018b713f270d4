//! The Internet checksum, 64 bytes at a time.
//!
//! A ones' complement sum of 16-bit words can be computed in any word size and byte order, as long as carries come back in at
//! the low end (RFC 1071, section 2). So the bulk is read in the machine's order and added up as 32-bit words into 64-bit lanes; only the
//! result is folded and brought into network order.

use smoltcp::wire::Ipv4Address;

/// Bytes of a turn.
const BLOCK: usize = 64;

/// Sum of 16-bit words, not folded: at most 2^48 words fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The empty sum.
    #[must_use]
    pub const fn new() -> Self {
        Self(0)
    }

    /// Adds one word in network order.
    #[inline]
    #[must_use]
    pub fn word(self, word: u16) -> Self {
        Self(self.0 + u64::from(word.to_be()))
    }

    /// Adds bytes that start at an even offset of the covered data. An odd last byte counts as if a zero followed.
    #[inline]
    #[must_use]
    pub fn bytes(self, data: &[u8]) -> Self {
        Self(self.0 + even_sum(data))
    }

    /// Adds the pseudo-header of TCP and UDP (RFC 793, section 3.1): addresses, protocol, length of header and payload.
    #[inline]
    #[must_use]
    pub fn pseudo_header(self, source: Ipv4Address, target: Ipv4Address, protocol: u8, len: u16) -> Self {
        let source = u32::from_ne_bytes(source.octets());
        let target = u32::from_ne_bytes(target.octets());
        Self(self.0 + u64::from(source) + u64::from(target)).word(u16::from(protocol)).word(len)
    }

    /// The folded sum in network order as a number: `0xffff` if the data included a right checksum.
    #[inline]
    #[must_use]
    pub fn folded(self) -> u16 {
        u16::from_be(fold(self.0))
    }

    /// The checksum for the summed data, to be stored in network order.
    #[inline]
    #[must_use]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }

    /// True if the data, its checksum included, is intact.
    #[inline]
    #[must_use]
    pub fn is_valid(self) -> bool {
        self.folded() == 0xffff
    }
}

/// Folds a sum of machine-order words to 16 bits.
#[inline]
fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    sum as u16
}

/// Sum of bytes that start at an even offset of the covered data.
#[inline]
fn even_sum(data: &[u8]) -> u64 {
    let (blocks, rest) = data.as_chunks::<BLOCK>();
    let (words, rest) = rest.as_chunks::<4>();
    let mut sum = userlib::sum_words(blocks);
    for word in words {
        sum += u64::from(u32::from_ne_bytes(*word));
    }
    let last = match *rest {
        [a, b, c] => [a, b, c, 0],
        [a, b] => [a, b, 0, 0],
        [a] => [a, 0, 0, 0],
        _ => return sum,
    };
    sum + u64::from(u32::from_ne_bytes(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: big-endian words, carries added at the end.
    fn reference(data: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in data.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// 0 and 0xffff are the same number in ones' complement.
    fn same(a: u16, b: u16) -> bool {
        a % 0xffff == b % 0xffff
    }

    #[test]
    fn example_of_rfc_1071() {
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::new().bytes(&data).folded(), 0xddf2);
    }

    #[test]
    fn large_sums_lose_no_carry() {
        let data = std::vec![0xff; 70_001];
        assert!(same(Sum::new().bytes(&data).folded(), reference(&data)));
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(data in proptest::collection::vec(any::<u8>(), 0..300), skip in 0usize..17) {
            let part = &data[skip.min(data.len())..];
            prop_assert!(same(Sum::new().bytes(part).folded(), reference(part)));
        }

        #[test]
        fn parts_add_up(data in proptest::collection::vec(any::<u8>(), 0..300), at in 0usize..150) {
            let (front, back) = data.split_at((at * 2).min(data.len() & !1));
            prop_assert!(same(Sum::new().bytes(front).bytes(back).folded(), reference(&data)));
        }

        #[test]
        fn checksum_makes_data_valid(data in proptest::collection::vec(any::<u8>(), 2..200)) {
            let mut data = data;
            data[0] = 0;
            data[1] = 0;
            let checksum = Sum::new().bytes(&data).checksum();
            data[..2].copy_from_slice(&checksum.to_be_bytes());
            prop_assert!(Sum::new().bytes(&data).is_valid());
        }
    }
}
