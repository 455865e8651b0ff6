//! Which family an image belongs to: whether it brings the scripts that start, probe and stop a
//! server. Decided once, then recorded (docs/design/0004-zookeeper.md).

use phased::Live;

use super::api::{Image, Scripts};

/// Repository of the image when none is named.
pub const DEFAULT_REPOSITORY: &str = "pravega/zookeeper";
/// Tag of the image when none is named. It never changes, or clusters would roll with the operator.
pub const DEFAULT_TAG: &str = "0.2.15";
/// Annotation on the StatefulSet and the ConfigMap with the family.
pub const SCRIPTS_ANNOTATION: &str = "steadfast.dev/scripts";
/// Name of the server's container.
pub const CONTAINER: &str = "zookeeper";
/// What an image with scripts is started by.
pub const START_SCRIPT: &str = "/usr/local/bin/zookeeperStart.sh";

impl Scripts {
    /// As the record and the API spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image => "Image",
            Self::Operator => "Operator",
        }
    }

    fn named(text: &str) -> Option<Self> {
        [Self::Image, Self::Operator].into_iter().find(|family| family.as_str() == text)
    }
}

/// The family that a spec asks for.
pub fn asked(image: &Image) -> Scripts {
    let of_the_replaced = image.repository == DEFAULT_REPOSITORY
        || image.repository.ends_with(&format!("/{DEFAULT_REPOSITORY}"));
    match image.scripts {
        Some(named) => named,
        None if of_the_replaced => Scripts::Image,
        None => Scripts::Operator,
    }
}

/// The family that holds already: as recorded, or else by what the servers are started with.
pub fn recorded(set: Option<&Live>, config: Option<&Live>) -> Option<Scripts> {
    let written = |live: Option<&Live>| Scripts::named(live?.annotation(SCRIPTS_ANNOTATION)?);
    written(set).or_else(|| written(config)).or_else(|| set.map(started_by))
}

fn started_by(set: &Live) -> Scripts {
    let containers = set.value.pointer("/spec/template/spec/containers");
    let all = containers.and_then(|c| c.as_array()).into_iter().flatten();
    let server = all.into_iter().find(|c| c["name"] == CONTAINER);
    if server.is_some_and(|c| c["command"][0] == START_SCRIPT) {
        Scripts::Image
    } else {
        Scripts::Operator
    }
}
