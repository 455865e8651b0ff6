//! Free TCP ports on loopback.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

/// As many distinct free ports as asked for. All are held open until the last is known, so they differ;
/// they are free again on return, so another process can still take one: the starter tries anew then.
pub(crate) fn free<const COUNT: usize>() -> Result<[u16; COUNT]> {
    let mut held = Vec::with_capacity(COUNT);
    let mut ports = [0; COUNT];
    for port in &mut ports {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free loopback port")?;
        *port = listener.local_addr().context("read the port that was found")?.port();
        held.push(listener);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    #[test]
    fn ports_differ() {
        let [first, second, third] = super::free().expect("ports");
        assert!(first != second && second != third && first != third);
    }
}
