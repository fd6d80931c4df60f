//! The addresses that must not be contacted: this machine, its networks, and reserved ranges.
//!
//! Sources: the special-purpose registries of the IANA for IPv4 and IPv6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The reason why an address must not be contacted. `near`: the user allowed this host by name, so this machine and
/// private networks are permitted.
#[must_use]
pub fn refusal(address: IpAddr, near: bool) -> Option<&'static str> {
    let (why, may_be_allowed) = match address {
        IpAddr::V4(v4) => v4_kind(v4)?,
        IpAddr::V6(v6) => v6_kind(v6)?,
    };
    (!(near && may_be_allowed)).then_some(why)
}

const fn within(address: Ipv4Addr, network: [u8; 4], bits: u32) -> bool {
    let mask = u32::MAX << (32 - bits);
    address.to_bits() & mask == Ipv4Addr::new(network[0], network[1], network[2], network[3]).to_bits() & mask
}

/// The kind of an address, and whether the user may allow it.
fn v4_kind(address: Ipv4Addr) -> Option<(&'static str, bool)> {
    const NETWORKS: [([u8; 4], u32, &str, bool); 16] = [
        ([127, 0, 0, 0], 8, "this machine", true),
        ([10, 0, 0, 0], 8, "a private network", true),
        ([172, 16, 0, 0], 12, "a private network", true),
        ([192, 168, 0, 0], 16, "a private network", true),
        ([100, 64, 0, 0], 10, "a provider's network", true),
        ([0, 0, 0, 0], 8, "no host", false),
        ([169, 254, 0, 0], 16, "link-local", false),
        ([192, 0, 0, 0], 24, "reserved", false),
        ([192, 0, 2, 0], 24, "for documentation", false),
        ([192, 88, 99, 0], 24, "a relay to IPv6", false),
        ([198, 18, 0, 0], 15, "for benchmarks", false),
        ([198, 51, 100, 0], 24, "for documentation", false),
        ([203, 0, 113, 0], 24, "for documentation", false),
        ([224, 0, 0, 0], 4, "multicast", false),
        ([255, 255, 255, 255], 32, "broadcast", false),
        ([240, 0, 0, 0], 4, "reserved", false),
    ];
    NETWORKS.iter().find(|(network, bits, ..)| within(address, *network, *bits)).map(|(_, _, why, may)| (*why, *may))
}

fn v6_kind(address: Ipv6Addr) -> Option<(&'static str, bool)> {
    if address == Ipv6Addr::LOCALHOST {
        return Some(("this machine", true));
    }
    let segments = address.segments();
    let [a, b, c, ..] = segments;
    match a {
        0xfc00..=0xfdff => Some(("a private network", true)),
        0xfe80..=0xfebf => Some(("link-local", false)),
        0xfec0..=0xfeff => Some(("a deprecated private network", false)),
        0xff00..=0xffff => Some(("multicast", false)),
        // IPv4 in another form: the address that is contacted is determined elsewhere, where we cannot check it.
        0 if segments[..5] == [0; 5] && segments[5] == 0xffff => Some(("a mapped IPv4 address", false)),
        0x64 if b == 0xff9b && c <= 1 => Some(("a translated IPv4 address", false)),
        0x2001 if b == 0 => Some(("a tunnel over IPv4", false)),
        0x2001 if b == 0xdb8 => Some(("for documentation", false)),
        0x2001 if b < 0x200 => Some(("reserved", false)),
        0x2002 => Some(("a tunnel over IPv4", false)),
        0x3fff if b < 0x1000 => Some(("for documentation", false)),
        0x2000..=0x3fff => None,
        _ => Some(("not a public address", false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_public_addresses_are_refused_by_default() {
        let refused = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for text in refused {
            assert!(refusal(text.parse().unwrap(), false).is_some(), "{text}");
        }
        for text in ["8.8.8.8", "1.1.1.1", "100.128.0.1", "172.32.0.1", "11.0.0.1", "2606:4700::1111", "2a00:1450::1"] {
            assert_eq!(refusal(text.parse().unwrap(), false), None, "{text}");
        }
    }

    #[test]
    fn the_user_can_allow_private_but_not_link_local_addresses() {
        for text in ["127.0.0.1", "::1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd00::1"] {
            assert_eq!(refusal(text.parse().unwrap(), true), None, "{text}");
        }
        for text in ["169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "::ffff:127.0.0.1", "64:ff9b::a00:1"] {
            assert!(refusal(text.parse().unwrap(), true).is_some(), "{text}");
        }
    }
}
