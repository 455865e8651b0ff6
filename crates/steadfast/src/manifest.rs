//! Documents from files, folders and standard input, each with where it came from.
//!
//! Must not know any kind.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use foresight::mistake::Mistake;
use serde_json::Value;

use crate::args::foresight::Manifests;

/// Endings of files that a folder is searched for.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// A document.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The object.
    pub value: Value,
    /// The file, and which document in it.
    pub source: String,
}

/// Reads everything that is named, in order.
///
/// # Errors
/// When something cannot be read, or is no Kubernetes object.
pub fn read(manifests: &Manifests) -> Result<Vec<Document>, Mistake> {
    let mut documents = Vec::new();
    for path in &manifests.files {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|error| {
                Mistake::new(
                    format!("Standard input cannot be read: {error}."),
                    "Pipe YAML into it.",
                )
            })?;
            documents.extend(parse(&text, "stdin")?);
            continue;
        }
        for file in files(path, manifests.recursive, true)? {
            let text = std::fs::read_to_string(&file).map_err(|error| unreadable(&file, &error))?;
            documents.extend(parse(&text, &file.display().to_string())?);
        }
    }
    if documents.is_empty() {
        return Err(Mistake::new(
            "There is no document in what -f names.",
            "Name a file with at least one object.",
        ));
    }
    Ok(documents)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Mistake {
    let next = match error.kind() {
        std::io::ErrorKind::NotFound => "Check the name after -f; `-` means standard input.",
        std::io::ErrorKind::PermissionDenied => {
            "Ask for permission to read it (`ls -l` shows who may)."
        }
        std::io::ErrorKind::InvalidData => "Save it as UTF-8 text.",
        _ => "Check the file.",
    };
    let why = match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::InvalidData => "it is not text".to_owned(),
        _ => error.to_string(),
    };
    Mistake::new(format!("{} cannot be read: {why}.", path.display()), next)
}

/// A file, or the manifests of a folder in the order of their names.
fn files(path: &Path, recursive: bool, named: bool) -> Result<Vec<PathBuf>, Mistake> {
    let url = path.to_str().is_some_and(|text| text.starts_with("http"));
    if url && !path.exists() {
        return Err(Mistake::new(
            format!("{} is an address, and only files are read.", path.display()),
            "Fetch it first, or pipe it: curl -fsSL … | steadfast plan -f -",
        ));
    }
    let about = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if !about.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).map_err(|error| unreadable(path, &error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for one in paths {
        if one.is_dir() {
            if recursive {
                found.extend(files(&one, true, false)?);
            }
        } else if one.extension().and_then(|e| e.to_str()).is_some_and(|e| ENDINGS.contains(&e)) {
            found.push(one);
        }
    }
    if named && found.is_empty() {
        return Err(Mistake::new(
            format!("Folder {} holds no .yaml, .yml or .json file.", path.display()),
            "Name another folder, or add -R to look into folders below.",
        ));
    }
    Ok(found)
}

fn parse(text: &str, file: &str) -> Result<Vec<Document>, Mistake> {
    let parsed: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        let error = error.to_string();
        let first = error.lines().next().unwrap_or_default().trim_end_matches('.');
        Mistake::new(format!("{file} is not YAML: {first}."), "Correct the line that is named.")
    })?;
    let several = parsed.iter().filter(|value| !value.is_null()).count() > 1;
    let mut documents = Vec::new();
    for (index, value) in parsed.into_iter().filter(|value| !value.is_null()).enumerate() {
        let source = if several { format!("{file}#{}", index + 1) } else { file.to_owned() };
        expand(value, source, &mut documents)?;
    }
    Ok(documents)
}

/// A List stands for its items.
fn expand(value: Value, source: String, documents: &mut Vec<Document>) -> Result<(), Mistake> {
    let kind = value["kind"].as_str().unwrap_or_default();
    if kind.ends_with("List")
        && let Some(items) = value["items"].as_array()
    {
        for (index, item) in items.iter().enumerate() {
            expand(item.clone(), format!("{source}[{index}]"), documents)?;
        }
        return Ok(());
    }
    let lacks = |field: &str| {
        let mut node = &value;
        for part in field.split('.') {
            node = &node[part];
        }
        node.as_str().is_none_or(str::is_empty)
    };
    if let Some(field) = ["apiVersion", "kind", "metadata.name"].into_iter().find(|f| lacks(f)) {
        return Err(Mistake::new(
            format!("{source} is no Kubernetes object: it lacks {field}."),
            "Add it, or take the document out.",
        ));
    }
    documents.push(Document { value, source });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        match parse(text, "a.yaml") {
            Ok(documents) => {
                let all: Vec<String> = documents.into_iter().map(|one| one.source).collect();
                all.join(" ")
            }
            Err(mistake) => mistake.to_string(),
        }
    }

    #[test]
    fn documents_and_items_of_lists_are_counted() {
        let one = "apiVersion: v1\nkind: X\nmetadata: {name: a}\n";
        assert_eq!(told(one), "a.yaml");
        assert_eq!(told(&format!("{one}---\n---\n{one}")), "a.yaml#1 a.yaml#2");
        let list =
            "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: X, metadata: {name: a}}]";
        assert_eq!(told(list), "a.yaml[0]");
    }

    #[test]
    fn what_is_no_object_is_named_with_what_it_lacks() {
        assert!(told("apiVersion: v1\nkind: X\n").contains("lacks metadata.name"));
        assert!(told("just text").contains("lacks apiVersion"));
        assert!(told("a: [1,\nb: }").starts_with("a.yaml is not YAML: "));
    }
}
