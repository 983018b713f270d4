//! The PHY: finding it, negotiating, and what came of it.
//!
//! Registers 0 to 10 are those of IEEE 802.3, clause 22. Two parts are known by name: the DP83867 of the ZCU102, whose clock delays
//! must be set (TI SNLS484, registers RGMIICTL and RGMIIDCTL), and the 88E1111 that QEMU models, which needs nothing.
//! Any other part is driven as the standard says.

/// One MDIO bus.
pub trait Mdio {
    /// Reads a register; `None` if the bus did not become idle in time.
    fn read(&mut self, phy: u8, register: u8) -> Option<u16>;
    /// Writes a register. A bus that does not become idle swallows the write; the next read tells.
    fn write(&mut self, phy: u8, register: u8, value: u16);
}

/// Register numbers.
mod register {
    pub const CONTROL: u8 = 0;
    pub const STATUS: u8 = 1;
    pub const ID_HIGH: u8 = 2;
    pub const ID_LOW: u8 = 3;
    pub const ADVERTISE: u8 = 4;
    pub const PARTNER: u8 = 5;
    pub const GIGABIT_CONTROL: u8 = 9;
    pub const GIGABIT_STATUS: u8 = 10;
    pub const MMD_CONTROL: u8 = 13;
    pub const MMD_DATA: u8 = 14;
}

/// Control: negotiate, and begin now.
const NEGOTIATE: u16 = 1 << 12 | 1 << 9;
/// Status: link; a lost link reads 0 once, whatever it is now.
const LINK: u16 = 1 << 2;
/// Status: negotiation complete.
const NEGOTIATED: u16 = 1 << 5;
/// Advertisement: 10 and 100 Mbit/s, half and full duplex, IEEE 802.3.
const ADVERTISE_10_100: u16 = 0x01e1;
/// Gigabit control: 1000BASE-T full duplex.
const ADVERTISE_1000: u16 = 1 << 9;

/// ID of the DP83867; the low 4 bits are the revision.
const DP83867: u32 = 0x2000_a230;

/// Megabits per second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speed {
    /// 10
    Mbit10,
    /// 100
    Mbit100,
    /// 1000
    Mbit1000,
}

impl Speed {
    /// The number.
    #[must_use]
    pub const fn megabits(self) -> u16 {
        match self {
            Self::Mbit10 => 10,
            Self::Mbit100 => 100,
            Self::Mbit1000 => 1000,
        }
    }
}

/// A link that is up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Speed.
    pub speed: Speed,
    /// False for half duplex.
    pub full_duplex: bool,
}

/// The PHY of one MAC, and the link as last seen.
#[derive(Clone, Debug)]
pub struct Phy {
    wanted: u8,
    gigabit: bool,
    found: Option<u8>,
    link: Option<Link>,
}

impl Phy {
    /// A PHY that is expected at `address`. `gigabit` says what the MAC can do: what it cannot is not advertised.
    #[must_use]
    pub const fn new(address: u8, gigabit: bool) -> Self {
        Self { wanted: address & 31, gigabit, found: None, link: None }
    }

    /// The link as last seen; `None` if it is down.
    #[must_use]
    pub const fn link(&self) -> Option<Link> {
        self.link
    }

    /// Address where a PHY answered, if one did.
    #[must_use]
    pub const fn address(&self) -> Option<u8> {
        self.found
    }

    /// Looks at the link and returns true if it changed; looks for the PHY first as long as none is found.
    ///
    /// Once per half a second is enough. In the steady state this is one register read.
    pub fn poll(&mut self, mdio: &mut impl Mdio) -> bool {
        let Some(phy) = self.found.or_else(|| self.find(mdio)) else {
            return false;
        };
        let link = match mdio.read(phy, register::STATUS) {
            // Down now or since the last look: ask again what it is now, and at what speed.
            Some(status) if status & LINK == 0 => resolve(mdio, phy, self.gigabit),
            Some(_) if self.link.is_some() => return false,
            Some(_) => resolve(mdio, phy, self.gigabit),
            // A bus or PHY that fell silent.
            None => None,
        };
        let changed = link != self.link;
        self.link = link;
        changed
    }

    /// Finds the PHY, first at the expected address, then at all, and starts negotiation.
    fn find(&mut self, mdio: &mut impl Mdio) -> Option<u8> {
        let (phy, id) =
            core::iter::once(self.wanted).chain(0..32).find_map(|phy| identify(mdio, phy).map(|id| (phy, id)))?;
        if id & !0xf == DP83867 {
            set_dp83867_delays(mdio, phy);
        }
        let gigabit = if self.gigabit { ADVERTISE_1000 } else { 0 };
        if !is_negotiated(mdio, phy, gigabit) {
            mdio.write(phy, register::ADVERTISE, ADVERTISE_10_100);
            mdio.write(phy, register::GIGABIT_CONTROL, gigabit);
            mdio.write(phy, register::CONTROL, NEGOTIATE);
        }
        self.found = Some(phy);
        Some(phy)
    }
}

/// ID of the PHY at an address; an undriven bus reads ones.
fn identify(mdio: &mut impl Mdio, phy: u8) -> Option<u32> {
    let high = mdio.read(phy, register::ID_HIGH)?;
    let low = mdio.read(phy, register::ID_LOW)?;
    let id = u32::from(high) << 16 | u32::from(low);
    (id != 0 && id != u32::MAX && high != u16::MAX).then_some(id)
}

/// True if the link is up with what would be advertised: a driver that was restarted need not interrupt it.
fn is_negotiated(mdio: &mut impl Mdio, phy: u8, gigabit: u16) -> bool {
    mdio.read(phy, register::ADVERTISE) == Some(ADVERTISE_10_100)
        && mdio.read(phy, register::GIGABIT_CONTROL) == Some(gigabit)
        && resolve(mdio, phy, gigabit != 0).is_some()
}

/// What was negotiated: the best that both sides offer. `None` while there is no link.
fn resolve(mdio: &mut impl Mdio, phy: u8, gigabit: bool) -> Option<Link> {
    let status = mdio.read(phy, register::STATUS)?;
    if status & (LINK | NEGOTIATED) != LINK | NEGOTIATED {
        return None;
    }
    // Bits 11 and 10 of the status are the partner's side of bits 9 and 8 of the control register.
    if gigabit && mdio.read(phy, register::GIGABIT_STATUS)? & ADVERTISE_1000 << 2 != 0 {
        return Some(Link { speed: Speed::Mbit1000, full_duplex: true });
    }
    let both = mdio.read(phy, register::PARTNER)? & ADVERTISE_10_100;
    let (speed, full_duplex) = match both {
        both if both & 1 << 8 != 0 => (Speed::Mbit100, true),
        both if both & 1 << 7 != 0 => (Speed::Mbit100, false),
        both if both & 1 << 6 != 0 => (Speed::Mbit10, true),
        // Also what a partner that does not negotiate comes down to.
        _ => (Speed::Mbit10, false),
    };
    Some(Link { speed, full_duplex })
}

/// Clock delays of the ZCU102's wiring: receive 2.25 ns, transmit 2.75 ns, both made by the PHY.
fn set_dp83867_delays(mdio: &mut impl Mdio, phy: u8) {
    const RGMIICTL: u16 = 0x32;
    const RGMIIDCTL: u16 = 0x86;
    // Bits 1 and 0 of RGMIICTL switch the delays on; bit 7 enables RGMII, bits 6:5 keep the half-full threshold.
    write_extended(mdio, phy, RGMIICTL, 0x00d3);
    write_extended(mdio, phy, RGMIIDCTL, 0x00a8);
}

/// Writes a register of the vendor's range (device 31), by way of the MMD registers.
fn write_extended(mdio: &mut impl Mdio, phy: u8, register: u16, value: u16) {
    const ADDRESS: u16 = 0x001f;
    const DATA: u16 = 0x401f;
    mdio.write(phy, register::MMD_CONTROL, ADDRESS);
    mdio.write(phy, register::MMD_DATA, register);
    mdio.write(phy, register::MMD_CONTROL, DATA);
    mdio.write(phy, register::MMD_DATA, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bus with one PHY.
    struct Bus {
        phy: u8,
        registers: [u16; 32],
        reads: usize,
        writes: Vec<(u8, u16)>,
        link_was_lost: bool,
        stuck: bool,
    }

    impl Bus {
        /// A part like the one QEMU has: everything offered by the partner.
        fn new(phy: u8, id: u32) -> Self {
            let mut registers = [0; 32];
            registers[1] = 0x796d;
            registers[2] = (id >> 16) as u16;
            registers[3] = id as u16;
            registers[5] = 0xcde1;
            registers[10] = 0x7c00;
            Self { phy, registers, reads: 0, writes: Vec::new(), link_was_lost: false, stuck: false }
        }
    }

    impl Mdio for Bus {
        fn read(&mut self, phy: u8, register: u8) -> Option<u16> {
            self.reads += 1;
            if self.stuck {
                return None;
            }
            if phy != self.phy {
                return Some(0xffff);
            }
            let mut value = self.registers[register as usize];
            if register == register::STATUS && self.link_was_lost {
                self.link_was_lost = false;
                value &= !LINK;
            }
            Some(value)
        }

        fn write(&mut self, phy: u8, register: u8, value: u16) {
            if phy == self.phy {
                self.writes.push((register, value));
            }
        }
    }

    const MARVELL: u32 = 0x0141_0cc2;

    fn link_with(partner: u16, gigabit_status: u16, gigabit: bool) -> Option<Link> {
        let mut bus = Bus::new(23, MARVELL);
        bus.registers[5] = partner;
        bus.registers[10] = gigabit_status;
        let mut phy = Phy::new(23, gigabit);
        phy.poll(&mut bus);
        phy.link()
    }

    #[test]
    fn finds_the_phy_anywhere_and_negotiates_once() {
        for address in 0..32 {
            let mut bus = Bus::new(address, MARVELL);
            let mut phy = Phy::new(23, true);
            assert!(phy.poll(&mut bus));
            assert_eq!(phy.address(), Some(address));
            assert_eq!(phy.link(), Some(Link { speed: Speed::Mbit1000, full_duplex: true }));
            assert!(bus.writes.contains(&(register::CONTROL, NEGOTIATE)));
            let writes = bus.writes.len();
            let reads = bus.reads;
            assert!(!phy.poll(&mut bus));
            assert_eq!((bus.writes.len(), bus.reads), (writes, reads + 1), "the steady state is one read");
        }
    }

    #[test]
    fn a_link_of_the_instance_before_is_kept() {
        let mut bus = Bus::new(23, MARVELL);
        bus.registers[4] = ADVERTISE_10_100;
        bus.registers[9] = ADVERTISE_1000;
        assert!(Phy::new(23, true).poll(&mut bus));
        assert_eq!(bus.writes, []);
        // The same with half of it missing.
        bus.registers[9] = 0;
        Phy::new(23, true).poll(&mut bus);
        assert!(bus.writes.contains(&(register::CONTROL, NEGOTIATE)));
    }

    #[test]
    fn best_common_speed() {
        let link = |speed, full_duplex| Some(Link { speed, full_duplex });
        assert_eq!(link_with(0xcde1, 0x0800, true), link(Speed::Mbit1000, true));
        assert_eq!(link_with(0xcde1, 0x0800, false), link(Speed::Mbit100, true));
        assert_eq!(link_with(0xcde1, 0x0400, true), link(Speed::Mbit100, true));
        assert_eq!(link_with(0x00e1, 0, true), link(Speed::Mbit100, false));
        assert_eq!(link_with(0x0061, 0, true), link(Speed::Mbit10, true));
        assert_eq!(link_with(0x0021, 0, true), link(Speed::Mbit10, false));
    }

    #[test]
    fn a_mac_without_gigabit_does_not_offer_it() {
        let mut bus = Bus::new(0, MARVELL);
        Phy::new(0, false).poll(&mut bus);
        assert!(bus.writes.contains(&(register::GIGABIT_CONTROL, 0)));
        assert!(!bus.writes.contains(&(register::GIGABIT_CONTROL, ADVERTISE_1000)));
    }

    #[test]
    fn down_up_and_a_bounce_between_two_looks() {
        let mut bus = Bus::new(23, MARVELL);
        let mut phy = Phy::new(23, true);
        assert!(phy.poll(&mut bus));
        bus.registers[1] &= !LINK;
        assert!(phy.poll(&mut bus));
        assert_eq!(phy.link(), None);
        assert!(!phy.poll(&mut bus));
        bus.registers[1] |= LINK;
        assert!(phy.poll(&mut bus));
        // Lost and back at another speed between two looks.
        bus.link_was_lost = true;
        bus.registers[10] = 0;
        assert!(phy.poll(&mut bus));
        assert_eq!(phy.link().map(|link| link.speed), Some(Speed::Mbit100));
        // Lost and back as it was: nothing to tell.
        bus.link_was_lost = true;
        assert!(!phy.poll(&mut bus));
    }

    #[test]
    fn no_phy_and_a_dead_bus_are_a_link_that_is_down() {
        let mut bus = Bus::new(23, 0xffff_ffff);
        let mut phy = Phy::new(12, true);
        assert!(!phy.poll(&mut bus));
        assert_eq!((phy.link(), phy.address()), (None, None));
        let mut bus = Bus::new(23, MARVELL);
        assert!(phy.poll(&mut bus), "found later");
        bus.stuck = true;
        assert!(phy.poll(&mut bus));
        assert_eq!(phy.link(), None);
    }

    #[test]
    fn the_dp83867_gets_its_delays_before_it_negotiates() {
        let mut bus = Bus::new(12, 0x2000_a231);
        Phy::new(12, true).poll(&mut bus);
        let delays = bus.writes.iter().position(|write| *write == (register::MMD_DATA, 0x00a8));
        let start = bus.writes.iter().position(|write| *write == (register::CONTROL, NEGOTIATE));
        assert!(delays.is_some() && delays < start);
    }
}
