//! An installed PostgreSQL, started over a fresh data folder on a free port of the loopback.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A real server that ends with this value.
pub(crate) struct Real {
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// Its major version.
    pub major: u32,
    server: Child,
    bin: PathBuf,
    // Removed after the server has ended.
    folder: tempfile::TempDir,
}

/// The newest installed programs of a supported version.
fn programs() -> Option<(PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten() {
        let major = entry.file_name().to_string_lossy().parse::<u32>().ok();
        let bin = entry.path().join("bin");
        found.extend(major.filter(|_| bin.join("initdb").exists()).map(|major| (major, bin)));
    }
    found.sort();
    found.pop().filter(|one| one.0 >= 14).map(|(major, bin)| (bin, major))
}

/// PostgreSQL refuses to run as root: then its own user is taken.
fn unprivileged(command: &mut Command) -> Option<&mut Command> {
    if std::fs::metadata("/proc/self").ok()?.uid() != 0 {
        return Some(command);
    }
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.starts_with("postgres:"))?;
    let fields: Vec<&str> = line.split(':').collect();
    Some(command.uid(fields.get(2)?.parse().ok()?).gid(fields.get(3)?.parse().ok()?))
}

impl Real {
    /// Starts one; none when PostgreSQL is not installed or must not be used.
    pub(crate) fn unless_hermetic(password: &str) -> Option<Real> {
        if super::asking::hermetic() { None } else { Real::start(password) }
    }

    fn start(password: &str) -> Option<Real> {
        let (bin, major) = programs()?;
        let folder = tempfile::tempdir().ok()?;
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(folder.path(), open).ok()?;
        let secret = folder.path().join("password");
        std::fs::write(&secret, password).ok()?;
        let data = folder.path().join("data");
        let made = unprivileged(
            Command::new(bin.join("initdb"))
                .args(["-U", "postgres", "--auth=scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8"])
                .arg("--pwfile")
                .arg(&secret)
                .arg("-D")
                .arg(&data)
                .stdout(Stdio::null()),
        )?
        .status()
        .ok()?;
        assert!(made.success(), "initdb failed");
        let port = free_port();
        let server = unprivileged(&mut serve(&bin, &data, port))?.spawn().ok()?;
        let real = Real { port, major, server, bin, folder };
        real.wait();
        Some(real)
    }

    /// A standby of it, copied and started as `application`.
    #[allow(dead_code, reason = "not every test that takes this file in has standbys")]
    pub(crate) fn standby(&self, password: &str, slot: &str, application: &str) -> Real {
        let folder = tempfile::tempdir().expect("a folder");
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(folder.path(), open).expect("its own folder");
        let data = folder.path().join("data");
        let from = format!(
            "host=127.0.0.1 port={} user=repl password={password} application_name={application}",
            self.port
        );
        let mut copy = Command::new(self.bin.join("pg_basebackup"));
        copy.args(["-d", &from, "-S", slot, "-X", "stream", "-c", "fast", "-R", "-D"]).arg(&data);
        let made = unprivileged(&mut copy).and_then(|copy| copy.status().ok());
        assert!(made.is_some_and(|status| status.success()), "the copy failed");
        let port = free_port();
        let mut server = serve(&self.bin, &data, port);
        let server = unprivileged(&mut server).and_then(|server| server.spawn().ok());
        let server = server.expect("a standby that starts");
        let real = Real { port, major: self.major, server, bin: self.bin.clone(), folder };
        real.wait();
        real
    }

    /// The words of a copy that fails.
    #[allow(dead_code, reason = "not every test that takes this file in has standbys")]
    pub(crate) fn copy(&self, from: &str) -> String {
        let data = self.folder.path().join("copy");
        let mut copy = Command::new(self.bin.join("pg_basebackup"));
        copy.args(["-d", from, "-S", "nope", "-X", "stream", "-c", "fast", "-w", "-D"]).arg(&data);
        let said = unprivileged(copy.env("LC_ALL", "C")).and_then(|copy| copy.output().ok());
        let said = said.expect("a program that runs");
        assert!(!said.status.success(), "the copy went well");
        String::from_utf8_lossy(&said.stderr).into_owned()
    }

    fn wait(&self) {
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "the real server does not listen");
            std::thread::sleep(Duration::from_millis(50)); // poll: the socket of a server that starts
        }
    }
}

fn serve(bin: &Path, data: &Path, port: u16) -> Command {
    let mut command = Command::new(bin.join("postgres"));
    command
        .arg("-D")
        .arg(data)
        .args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="])
        .args(["-c", "fsync=off", "-p"])
        .arg(port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

impl Drop for Real {
    fn drop(&mut self) {
        // An immediate end: the data are thrown away with the folder.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
