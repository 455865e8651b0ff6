//! Access reviews and the question who one is. Nobody is refused unless a fault rule denies.

use serde_json::{Value, json};

use crate::cluster::Core;
use crate::faults::Asked;
use crate::reply::Reply;
use crate::request::{Call, Place};
use crate::status::Failure;

/// Answers a review; none when the path names something else.
pub(super) fn serve(
    core: &Core,
    call: &Call,
    place: &Place,
    user: &str,
) -> Result<Option<Reply>, Failure> {
    let answer: fn(&Core, &Call, &str, &mut Value) =
        match (place.group.as_str(), place.plural.as_str()) {
            ("authorization.k8s.io", "selfsubjectaccessreviews" | "subjectaccessreviews") => access,
            ("authorization.k8s.io", "selfsubjectrulesreviews") => rules,
            ("authentication.k8s.io", "selfsubjectreviews") => identity,
            _ => return Ok(None),
        };
    if call.verb() != "create" {
        return Err(Failure::method_not_allowed());
    }
    let mut review = call.json("SelfSubjectAccessReview")?;
    answer(core, call, user, &mut review);
    Ok(Some(Reply::Json { code: 201, value: review }))
}

fn access(core: &Core, call: &Call, user: &str, review: &mut Value) {
    let wanted = &review["spec"]["resourceAttributes"];
    let text = |field: &str| wanted[field].as_str().unwrap_or("").to_owned();
    let verb = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
        .into_iter()
        .find(|verb| *verb == text("verb"))
        .unwrap_or("other");
    let asked = Asked {
        verb,
        group: text("group"),
        plural: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        client: review["spec"]["user"].as_str().unwrap_or(user).to_owned(),
        agent: call.agent.clone(),
    };
    review["status"] = match core.faults.denies(&asked) {
        true => json!({ "allowed": false, "reason": "denied by a fault rule" }),
        false => json!({ "allowed": true }),
    };
}

fn rules(_core: &Core, _call: &Call, _user: &str, review: &mut Value) {
    let all = json!(["*"]);
    review["status"] = json!({
        "incomplete": false, "nonResourceRules": [],
        "resourceRules": [{ "verbs": all, "apiGroups": all, "resources": all }],
    });
}

fn identity(_core: &Core, _call: &Call, user: &str, review: &mut Value) {
    review["status"] =
        json!({ "userInfo": { "username": user, "groups": ["system:authenticated"] } });
}
