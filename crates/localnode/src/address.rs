//! Addresses for pods: each pod gets a loopback address of its own, so that every server can keep its
//! usual port. An address is held for a name as long as the node lives, since there is no cluster DNS
//! and a restarted StatefulSet pod must be found where it was.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};

/// The UDP port whose occupation on an address marks that address as taken on this machine.
///
/// A socket is the one lock that the operating system frees whatever way the holder dies.
const CLAIM_PORT: u16 = 47_077;

/// A block of loopback addresses, written `127.77.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressBlock {
    first: u32,
    size: u32,
}

impl Default for AddressBlock {
    fn default() -> Self {
        Self { first: u32::from(Ipv4Addr::new(127, 77, 0, 0)), size: 1 << 16 }
    }
}

impl std::str::FromStr for AddressBlock {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a block of loopback addresses such as 127.77.0.0/16");
        let (address, length) = text.split_once('/').ok_or_else(wrong)?;
        let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
        let length: u32 = length.parse().map_err(|_| wrong())?;
        if !address.is_loopback() || !(8..=29).contains(&length) {
            return Err(wrong());
        }
        let size = 1_u32 << (32 - length);
        Ok(Self { first: u32::from(address) & !(size - 1), size })
    }
}

/// Hands out addresses of a block by name.
#[derive(Debug)]
pub(crate) struct AddressBook {
    block: AddressBlock,
    next: u32,
    held: BTreeMap<String, (Ipv4Addr, UdpSocket)>,
}

impl AddressBook {
    /// A book that begins somewhere in the block, so that nodes side by side rarely meet.
    pub(crate) fn new(block: AddressBlock, seed: u32) -> Self {
        Self { block, next: seed, held: BTreeMap::new() }
    }

    /// The address of a name, taken now if it has none. Fails when every address is in use.
    pub(crate) fn address_of(&mut self, name: &str) -> io::Result<Ipv4Addr> {
        if let Some((address, _)) = self.held.get(name) {
            return Ok(*address);
        }
        // The first and last address of a block are left out: readers take them for network and broadcast.
        let usable = self.block.size - 2;
        for _ in 0..usable {
            let address = Ipv4Addr::from(self.block.first + 1 + self.next % usable);
            self.next = self.next.wrapping_add(1);
            if let Ok(socket) = UdpSocket::bind((address, CLAIM_PORT)) {
                self.held.insert(name.to_owned(), (address, socket));
                return Ok(address);
            }
        }
        Err(io::Error::other("no free address is left in the node's block"))
    }

    /// Gives an address back.
    pub(crate) fn release(&mut self, name: &str) {
        self.held.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_address_and_never_share_one() {
        let block: AddressBlock = "127.78.1.0/28".parse().expect("a valid block");
        let mut book = AddressBook::new(block, 3);
        let mut other = AddressBook::new(block, 3);
        let first = book.address_of("ns/a").expect("free");
        assert_eq!(book.address_of("ns/a").expect("held"), first);
        assert_ne!(book.address_of("ns/b").expect("free"), first);
        assert_ne!(other.address_of("ns/a").expect("free"), first);
        for n in 0..11 {
            book.address_of(&format!("ns/{n}")).expect("free");
        }
        assert!(book.address_of("ns/last").is_err());
        book.release("ns/a");
        assert_eq!(book.address_of("ns/last").expect("released"), first);
    }

    #[test]
    fn only_loopback_blocks_are_taken() {
        for text in ["10.0.0.0/16", "127.77.0.0", "127.77.0.0/31", "x/16"] {
            assert!(text.parse::<AddressBlock>().is_err(), "{text}");
        }
        assert_eq!("127.77.0.0/16".parse(), Ok(AddressBlock::default()));
    }
}
