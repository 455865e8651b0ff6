//! A container that means a server of the image family whose scripts register members by themselves.
//!
//! Must not run the scripts; `scripts` does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::ensemble::Disk;
use super::ground::Ground;
use super::running::Running;
use super::scripts::{Environment, Script};
use super::server::{Identity, Server};
use super::session;
use crate::builtin::pods::program::{Exit, Launch, Plain, Program, Surroundings};
use crate::builtin::{after, field};
use crate::external::network::{Listener, Reach};

/// What a server of the family is started by.
const START_SCRIPT: &str = "zookeeperStart.sh";

/// Starts the model where a container means such a server.
pub(crate) fn start(
    ground: &Arc<Ground>,
    launch: &Launch,
    around: &mut Surroundings,
) -> Option<Box<dyn Program>> {
    let words = launch.arguments();
    let script = words.first().and_then(|word| word.rsplit('/').next());
    if launch.init || !launch.image().contains("zookeeper") || script != Some(START_SCRIPT) {
        return None;
    }
    let reach = around.network.reach()?;
    if !brings_scripts(launch.image()) {
        let program = words.first().copied().unwrap_or_default();
        let message = format!(
            "failed to create containerd task: exec: \"{program}\": stat {program}: no such file \
             or directory"
        );
        return Some(ends(launch, 128, message));
    }
    match script_of(ground, launch, around, reach) {
        Err(message) => Some(ends(launch, 1, message)),
        Ok(script) => {
            listen(&script, around);
            Some(Box::new(Running::new(script)))
        }
    }
}

/// Whether an image has the scripts: the official one has not, and whoever mirrors the family under a
/// name of its own is believed.
fn brings_scripts(image: &str) -> bool {
    let name = image.split('@').next().unwrap_or("");
    let tag = name.rsplit('/').next().and_then(|last| last.split_once(':'));
    let repository = tag.map_or(name, |(_, tag)| &name[..name.len() - tag.len() - 1]);
    let official = ["zookeeper", "library/zookeeper"];
    let path = repository.split_once('/').map_or("", |(_, path)| path);
    !official.contains(&repository) && !official.contains(&path)
        || repository.ends_with("pravega/zookeeper")
}

fn ends(launch: &Launch, code: i64, message: String) -> Box<dyn Program> {
    let at = after(launch.now, 200);
    Box::new(Plain { ends: Some((at, Exit { code, message })), ready: false })
}

/// `name=value` lines of a file.
fn pairs(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

fn script_of(
    ground: &Arc<Ground>,
    launch: &Launch,
    around: &mut Surroundings,
    reach: Reach,
) -> Result<Script, String> {
    let file = |name: &str| {
        let text = launch.files.get(&format!("/conf/{name}"));
        text.cloned().ok_or_else(|| format!("/conf/{name}: No such file or directory"))
    };
    let (settings, variables) = (pairs(&file("zoo.cfg")?), pairs(&file("env.sh")?));
    let environment = Environment::read(&variables)?;
    let pod = match field::text(&launch.pod, "/spec/hostname") {
        "" => field::name(&launch.pod),
        hostname => hostname,
    };
    let ordinal = pod.rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse::<u32>().ok());
    let ordinal = ordinal.ok_or_else(|| format!("Failed to parse name and ordinal of {pod}"))?;
    ground.learn(launch.now, reach.links());
    let identity = Identity {
        host: format!("{pod}.{}", environment.domain),
        address: launch.address.clone(),
        version: version(launch.image()),
    };
    let server = Server::new(ground.clone(), identity, around.network.waker());
    let probe = launch.container.get("readinessProbe").cloned().unwrap_or_default();
    Ok(Script {
        server: Arc::new(server),
        disk: disk(launch, around),
        settings,
        environment,
        id: ordinal + 1,
        namespace: field::namespace(&launch.pod).to_owned(),
        reach,
        initial_delay_seconds: field::number(&probe, "/initialDelaySeconds", 0).unsigned_abs(),
        period_seconds: field::number(&probe, "/periodSeconds", 10).unsigned_abs(),
    })
}

/// What lies on the volume below `/data`.
fn disk(launch: &Launch, around: &mut Surroundings) -> Arc<Mutex<Disk>> {
    let Some((volume, path)) = launch.volume_of("/data") else { return Arc::default() };
    if let Some(disk) = around.volumes.state::<Mutex<Disk>>(&volume, &path) {
        return disk;
    }
    let disk = Arc::<Mutex<Disk>>::default();
    around.volumes.keep(&volume, &path, disk.clone());
    disk
}

/// ZooKeeper's version in an image of the family.
fn version(image: &str) -> &'static str {
    let tag = image.rsplit('/').next().and_then(|last| last.split_once(':')).map_or("", |t| t.1);
    if tag.starts_with("0.2.") {
        "3.7.1-a2fb57c55f8e59cdd76c34b357ad5181df1258d5"
    } else {
        "3.9.3-c26634f34490bb0ea7a09cc51e05ede3b4e320ee"
    }
}

fn listen(script: &Script, around: &mut Surroundings) {
    let server = script.server.clone();
    let listener: Listener = Arc::new(move |stream, _| {
        if !server.is_up() {
            return false;
        }
        tokio::spawn(session::serve(server.clone(), stream));
        true
    });
    let (address, port) = (&script.server.address, script.environment.client_port);
    around.network.listen_inside(address, port, listener.clone());
    around.network.listen(address, port, listener);
    around.network.attach(address, script.server.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_official_image_brings_no_scripts() {
        for (image, brings) in [
            ("pravega/zookeeper:0.2.15", true),
            ("registry.example.com:5000/mirror/pravega/zookeeper:0.2.15", true),
            ("registry.example.com/ours/zookeeper-with-scripts:1", true),
            ("zookeeper:3.9", false),
            ("docker.io/library/zookeeper:3.9.3", false),
        ] {
            assert_eq!(brings_scripts(image), brings, "{image}");
        }
    }
}
