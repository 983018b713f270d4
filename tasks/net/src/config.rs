//! What `app.toml` says of the interface.

use abi::config::ValueRef;
use smoltcp::wire::{Ipv4Address, Ipv4Cidr};

use crate::stack::Addressing;

/// Why a setting cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// `address` is neither `"dhcp"` nor an address with a prefix length, such as `"10.0.2.15/24"`.
    Address,
    /// `address` is none that a host can have, such as that of the network itself.
    NoHost,
    /// `gateway` is no address, such as `"10.0.2.2"`.
    Gateway,
    /// `gateway` is not in the network of `address`.
    GatewayOutside,
}

impl core::fmt::Display for Mistake {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Address => "address: write \"dhcp\", or address/length as in \"10.0.2.15/24\"",
            Self::NoHost => "address: not an address of a host; see the prefix length",
            Self::Gateway => "gateway: write an address as in \"10.0.2.2\"",
            Self::GatewayOutside => "gateway: not in the network of `address`",
        })
    }
}

/// Reads `address` and `gateway`. Both may be text, or bytes: four, and for the address a fifth with the prefix length.
///
/// # Errors
/// What is wrong with them.
pub fn addressing(address: Option<ValueRef<'_>>, gateway: Option<ValueRef<'_>>) -> Result<Addressing, Mistake> {
    let address = match address {
        None | Some(ValueRef::Text("dhcp")) => return Ok(Addressing::Dhcp),
        Some(ValueRef::Text(text)) => {
            let (address, length) = text.split_once('/').ok_or(Mistake::Address)?;
            let length = length.parse().map_err(|_| Mistake::Address)?;
            (text_address(address).ok_or(Mistake::Address)?, length)
        }
        Some(ValueRef::Bytes(bytes)) => match *bytes.0 {
            [a, b, c, d, length] => (Ipv4Address::new(a, b, c, d), length),
            _ => return Err(Mistake::Address),
        },
        Some(_) => return Err(Mistake::Address),
    };
    let (address, length) = address;
    if length == 0 || length > 32 {
        return Err(Mistake::Address);
    }
    let own = Ipv4Cidr::new(address, length);
    if address.is_unspecified()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_loopback()
        || length < 31 && (own.broadcast() == Some(address) || own.network().address() == address)
    {
        return Err(Mistake::NoHost);
    }
    let gateway = match gateway {
        None | Some(ValueRef::Text("")) => None,
        Some(ValueRef::Text(text)) => Some(text_address(text).ok_or(Mistake::Gateway)?),
        Some(ValueRef::Bytes(bytes)) => match *bytes.0 {
            [0, 0, 0, 0] => None,
            [a, b, c, d] => Some(Ipv4Address::new(a, b, c, d)),
            _ => return Err(Mistake::Gateway),
        },
        Some(_) => return Err(Mistake::Gateway),
    };
    if gateway.is_some_and(|gateway| !own.contains_addr(&gateway)) {
        return Err(Mistake::GatewayOutside);
    }
    Ok(Addressing::Static(own, gateway))
}

fn text_address(text: &str) -> Option<Ipv4Address> {
    let address: net_api::Address = text.parse().ok()?;
    Some(Ipv4Address::from(address.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::config::ByteList;

    fn text<'a>(address: &'a str, gateway: &'a str) -> Result<Addressing, Mistake> {
        addressing(Some(ValueRef::Text(address)), Some(ValueRef::Text(gateway)))
    }

    #[test]
    fn text_and_bytes_say_the_same() {
        let expected =
            Addressing::Static(Ipv4Cidr::new(Ipv4Address::new(10, 0, 2, 15), 24), Some(Ipv4Address::new(10, 0, 2, 2)));
        assert_eq!(text("10.0.2.15/24", "10.0.2.2"), Ok(expected));
        let bytes = addressing(
            Some(ValueRef::Bytes(ByteList(&[10, 0, 2, 15, 24]))),
            Some(ValueRef::Bytes(ByteList(&[10, 0, 2, 2]))),
        );
        assert_eq!(bytes, Ok(expected));
        assert_eq!(text("dhcp", ""), Ok(Addressing::Dhcp));
        assert_eq!(addressing(None, None), Ok(Addressing::Dhcp));
    }

    #[test]
    fn mistakes_are_named() {
        for bad in ["", "10.0.2.15", "10.0.2.15/", "10.0.2.15/33", "10.0.2/24", "x/24", "10.0.2.15/0"] {
            assert_eq!(text(bad, ""), Err(Mistake::Address), "{bad}");
        }
        for bad in ["0.0.0.0/8", "10.0.2.255/24", "10.0.2.0/24", "224.0.0.1/24", "127.0.0.1/8"] {
            assert_eq!(text(bad, ""), Err(Mistake::NoHost), "{bad}");
        }
        assert_eq!(text("10.0.2.15/24", "x"), Err(Mistake::Gateway));
        assert_eq!(text("10.0.2.15/24", "10.0.3.2"), Err(Mistake::GatewayOutside));
        assert!(matches!(text("10.0.2.15/24", ""), Ok(Addressing::Static(_, None))));
    }
}
