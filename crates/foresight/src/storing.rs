//! How the server writes down what it is sent: amounts in their canonical form, and the two names of
//! a pod's service account. The prediction test found both.
//!
//! Must not fill in defaults: they are no difference.

use phased::compare::Path;
use phased::quantity::Quantity;
use phased::stored;
use serde_json::{Value, json};

use crate::apply::index;

/// The object as the server stores it.
pub fn stored(mut object: Value) -> Value {
    amounts(&mut object, &Path::default());
    if let Some(spec) = object.pointer_mut("/spec/template/spec") {
        account(spec);
    }
    object
}

fn amounts(value: &mut Value, path: &Path) {
    match value {
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(name, below)| amounts(below, &path.field(name)));
        }
        Value::Array(items) => {
            items
                .iter_mut()
                .enumerate()
                .for_each(|(place, item)| amounts(item, &index(path, place)));
        }
        Value::String(text) if stored::is_quantity(path) => {
            if let Ok(amount) = text.parse::<Quantity>() {
                *text = amount.canonical();
            }
        }
        Value::Number(number) if stored::is_quantity(path) => {
            if let Ok(amount) = number.to_string().parse::<Quantity>() {
                *value = json!(amount.canonical());
            }
        }
        _ => {}
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`: the server keeps both the same, and takes
/// the old one where the new one is missing.
fn account(spec: &mut Value) {
    let name = [&spec["serviceAccountName"], &spec["serviceAccount"]]
        .into_iter()
        .find(|name| name.is_string())
        .cloned();
    if let (Some(name), Some(fields)) = (name, spec.as_object_mut()) {
        fields.insert("serviceAccount".to_owned(), name.clone());
        fields.insert("serviceAccountName".to_owned(), name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_the_server_writes_them() {
        let pod = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "0.2",
            "resources": {"requests": {"cpu": "0.2", "memory": "1024Mi"}, "limits": {"cpu": 2}}}]}}}});
        let stored = stored(pod);
        let container = &stored["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], "0.2");
        assert_eq!(
            container["resources"],
            json!({"requests": {"cpu": "200m", "memory": "1Gi"},
            "limits": {"cpu": "2"}})
        );
    }

    #[test]
    fn a_service_account_has_two_names() {
        let spec = |spec: Value| {
            stored(json!({"spec": {"template": {"spec": spec}}}))["spec"]["template"]["spec"]
                .clone()
        };
        let both = json!({"serviceAccount": "new", "serviceAccountName": "new"});
        assert_eq!(spec(json!({"serviceAccountName": "new", "serviceAccount": "old"})), both);
        assert_eq!(spec(json!({"serviceAccount": "new"})), both);
        assert_eq!(spec(json!({})), json!({}));
    }
}
