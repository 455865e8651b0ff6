//! The text formats that kube-apiserver enforces; all others are comments to it.

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine as _;

/// Text formats that the server knows, without hyphens.
pub(super) const KNOWN: [&str; 26] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// Whether `text` has the format; an unknown format fits everything.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "duration" => duration(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => cidr(text),
        "mac" => mac(text),
        "byte" => base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => uuid(text),
        "uri" => uri(text),
        "email" => text.split_once('@').is_some_and(|(name, host)| {
            !name.is_empty() && !host.is_empty() && !text.contains(char::is_whitespace)
        }),
        "hostname" => hostname(text),
        _ => true,
    }
}

/// Go's durations, or a count and a unit in words: `1h30m`, `5 days`.
fn duration(text: &str) -> bool {
    const UNITS: [&str; 26] = [
        "ns", "nano", "nanos", "us", "µs", "micro", "micros", "ms", "milli", "millis", "s", "sec",
        "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes", "h", "hr", "hour",
        "hours", "d", "day",
    ];
    const LONG: [&str; 6] = ["days", "w", "week", "weeks", "wk", "0"];
    let mut rest = text.trim_start_matches(['-', '+']);
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let after = rest[number..].trim_start();
        let unit = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let word = &after[..unit];
        let known = UNITS.contains(&word) || LONG.contains(&word);
        if number == 0 || !(known || (word.is_empty() && &rest[..number] == "0")) {
            return false;
        }
        rest = after[unit..].trim_start();
    }
    true
}

fn cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = if address.parse::<Ipv4Addr>().is_ok() {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    bits.parse::<u32>().is_ok_and(|bits| bits <= most)
}

fn mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    matches!(parts.len(), 6 | 8 | 20)
        && parts.iter().all(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn uuid(text: &str) -> bool {
    let bare: String = text.chars().filter(|c| *c != '-').collect();
    bare.len() == 32 && bare.bytes().all(|b| b.is_ascii_hexdigit())
}

/// An absolute URI or an absolute path, as Go's `url.ParseRequestURI` takes it.
fn uri(text: &str) -> bool {
    if text.starts_with('/') {
        return !text.contains(char::is_whitespace);
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let letters = scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    letters
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && !rest.is_empty()
        && !rest.contains(char::is_whitespace)
}

fn hostname(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 255
        && text.trim_end_matches('.').split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
        })
}
