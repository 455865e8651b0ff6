//! The children of a resource as they are declared first, in the order in which they are made.
//!
//! Stable: the same manifest gives the same objects, whatever the day and the machine.

use serde_json::Value;

use crate::happening::Happening;
use crate::stage::Stage;
use crate::words::named;

/// uid that stands for the one that the server will give.
pub const UNKNOWN_UID: &str = "00000000-0000-0000-0000-000000000000";

/// A child as it is declared.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// `Kind/namespace/name`.
    pub name: String,
    /// The object.
    pub object: Value,
    /// Keys of a Secret whose values the operator makes up.
    pub generated: Vec<String>,
}

/// The first declaration of each child in the log.
pub fn children(stage: &Stage) -> Vec<Rendered> {
    let mut found: Vec<Rendered> = Vec::new();
    for happening in &stage.log {
        let Happening::Wrote(wrote) = happening else { continue };
        let name = named(&wrote.id);
        if let Some(intent) = wrote.intent.clone()
            && wrote.before.is_none()
            && found.iter().all(|other| other.name != name)
        {
            found.push(Rendered { name, object: intent, generated: wrote.generated.clone() });
        }
    }
    found
}
