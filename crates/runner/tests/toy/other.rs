//! A second kind without children, for what several controllers in one process owe to each other.

use phased::ladder::LadderDoc;
use phased::{Controller, KindRef, Live, Observed, Plan, Settings, Trouble, Want, Watch};
use serde_json::Value;

use super::{Timestamp, ToyController, status};

const OTHER: KindRef = KindRef {
    group: "example.net",
    version: "v1",
    kind: "Other",
    plural: "others",
    namespaced: true,
};

pub(crate) const OTHER_CRD: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition", "metadata": {"name": "others.example.net"},
    "spec": {"group": "example.net", "scope": "Namespaced",
        "names": {"kind": "Other", "plural": "others", "singular": "other"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object",
                "x-kubernetes-preserve-unknown-fields": true}}}]}}"#;

/// Is Ready at once.
pub(crate) enum OtherController {}

impl Controller for OtherController {
    type Resource = Value;
    const NAME: &'static str = "other";
    const KIND: KindRef = OTHER;

    fn ladder() -> LadderDoc {
        LadderDoc { kind: "Other", ..ToyController::ladder() }
    }

    fn watches() -> Vec<Watch> {
        Vec::new()
    }

    fn wants(_: &Live) -> Vec<Want> {
        Vec::new()
    }

    fn plan(observed: &Observed<Value>) -> Plan {
        Plan { status: status(&observed.root, "Ready", ""), ..Plan::idle() }
    }

    fn unreadable(root: &Live, error: &str, _: &Settings, _: Timestamp) -> Plan {
        Plan { status: status(root, "Unreadable", error), ..Plan::idle() }
    }

    fn troubled(root: &Live, trouble: &Trouble, _: Timestamp) -> Plan {
        Plan { status: status(root, "Troubled", &trouble.reason), ..Plan::idle() }
    }
}
