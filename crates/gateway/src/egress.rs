//! Connections to hosts outside of the arena, which an environment allows by name.
//!
//! The name is resolved here, each address is examined, and the connection goes to an examined address, so that a name
//! cannot lead to this host or its networks, whatever its server answers and whenever.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use super::authority::HostPort;

/// The reason for which a host cannot be reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum EgressError {
    /// The name could not be resolved in time.
    #[error("its name cannot be resolved")]
    Unresolved,
    /// The name has addresses, but none that may be reached.
    #[error("its name leads to an address that is not public")]
    NotPublic,
}

/// Resolves a host and returns its first address that may be reached.
pub(super) async fn resolve(
    place: &HostPort,
    timeout: Duration,
    may_reach: fn(IpAddr) -> bool,
) -> Result<SocketAddr, EgressError> {
    let found = tokio::time::timeout(timeout, tokio::net::lookup_host((place.host.as_str(), place.port))).await;
    let found = match found {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            tracing::debug!(host = %place.host, %error, "external host cannot be resolved");
            return Err(EgressError::Unresolved);
        }
        Err(_) => return Err(EgressError::Unresolved),
    };
    choose(found, may_reach)
}

fn choose(
    found: impl Iterator<Item = SocketAddr>,
    may_reach: impl Fn(IpAddr) -> bool,
) -> Result<SocketAddr, EgressError> {
    let mut found = found.peekable();
    if found.peek().is_none() {
        return Err(EgressError::Unresolved);
    }
    found.find(|address| may_reach(address.ip())).ok_or(EgressError::NotPublic)
}

/// Returns whether an external host may have this address: it is public, and does not belong to this host.
pub(super) fn is_external(address: IpAddr) -> bool {
    is_public(address) && !is_own(address)
}

/// Returns whether an address belongs to this host. A public address of this host reaches services that listen on all
/// of its addresses.
fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // Connecting a UDP socket sends nothing; it only selects the local address for the destination.
    let local = || -> io::Result<IpAddr> {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((address, 9))?;
        Ok(socket.local_addr()?.ip())
    };
    local().is_ok_and(|local| local == address)
}

/// Returns whether an address is globally reachable, according to the registries of special-purpose addresses
/// (RFC 6890 and its successors).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = match address.octets() {
        // This network, private networks, loopback.
        [0 | 10 | 127, ..] | [192, 168, ..] => true,
        [172, second, ..] => (16..32).contains(&second),
        // Addresses between a provider and its customers.
        [100, second, ..] => (64..128).contains(&second),
        // Link-local, which includes the metadata services of clouds.
        [169, 254, ..] => true,
        // Protocol assignments, documentation, 6to4 relays, benchmarks.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 51, 100, _] | [203, 0, 113, _] | [198, 18 | 19, ..] => true,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => true,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // Addresses that contain an IPv4 address: mapped ones lead to it directly, those of NAT64 through a translator.
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [first, second] = high.to_be_bytes();
            let [third, fourth] = low.to_be_bytes();
            is_public_v4(Ipv4Addr::new(first, second, third, fourth))
        }
        // Protocol assignments such as Teredo, documentation, 6to4.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Only this block is assigned to hosts of the Internet.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "2001::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "100::1",
            "4000::1",
        ] {
            assert!(!is_public(address.parse().expect("an address")), "{address}");
        }
        for address in [
            "1.1.1.1",
            "9.9.9.9",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "193.0.0.1",
            "198.17.0.1",
            "223.255.255.255",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2606:4700::1111",
            "2001:200::1",
            "2a00::1",
        ] {
            assert!(is_public(address.parse().expect("an address")), "{address}");
        }
    }

    #[test]
    fn a_name_with_good_and_bad_addresses_leads_to_a_good_one() {
        let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| SocketAddr::new(text.parse().expect("an address"), 443)).collect()
        };
        let own: IpAddr = "8.8.4.4".parse().expect("an address");
        let chosen =
            |texts: &[&str]| choose(addresses(texts).into_iter(), |address| is_public(address) && address != own);
        assert_eq!(chosen(&["127.0.0.1", "8.8.4.4", "8.8.8.8"]).expect("one is public").ip().to_string(), "8.8.8.8");
        assert!(matches!(chosen(&["127.0.0.1", "8.8.4.4"]), Err(EgressError::NotPublic)));
        assert!(matches!(chosen(&[]), Err(EgressError::Unresolved)));
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
    }
}
