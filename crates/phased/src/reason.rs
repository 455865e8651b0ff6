//! Reasons as data: why a resource is where it is, documented once.
//!
//! A reason's name is API: it appears in conditions and Events, and scripts match on it.

use crate::Live;

/// A documented reason. Controllers declare theirs as constants and list them, so that
/// `docs/` can be generated and the lint can refuse a reason that nobody documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// CamelCase word, at most 64 characters.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What ends it: what a person can do, or what is being waited for.
    pub remedy: &'static str,
}

impl Reason {
    /// The way out in the words of one resource: `<name>`, `<namespace>` and `<status.…>` (the path of
    /// a text in its status) are replaced by what they stand for, so that a command can be copied. A
    /// place that the resource does not fill stays as it is.
    pub fn way_out(&self, root: &Live) -> String {
        let mut text = String::new();
        let mut rest = self.remedy;
        while let Some((before, after)) = rest.split_once('<') {
            text.push_str(before);
            let place = after.split_once('>').and_then(|(place, beyond)| {
                Some((value_of(place, root).filter(|value| !value.is_empty())?, beyond))
            });
            match place {
                Some((value, beyond)) => {
                    text.push_str(value);
                    rest = beyond;
                }
                None => {
                    text.push('<');
                    rest = after;
                }
            }
        }
        text.push_str(rest);
        text
    }
}

fn value_of<'a>(place: &str, root: &'a Live) -> Option<&'a str> {
    let metadata = &root.metadata;
    match place {
        "name" => metadata.name.as_deref(),
        "namespace" => metadata.namespace.as_deref(),
        _ => {
            let path = place.strip_prefix("status.")?;
            let found = path.split('.').try_fold(&root.value["status"], |at, name| at.get(name))?;
            found.as_str()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_way_out_can_be_copied() {
        let remedy = "kubectl exec -n <namespace> <name>-0; a=<status.id> b=<status.none> c < d";
        let reason = Reason { name: "", meaning: "", remedy };
        let root = Live::new(json!({"metadata": {"name": "db", "namespace": "prod"},
            "status": {"id": "7"}}));
        assert_eq!(
            reason.way_out(&root.expect("an object")),
            "kubectl exec -n prod db-0; a=7 b=<status.none> c < d"
        );
    }
}
