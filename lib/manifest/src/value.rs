//! Values that TOML has no type for: sizes and addresses, written as text.

use std::net::Ipv4Addr;

/// A size: `16 KiB`, `2 MiB`, `1 GiB` or `512 B`.
pub fn size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let number: u64 = text[..digits].replace('_', "").parse().ok()?;
    let unit = match text[digits..].trim_start() {
        "B" | "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// A size as people write it.
pub fn show_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    UNITS
        .iter()
        .find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit))
        .map_or_else(|| format!("{bytes} B"), |(unit, name)| format!("{} {name}", bytes / unit))
}

/// A MAC address: six bytes in hexadecimal with colons or dashes.
///
/// # Errors
/// What is wrong.
pub fn mac_address(text: &str) -> Result<[u8; 6], String> {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    let mut address = [0; 6];
    if parts.len() != address.len() {
        return Err(format!("a MAC address has 6 bytes, and this has {}", parts.len()));
    }
    for (byte, part) in address.iter_mut().zip(parts) {
        let digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        *byte = digits
            .then(|| u8::from_str_radix(part, 16).ok())
            .flatten()
            .ok_or_else(|| format!("`{part}` is not a byte in hexadecimal"))?;
    }
    if address[0] & 1 != 0 {
        return Err("the multicast bit is set: that is a group and not one interface".to_owned());
    }
    if address == [0; 6] {
        return Err("all bytes are zero".to_owned());
    }
    Ok(address)
}

/// An IPv4 address.
///
/// # Errors
/// What is wrong.
pub fn ipv4(text: &str) -> Result<[u8; 4], String> {
    text.parse::<Ipv4Addr>().map(|address| address.octets()).map_err(|_| "this is no IPv4 address".to_owned())
}

/// An IPv4 address of a host with the length of its network's prefix: `10.0.2.15/24`.
///
/// # Errors
/// What is wrong.
pub fn ipv4_prefix(text: &str) -> Result<[u8; 5], String> {
    let (address, prefix) = text.split_once('/').ok_or("the length of the network's prefix is missing")?;
    let [a, b, c, d] = ipv4(address)?;
    let prefix: u8 = prefix
        .parse()
        .ok()
        .filter(|prefix| (1..=32).contains(prefix))
        .ok_or("the length of a prefix is a number from 1 to 32")?;
    let bits = u32::from_be_bytes([a, b, c, d]);
    let host = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
    if matches!(a, 0 | 127 | 224..) {
        return Err("no interface can have this address".to_owned());
    }
    if prefix < 31 && bits & host == 0 {
        return Err("this is the address of a network and not of a host".to_owned());
    }
    if prefix < 31 && bits & host == host {
        return Err("this is the broadcast address of its network".to_owned());
    }
    Ok([a, b, c, d, prefix])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("16 KiB"), Some(16 << 10));
        assert_eq!(size("2MiB"), Some(2 << 20));
        assert_eq!(size("1_000 B"), Some(1000));
        for wrong in ["", "KiB", "16 kB", "-1 B", "1.5 MiB", "99999999999 GiB", "16 KiB "] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
        for bytes in [0, 1, 512, 4096, 1 << 20, 3 << 30, (1 << 20) + 1] {
            assert_eq!(size(&show_size(bytes)), Some(bytes));
        }
    }

    #[test]
    fn mac_addresses() {
        assert_eq!(mac_address("02:00:5e:10:00:ff"), Ok([2, 0, 0x5e, 0x10, 0, 0xff]));
        assert_eq!(mac_address("02-00-5E-10-00-FF"), Ok([2, 0, 0x5e, 0x10, 0, 0xff]));
        for wrong in [
            "02:00:5e:10:00",
            "02:00:5e:10:00:ff:00",
            "03:00:00:00:00:01",
            "00:00:00:00:00:00",
            "2:0:0:0:0:1",
            "+1:00:00:00:00:00",
            "",
        ] {
            assert!(mac_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn prefixes() {
        assert_eq!(ipv4_prefix("10.0.2.15/24"), Ok([10, 0, 2, 15, 24]));
        assert_eq!(ipv4_prefix("10.0.2.0/31"), Ok([10, 0, 2, 0, 31]));
        assert_eq!(ipv4_prefix("10.0.2.15/32"), Ok([10, 0, 2, 15, 32]));
        for wrong in [
            "10.0.2.15",
            "10.0.2.15/0",
            "10.0.2.15/33",
            "10.0.2/24",
            "10.0.2.0/24",
            "10.0.2.255/24",
            "224.0.0.1/4",
            "0.0.0.0/24",
            "127.0.0.1/8",
        ] {
            assert!(ipv4_prefix(wrong).is_err(), "{wrong}");
        }
    }
}
