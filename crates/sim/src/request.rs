//! From an HTTP request to a typed call: path, verb, query, form of the answer.
//!
//! Only reads the request; `service` decides what becomes of it.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, request::Parts};
use serde_json::Value;

use crate::cluster::{Actor, FieldValidation, Options};
use crate::faults::Asked;
use crate::status::Failure;

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
        match self.method.as_str() {
            "GET" if self.flag("watch") => "watch",
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

    pub(crate) fn options(&self) -> Result<Options, Failure> {
        let field_validation = match self.parameter("fieldValidation") {
            "Strict" => FieldValidation::Strict,
            "Ignore" => FieldValidation::Ignore,
            "" | "Warn" => FieldValidation::Warn,
            other => {
                return Err(Failure::bad_request(format!(
                    "fieldValidation: Unsupported value: \"{other}\": supported values: \"Ignore\", \"Strict\", \"Warn\""
                )));
            }
        };
        Ok(Options { dry_run: self.dry_run(), field_validation })
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

    /// The body as JSON; YAML is accepted as the API server does.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        if self.content_type.contains("protobuf") {
            return crate::protobuf::decode(&self.body)
                .ok_or_else(|| Failure::unsupported_media("application/json, application/yaml"));
        }
        if self.content_type.contains("yaml") {
            let text = std::str::from_utf8(&self.body)
                .map_err(|error| Failure::bad_request(error.to_string()))?;
            return serde_saphyr::from_str(text)
                .map_err(|error| Failure::bad_request(format!("error decoding YAML: {error}")));
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            Failure::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {error}",
                self.place.as_ref().map_or("Object", |place| place.plural.as_str())
            ))
        })
    }
}

fn place(path: &str) -> Option<Place> {
    let steps: Vec<String> = path.split('/').filter(|step| !step.is_empty()).map(decode).collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let (group, version, rest) = match steps.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
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
