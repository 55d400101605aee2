//! The trees that the leaves of spaces form.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// The most levels of a tree, the root included.
pub(super) const MAX_LEVELS: usize = 64;

/// The tree that the leaves of a [`Space`](crate::Space) form. Each leaf is in it once.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// The leaf with this number.
    Leaf(usize),
    /// Named branches, in order. A key is any text.
    Dict(Vec<(String, Tree)>),
    /// Branches by position.
    Tuple(Vec<Tree>),
}

/// A node of a tree in the form of a list, in which every node comes before the nodes
/// below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Node {
    /// The node's key where the node above it is a dict; else empty.
    pub(crate) key: String,
    pub(crate) kind: NodeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum NodeKind {
    /// The leaf with this number.
    Leaf(usize),
    /// A dict with this number of branches.
    Dict(usize),
    /// A tuple with this number of branches.
    Tuple(usize),
}

impl Tree {
    /// Inserts `leaf` under the keys of `name`. A `.` with text on both sides separates the
    /// keys. A name with any other dot is one key.
    pub(super) fn insert(branches: &mut Vec<(String, Tree)>, name: &str, leaf: usize) {
        let is_path = name.split('.').all(|key| !key.is_empty());
        let mut branches = branches;
        let mut rest = name;
        while let Some((key, inner)) = rest.split_once('.').filter(|_| is_path) {
            let is_dict = |(k, branch): &(String, Tree)| k == key && matches!(branch, Tree::Dict(_));
            let at = branches.iter().position(is_dict).unwrap_or_else(|| {
                branches.push((key.into(), Tree::Dict(Vec::new())));
                branches.len() - 1
            });
            let Tree::Dict(under) = &mut branches[at].1 else { unreachable!("a dict was looked for") };
            (branches, rest) = (under, inner);
        }
        branches.push((rest.into(), Tree::Leaf(leaf)));
    }

    /// The same tree with `first` added to the numbers of its leaves.
    pub(super) fn shifted(self, first: usize) -> Self {
        match self {
            Tree::Leaf(leaf) => Tree::Leaf(leaf + first),
            Tree::Dict(branches) => {
                Tree::Dict(branches.into_iter().map(|(key, branch)| (key, branch.shifted(first))).collect())
            }
            Tree::Tuple(branches) => {
                Tree::Tuple(branches.into_iter().map(|branch| branch.shifted(first)).collect())
            }
        }
    }

    /// Adds the branches of `others`. Dicts under the same key become one.
    pub(super) fn merge(branches: &mut Vec<(String, Tree)>, others: Vec<(String, Tree)>) {
        for (key, other) in others {
            let same = branches.iter_mut().find(|(k, _)| *k == key);
            match (same, other) {
                (Some((_, Tree::Dict(inner))), Tree::Dict(others)) => Tree::merge(inner, others),
                // The check of the space finds keys that are duplicate.
                (_, other) => branches.push((key, other)),
            }
        }
    }

    /// Calls `each` with every leaf's number and its keys, written with dots.
    pub(super) fn visit(&self, path: &str, each: &mut impl FnMut(usize, &str)) {
        let inner = |key: &str| {
            let key = if key.is_empty() { "\"\"" } else { key };
            if path.is_empty() { key.into() } else { format!("{path}.{key}") }
        };
        match self {
            Tree::Leaf(leaf) => each(*leaf, path),
            Tree::Dict(branches) => {
                branches.iter().for_each(|(key, branch)| branch.visit(&inner(key), each));
            }
            Tree::Tuple(branches) => {
                let numbered = branches.iter().enumerate();
                numbered.for_each(|(k, branch)| branch.visit(&inner(&k.to_string()), each));
            }
        }
    }

    /// Calls `each` with every leaf's number.
    pub(crate) fn leaves(&self, each: &mut impl FnMut(usize)) {
        self.visit("", &mut |leaf, _| each(leaf));
    }

    /// The number of the first leaf in the tree.
    fn first(&self) -> Option<usize> {
        match self {
            Tree::Leaf(leaf) => Some(*leaf),
            Tree::Dict(branches) => branches.iter().find_map(|(_, branch)| branch.first()),
            Tree::Tuple(branches) => branches.iter().find_map(Tree::first),
        }
    }

    /// The number of levels from this tree's root on.
    pub(super) fn levels(&self) -> usize {
        let deepest = match self {
            Tree::Leaf(_) => None,
            Tree::Dict(branches) => branches.iter().map(|(_, branch)| branch.levels()).max(),
            Tree::Tuple(branches) => branches.iter().map(Tree::levels).max(),
        };
        1 + deepest.unwrap_or(0)
    }

    /// Two leaves with the same keys, or of which one's keys are the beginning of the other's;
    /// the later leaf comes first.
    pub(super) fn clash(&self) -> Option<(usize, usize)> {
        match self {
            Tree::Leaf(_) => None,
            Tree::Tuple(branches) => branches.iter().find_map(Tree::clash),
            Tree::Dict(branches) => {
                let mut seen: HashMap<&str, &Tree> = HashMap::new();
                branches.iter().find_map(|(key, branch)| {
                    let earlier = seen.insert(key, branch);
                    branch.clash().or_else(|| Some((branch.first()?, earlier?.first()?)))
                })
            }
        }
    }

    /// The tree's nodes, each before the nodes below it.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        self.push_nodes(String::new(), &mut nodes);
        nodes
    }

    fn push_nodes(&self, key: String, nodes: &mut Vec<Node>) {
        let kind = match self {
            Tree::Leaf(leaf) => NodeKind::Leaf(*leaf),
            Tree::Dict(branches) => NodeKind::Dict(branches.len()),
            Tree::Tuple(branches) => NodeKind::Tuple(branches.len()),
        };
        nodes.push(Node { key, kind });
        match self {
            Tree::Leaf(_) => {}
            Tree::Dict(branches) => {
                branches.iter().for_each(|(key, branch)| branch.push_nodes(key.clone(), nodes));
            }
            Tree::Tuple(branches) => {
                branches.iter().for_each(|branch| branch.push_nodes(String::new(), nodes));
            }
        }
    }

    /// The tree that `nodes` list.
    ///
    /// # Errors
    /// What is wrong with `nodes`.
    pub(crate) fn from_nodes(nodes: Vec<Node>) -> Result<Self, String> {
        let mut nodes = nodes.into_iter();
        let (_, tree) = Tree::read(&mut nodes, 1)?;
        match nodes.len() {
            0 => Ok(tree),
            more => Err(format!("{more} nodes of its tree are under no other")),
        }
    }

    fn read(nodes: &mut impl Iterator<Item = Node>, level: usize) -> Result<(String, Tree), String> {
        if level > MAX_LEVELS {
            return Err(too_deep());
        }
        let Some(Node { key, kind }) = nodes.next() else {
            return Err("its tree ends before all its branches are there".into());
        };
        let tree = match kind {
            NodeKind::Leaf(leaf) => Tree::Leaf(leaf),
            NodeKind::Dict(count) => {
                Tree::Dict((0..count).map(|_| Tree::read(nodes, level + 1)).collect::<Result<_, _>>()?)
            }
            NodeKind::Tuple(count) => {
                let branch = |_| Tree::read(nodes, level + 1).map(|(_, tree)| tree);
                Tree::Tuple((0..count).map(branch).collect::<Result<_, _>>()?)
            }
        };
        Ok((key, tree))
    }
}

pub(super) fn too_deep() -> String {
    format!("its tree has more than {MAX_LEVELS} levels")
}
