//! Translation of the paths, names and loopback addresses a pod's author wrote into the ones that hold
//! on this machine, since a process started by the node sees no mounts and no network of its own.
//! Pure text work: no file is looked at here.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Where each path of the container's view lies on this machine.
///
/// [`PathMap::translate`] replaces every occurrence of a container path that stands at a path boundary;
/// of two paths that fit, the longer one wins. What has been replaced is not looked at again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PathMap {
    folders: BTreeMap<String, PathBuf>,
}

impl PathMap {
    /// Adds a mount; a later mount of the same path replaces the earlier one, as in a container.
    pub(crate) fn mount(&mut self, container_path: &str, host: impl Into<PathBuf>) {
        let path = container_path.trim_end_matches('/');
        if path.starts_with('/') {
            self.folders.insert(path.to_owned(), host.into());
        }
    }

    /// Adds a folder that the image itself brings, unless a mount covers it already.
    pub(crate) fn image_folder(&mut self, container_path: &str, host: impl Into<PathBuf>) {
        let covered = self.folders.keys().any(|mounted| is_below(container_path, mounted));
        if !covered {
            self.mount(container_path, host);
        }
    }

    /// The place of one whole container path on this machine, when a mount covers it.
    pub(crate) fn host_path(&self, container_path: &str) -> Option<PathBuf> {
        let (mounted, host) = self
            .folders
            .iter()
            .filter(|(mounted, _)| is_below(container_path, mounted))
            .max_by_key(|(mounted, _)| mounted.len())?;
        let rest = container_path[mounted.len()..].trim_matches('/');
        Some(if rest.is_empty() { host.clone() } else { host.join(rest) })
    }

    /// The mounts inside a folder, by their path relative to it.
    pub(crate) fn mounts_below(&self, folder: &str) -> impl Iterator<Item = (&str, &Path)> {
        let prefix = format!("{folder}/");
        self.folders.iter().filter_map(move |(mounted, host)| {
            let start = mounted.starts_with(&prefix).then_some(prefix.len())?;
            Some((&mounted[start..], host.as_path()))
        })
    }

    /// Takes over the mounts of another map where this one has none.
    pub(crate) fn add_missing(&mut self, other: &PathMap) {
        for (path, host) in &other.folders {
            self.folders.entry(path.clone()).or_insert_with(|| host.clone());
        }
    }

    /// Replaces every mounted path in `text`.
    pub(crate) fn translate(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = 0;
        while let Some(found) = text[rest..].find('/') {
            let at = rest + found;
            out.push_str(&text[rest..at]);
            match self.mount_at(text, at) {
                Some((length, host)) => {
                    out.push_str(&host.to_string_lossy());
                    rest = at + length;
                }
                None => {
                    out.push('/');
                    rest = at + 1;
                }
            }
        }
        out.push_str(&text[rest..]);
        out
    }

    fn mount_at(&self, text: &str, at: usize) -> Option<(usize, &Path)> {
        if !starts_a_path(&text[..at]) {
            return None;
        }
        self.folders
            .iter()
            .filter(|(mounted, _)| {
                text[at..].starts_with(mounted.as_str())
                    && !text[at + mounted.len()..].starts_with(is_name_character)
            })
            .max_by_key(|(mounted, _)| mounted.len())
            .map(|(mounted, host)| (mounted.len(), host.as_path()))
    }
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Whether a `/` after `before` begins an absolute path rather than continuing a longer one.
///
/// Besides separators this knows a short option with its value attached (`-D/data`), a shell default
/// (`${PGDATA:-/data}`) and a URL scheme (`file:///data`).
fn starts_a_path(before: &str) -> bool {
    let Some(last) = before.chars().next_back() else { return true };
    if before.ends_with("://") || before.ends_with(":-") {
        return true;
    }
    if last == '/' {
        return false;
    }
    if !is_name_character(last) && !matches!(last, '}' | ')' | '~' | '*') {
        return true;
    }
    let word = before
        .rfind(|c: char| !is_name_character(c))
        .map_or(before, |i| &before[i..])
        .trim_start_matches(|c: char| !is_name_character(c));
    let mut letters = word.chars();
    matches!((letters.next(), letters.next(), letters.next()), (Some('-'), Some(c), None) if c.is_alphabetic())
}

/// Replaces `127.0.0.1` and `localhost` by the pod's address where they stand as a whole host name.
///
/// Inside a pod they mean the pod; without a network namespace they would mean this whole machine.
pub(crate) fn translate_loopback(text: &str, pod_address: Ipv4Addr) -> String {
    let address = pod_address.to_string();
    replace_whole(&replace_whole(text, "127.0.0.1", &address), "localhost", &address)
}

fn replace_whole(text: &str, name: &str, with: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = 0;
    while let Some(found) = text[rest..].find(name) {
        let (at, end) = (rest + found, rest + found + name.len());
        let alone =
            !text[..at].ends_with(is_name_character) && !text[end..].starts_with(is_name_character);
        out.push_str(&text[rest..at]);
        out.push_str(if alone { with } else { name });
        rest = end;
    }
    out.push_str(&text[rest..]);
    out
}

/// Replaces cluster host names by addresses, for a machine without cluster DNS.
///
/// Every run of host-name characters is offered to `resolve`; what it does not know stays as it is.
pub(crate) fn translate_names(
    text: &str,
    mut resolve: impl FnMut(&str) -> Option<Ipv4Addr>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_host_character) {
        out.push_str(&rest[..start]);
        let word = &rest[start..];
        let end = word.find(|c| !is_host_character(c)).unwrap_or(word.len());
        let (name, after) = word.split_at(end);
        match name.contains('.').then(|| resolve(name)).flatten() {
            Some(address) => out.push_str(&address.to_string()),
            None => out.push_str(name),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn is_host_character(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> PathMap {
        let mut map = PathMap::default();
        map.mount("/data", "/s/1");
        map.mount("/data/wal/", "/s/2");
        map.mount("/etc/pg", "/s/3");
        map.image_folder("/data/own", "/s/never");
        map.image_folder("/tmp", "/s/4");
        map
    }

    #[test]
    fn paths_are_replaced_on_boundaries_longest_first() {
        for (text, expected) in [
            ("/data", "/s/1"),
            ("/data/x y", "/s/1/x y"),
            ("/data/wal/0001", "/s/2/0001"),
            ("/data/walrus", "/s/1/walrus"),
            ("/database", "/database"),
            ("/data.bak", "/data.bak"),
            ("/data/own/f", "/s/1/own/f"),
            ("/srv/data", "/srv/data"),
            ("srv/data", "srv/data"),
            ("-D/data", "-D/s/1"),
            ("--pgdata=/data", "--pgdata=/s/1"),
            ("${PGDATA:-/data}", "${PGDATA:-/s/1}"),
            ("file:///data/f", "file:///s/1/f"),
            ("$HOME/data", "$HOME/data"),
            ("${HOME}/data", "${HOME}/data"),
            ("a=/etc/pg/x:/data;'/tmp/y'", "a=/s/3/x:/s/1;'/s/4/y'"),
            ("config_file=/etc/pg/postgresql.conf", "config_file=/s/3/postgresql.conf"),
            ("é/data /data", "é/data /s/1"),
            ("no path", "no path"),
            ("", ""),
        ] {
            assert_eq!(map().translate(text), expected, "for {text:?}");
        }
    }

    #[test]
    fn one_whole_path_finds_its_place() {
        assert_eq!(map().host_path("/data/wal/x"), Some(PathBuf::from("/s/2/x")));
        assert_eq!(map().host_path("/data"), Some(PathBuf::from("/s/1")));
        assert_eq!(map().host_path("/usr"), None);
    }

    #[test]
    fn loopback_means_the_pod_only_as_a_whole_name() {
        let pod = Ipv4Addr::new(127, 77, 0, 9);
        for (text, expected) in [
            ("127.0.0.1", "127.77.0.9"),
            ("-h localhost -p 5432", "-h 127.77.0.9 -p 5432"),
            ("http://127.0.0.1:80/x", "http://127.77.0.9:80/x"),
            (
                "127.0.0.11 1127.0.0.1 localhost.localdomain",
                "127.0.0.11 1127.0.0.1 localhost.localdomain",
            ),
        ] {
            assert_eq!(translate_loopback(text, pod), expected);
        }
    }

    #[test]
    fn only_known_host_names_are_replaced() {
        let resolve =
            |name: &str| (name == "db-0.db.ns.svc").then_some(Ipv4Addr::new(127, 77, 0, 3));
        let text = "host=db-0.db.ns.svc port=1; see example.com";
        assert_eq!(translate_names(text, resolve), "host=127.77.0.3 port=1; see example.com");
    }
}
