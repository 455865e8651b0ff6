//! `postgresql.conf` and `pg_hba.conf`: reading, and the server's complaints about them.
//!
//! Must not know what the settings do.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::refusal::Refusal;
use super::settings;

/// Settings of a file in order, or the log lines of a server that does not start over it; `files`
/// has the files that it may include, by absolute path.
pub(super) fn parse_with(
    path: &str,
    text: &str,
    major: u32,
    files: &BTreeMap<String, String>,
) -> Result<Vec<(String, String)>, Vec<Refusal>> {
    let mut found = Vec::new();
    let mut complaints = Vec::new();
    read((path, text), major, files, (&mut found, &mut complaints));
    if complaints.is_empty() {
        return Ok(found);
    }
    let message = format!("configuration file \"{path}\" contains errors");
    complaints.push(Refusal::fatal("F0000", &message));
    Err(complaints)
}

type Read<'a> = (&'a mut Vec<(String, String)>, &'a mut Vec<Refusal>);

fn read(
    (path, text): (&str, &str),
    major: u32,
    files: &BTreeMap<String, String>,
    (found, complaints): Read,
) {
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        match entry(line) {
            Ok(None) => {}
            Ok(Some((name, value))) if matches!(name.as_str(), "include" | "include_if_exists") => {
                match files.get(&value) {
                    Some(text) => {
                        // A file that includes itself finds itself missing.
                        let mut others = files.clone();
                        others.remove(&value);
                        let inner = (&mut *found, &mut *complaints);
                        read((&value, text), major, &others, inner);
                    }
                    _ if name == "include" => {
                        let message = format!(
                            "could not open configuration file \"{value}\": No \
                                               such file or directory"
                        );
                        complaints.push(Refusal::new("F0000", &message));
                    }
                    _ => {}
                }
            }
            Ok(Some((name, value))) => match settings::find(&name, major) {
                Some(setting) => match setting.parse(&value) {
                    Ok(kept) => found.push((setting.name.to_owned(), kept)),
                    Err(refusal) => complaints.push(refusal),
                },
                None if settings::is_custom(&name) => found.push((name.to_lowercase(), value)),
                None => {
                    let message = format!(
                        "unrecognized configuration parameter \"{name}\" in file \"{path}\" line \
                         {number}"
                    );
                    complaints.push(Refusal::new("42704", &message));
                }
            },
            Err(token) => {
                let message = format!(
                    "syntax error in file \"{path}\" line {number}, near token \"{token}\""
                );
                complaints.push(Refusal::new("F0000", &message));
            }
        }
    }
}

/// `name = value # comment`; the error is the token that does not fit.
fn entry(line: &str) -> Result<Option<(String, String)>, String> {
    let rest = line.trim_start();
    if rest.is_empty() || rest.starts_with('#') {
        return Ok(None);
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '$'));
    let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
    if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return Err(if name.is_empty() { rest.chars().take(1).collect() } else { name.to_owned() });
    }
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let (value, rest) = value(rest)?;
    let rest = rest.trim_start();
    if rest.is_empty() || rest.starts_with('#') {
        return Ok(Some((name.to_owned(), value)));
    }
    Err(rest.split_whitespace().next().unwrap_or("").to_owned())
}

fn value(rest: &str) -> Result<(String, &str), String> {
    let Some(body) = rest.strip_prefix('\'') else {
        let end = rest.find(|c: char| {
            !c.is_alphanumeric() && !matches!(c, '_' | '.' | '-' | ':' | '/' | '+')
        });
        let (value, rest) = rest.split_at(end.unwrap_or(rest.len()));
        return match value {
            "" => Err(rest.chars().take(1).collect()),
            value => Ok((value.to_owned(), rest)),
        };
    };
    let mut text = String::new();
    let mut chars = body.char_indices().peekable();
    while let Some((index, c)) = chars.next() {
        match c {
            '\\' => match chars.next().map(|next| next.1) {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('r') => text.push('\r'),
                Some('b') => text.push('\u{8}'),
                Some('f') => text.push('\u{c}'),
                Some(other) => text.push(other),
                None => return Err("'".into()),
            },
            '\'' if chars.peek().is_some_and(|next| next.1 == '\'') => {
                chars.next();
                text.push('\'');
            }
            '\'' => return Ok((text, &body[index + 1..])),
            other => text.push(other),
        }
    }
    Err("'".into())
}

/// How a connection is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Trust,
    Reject,
    Scram,
    Md5,
    Password,
    Peer,
}

/// A line of `pg_hba.conf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    local: bool,
    databases: Vec<String>,
    users: Vec<String>,
    address: String,
    pub(super) method: Method,
}

/// Reads `pg_hba.conf`, or the log lines of a server that does not start over it.
pub(super) fn host_rules(path: &str, text: &str) -> Result<Vec<Rule>, Vec<Refusal>> {
    let mut rules = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        match rule(line) {
            Ok(Some(rule)) => rules.push(rule),
            Ok(None) => {}
            Err(why) => {
                let place = format!("line {} of configuration file \"{path}\"", index + 1);
                let told = Refusal::new("F0000", &why).detail(&place);
                let fatal = Refusal::fatal("F0000", &format!("could not load {path}"));
                return Err(vec![told, fatal]);
            }
        }
    }
    Ok(rules)
}

fn rule(line: &str) -> Result<Option<Rule>, String> {
    let mut words: Vec<String> =
        line.split_whitespace().map(|word| word.trim_matches('"').to_owned()).collect();
    let kind = words.remove(0);
    let local = kind == "local";
    if !matches!(
        kind.as_str(),
        "local" | "host" | "hostssl" | "hostnossl" | "hostgssenc" | "hostnogssenc"
    ) {
        return Err(format!("invalid connection type \"{kind}\""));
    }
    let needed = if local { 3 } else { 4 };
    if words.len() < needed {
        return Err("end-of-line before authentication method".into());
    }
    let list = |word: &str| word.split(',').map(|one| one.trim_matches('"').to_owned()).collect();
    let mut address = if local { String::new() } else { words[2].clone() };
    let mut at = if local { 2 } else { 3 };
    if !local && words.len() > 4 && words[3].parse::<IpAddr>().is_ok() {
        address = format!("{address}/{}", bits(&words[3]));
        at = 4;
    }
    let method = match words[at].as_str() {
        "trust" => Method::Trust,
        "reject" => Method::Reject,
        "scram-sha-256" => Method::Scram,
        "md5" => Method::Md5,
        "password" => Method::Password,
        "peer" => Method::Peer,
        other => return Err(format!("invalid authentication method \"{other}\"")),
    };
    // Nobody speaks TLS or GSS to the model.
    if matches!(kind.as_str(), "hostssl" | "hostgssenc") {
        return Ok(None);
    }
    Ok(Some(Rule { local, databases: list(&words[0]), users: list(&words[1]), address, method }))
}

fn bits(mask: &str) -> u32 {
    match mask.parse() {
        Ok(IpAddr::V4(mask)) => u32::from(mask).leading_ones(),
        Ok(IpAddr::V6(mask)) => u128::from(mask).leading_ones(),
        Err(_) => 32,
    }
}

impl Rule {
    /// Whether the rule speaks of a replication connection; `all` does not mean those.
    pub(super) fn lets_stream(&self, user: &str, address: &str) -> bool {
        self.databases.iter().any(|one| one == "replication") && self.meets(user, address)
    }

    /// Whether the rule speaks of this connection; an empty address is the local socket.
    pub(super) fn fits(&self, user: &str, database: &str, address: &str) -> bool {
        let database_fits = self.databases.iter().any(|one| match one.as_str() {
            "all" => true,
            "sameuser" => user == database,
            "replication" => false,
            name => name == database,
        });
        database_fits && self.meets(user, address)
    }

    fn meets(&self, user: &str, address: &str) -> bool {
        let address_fits = match (self.local, address) {
            (true, address) => address.is_empty(),
            (false, "") => false,
            (false, address) => covers(&self.address, address),
        };
        address_fits && self.users.iter().any(|one| one == "all" || one == user)
    }
}

fn covers(rule: &str, address: &str) -> bool {
    if matches!(rule, "all" | "samenet") {
        return true;
    }
    let (network, bits) = rule.split_once('/').unwrap_or((rule, "32"));
    match (network.parse(), address.parse()) {
        (Ok(IpAddr::V4(network)), Ok(IpAddr::V4(address))) => {
            let bits: u32 = bits.parse().unwrap_or(32);
            let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
            u32::from(network) & mask == u32::from(address) & mask
        }
        (Ok(network), Ok(address)) => network == address,
        _ => rule == "samehost" && address == "127.0.0.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_like_the_server() {
        type Read = Result<(&'static str, &'static str), &'static str>;
        let cases: [(&str, Read); 9] = [
            ("foo = 1", Err("unrecognized configuration parameter \"foo\" in file \"F\" line 1")),
            ("max_connections 200", Ok(("max_connections", "200"))),
            ("max_connections=5 # few", Ok(("max_connections", "5"))),
            ("a.b = 'it''s'", Ok(("a.b", "it's"))),
            ("a.b = 'x\\\\y'", Ok(("a.b", "x\\y"))),
            (
                "work_mem = 5 apples",
                Err("syntax error in file \"F\" line 1, near token \"apples\""),
            ),
            ("listen_addresses = '*", Err("syntax error in file \"F\" line 1, near token \"'\"")),
            ("1bad = 2", Err("syntax error in file \"F\" line 1, near token \"1bad\"")),
            ("work_mem = 1MB", Ok(("work_mem", "1024"))),
        ];
        for (text, expected) in cases {
            let found = parse_with("F", text, 15, &BTreeMap::new());
            match (found, expected) {
                (Ok(found), Ok((name, value))) => {
                    assert_eq!(found, [(name.to_owned(), value.to_owned())], "{text}");
                }
                (Err(found), Err(message)) => assert_eq!(found[0].message, message, "{text}"),
                (found, expected) => panic!("{text}: {found:?} is not {expected:?}"),
            }
        }
    }

    #[test]
    fn other_files_are_included_where_they_stand() {
        let files = BTreeMap::from([("/x".to_owned(), "work_mem = 1MB\n".to_owned())]);
        let read = |text: &str| parse_with("F", text, 15, &files);
        let found = read("work_mem = 2MB\ninclude_if_exists = '/x'\n").expect("readable");
        assert_eq!(found.last().map(|one| one.1.as_str()), Some("1024"));
        assert!(read("include_if_exists = '/none'").is_ok_and(|found| found.is_empty()));
        let complaint = read("include '/none'").expect_err("it is missing");
        let message = "could not open configuration file \"/none\": No such file or directory";
        assert_eq!(complaint[0].message, message);
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        let text = "local all postgres trust\nhost all all 127.0.0.1/32 trust\n\
                    host app app 10.0.0.0/8 scram-sha-256\nhost all all all reject\n";
        let rules = host_rules("H", text).expect("readable");
        let method = |user: &str, database: &str, address: &str| {
            rules.iter().find(|rule| rule.fits(user, database, address)).map(|rule| rule.method)
        };
        assert_eq!(method("postgres", "x", ""), Some(Method::Trust));
        assert_eq!(method("app", "app", ""), None);
        assert_eq!(method("app", "app", "10.1.2.3"), Some(Method::Scram));
        assert_eq!(method("app", "app", "127.0.0.1"), Some(Method::Trust));
        assert_eq!(method("app", "other", "10.1.2.3"), Some(Method::Reject));
    }
}
