//! Address ranges for the networks of instances. The engine's own pools suffice for about thirty networks, but a busy
//! host needs hundreds, so arenad allocates small ranges from one configurable block.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// An IPv4 range in CIDR notation, with its host bits cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Subnet {
    base: u32,
    prefix: u8,
}

/// The reason why a text is not an IPv4 range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an IPv4 range such as 10.231.0.0/16")]
pub struct InvalidSubnet(String);

impl Subnet {
    /// The default block from which the ranges of instances are allocated.
    pub const DEFAULT_BLOCK: Self = Self { base: u32::from_be_bytes([10, 231, 0, 0]), prefix: 16 };

    /// The prefix length of an instance's network. It has 16 addresses, 13 of which containers can use.
    pub const INSTANCE_PREFIX: u8 = 28;

    fn mask(prefix: u8) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0)
    }

    /// Whether two ranges have an address in common.
    pub fn overlaps(self, other: Self) -> bool {
        let mask = Self::mask(self.prefix.min(other.prefix));
        self.base & mask == other.base & mask
    }

    /// Returns the range with a prefix of `prefix` bits that contains the address.
    pub fn new(address: Ipv4Addr, prefix: u8) -> Self {
        let prefix = prefix.min(32);
        Self { base: u32::from(address) & Self::mask(prefix), prefix }
    }

    /// Returns the address of the host in a network with this range: the first one after the network's own.
    pub fn gateway(self) -> Ipv4Addr {
        Ipv4Addr::from(self.base.saturating_add(1))
    }

    /// Whether the range contains every address of the other one.
    pub fn contains(self, other: Self) -> bool {
        self.prefix <= other.prefix && self.overlaps(other)
    }

    /// Returns a range with a prefix of `prefix` bits within `block` that overlaps none of `taken`. The search begins
    /// at the range with the number `start` and wraps around once. Different values of `start` keep concurrent callers
    /// from choosing the same range.
    pub fn first_free(block: Self, prefix: u8, taken: &[Self], start: u32) -> Option<Self> {
        Self::free(block, prefix, taken, start).next()
    }

    /// Counts the ranges with a prefix of `prefix` bits within `block` that overlap none of `taken`.
    pub fn count_free(block: Self, prefix: u8, taken: &[Self]) -> usize {
        Self::free(block, prefix, taken, 0).count()
    }

    fn free(block: Self, prefix: u8, taken: &[Self], start: u32) -> impl Iterator<Item = Self> {
        let count = prefix.checked_sub(block.prefix).and_then(|bits| 1u32.checked_shl(u32::from(bits))).unwrap_or(0);
        let size = 1u32.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        (0..count)
            .map(move |i| Self { base: block.base + ((start % count + i) % count) * size, prefix })
            .filter(|candidate| !taken.iter().any(|other| other.overlaps(*candidate)))
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.base), self.prefix)
    }
}

impl FromStr for Subnet {
    type Err = InvalidSubnet;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidSubnet(text.to_owned());
        let (address, prefix) = text.split_once('/').ok_or_else(invalid)?;
        let prefix: u8 = prefix.parse().ok().filter(|p| *p <= 32).ok_or_else(invalid)?;
        let address: Ipv4Addr = address.parse().map_err(|_| invalid())?;
        Ok(Self::new(address, prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(text: &str) -> Subnet {
        text.parse().expect("a valid range")
    }

    #[test]
    fn overlap_is_symmetric_and_by_containment() {
        assert!(subnet("10.0.0.0/8").overlaps(subnet("10.231.4.16/28")));
        assert!(subnet("10.231.4.16/28").overlaps(subnet("10.0.0.0/8")));
        assert!(!subnet("10.231.4.16/28").overlaps(subnet("10.231.4.32/28")));
        assert!(subnet("0.0.0.0/0").overlaps(subnet("192.168.0.0/24")));
    }

    #[test]
    fn first_free_skips_what_is_taken_and_wraps() {
        let block = subnet("10.231.0.0/26");
        let taken = [subnet("10.231.0.0/28"), subnet("10.231.0.32/27")];
        assert_eq!(Subnet::first_free(block, 28, &taken, 0), Some(subnet("10.231.0.16/28")));
        assert_eq!(Subnet::first_free(block, 28, &taken, 3), Some(subnet("10.231.0.16/28")));
        assert_eq!(Subnet::first_free(block, 28, &[subnet("10.0.0.0/8")], 0), None);
        assert_eq!(Subnet::first_free(block, 20, &[], 0), None, "wider than the block");
    }

    #[test]
    fn free_ranges_are_counted() {
        let block = subnet("10.231.0.0/26");
        assert_eq!(Subnet::count_free(block, 28, &[]), 4);
        assert_eq!(Subnet::count_free(block, 28, &[subnet("10.231.0.0/28"), subnet("10.231.0.32/27")]), 1);
        assert_eq!(Subnet::count_free(block, 20, &[]), 0, "wider than the block");
        assert!(block.contains(subnet("10.231.0.16/28")) && !subnet("10.231.0.16/28").contains(block));
    }

    #[test]
    fn the_gateway_is_the_first_address() {
        assert_eq!(subnet("10.231.4.16/28").gateway(), Ipv4Addr::new(10, 231, 4, 17));
        assert_eq!(subnet("255.255.255.255/32").gateway(), Ipv4Addr::BROADCAST);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0/8", "::/0", "10.0.0.0/x"] {
            assert!(text.parse::<Subnet>().is_err(), "{text}");
        }
    }
}
