//! Nodes with their data and versions, as one server holds them.
//!
//! Must not know of other servers. The configuration of the ensemble is no node of this tree.

use std::collections::BTreeMap;

use super::{BAD_ARGUMENTS, BAD_VERSION, NO_NODE, NODE_EXISTS, NOT_EMPTY};

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) data: Vec<u8>,
    /// Transaction that made it, and the one that last changed its data.
    pub(super) made: i64,
    pub(super) changed: i64,
    /// Version of the data, and of the list of children.
    pub(super) version: i32,
    pub(super) children_version: i32,
}

/// All nodes, by path. The root is always there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    nodes: BTreeMap<String, Node>,
}

impl Default for Tree {
    fn default() -> Self {
        let fixed = ["/", "/zookeeper", "/zookeeper/quota"];
        Self { nodes: fixed.map(|path| (path.to_owned(), Node::default())).into() }
    }
}

/// A change of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Create { path: String, data: Vec<u8> },
    Write { path: String, data: Vec<u8>, version: i32 },
    Delete { path: String, version: i32 },
}

fn parent(path: &str) -> Option<&str> {
    match path.rsplit_once('/')? {
        ("", "") => None,
        ("", _) => Some("/"),
        (parent, _) => Some(parent),
    }
}

fn is_path(path: &str) -> bool {
    path == "/"
        || path.starts_with('/')
            && path.split('/').skip(1).all(|part| !matches!(part, "" | "." | ".."))
}

impl Tree {
    pub(super) fn node(&self, path: &str) -> Option<&Node> {
        self.nodes.get(path)
    }

    /// Names of the children of a node.
    pub(super) fn children(&self, path: &str) -> Vec<&str> {
        let below = self.nodes.keys().filter(|key| parent(key) == Some(path));
        below.filter_map(|key| key.rsplit('/').next()).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Carries out a change under the number of its transaction.
    pub(super) fn apply(&mut self, change: &Change, transaction: i64) -> Result<(), i32> {
        match change {
            Change::Create { path, data } => self.create(path, data, transaction),
            Change::Write { path, data, version } => {
                let node = self.guarded(path, *version)?;
                node.data.clone_from(data);
                node.version += 1;
                node.changed = transaction;
                Ok(())
            }
            Change::Delete { path, version } => {
                self.guarded(path, *version)?;
                if path == "/" || !self.children(path).is_empty() {
                    return Err(NOT_EMPTY);
                }
                self.nodes.remove(path);
                self.touch_parent(path);
                Ok(())
            }
        }
    }

    fn create(&mut self, path: &str, data: &[u8], transaction: i64) -> Result<(), i32> {
        if !is_path(path) {
            return Err(BAD_ARGUMENTS);
        }
        if self.nodes.contains_key(path) {
            return Err(NODE_EXISTS);
        }
        if parent(path).is_none_or(|parent| !self.nodes.contains_key(parent)) {
            return Err(NO_NODE);
        }
        let node = Node {
            data: data.to_vec(),
            made: transaction,
            changed: transaction,
            ..Node::default()
        };
        self.nodes.insert(path.to_owned(), node);
        self.touch_parent(path);
        Ok(())
    }

    fn guarded(&mut self, path: &str, version: i32) -> Result<&mut Node, i32> {
        let node = self.nodes.get_mut(path).ok_or(NO_NODE)?;
        if version != -1 && version != node.version { Err(BAD_VERSION) } else { Ok(node) }
    }

    fn touch_parent(&mut self, path: &str) {
        if let Some(parent) = parent(path).and_then(|parent| self.nodes.get_mut(parent)) {
            parent.children_version += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(path: &str) -> Change {
        Change::Create { path: path.to_owned(), data: b"x".to_vec() }
    }

    fn write(path: &str, version: i32) -> Change {
        Change::Write { path: path.to_owned(), data: b"y".to_vec(), version }
    }

    #[test]
    fn nodes_are_made_below_what_exists_and_written_with_their_version() {
        let mut tree = Tree::default();
        assert_eq!(tree.apply(&create("/a/b"), 1), Err(NO_NODE));
        assert_eq!(tree.apply(&create("/a"), 1), Ok(()));
        assert_eq!(tree.apply(&create("/a"), 2), Err(NODE_EXISTS));
        assert_eq!(tree.apply(&create("/a/b"), 2), Ok(()));
        assert_eq!(tree.apply(&write("/a/b", 1), 3), Err(BAD_VERSION));
        assert_eq!(tree.apply(&write("/a/b", 0), 3), Ok(()));
        assert_eq!(tree.apply(&write("/a/b", -1), 4), Ok(()));
        let node = tree.node("/a/b").cloned().unwrap_or_default();
        assert_eq!((node.version, node.made, node.changed), (2, 2, 4));
        let delete = Change::Delete { path: "/a".into(), version: -1 };
        assert_eq!(tree.apply(&delete, 5), Err(NOT_EMPTY));
        assert_eq!(tree.children("/a"), ["b"]);
        assert_eq!(tree.children("/"), ["a", "zookeeper"]);
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for path in ["", "a", "/a/", "//a", "/../a"] {
            assert_eq!(Tree::default().apply(&create(path), 1), Err(BAD_ARGUMENTS), "{path}");
        }
    }
}
