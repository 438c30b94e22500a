//! Addresses of the internet. Their simplest are all zero.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use super::Arbitrary;
use crate::abi;
use crate::strategy::spanned;

/// Byte by byte.
impl Arbitrary for Ipv4Addr {
    fn arbitrary() -> Ipv4Addr {
        Ipv4Addr::from(<[u8; 4]>::arbitrary())
    }
}

/// Segment by segment.
impl Arbitrary for Ipv6Addr {
    fn arbitrary() -> Ipv6Addr {
        Ipv6Addr::from(<[u16; 8]>::arbitrary())
    }
}

/// The simplest is of version 4.
impl Arbitrary for IpAddr {
    fn arbitrary() -> IpAddr {
        spanned("ip", || match abi::index(2) {
            0 => Ipv4Addr::arbitrary().into(),
            _ => Ipv6Addr::arbitrary().into(),
        })
    }
}

impl Arbitrary for SocketAddrV4 {
    fn arbitrary() -> SocketAddrV4 {
        spanned("socket", || SocketAddrV4::new(Ipv4Addr::arbitrary(), u16::arbitrary()))
    }
}

/// Without a flow label and a scope, which are 0.
impl Arbitrary for SocketAddrV6 {
    fn arbitrary() -> SocketAddrV6 {
        spanned("socket", || SocketAddrV6::new(Ipv6Addr::arbitrary(), u16::arbitrary(), 0, 0))
    }
}

/// The simplest is of version 4.
impl Arbitrary for SocketAddr {
    fn arbitrary() -> SocketAddr {
        spanned("socket", || SocketAddr::new(IpAddr::arbitrary(), u16::arbitrary()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any;
    use crate::strategy::tests::{check, check_simplest};

    #[test]
    fn addresses_are_drawn_part_by_part() {
        let byte = "integer 0..=255 0";
        let four = format!("array( {byte} {byte} {byte} {byte} )");
        check(any::<Ipv4Addr>(), &[127, 0, 0, 1], Ipv4Addr::LOCALHOST, &four);
        let port = "integer 0..=65535 0";
        let socket = "192.168.0.1:80".parse().unwrap();
        check(
            any::<SocketAddr>(),
            &[0, 192, 168, 0, 1, 80],
            socket,
            &format!("socket( ip( index 2 {four} ) {port} )"),
        );
        let eight = format!("array({} )", format!(" {port}").repeat(8));
        check(any::<IpAddr>(), &[1, 0, 0, 0, 0, 0, 0, 0, 1], Ipv6Addr::LOCALHOST.into(), &{
            format!("ip( index 2 {eight} )")
        });
    }

    #[test]
    fn the_simplest_are_zero() {
        check_simplest(any::<IpAddr>(), Ipv4Addr::UNSPECIFIED.into());
        check_simplest(any::<Ipv6Addr>(), Ipv6Addr::UNSPECIFIED);
        check_simplest(any::<SocketAddr>(), "0.0.0.0:0".parse().unwrap());
        check_simplest(any::<(SocketAddrV4, SocketAddrV6)>(), {
            ("0.0.0.0:0".parse().unwrap(), "[::]:0".parse().unwrap())
        });
    }
}
