//! Decisions of the postgres image's entry point that need no process: what an argument list asks for,
//! what becomes of a file in `/docker-entrypoint-initdb.d`, and the text of `pg_hba.conf`. Pure.

use std::net::Ipv4Addr;
use std::path::Path;

/// Folder of scripts run after a first initialisation.
pub(crate) const INIT_FOLDER: &str = "/docker-entrypoint-initdb.d";
/// Folder of the server's socket unless the configuration moves it.
pub(crate) const SOCKET_FOLDER: &str = "/var/run/postgresql";

/// What a container's arguments ask the entry point for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// A database server with these arguments: initialise first if need be.
    Server(Vec<String>),
    /// Any other program: run it as it is.
    Other(Vec<String>),
}

/// Reads the arguments as the entry point does: none means `postgres`, an option first means `postgres`
/// with it, and asking for help initialises nothing.
pub(crate) fn request(arguments: &[String]) -> Request {
    let (program, rest) = match arguments.split_first() {
        None => ("postgres", &[][..]),
        Some((first, _)) if first.starts_with('-') => ("postgres", arguments),
        Some((first, rest)) => (first.as_str(), rest),
    };
    let asks_for_help = rest
        .iter()
        .any(|a| matches!(a.as_str(), "-?" | "--help" | "--describe-config" | "-V" | "--version"));
    if program == "postgres" && !asks_for_help {
        return Request::Server(rest.to_vec());
    }
    Request::Other(std::iter::once(program.to_owned()).chain(rest.iter().cloned()).collect())
}

/// Arguments added to a server's so that it listens on its pod's address alone: the stand-in for a
/// network namespace. `sockets` is given when the template left the socket folder to the image.
pub(crate) fn network_arguments(address: Option<Ipv4Addr>, sockets: Option<&Path>) -> Vec<String> {
    let listen = address.map(|address| address.to_string()).unwrap_or_default();
    let mut arguments = vec!["-c".to_owned(), format!("listen_addresses={listen}")];
    if let Some(folder) = sockets {
        arguments
            .extend(["-c".to_owned(), format!("unix_socket_directories={}", folder.display())]);
    }
    arguments
}

/// Whether a `postgres` command line runs a server that listens, rather than a single-user or help mode.
pub(crate) fn listens(arguments: &[String]) -> bool {
    let not_a_server = |argument: &String| {
        matches!(
            argument.as_str(),
            "--single"
                | "--boot"
                | "--check"
                | "--describe-config"
                | "-V"
                | "--version"
                | "--help"
                | "-?"
                | "-C"
        )
    };
    !arguments.iter().any(not_a_server)
}

/// What becomes of one file of the init folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitFile {
    /// An executable shell script: run.
    Run,
    /// A shell script that is not executable: sourced.
    Source,
    /// SQL text.
    Sql,
    /// SQL text packed; the program unpacks it to its output.
    Packed(&'static str),
    /// Anything else.
    Ignored,
}

/// Decides by name and permission.
pub(crate) fn init_file(name: &str, executable: bool) -> InitFile {
    match name {
        name if name.ends_with(".sh") => {
            if executable {
                InitFile::Run
            } else {
                InitFile::Source
            }
        }
        name if name.ends_with(".sql") => InitFile::Sql,
        name if name.ends_with(".sql.gz") => InitFile::Packed("gunzip -c"),
        name if name.ends_with(".sql.xz") => InitFile::Packed("xzcat"),
        name if name.ends_with(".sql.zst") => InitFile::Packed("zstd -dc"),
        _ => InitFile::Ignored,
    }
}

/// `pg_hba.conf` after `initdb`: the image's line for all hosts is added, and the lines for 127.0.0.1,
/// which `initdb` trusts, are moved to the pod's own address.
///
/// In a pod 127.0.0.1 is only the pod itself. On one shared loopback every client comes from there, and a
/// wrong password would be let in.
pub(crate) fn host_authentication(
    initial: &str,
    pod_address: Option<Ipv4Addr>,
    method: &str,
) -> String {
    let own = pod_address.unwrap_or(Ipv4Addr::LOCALHOST).to_string();
    let moved = initial.replace("127.0.0.1/32", &format!("{own}/32"));
    let warning = if method == "trust" {
        "# All connections are let in without a password: POSTGRES_HOST_AUTH_METHOD is \"trust\".\n"
    } else {
        ""
    };
    format!("{moved}\n{warning}host all all all {method}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn arguments_are_read_like_the_entry_points() {
        for (arguments, expected) in [
            ("", Request::Server(vec![])),
            ("postgres -c a=b", Request::Server(words("-c a=b"))),
            ("-c a=b", Request::Server(words("-c a=b"))),
            ("postgres --version", Request::Other(words("postgres --version"))),
            ("psql -h x", Request::Other(words("psql -h x"))),
        ] {
            assert_eq!(request(&words(arguments)), expected, "{arguments}");
        }
    }

    #[test]
    fn only_servers_listen() {
        assert!(listens(&words("-c a=b -D /d")));
        assert!(!listens(&words("--single -D /d")));
        assert!(!listens(&words("-C port")));
    }

    #[test]
    fn files_are_told_apart_by_name_and_permission() {
        for (name, executable, expected) in [
            ("a.sh", true, InitFile::Run),
            ("a.sh", false, InitFile::Source),
            ("a.sql", true, InitFile::Sql),
            ("a.sql.gz", false, InitFile::Packed("gunzip -c")),
            ("README", false, InitFile::Ignored),
        ] {
            assert_eq!(init_file(name, executable), expected);
        }
    }

    #[test]
    fn nobody_is_trusted_for_coming_from_the_machines_loopback() {
        let initial = "local all all trust\nhost all all 127.0.0.1/32 trust\n";
        let text =
            host_authentication(initial, Some(Ipv4Addr::new(127, 77, 0, 2)), "scram-sha-256");
        assert_eq!(
            text,
            "local all all trust\nhost all all 127.77.0.2/32 trust\n\nhost all all all scram-sha-256\n"
        );
    }
}
