//! From an HTTP request to a typed call: path, verb, query, form of the answer.
//!
//! Only reads the request; `service` decides what becomes of it.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, request::Parts};
use serde_json::Value;

use crate::cluster::{Actor, FieldValidation, Options};
use crate::faults::Asked;
use crate::status::{Cause, Failure};

/// The form in which the client wants objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    #[default]
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
    /// `Table`, each row with so much of its object.
    Table(RowObject),
}

/// How much of its object a table row carries (`includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RowObject {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

/// What a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
}

/// A request, parsed.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// The path asks for a watch, in the old way.
    watch: bool,
    pub(crate) target: String,
    /// None for paths outside `/api` and `/apis` and for discovery.
    pub(crate) place: Option<Place>,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) accept: String,
    pub(crate) content_type: String,
    pub(crate) agent: String,
    pub(crate) body: Bytes,
}

impl Call {
    pub(crate) fn new(parts: &Parts, body: Bytes) -> Call {
        let header = |name: http::HeaderName| {
            parts.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("").to_owned()
        };
        let path = parts.uri.path().to_owned();
        let query = parts.uri.query().unwrap_or("");
        let target = if query.is_empty() { path.clone() } else { format!("{path}?{query}") };
        Call {
            method: parts.method.clone(),
            watch: path.starts_with("/api/v1/watch/") || path.split('/').nth(4) == Some("watch"),
            place: place(&path),
            path,
            target,
            query: pairs(query),
            accept: header(http::header::ACCEPT),
            content_type: header(http::header::CONTENT_TYPE),
            agent: header(http::header::USER_AGENT),
            body,
        }
    }

    /// A query parameter; empty when absent.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.parameter(name), "true" | "1")
    }

    /// The API's name for what is asked.
    pub(crate) fn verb(&self) -> &'static str {
        let named = self.place.as_ref().is_some_and(|place| !place.name.is_empty());
        if crate::exec::is_exec(self) {
            // By whatever method it comes, it changes something, and its right is that of a create.
            return "create";
        }
        match self.method.as_str() {
            "GET" if self.watch || self.flag("watch") => "watch",
            "GET" if named || self.place.is_none() => "get",
            "GET" => "list",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" if named => "delete",
            "DELETE" => "deletecollection",
            _ => "other",
        }
    }

    /// The same call with another body, in JSON.
    pub(crate) fn with_body(&self, body: &Value) -> Call {
        Call {
            method: self.method.clone(),
            path: self.path.clone(),
            watch: self.watch,
            target: self.target.clone(),
            place: self.place.clone(),
            query: self.query.clone(),
            accept: self.accept.clone(),
            content_type: "application/json".into(),
            agent: self.agent.clone(),
            body: body.to_string().into(),
        }
    }

    /// What fault rules look at.
    pub(crate) fn asked(&self, client: &str) -> Asked {
        let place = self.place.clone().unwrap_or_default();
        Asked {
            verb: self.verb(),
            group: place.group,
            plural: place.plural,
            subresource: place.subresource,
            namespace: place.namespace,
            name: place.name,
            client: client.to_owned(),
            agent: self.agent.clone(),
        }
    }

    /// Who asks: the handle's name as user, and the field manager by query or user agent.
    pub(crate) fn actor(&self, user: &str) -> Actor {
        let manager = match self.parameter("fieldManager") {
            "" => self.agent.split('/').next().unwrap_or(""),
            named => named,
        };
        Actor::new(user, if manager.is_empty() { "unknown" } else { manager })
    }

    /// Options of a write; `kind` is what the API calls them, for example `CreateOptions`.
    pub(crate) fn options(&self, kind: &str) -> Result<Options, Failure> {
        let causes = self.option_causes(kind);
        if !causes.is_empty() {
            return Err(Failure::invalid_options(kind, &causes));
        }
        let field_validation = match self.parameter("fieldValidation") {
            "Strict" => FieldValidation::Strict,
            "Ignore" => FieldValidation::Ignore,
            _ => FieldValidation::Warn,
        };
        Ok(Options { dry_run: self.dry_run(), field_validation })
    }

    fn option_causes(&self, kind: &str) -> Vec<Cause> {
        let mut causes = Vec::new();
        let manager = self.parameter("fieldManager");
        if kind == "PatchOptions" {
            let apply = self.content_type.starts_with("application/apply-patch");
            if apply && manager.is_empty() {
                let text = "Required value: is required for apply patch";
                causes.push(Cause::new("FieldValueRequired", "fieldManager", text));
            }
            if !apply && !self.parameter("force").is_empty() {
                let text = "Forbidden: may not be specified for non-apply patch";
                causes.push(Cause::new("FieldValueForbidden", "force", text));
            }
        }
        if manager.len() > LONGEST_MANAGER {
            let text = format!("Too long: may not be more than {LONGEST_MANAGER} bytes");
            causes.push(Cause::new("FieldValueTooLong", "fieldManager", text));
        }
        let dry_run = self.parameter("dryRun");
        if !["", "All"].contains(&dry_run) {
            let text = format!("Unsupported value: [\"{dry_run}\"]: supported values: \"All\"");
            causes.push(Cause::new("FieldValueNotSupported", "dryRun", text));
        }
        let validation = self.parameter("fieldValidation");
        if !["", "Ignore", "Strict", "Warn"].contains(&validation) {
            let text = format!(
                "Unsupported value: \"{validation}\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
            );
            causes.push(Cause::new("FieldValueNotSupported", "fieldValidation", text));
        }
        causes
    }

    pub(crate) fn dry_run(&self) -> bool {
        self.parameter("dryRun") == "All"
    }

    pub(crate) fn form(&self) -> Form {
        for choice in self.accept.split(',') {
            if choice.contains("as=Table") {
                return Form::Table(match self.parameter("includeObject") {
                    "None" => RowObject::None,
                    "Object" => RowObject::Object,
                    _ => RowObject::Metadata,
                });
            }
            if choice.contains("as=PartialObjectMetadata") {
                return Form::Metadata;
            }
            if choice.trim() == "application/json" {
                return Form::Whole;
            }
        }
        Form::Whole
    }

    /// The body as JSON; YAML is accepted as the API server does. `kind` is what it should be.
    pub(crate) fn json(&self, kind: &str) -> Result<Value, Failure> {
        let media = self.content_type.split(';').next().unwrap_or("").trim();
        match media {
            "application/vnd.kubernetes.protobuf" => {
                crate::protobuf::decode(&self.body).ok_or_else(|| {
                    Failure::unsupported_media("application/json, application/yaml")
                })
            }
            "application/yaml" => self.yaml(),
            "" | "application/json" => self.parse().map_err(|error| {
                let text = String::from_utf8_lossy(&self.body);
                let shown = if text.is_empty() { "<empty>" } else { &*text };
                Failure::bad_request(format!(
                    "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {error} ({shown})"
                ))
            }),
            _ => Err(Failure::unsupported_media(
                "application/json, application/yaml, application/vnd.kubernetes.protobuf",
            )),
        }
    }

    /// Fields that the body names twice.
    pub(crate) fn duplicates(&self) -> Vec<String> {
        crate::duplicates::find(&self.body)
    }

    /// The body of a patch; an applied configuration may be YAML.
    pub(crate) fn patch_json(&self) -> Result<Value, Failure> {
        if self.content_type.contains("yaml") {
            return self.yaml();
        }
        self.parse().map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))
    }

    fn yaml(&self) -> Result<Value, Failure> {
        // JSON is YAML, and by far the more common of the two.
        if let Ok(value) = serde_json::from_slice(&self.body) {
            return Ok(value);
        }
        let text = std::str::from_utf8(&self.body)
            .map_err(|error| Failure::bad_request(error.to_string()))?;
        serde_saphyr::from_str(text)
            .map_err(|error| Failure::bad_request(format!("error decoding YAML: {error}")))
    }

    /// The body as JSON, with errors as Go's decoder words them.
    fn parse(&self) -> Result<Value, String> {
        serde_json::from_slice(&self.body).map_err(|error| {
            if error.is_eof() {
                return "unexpected end of JSON input".to_owned();
            }
            let text = String::from_utf8_lossy(&self.body);
            let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or("");
            let letter = line.chars().nth(error.column().saturating_sub(1)).unwrap_or(' ');
            format!("invalid character '{letter}' looking for beginning of value")
        })
    }
}

/// Longest name of a field manager, in bytes.
const LONGEST_MANAGER: usize = 128;

fn place(path: &str) -> Option<Place> {
    let steps: Vec<String> = path.split('/').filter(|step| !step.is_empty()).map(decode).collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let (group, version, rest) = match steps.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let rest = rest.strip_prefix(&["watch"]).unwrap_or(rest);
    let (namespace, rest) = match rest {
        ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        _ => ("", rest),
    };
    let (plural, rest) = rest.split_first()?;
    let (name, rest) = rest.split_first().map_or(("", rest), |(name, rest)| (*name, rest));
    Some(Place {
        group: group.into(),
        version: version.into(),
        plural: (*plural).into(),
        namespace: namespace.into(),
        name: name.into(),
        subresource: rest.join("/"),
    })
}

fn pairs(query: &str) -> BTreeMap<String, String> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(&name.replace('+', " ")), decode(&value.replace('+', " ")))
        })
        .collect()
}

/// A value of a query, as it is meant.
pub(crate) fn unescaped(value: &str) -> String {
    decode(&value.replace('+', " "))
}

/// Percent-decoding; what is no valid escape stays as it is.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok()))
            .flatten();
        match escape {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
