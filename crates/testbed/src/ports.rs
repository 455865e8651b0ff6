//! Free TCP ports of an address of this machine.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

/// As many distinct free ports as asked for. All are held open until the last is known, so they differ;
/// they are free again on return, so another process can still take one: the starter tries anew then.
pub(crate) fn free<const COUNT: usize>(address: Ipv4Addr) -> Result<[u16; COUNT]> {
    let mut held = Vec::with_capacity(COUNT);
    let mut ports = [0; COUNT];
    for port in &mut ports {
        let listener = TcpListener::bind((address, 0)).context("find a free port")?;
        *port = listener.local_addr().context("read the port that was found")?.port();
        held.push(listener);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    #[test]
    fn ports_differ() {
        let [first, second, third] = super::free(std::net::Ipv4Addr::LOCALHOST).expect("ports");
        assert!(first != second && second != third && first != third);
    }
}
