//! Small scripts put before the server's programs in PATH, so that a shell script of the template may
//! call what the image offers: `postgres` listens on its pod's address alone, `gosu` changes no user, and
//! `docker-entrypoint.sh` hands its arguments and environment over to the node's own entry point.

use super::entry_script::network_arguments;
use super::postgres::Surroundings;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const ARGUMENTS: &str = "handover.arguments";
const ENVIRONMENT: &str = "handover.environment";

impl Surroundings {
    /// Writes the scripts into the container's folder.
    pub(crate) fn write_shims(&self) -> io::Result<()> {
        let bin = self.folder.join("bin");
        fs::create_dir_all(&bin)?;
        let quoted = |path: &Path| format!("'{}'", path.display());
        let server = quoted(&self.bin_dir.join("postgres"));
        let listen = network_arguments(self.address, None).join(" ");
        let sockets = network_arguments(self.address, Some(&self.sockets)).join(" ");
        write_script(
            &bin.join("postgres"),
            &format!(
                "case \" $* \" in\n  *' --single '*|*' --boot '*|*' --check '*|*' --describe-config '*|*' -V '*|\
                 *' --version '*|*' --help '*|*' -C '*) exec {server} \"$@\" ;;\n  \
                 *unix_socket_directories*) exec {server} \"$@\" {listen} ;;\nesac\n\
                 exec {server} \"$@\" {sockets}"
            ),
        )?;
        write_script(&bin.join("gosu"), "shift\nexec \"$@\"")?;
        let (environment, arguments) =
            (quoted(&self.folder.join(ENVIRONMENT)), quoted(&self.folder.join(ARGUMENTS)));
        write_script(
            &bin.join("docker-entrypoint.sh"),
            &format!(
                "umask 077\nenv -0 >{environment}\n: >{arguments}\nfor word; do printf '%s\\0' \"$word\" >>{arguments}; done"
            ),
        )
    }

    /// What a script handed over to the entry point, if its last act was to call it.
    pub(crate) fn handed_over(&self) -> Option<(Vec<String>, Self)> {
        let words = |name: &str| {
            let path = self.folder.join(name);
            let text = fs::read_to_string(&path).ok()?;
            // In a folder of our own, what could be read can be removed.
            let _ = fs::remove_file(path);
            Some(text.split_terminator('\0').map(str::to_owned).collect::<Vec<_>>())
        };
        let (arguments, environment) = (words(ARGUMENTS)?, words(ENVIRONMENT)?);
        let environment: BTreeMap<String, String> = environment
            .iter()
            .filter_map(|entry| entry.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let data = environment.get("PGDATA").map_or_else(|| self.data.clone(), Into::into);
        Some((arguments, Self { environment, data, ..self.clone() }))
    }
}

fn write_script(path: &Path, body: &str) -> io::Result<()> {
    fs::write(path, format!("#!/bin/sh\n{body}\n"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}
