//! The three Secrets: made once with generated passwords, kept, and their derived keys followed.
//!
//! A plan never holds a password: it asks the runner to generate one, or names the key. Reading a
//! password here serves only to judge it and to compare derived keys (reference/database.md
//! section 4).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use phased::child::{Desired, Drift};
use phased::compare::Path;
use phased::fact::SecretKey;
use phased::step::{self, CreateOnce, Derive, Generate, Step, TextPiece};
use phased::{Live, ownership};
use serde_json::{Value, json};

use super::blueprint::Blueprint;
use super::labels::RESOURCE_UID_ANNOTATION;
use super::names::{Names, PORT};

/// Key of every Secret's password.
pub const PASSWORD_KEY: &str = "password";
/// Role of the operator inside the server.
pub const SUPERUSER_ROLE: &str = "postgres";
/// Role of standbys.
pub const REPLICATION_ROLE: &str = "steadfast_replication";
/// Characters of a generated password.
const PASSWORD_LENGTH: usize = 32;
/// Type of the application's Secret.
const BINDING_TYPE: &str = "servicebinding.io/postgresql";

/// Names the password of the application's role.
pub fn credentials_password(names: &Names) -> SecretKey {
    password_key(&names.namespace, names.credentials_secret().name)
}

/// Names the password of the superuser.
pub fn superuser_password(names: &Names) -> SecretKey {
    password_key(&names.namespace, names.superuser_secret().name)
}

/// Names the password of the role of standbys.
pub fn replication_password(names: &Names) -> SecretKey {
    password_key(&names.namespace, names.replication_secret().name)
}

fn password_key(namespace: &str, name: String) -> SecretKey {
    SecretKey { namespace: namespace.to_owned(), name, key: PASSWORD_KEY.to_owned() }
}

/// The superuser's Secret, without its data.
pub fn superuser(blueprint: &Blueprint) -> Desired {
    kept(blueprint, blueprint.names.superuser_secret())
}

/// The replication role's Secret, without its data.
pub fn replication(blueprint: &Blueprint) -> Desired {
    kept(blueprint, blueprint.names.replication_secret())
}

/// The application's Secret, without its data.
pub fn credentials(blueprint: &Blueprint) -> Desired {
    blueprint.owned(blueprint.names.credentials_secret(), json!({"type": BINDING_TYPE}))
}

/// A Secret that outlives the Database: it says by annotation whose it is.
fn kept(blueprint: &Blueprint, id: phased::ObjectId) -> Desired {
    let annotations = json!({RESOURCE_UID_ANNOTATION: blueprint.uid});
    blueprint.kept(id, json!({"type": "Opaque", "metadata": {"annotations": annotations}}))
}

/// A key of a Secret that follows from the spec and the password, and its text in parts.
pub type Derived = (String, Vec<TextPiece>);

/// The keys of the Secret of a role of ours that follow from what it is for.
pub fn derived_of_role(role: &str) -> Vec<Derived> {
    vec![("username".to_owned(), vec![TextPiece::Plain(role.to_owned())])]
}

/// Makes a Secret with a fresh password and the keys that follow from it.
pub fn create(desired: &Desired, keys: &[Derived]) -> Step {
    let texts = keys.iter().cloned().map(|(key, pieces)| Generate::Text { key, pieces });
    Step::CreateOnce(CreateOnce {
        id: desired.id.clone(),
        template: desired.sealed(),
        generate: [password()].into_iter().chain(texts).collect(),
        why: "missing".to_owned(),
    })
}

fn password() -> Generate {
    Generate::Password { key: PASSWORD_KEY.to_owned(), length: PASSWORD_LENGTH }
}

/// The keys of the application's Secret that follow from the spec and the password, in the order of
/// their names.
pub fn derived(blueprint: &Blueprint) -> Vec<Derived> {
    let valid = &blueprint.valid;
    let host = blueprint.names.host(&blueprint.cluster_domain);
    let plain = |text: String| vec![TextPiece::Plain(text)];
    let encoded = |text: &str| step::encoded(text.as_bytes());
    let secret = || TextPiece::Generated(PASSWORD_KEY.to_owned());
    let (database, username) = (encoded(&valid.database), encoded(&valid.username));
    let uri = vec![
        TextPiece::Plain(format!("postgresql://{username}:")),
        secret(),
        TextPiece::Plain(format!("@{host}:{PORT}/{database}")),
    ];
    let jdbc = vec![
        TextPiece::Plain(format!(
            "jdbc:postgresql://{host}:{PORT}/{database}?user={username}&password="
        )),
        secret(),
    ];
    [
        ("database", plain(valid.database.clone())),
        ("host", plain(host)),
        ("jdbc-uri", jdbc),
        ("port", plain(PORT.to_string())),
        ("uri", uri),
        ("username", plain(valid.username.clone())),
    ]
    .map(|(key, pieces)| (key.to_owned(), pieces))
    .into()
}

/// Brings our own Secret up to date, when its derived keys or (`outdated`) its metadata are not; and
/// which of those keys somebody else changed.
pub fn follow(
    live: &Live,
    desired: &Desired,
    keys: Vec<Derived>,
    outdated: bool,
) -> Option<(Step, Vec<Drift>)> {
    let password = utf8(live, PASSWORD_KEY)?;
    let is_stale = |(key, pieces): &&Derived| {
        let wanted = step::text(pieces, |_| Some(password.clone().into_bytes()));
        utf8(live, key) != Some(wanted)
    };
    let stale: Vec<&str> = keys.iter().filter(is_stale).map(|(key, _)| key.as_str()).collect();
    let why = match (stale.is_empty(), outdated) {
        (true, false) => return None,
        (true, true) => "its metadata differ".to_owned(),
        (false, _) => format!("{} to follow the password and the spec", stale.join(", ")),
    };
    let drifts = stale.into_iter().filter_map(|key| drift(live, key)).collect();
    let (id, intent) = (desired.id.clone(), desired.sealed());
    Some((Step::Derive(Derive { id, uid: live.uid().to_owned(), intent, keys, why }), drifts))
}

/// Who changed a derived key, if it was not the password or the spec that did. A key that is gone was
/// taken away by somebody of whom nothing is recorded.
fn drift(live: &Live, key: &str) -> Option<Drift> {
    let path = Path::default().field("data").field(key);
    let manager = match live.value.pointer(&format!("/data/{key}")) {
        Some(_) => ownership::holder(live, &path, super::MANAGER)?,
        None => "unknown".to_owned(),
    };
    Some(Drift { field: path.spelled(&live.value), manager })
}

/// When the data of a Secret were last written, as its managers tell.
pub fn data_written_at(live: &Live) -> Option<jiff::Timestamp> {
    let managers = live.metadata.managed_fields.iter().flatten();
    managers
        .filter(|entry| entry.fields_v1.as_ref().is_some_and(|f| f.0.get("f:data").is_some()))
        .filter_map(|entry| entry.time.as_ref().map(|time| time.0))
        .max()
}

/// What a password is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It can be used.
    Usable,
    /// The key is absent.
    Absent,
    /// The key is there, and empty.
    Empty,
    /// It cannot be used; the words follow "the password ".
    Unusable(&'static str),
}

/// Judges the password of a Secret (field case C-09, fault catalogue PG-49).
pub fn judge(live: &Live) -> Judged {
    let Some(encoded) = live.value["data"][PASSWORD_KEY].as_str() else { return Judged::Absent };
    let Ok(bytes) = STANDARD.decode(encoded) else {
        return Judged::Unusable("is not readable");
    };
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return Judged::Unusable("is not UTF-8 text");
    };
    match text {
        "" => Judged::Empty,
        t if t.ends_with('\n') => Judged::Unusable("ends with a line feed"),
        t if t.ends_with('\r') => Judged::Unusable("ends with a carriage return"),
        t if t.chars().any(char::is_control) => Judged::Unusable("holds a control character"),
        t if t.len() > 512 => Judged::Unusable("is longer than 512 bytes"),
        _ => Judged::Usable,
    }
}

fn utf8(live: &Live, key: &str) -> Option<String> {
    let encoded = live.value.get("data").and_then(|d| d.get(key)).and_then(Value::as_str)?;
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}
