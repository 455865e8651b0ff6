//! Calls the binary, in a folder of its own and with nothing of the environment that matters to it.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use sim::faults::{Effect, Match, Often, Rule};
use sim::server::Server;
use sim::world::World;
use tempfile::TempDir;

/// What came of a call.
pub(crate) struct Called {
    pub(crate) code: i32,
    pub(crate) output: String,
    pub(crate) errors: String,
}

/// A folder with files.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let place = Self(tempfile::tempdir().expect("a folder"));
        files.iter().for_each(|(name, text)| drop(place.write(name, text)));
        place
    }

    /// Writes a file; answers its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        self.write_bytes(name, text.as_bytes())
    }

    /// Writes a file of anything; answers its path.
    pub(crate) fn write_bytes(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder");
        std::fs::write(&path, bytes).expect("a file");
        path.to_str().expect("a plain path").to_owned()
    }

    /// A kubeconfig for this address.
    pub(crate) fn kubeconfig(&self, address: &str) -> String {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: \
             {{server: \"{address}\"}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             users: [{{name: u, user: {{}}}}]\n"
        );
        self.write("nobody", &text)
    }

    /// Calls it under another name.
    pub(crate) fn call_as(&self, name: &str, words: &[&str]) -> Called {
        let link = self.0.path().join(name);
        if !link.exists() {
            symlink(binary(), &link).expect("a link");
        }
        self.run(link, words, None)
    }

    /// Calls it with this text on standard input.
    pub(crate) fn pipe(&self, text: &str, words: &[&str]) -> Called {
        self.run(binary(), words, Some(text))
    }

    fn run(&self, program: PathBuf, words: &[&str], input: Option<&str>) -> Called {
        let mut child = Command::new(program)
            .args(words)
            .current_dir(self.0.path())
            .env_remove("KUBECONFIG")
            .env_remove("STEADFAST_LOG")
            .env("HOME", self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(input.unwrap_or_default().as_bytes()).expect("it reads");
        drop(stdin);
        let ended = child.wait_with_output().expect("it ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Called {
            code: ended.status.code().unwrap_or(-1),
            output: text(&ended.stdout),
            errors: text(&ended.stderr),
        }
    }
}

fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_steadfast"))
}

/// Calls the binary.
pub(crate) fn call(place: &Place, words: &[&str]) -> Called {
    place.run(binary(), words, None)
}

/// A cluster that nobody operates, behind HTTP.
pub(crate) struct Cluster {
    world: World,
    server: Server,
}

impl Cluster {
    pub(crate) fn kubeconfig(&self) -> String {
        self.server.kubeconfig()
    }

    pub(crate) fn apply(&self, yaml: &str) {
        let applied = self.world.apply(yaml).map_err(|failure| failure.message);
        assert!(applied.is_ok(), "{applied:?}");
    }

    /// Refuses a verb on a kind from now on, as RBAC does.
    pub(crate) fn forbid(&self, verb: &'static str, group: &str, plural: &str) {
        let when = Match::verbs(&[verb]).on(group, plural);
        let message = format!("User \"eve\" cannot {verb} resource \"{plural}\"");
        self.world.cluster.with(|core| {
            core.faults.add(Rule::new(when, Often::Always, Effect::Deny { message }));
        });
    }
}

/// Serves a cluster while `work` runs.
pub(crate) fn with_cluster<T>(work: impl FnOnce(&Cluster) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let world = World::new(3);
    for crd in steadfast::manifests::crds().expect("the definitions are serialisable") {
        world.apply(&crd.to_string()).expect("the definitions are accepted");
    }
    let server = runtime.block_on(Server::start(&world.cluster)).expect("a port");
    let cluster = Cluster { world, server };
    let answer = work(&cluster);
    let _entered = runtime.enter();
    drop(cluster);
    answer
}
