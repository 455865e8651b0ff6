//! Volumes of a pod.

use std::collections::BTreeSet;

use super::report::{Node, Report};
use super::{storage, text};
use crate::quantity::Quantity;

/// Checks all volumes; answers their names. The server puts those of the `claims` first.
pub(super) fn check(volumes: &Node<'_>, claims: usize, report: &mut Report) -> Vec<String> {
    let mut names = BTreeSet::new();
    for (index, volume) in volumes.items().enumerate() {
        let path = format!("{}[{}]", volumes.path, index + claims);
        let volume = Node { path, ..volume };
        source(&volume, report);
        let name = volume.field("name");
        if name.is_empty() {
            report.required(&name.path, "");
            continue;
        }
        report.text(&name, text::label(name.text()));
        if !names.insert(name.text()) {
            report.duplicate(&name.path, &name.value.to_string());
        }
    }
    names.into_iter().map(str::to_owned).collect()
}

fn source(volume: &Node<'_>, report: &mut Report) {
    let mut kinds: Vec<&str> = volume
        .entries()
        .filter(|(key, value)| *key != "name" && !value.is_null())
        .map(|(key, _)| key)
        .collect();
    // The server looks at an empty directory first.
    kinds.sort_by_key(|kind| (*kind != "emptyDir", *kind));
    for extra in kinds.iter().skip(1) {
        let path = volume.field(extra).path;
        report.forbidden(&path, "may not specify more than 1 volume type");
    }
    let Some(kind) = kinds.first() else { return };
    let source = volume.field(kind);
    match *kind {
        "emptyDir" => empty(&source, report),
        "hostPath" => host_path(&source, report),
        "secret" => {
            needs(&source, "secretName", report);
            files(&source, report);
        }
        "configMap" => {
            needs(&source, "name", report);
            files(&source, report);
        }
        "persistentVolumeClaim" => needs(&source, "claimName", report),
        "ephemeral" => {
            storage::claim_spec(&source.at("volumeClaimTemplate.spec"), report);
        }
        _ => {}
    }
}

fn needs(source: &Node<'_>, field: &str, report: &mut Report) {
    let name = source.field(field);
    if name.is_empty() {
        report.required(&name.path, "");
    }
}

fn empty(source: &Node<'_>, report: &mut Report) {
    let limit = source.field("sizeLimit");
    if Quantity::parse(limit.text()).is_ok_and(|limit| limit.is_negative()) {
        report.forbidden(&limit.path, "SizeLimit field must be a valid resource quantity");
    }
}

fn host_path(source: &Node<'_>, report: &mut Report) {
    let path = source.field("path");
    if path.is_empty() {
        report.required(&path.path, "");
    } else if let Some(complaint) = text::no_backsteps(path.text()) {
        report.invalid(&path, complaint);
    }
    report.one_of(
        &source.field("type"),
        &[
            "",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ],
    );
}

/// The mode and the items of a source that is a set of files.
fn files(source: &Node<'_>, report: &mut Report) {
    mode(&source.field("defaultMode"), report);
    for item in source.field("items").items() {
        needs(&item, "key", report);
        let path = item.field("path");
        if path.is_empty() {
            report.required(&path.path, "");
        } else if let Some(complaint) = text::inner_path(path.text()) {
            report.invalid(&path, complaint);
        }
        mode(&item.field("mode"), report);
    }
}

fn mode(mode: &Node<'_>, report: &mut Report) {
    if mode.value.as_i64().is_some_and(|bits| !(0..=0o777).contains(&bits)) {
        report.invalid(mode, "must be a number between 0 and 0777 (octal), both inclusive");
    }
}
