//! Reading a request body as a kind: type, version and unknown fields.

use serde_json::{Value, json};

use crate::cluster::{Core, FieldValidation, Options};
use crate::kind::Kind;
use crate::status::Failure;

impl Core {
    /// Checks the type of `object` and drops what the schema does not know.
    pub(super) fn decode(
        &mut self,
        kind: &Kind,
        object: &mut Value,
        options: &Options,
    ) -> Result<(), Failure> {
        self.check_type(kind, object)?;
        check_values(kind, object)?;
        let unknown = prune(kind, object);
        self.report_unknown(kind, unknown, options)
    }

    /// Body and URL must mean the same kind and version; a body may leave both out.
    fn check_type(&self, kind: &Kind, object: &mut Value) -> Result<(), Failure> {
        if !object.is_object() {
            return Err(Failure::bad_request(format!(
                "{} in version \"{}\" cannot be handled as a {}: the body is not a JSON object",
                kind.kind, kind.version, kind.kind
            )));
        }
        let api_version = kind.api_version();
        for (field, wanted) in [("apiVersion", &api_version), ("kind", &kind.kind)] {
            match object[field].as_str() {
                None | Some("") => object[field] = json!(wanted),
                Some(same) if same == wanted => {}
                Some(_) => return Err(self.wrong_type(kind, object)),
            }
        }
        Ok(())
    }

    fn wrong_type(&self, kind: &Kind, object: &Value) -> Failure {
        let sent_kind = object["kind"].as_str().unwrap_or("");
        let sent = object["apiVersion"].as_str().unwrap_or("");
        let (group, version) = sent.split_once('/').unwrap_or(("", sent));
        if kind.custom {
            return Failure::bad_request(format!(
                "the API version in the data ({sent}) does not match the expected API version ({})",
                kind.api_version()
            ));
        }
        let known = self.kinds.by_kind(sent, sent_kind).is_some_and(|known| !known.custom);
        let why = if known {
            let package = |group: &str| match group.split('.').next() {
                None | Some("") => "core".to_owned(),
                Some(first) => first.to_owned(),
            };
            format!(
                "converting ({}.{sent_kind}) to ({}.{}): unknown conversion",
                if group.is_empty() { "v1" } else { version },
                package(&kind.group),
                kind.kind
            )
        } else {
            format!(
                "no kind \"{sent_kind}\" is registered for version \"{sent}\" in scheme \"pkg/runtime/scheme.go:111\""
            )
        };
        Failure::bad_request(format!(
            "{sent_kind} in version \"{version}\" cannot be handled as a {}: {why}",
            kind.kind
        ))
    }

    /// Refuses, warns about or ignores unknown fields.
    pub(super) fn report_unknown(
        &mut self,
        kind: &Kind,
        unknown: Vec<String>,
        options: &Options,
    ) -> Result<(), Failure> {
        self.report(kind, "unknown", unknown, options)
    }

    /// Refuses, warns about or ignores fields that the body names twice.
    pub(crate) fn report_duplicates(
        &mut self,
        kind: &Kind,
        paths: Vec<String>,
        options: &Options,
    ) -> Result<(), Failure> {
        self.report(kind, "duplicate", paths, options)
    }

    fn report(
        &mut self,
        kind: &Kind,
        what: &str,
        unknown: Vec<String>,
        options: &Options,
    ) -> Result<(), Failure> {
        let texts = unknown.iter().map(|path| format!("{what} field \"{path}\""));
        match options.field_validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => self.warnings.extend(texts),
            FieldValidation::Strict if unknown.is_empty() => {}
            FieldValidation::Strict => {
                let texts: Vec<String> = texts.collect();
                return Err(Failure::bad_request(format!(
                    "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
                    kind.kind,
                    kind.version,
                    kind.kind,
                    texts.join(", ")
                )));
            }
        }
        Ok(())
    }
}

/// Drops unknown fields; answers their paths.
pub(super) fn prune(kind: &Kind, object: &mut Value) -> Vec<String> {
    match &kind.compiled {
        Some(compiled) => compiled.prune(object),
        None => kind.schema.prune(object),
    }
}

/// Values of built-in kinds must fit the server's structs; custom kinds are validated later.
fn check_values(kind: &Kind, object: &Value) -> Result<(), Failure> {
    if kind.custom {
        return Ok(());
    }
    kind.schema.decode(object).map(drop).map_err(|text| {
        Failure::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {text}",
            kind.kind, kind.version, kind.kind
        ))
    })
}
