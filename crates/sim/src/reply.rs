//! Answers on the wire: whole objects, their metadata, lists, tables, headers and bodies.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use crate::kind::Kind;
use crate::request::{Form, RowObject};
use crate::status::Failure;
use crate::table;
use crate::verbs::Listing;

/// The connection broke: nothing was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("connection to the simulated API server broke: {0}")]
pub struct Broken(pub &'static str);

/// Body of every answer.
pub type ReplyBody = UnsyncBoxBody<Bytes, Broken>;

/// What a request is answered.
pub(crate) enum Reply {
    /// A JSON document.
    Json { code: u16, value: Value },
    /// Plain text.
    Text(String),
    /// The page that answers paths outside every API.
    NoPage,
    /// A discovery document, with the content type that was asked for.
    Typed { value: Value, content_type: String },
    /// A stream of watch events.
    Watch(Box<crate::watch::WatchPlan>),
}

impl Reply {
    pub(crate) fn ok(value: Value) -> Reply {
        Reply::Json { code: 200, value }
    }
}

/// One object in the form that was asked for.
pub(crate) fn object(kind: &Kind, form: Form, object: Value, now: jiff::Timestamp) -> Value {
    match form {
        Form::Whole => object,
        Form::Metadata => metadata_only(&object),
        Form::Table(row) => {
            let version = object["metadata"]["resourceVersion"].clone();
            let mut table = table::of(kind, &[object], row, now);
            table["metadata"] = json!({ "resourceVersion": version });
            table
        }
    }
}

/// `PartialObjectMetadata` of an object.
pub(crate) fn metadata_only(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

/// What a table row carries of its object.
pub(crate) fn row_object(row: RowObject, object: &Value) -> Option<Value> {
    match row {
        RowObject::None => None,
        RowObject::Metadata => Some(metadata_only(object)),
        RowObject::Object => Some(object.clone()),
    }
}

/// One page of a list in the form that was asked for.
pub(crate) fn list(kind: &Kind, form: Form, listing: Listing, now: jiff::Timestamp) -> Value {
    let mut metadata = json!({ "resourceVersion": listing.version.to_string() });
    if kind.custom && form == Form::Whole {
        // Custom resources are untyped in the server, and so an empty token is not left out.
        metadata["continue"] = json!("");
    }
    if let Some(token) = listing.token {
        metadata["continue"] = json!(token);
    }
    if let Some(remaining) = listing.remaining {
        metadata["remainingItemCount"] = json!(remaining);
    }
    match form {
        Form::Whole => {
            let mut items = listing.items;
            if !kind.custom {
                items.iter_mut().filter_map(Value::as_object_mut).for_each(|item| {
                    item.remove("apiVersion");
                    item.remove("kind");
                });
            }
            json!({
                "kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(),
                "metadata": metadata, "items": items,
            })
        }
        Form::Metadata => {
            let items: Vec<Value> = listing.items.iter().map(metadata_only).collect();
            json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata, "items": items,
            })
        }
        Form::Table(row) => {
            let mut table = table::of(kind, &listing.items, row, now);
            table["metadata"] = metadata;
            table
        }
    }
}

fn full(bytes: Vec<u8>) -> ReplyBody {
    Full::new(Bytes::from(bytes)).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// A response with a JSON body.
pub(crate) fn json(code: u16, content_type: &str, value: &Value) -> Response<ReplyBody> {
    let mut response = Response::new(full(value.to_string().into_bytes()));
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    if let Ok(value) = HeaderValue::from_str(content_type) {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    response
}

/// A response with plain text.
pub(crate) fn text(text: &str) -> Response<ReplyBody> {
    let mut response = Response::new(full(text.as_bytes().to_vec()));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// What Go's HTTP server answers to a path that nobody serves.
pub(crate) fn no_page() -> Response<ReplyBody> {
    let mut response = text("404 page not found\n");
    *response.status_mut() = http::StatusCode::NOT_FOUND;
    response
}

/// A response that refuses.
pub(crate) fn refusal(failure: &Failure) -> Response<ReplyBody> {
    let mut response = json(failure.code, "application/json", &failure.to_status());
    let seconds = failure.details.as_ref().and_then(|d| d["retryAfterSeconds"].as_u64());
    if let Some(seconds) = seconds {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Adds `Warning` headers, as RFC 7234 and the API server write them.
pub(crate) fn warn(response: &mut Response<ReplyBody>, warnings: &[String]) {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}
