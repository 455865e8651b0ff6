//! External dependencies: what is tried, and which hosts may be tried at all.
//!
//! Any tenant can write them, so only hosts that the operator's patterns permit are tried (fault
//! catalogue PG-37). Must not resolve names; the runner does.

use phased::fact::Reach;

use super::api::ExternalDependency;

/// A dependency that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Its name in the spec.
    pub name: String,
    /// Its host.
    pub host: String,
    /// What is asked.
    pub reach: Reach,
}

/// Reads one dependency.
///
/// # Errors
/// A sentence that says what is wrong and what to write.
pub fn parse(raw: &ExternalDependency) -> Result<Dependency, String> {
    let timeout_seconds = u32::try_from(raw.timeout_seconds.clamp(1, 30)).unwrap_or(5);
    let name = raw.name.clone();
    match (&raw.address, &raw.url) {
        (Some(address), None) => {
            let (host, port) = split_host(address, None)?;
            Ok(Dependency {
                name,
                host: host.clone(),
                reach: Reach::Tcp { host, port, timeout_seconds },
            })
        }
        (None, Some(url)) => {
            let host = url_host(url)?;
            let reach = Reach::Http { url: url.clone(), timeout_seconds };
            Ok(Dependency { name, host, reach })
        }
        _ => Err("needs either address (host:port) or url; write one of them".to_owned()),
    }
}

/// Whether a pattern permits the host. `*` stands for any number of characters; a pattern and a
/// host are compared without regard to case and to a dot at the end.
pub fn permits(patterns: &[String], host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    patterns
        .iter()
        .any(|p| fits(p.trim_end_matches('.').to_ascii_lowercase().as_bytes(), host.as_bytes()))
}

/// Matches a pattern in linear space by remembering the last `*`.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && pattern[p] == text[t] {
            p += 1;
            t += 1;
        } else if let Some((at, seen)) = star {
            star = Some((at, seen + 1));
            p = at + 1;
            t = seen + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

fn url_host(url: &str) -> Result<String, String> {
    let wrong = || "is not an http:// or https:// URL; write http://host[:port]/path".to_owned();
    if url.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err(wrong());
    }
    let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
    let default_port = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return Err(wrong()),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(
            "holds credentials, which do not belong into a resource; remove them".to_owned()
        );
    }
    split_host(authority, Some(default_port)).map(|(host, _)| host)
}

/// Splits `host:port`; an IPv6 address stands in brackets.
fn split_host(authority: &str, default_port: Option<u16>) -> Result<(String, u16), String> {
    let wrong = || "is not host:port; write a host name or address, a colon and a port".to_owned();
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or_else(wrong)?;
        (host, after.strip_prefix(':'))
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    if host.is_empty() || host.len() > 253 || !host.chars().all(legal) {
        return Err(wrong());
    }
    let port = match port {
        Some(port) => port.parse().ok().filter(|p| *p > 0).ok_or_else(wrong)?,
        None => default_port.ok_or_else(wrong)?,
    };
    Ok((host.to_owned(), port))
}
