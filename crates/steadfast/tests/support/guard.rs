//! Plays the init container `guard`: the model's kubelet runs no shell, so the few rules of the
//! script are carried out here on the model's volumes. The real script runs on the real node.

use jiff::SignedDuration;
use sim::builtin::pods::program::{Exit, Launch, Plain, Program, Surroundings};
use sim::external::postgres::Version;
use sim::world::World;

/// Registers the guard with the world's kubelet.
pub(crate) fn install(world: &World) {
    world.model(|model| model.programs.register(Box::new(start)));
}

fn start(launch: &Launch, around: &mut Surroundings) -> Option<Box<dyn Program>> {
    let script = launch.arguments().concat();
    if !launch.init || !script.contains("DataVersionMismatch") {
        return None;
    }
    let refusal = refusal(launch, around);
    let exit = Exit { code: i64::from(refusal.is_some()), message: refusal.unwrap_or_default() };
    let ends = launch.now.checked_add(SignedDuration::from_millis(200)).ok()?;
    Some(Box::new(Plain { ends: Some((ends, exit)), ready: true }))
}

fn refusal(launch: &Launch, around: &Surroundings) -> Option<String> {
    let folder = launch.environment.get("PGDATA")?;
    let (volume, path) = launch.volume_of(folder)?;
    if let Some(have) = around.volumes.file(&volume, &format!("{path}/PG_VERSION")) {
        let (have, want) = (have.trim(), Version::of_image(launch.image()).major.to_string());
        return (have != want).then(|| {
            format!("DataVersionMismatch: the data were made by PostgreSQL {have} and the image brings {want}\n")
        });
    }
    if around.volumes.holds_below(&volume, &path) {
        return Some("HalfInitialised: the data folder holds files but no PG_VERSION\n".to_owned());
    }
    let allowed =
        launch.files.get("/etc/steadfast/bootstrap").map(String::as_str) == Some("allowed");
    (!allowed)
        .then(|| "DataMissing: the data folder is empty although data were recorded\n".to_owned())
}
