//! libpq's connection strings: `keyword = value` pairs, read and written as libpq does.
//!
//! Must not connect.

use std::collections::BTreeMap;

/// What a client was told about its server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conninfo {
    values: BTreeMap<String, String>,
    /// The file that the password came from.
    retrieved: Option<String>,
}

impl Conninfo {
    /// Reads a string of pairs. Addresses in URI form are not known to the model.
    ///
    /// # Errors
    /// libpq's words for what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Conninfo, String> {
        let mut values = BTreeMap::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
            let (name, tail) = rest.split_at(end);
            let Some(tail) = tail.trim_start().strip_prefix('=') else {
                return Err(format!("missing \"=\" after \"{name}\" in connection info string\n"));
            };
            let (value, tail) = value(tail.trim_start())?;
            if !KEYWORDS.contains(&name) {
                return Err(format!("invalid connection option \"{name}\"\n"));
            }
            values.insert(name.to_owned(), value);
            rest = tail.trim_start();
        }
        Ok(Conninfo { values, retrieved: None })
    }

    /// A value; an empty one counts as absent, as in libpq.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), value.to_owned());
    }

    /// Fills in what is absent.
    pub(crate) fn or(&mut self, name: &str, value: Option<&String>) {
        if let (None, Some(value)) = (self.get(name), value) {
            self.set(name, value);
        }
    }

    /// Takes the password that a file has, unless one was given.
    pub(crate) fn retrieve(&mut self, look: impl FnOnce(&str, &Conninfo) -> Option<String>) {
        let Some(path) = self.get("passfile").map(str::to_owned) else { return };
        if self.get("password").is_some() {
            return;
        }
        if let Some(secret) = look(&path, self) {
            self.set("password", &secret);
            self.retrieved = Some(path);
        }
    }

    /// What libpq adds to a refusal of the password.
    pub(crate) fn where_from(&self) -> String {
        let told = |path: &String| format!("\npassword retrieved from file \"{path}\"");
        self.retrieved.as_ref().map_or_else(String::new, told)
    }

    pub(crate) fn host(&self) -> &str {
        self.get("host").unwrap_or("")
    }

    pub(crate) fn port(&self) -> u16 {
        self.get("port").and_then(|port| port.parse().ok()).unwrap_or(5432)
    }

    /// The name by which the server knows the client.
    pub(crate) fn application(&self) -> Option<&str> {
        self.get("application_name").or(self.get("fallback_application_name"))
    }

    /// How libpq names the server in its complaints.
    pub(crate) fn server(&self, address: &str) -> String {
        let (host, port) = (self.host(), self.port());
        match host == address || address.is_empty() {
            true => format!("connection to server at \"{host}\", port {port} failed"),
            false => format!("connection to server at \"{host}\" ({address}), port {port} failed"),
        }
    }

    /// What `pg_basebackup -R` writes down as `primary_conninfo`.
    pub(crate) fn recorded(&self) -> String {
        let mut words = Vec::new();
        for (name, default) in RECORDED {
            let value = self.get(name).or((!default.is_empty()).then_some(default));
            words.extend(value.map(|value| format!("{name}={}", quoted(value))));
        }
        words.join(" ")
    }

    /// The same as `pg_stat_wal_receiver` shows it, without its password.
    pub(crate) fn obfuscated(&self) -> String {
        let mut shown = self.clone();
        shown.set("dbname", "replication");
        shown.set("fallback_application_name", "walreceiver");
        let order = ["user", "password", "passfile", "channel_binding", "dbname", "host", "port"];
        let order = order.iter().copied().chain(["application_name", "fallback_application_name"]);
        let tail = RECORDED.iter().skip(7).map(|one| one.0);
        let default =
            |name: &str| RECORDED.iter().find(|one| one.0 == name).map_or("", |one| one.1);
        let words = order.chain(tail).filter_map(|name| match name {
            "password" => shown.get(name).map(|_| "password=********".to_owned()),
            name => {
                let value = shown.get(name).unwrap_or(default(name));
                (!value.is_empty()).then(|| format!("{name}={value}"))
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Keywords in libpq's order, with the defaults that `pg_basebackup` writes down with them.
const RECORDED: [(&str, &str); 14] = [
    ("user", ""),
    ("password", ""),
    ("passfile", ""),
    ("channel_binding", "prefer"),
    ("host", ""),
    ("port", ""),
    ("application_name", ""),
    ("sslmode", "prefer"),
    ("sslcompression", "0"),
    ("sslsni", "1"),
    ("ssl_min_protocol_version", "TLSv1.2"),
    ("gssencmode", "prefer"),
    ("krbsrvname", "postgres"),
    ("target_session_attrs", "any"),
];

/// Keywords that are understood or known to be without effect here.
const KEYWORDS: [&str; 27] = [
    "user",
    "password",
    "passfile",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "client_encoding",
    "options",
    "application_name",
    "fallback_application_name",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "sslmode",
    "sslcompression",
    "sslsni",
    "ssl_min_protocol_version",
    "gssencmode",
    "krbsrvname",
    "target_session_attrs",
    "sslrootcert",
    "replication",
];

fn value(rest: &str) -> Result<(String, &str), String> {
    let mut text = String::new();
    let quoted = rest.starts_with('\'');
    let body = if quoted { &rest[1..] } else { rest };
    let mut signs = body.char_indices();
    while let Some((index, c)) = signs.next() {
        match c {
            '\\' => text.extend(signs.next().map(|next| next.1)),
            '\'' if quoted => return Ok((text, &body[index + 1..])),
            c if c.is_whitespace() && !quoted => return Ok((text, &body[index..])),
            c => text.push(c),
        }
    }
    match quoted {
        true => Err("unterminated quoted string in connection info string\n".to_owned()),
        false => Ok((text, "")),
    }
}

/// A value as libpq writes it: quoted unless it is plain.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_like_libpq() {
        let read = Conninfo::parse(" host = h port=6432 user='a b' password='it\\'s'  dbname=''");
        let read = read.expect("a good string");
        let values = ["host", "port", "user", "password", "dbname"].map(|name| read.get(name));
        assert_eq!(values, [Some("h"), Some("6432"), Some("a b"), Some("it's"), None]);
        let cases = [
            ("host", "missing \"=\" after \"host\" in connection info string\n"),
            ("nope=1", "invalid connection option \"nope\"\n"),
            ("user='x", "unterminated quoted string in connection info string\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(Conninfo::parse(text).expect_err(text), expected);
        }
    }

    /// As `pg_basebackup` 15 wrote it.
    #[test]
    fn what_is_recorded_is_what_the_program_writes() {
        let told = "host=127.0.0.1 port=6432 user=repl application_name=s-1 password=pw-repl";
        let told = Conninfo::parse(told).expect("a good string");
        assert_eq!(
            told.recorded(),
            "user=repl password='pw-repl' channel_binding=prefer host=127.0.0.1 port=6432 \
             application_name='s-1' sslmode=prefer sslcompression=0 sslsni=1 \
             ssl_min_protocol_version=TLSv1.2 gssencmode=prefer krbsrvname=postgres \
             target_session_attrs=any"
        );
        let read = Conninfo::parse(&told.recorded()).expect("what is written can be read");
        assert_eq!(read.get("application_name"), Some("s-1"));
        assert!(read.obfuscated().starts_with(
            "user=repl password=******** channel_binding=prefer dbname=replication host=127.0.0.1 \
             port=6432 application_name=s-1 fallback_application_name=walreceiver sslmode=prefer"
        ));
    }
}
