//! The built-in kinds, one row each.
//!
//! Facts only: names, scope and subresources as Kubernetes 1.36 serves them.

use super::{Kind, ScalePaths, built_in_schema};

/// One built-in kind: group, version, kind, plural, short names, flags.
///
/// Flags: `n` namespaced, `s` status, `r` scale, `g` generation, `a` category `all`,
/// `v` an update must name its resourceVersion.
pub(super) type Row =
    (&'static str, &'static str, &'static str, &'static str, &'static [&'static str], &'static str);

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    ("", "v1", "ConfigMap", "configmaps", &["cm"], "n"),
    ("", "v1", "Event", "events", &["ev"], "n"),
    ("", "v1", "LimitRange", "limitranges", &["limits"], "n"),
    ("", "v1", "Namespace", "namespaces", &["ns"], "s"),
    ("", "v1", "Node", "nodes", &["no"], "s"),
    ("", "v1", "PersistentVolume", "persistentvolumes", &["pv"], "s"),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", &["pvc"], "ns"),
    ("", "v1", "Pod", "pods", &["po"], "nsga"),
    ("", "v1", "PodTemplate", "podtemplates", &[], "n"),
    ("", "v1", "ReplicationController", "replicationcontrollers", &["rc"], "nsga"),
    ("", "v1", "ResourceQuota", "resourcequotas", &["quota"], "ns"),
    ("", "v1", "Secret", "secrets", &[], "n"),
    ("", "v1", "Service", "services", &["svc"], "nsa"),
    ("", "v1", "ServiceAccount", "serviceaccounts", &["sa"], "n"),
    ("", "v1", "Endpoints", "endpoints", &["ep"], "n"),
    ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", &[], "g"),
    ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", &[], "g"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", &["crd", "crds"], "sgv"),
    ("apps", "v1", "ControllerRevision", "controllerrevisions", &[], "n"),
    ("apps", "v1", "DaemonSet", "daemonsets", &["ds"], "nsga"),
    ("apps", "v1", "Deployment", "deployments", &["deploy"], "nsrga"),
    ("apps", "v1", "ReplicaSet", "replicasets", &["rs"], "nsrga"),
    ("apps", "v1", "StatefulSet", "statefulsets", &["sts"], "nsrga"),
    ("coordination.k8s.io", "v1", "Lease", "leases", &[], "nv"),
    ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", &[], "ng"),
    ("events.k8s.io", "v1", "Event", "events", &["ev"], "n"),
    ("networking.k8s.io", "v1", "Ingress", "ingresses", &["ing"], "nsg"),
    ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", &["netpol"], "ng"),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", &["pdb"], "nsgv"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", &[], ""),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", &[], ""),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles", &[], "n"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", &[], "n"),
    ("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", &["pc"], "g"),
    ("storage.k8s.io", "v1", "CSIDriver", "csidrivers", &[], ""),
    ("storage.k8s.io", "v1", "CSINode", "csinodes", &[], ""),
    ("storage.k8s.io", "v1", "StorageClass", "storageclasses", &["sc"], ""),
    ("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", &[], "s"),
];

/// The kind that a row describes.
pub(super) fn kind(row: &Row) -> Kind {
    let (group, version, name, plural, short_names, flags) = *row;
    let scale = flags.contains('r').then(|| ScalePaths {
        spec_replicas: ".spec.replicas".into(),
        status_replicas: ".status.replicas".into(),
        selector: Some(".spec.selector".into()),
    });
    Kind {
        group: group.into(),
        version: version.into(),
        kind: name.into(),
        plural: plural.into(),
        singular: name.to_lowercase(),
        short_names: short_names.iter().map(|&name| name.into()).collect(),
        categories: if flags.contains('a') { vec!["all".into()] } else { Vec::new() },
        namespaced: flags.contains('n'),
        status: flags.contains('s'),
        scale,
        schema: built_in_schema(group, version, name),
        columns: Vec::new(),
        custom: false,
        selectable: Vec::new(),
        compiled: None,
        generation: flags.contains('g'),
        unconditional_update: !flags.contains('v'),
    }
}
