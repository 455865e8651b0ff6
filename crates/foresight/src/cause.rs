//! What the API server names as causes of a refusal, in words for whoever wrote the manifest.
//!
//! Must not hide what the server said: what is not understood is kept as it is.

use serde_json::Value;

/// How the server writes the field of a rule that stands at the root of a schema.
const ROOT: &str = "<nil>";
/// How the server begins a cause that shows the value.
const INVALID: &str = "Invalid value: ";
/// How the server says that it has not looked at everything.
const UNCHECKED: &str = "some validation rules were not checked";

/// One cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// Path of the field, as the server writes it.
    pub field: String,
    /// The server's words.
    pub message: String,
}

impl Cause {
    /// A cause.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }

    /// Whether it only says that the rest was not checked.
    fn is_unchecked(&self) -> bool {
        self.message.contains(UNCHECKED)
    }

    fn sentence(&self) -> String {
        let told = self.message.strip_prefix(INVALID).map_or(self.message.as_str(), without_value);
        let field = self.field.as_str();
        if field.is_empty() || field == ROOT || told.contains(field) {
            told.to_owned()
        } else {
            format!("{field}: {told}")
        }
    }
}

/// The rule's own words, after the value that it was about. Of an object or a list the server shows none.
fn without_value(rest: &str) -> &str {
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    match values.next() {
        Some(Ok(_)) => rest[values.byte_offset()..].strip_prefix(": ").unwrap_or(rest),
        _ => rest,
    }
}

/// The causes in one text, each once; and whether some rules are still to be checked.
pub fn told(causes: &[Cause], message: &str) -> (String, bool) {
    let found = if causes.is_empty() { vec![of(message)] } else { causes.to_vec() };
    let (unchecked, known): (Vec<Cause>, Vec<Cause>) =
        found.into_iter().partition(Cause::is_unchecked);
    let mut sentences: Vec<String> = Vec::new();
    for sentence in known.iter().map(Cause::sentence) {
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    if sentences.is_empty() {
        return (message.to_owned(), false);
    }
    (sentences.join("; "), !unchecked.is_empty())
}

/// The cause in a message that comes without a list: of a webhook, or of an old server.
fn of(message: &str) -> Cause {
    let causes = message.split_once(" is invalid: ").map_or(message, |(_, causes)| causes);
    let causes = causes.trim_start_matches('[').trim_end_matches(']');
    match causes.split_once(": ") {
        Some((field, told))
            if told.starts_with(INVALID) && !told[INVALID.len()..].contains(INVALID) =>
        {
            Cause::new(field, told)
        }
        _ => Cause::new("", causes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(field: &str, message: &str) -> String {
        told(&[Cause::new(field, message)], "").0
    }

    #[test]
    fn each_cause_names_its_field_once_and_no_value() {
        let cases = [
            (
                "<nil>",
                "Invalid value: spec.storage.size: a volume cannot shrink",
                "spec.storage.size: a volume cannot shrink",
            ),
            ("<nil>", "Invalid value: \"object\": spec.x: no", "spec.x: no"),
            ("<nil>", "Invalid value: {\"spec\": {}}: spec.x: no", "spec.x: no"),
            (
                "spec.databaseName",
                "Invalid value: \"a: b\": cannot change",
                "spec.databaseName: cannot change",
            ),
            (
                "spec.replicas",
                "Invalid value: 99: spec.replicas in body should be less than 16",
                "spec.replicas in body should be less than 16",
            ),
            (
                "spec.parameters",
                "Invalid value: the operator sets this: take it out",
                "spec.parameters: the operator sets this: take it out",
            ),
            ("spec.image", "Required value", "spec.image: Required value"),
            (
                "spec.deletionPolicy",
                "Unsupported value: \"x\": supported values: \"Retain\"",
                "spec.deletionPolicy: Unsupported value: \"x\": supported values: \"Retain\"",
            ),
        ];
        for (field, message, wanted) in cases {
            assert_eq!(one(field, message), wanted);
        }
    }

    #[test]
    fn what_was_not_checked_is_no_cause() {
        let unchecked = "Invalid value: null: some validation rules were not checked because the \
                         object was invalid; correct the existing errors to complete validation";
        let causes = [Cause::new("spec.image", "Required value"), Cause::new("<nil>", unchecked)];
        assert_eq!(told(&causes, ""), ("spec.image: Required value".to_owned(), true));
        let alone = [Cause::new("<nil>", unchecked)];
        assert_eq!(told(&alone, "the server's words"), ("the server's words".to_owned(), false));
    }

    #[test]
    fn several_causes_are_told_each_once() {
        let same = Cause::new("<nil>", "Invalid value: metadata.name: too long");
        let causes = [same.clone(), same, Cause::new("spec.image", "Required value")];
        let wanted = "metadata.name: too long; spec.image: Required value";
        assert_eq!(told(&causes, ""), (wanted.to_owned(), false));
    }
}
