//! Spaces, which are leaves in a tree.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::space::leaf::Leaf;
use crate::space::tree::{MAX_LEVELS, Node, Tree, too_deep};

/// Ordered leaves, and the [`Tree`] that the leaves form.
///
/// A space of one unnamed leaf is that leaf (Gymnasium's `Box`, `Discrete`, …).
/// Any other is a struct (`Dict`) or a tuple (`Tuple`) of spaces.
///
/// ```
/// use envcore::{Leaf, Space};
/// let space = Space::of([
///     Leaf::image(&[64, 64, 3]).named("pixels"),
///     Leaf::real::<f32>(&[2]).bounded(-1.0, 1.0).named("body.velocity"),
/// ]);
/// assert_eq!(space.leaves()[1].name, "body.velocity");
/// let pair = Space::tuple([Leaf::discrete(3).into(), space]);
/// assert_eq!(pair.leaves()[2].name, "1.body.velocity");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PackedSpace", into = "PackedSpace")]
pub struct Space {
    leaves: Vec<Leaf>,
    tree: Tree,
}

/// A space in its saved form, from which a tree of any depth can be read without unbounded
/// recursion.
#[derive(Serialize, Deserialize)]
struct PackedSpace {
    leaves: Vec<Leaf>,
    nodes: Vec<Node>,
}

impl From<Space> for PackedSpace {
    fn from(space: Space) -> Self {
        PackedSpace { nodes: space.tree.nodes(), leaves: space.leaves }
    }
}

impl TryFrom<PackedSpace> for Space {
    type Error = String;

    fn try_from(packed: PackedSpace) -> Result<Self, String> {
        Ok(Space { leaves: packed.leaves, tree: Tree::from_nodes(packed.nodes)? })
    }
}

impl Default for Space {
    fn default() -> Self {
        Space::empty()
    }
}

impl From<Leaf> for Space {
    fn from(leaf: Leaf) -> Self {
        Space::of([leaf])
    }
}

impl Space {
    /// The space without leaves.
    pub const fn empty() -> Self {
        Space { leaves: Vec::new(), tree: Tree::Dict(Vec::new()) }
    }

    /// The leaf itself where `leaves` is one leaf without a name; else a struct of named
    /// leaves, in this order. A `.` with text on both sides separates the levels of nested
    /// structs. [`dict`](Space::dict) takes names whose dots separate no levels.
    pub fn of(leaves: impl IntoIterator<Item = Leaf>) -> Self {
        let leaves: Vec<Leaf> = leaves.into_iter().collect();
        if matches!(leaves.as_slice(), [leaf] if leaf.name.is_empty()) {
            return Space { leaves, tree: Tree::Leaf(0) };
        }
        let mut branches = Vec::new();
        leaves.iter().enumerate().for_each(|(k, leaf)| Tree::insert(&mut branches, &leaf.name, k));
        Space { leaves, tree: Tree::Dict(branches) }
    }

    /// A struct of these spaces, in this order. A name may be any text.
    pub fn dict<Name: Into<String>>(spaces: impl IntoIterator<Item = (Name, Space)>) -> Self {
        let mut leaves = Vec::new();
        let branch = |(name, space): (Name, Space)| (name.into(), space.hang(&mut leaves));
        let branches = spaces.into_iter().map(branch).collect();
        Space::with_tree(leaves, Tree::Dict(branches))
    }

    /// A tuple of these spaces.
    pub fn tuple(spaces: impl IntoIterator<Item = Space>) -> Self {
        let mut leaves = Vec::new();
        let branches = spaces.into_iter().map(|space| space.hang(&mut leaves)).collect();
        Space::with_tree(leaves, Tree::Tuple(branches))
    }

    /// A space of these leaves and this tree, which gives the leaves their names.
    pub fn with_tree(mut leaves: Vec<Leaf>, tree: Tree) -> Self {
        tree.visit("", &mut |leaf, path| {
            if let Some(leaf) = leaves.get_mut(leaf) {
                leaf.name = path.into();
            }
        });
        Space { leaves, tree }
    }

    /// Appends the space's leaves to `leaves`. Returns the tree with their new numbers.
    fn hang(self, leaves: &mut Vec<Leaf>) -> Tree {
        let first = leaves.len();
        leaves.extend(self.leaves);
        self.tree.shifted(first)
    }

    /// The leaves, in order.
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// The tree that the leaves form.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// A space of the same tree. `each` makes the new leaf of each leaf.
    pub fn map(&self, each: impl FnMut(&Leaf) -> Leaf) -> Self {
        Space::with_tree(self.leaves.iter().map(each).collect(), self.tree.clone())
    }

    /// A struct of this struct's leaves, followed by those of `other`.
    ///
    /// # Errors
    /// [`Error::Space`] where one of the spaces is no struct, because its leaves have no names.
    pub fn join(mut self, other: Space) -> Result<Self> {
        let added = other.hang(&mut self.leaves);
        match (&mut self.tree, added) {
            (Tree::Dict(branches), Tree::Dict(others)) => Tree::merge(branches, others),
            _ => {
                return Err(Error::Space(
                    "spaces are joined name by name: give each a name, for one that is a leaf or a tuple has none"
                        .into(),
                ));
            }
        }
        Ok(self)
    }

    /// Whether the space is one unnamed leaf.
    pub fn is_single(&self) -> bool {
        matches!(self.tree, Tree::Leaf(_))
    }

    /// Whether the space is a struct with a part called `name`.
    pub fn has_key(&self, name: &str) -> bool {
        matches!(&self.tree, Tree::Dict(branches) if branches.iter().any(|(key, _)| key == name))
    }

    /// Errors where the space contradicts itself: names are missing or duplicate; bounds
    /// cross, do not fit the dtype or are of the wrong number; a shape is too large for any
    /// memory; a leaf is not in the tree.
    ///
    /// # Errors
    /// [`Error::Space`], which names leaf and shape; `what` says in the message which space
    /// it is.
    pub fn check(&self, what: &str) -> Result<()> {
        self.check_rows(what, 1)
    }

    /// Checks as [`check`](Self::check) does, and that `rows` rows of a leaf fit into memory.
    pub(crate) fn check_rows(&self, what: &str, rows: usize) -> Result<()> {
        let fault = |k: usize, why: String| {
            let name = match self.leaves[k].name.as_str() {
                "" => format!("#{k}"),
                name => format!("'{name}'"),
            };
            Error::Space(format!("{what} space, leaf {name}: {why}"))
        };
        self.check_tree().map_err(|why| Error::Space(format!("{what} space: {why}")))?;
        for (k, leaf) in self.leaves.iter().enumerate() {
            if leaf.name.is_empty() && !self.is_single() {
                return Err(fault(k, "every leaf of a struct needs a name".into()));
            }
            leaf.check(rows).map_err(|why| fault(k, why))?;
        }
        match self.tree.clash() {
            Some((leaf, earlier)) => {
                Err(fault(leaf, format!("its name clashes with '{}'", self.leaves[earlier].name)))
            }
            None => Ok(()),
        }
    }

    /// Errors unless the tree has every leaf once and not too many levels.
    fn check_tree(&self) -> Result<(), String> {
        if self.tree.levels() > MAX_LEVELS {
            return Err(too_deep());
        }
        let mut times = vec![0usize; self.leaves.len()];
        let mut absent = None;
        self.tree.visit("", &mut |leaf, _| match times.get_mut(leaf) {
            Some(times) => *times += 1,
            None => absent = Some(leaf),
        });
        if let Some(leaf) = absent {
            return Err(format!("its tree has leaf {leaf}, and there are {}", times.len()));
        }
        match times.iter().position(|times| *times != 1) {
            Some(leaf) => Err(format!("leaf {leaf} is {} times in its tree", times[leaf])),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::tree::NodeKind;

    fn fault(space: Space) -> String {
        space.check("observation").unwrap_err().to_string()
    }

    fn names(space: &Space) -> Vec<&str> {
        space.leaves().iter().map(|leaf| leaf.name.as_str()).collect()
    }

    fn leaf() -> Space {
        Leaf::discrete(2).into()
    }

    #[test]
    fn a_key_is_any_text() {
        let keys = ["a", "a.b", "a.", ".", "..", ".a", "a..b", "", "\"\"", "ä\0\n"];
        let space = Space::dict(keys.map(|key| (key, leaf())));
        space.check("observation").unwrap();
        let Tree::Dict(branches) = space.tree() else { panic!("no dict") };
        assert_eq!(branches.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), keys);
        // The keys are beside levels whose leaves have the same written names.
        let inner = Space::dict([("b", leaf())]);
        let both = Space::dict([("a.b", leaf()), ("a", inner)]);
        both.check("observation").unwrap();
        assert_eq!(names(&both), ["a.b", "a.b"]);
        for twice in [Space::dict([("a", leaf()), ("a", leaf())]), Space::dict([("", leaf()), ("", leaf())])]
        {
            assert!(fault(twice).contains("clashes"));
        }
    }

    #[test]
    fn a_dot_in_a_name_separates_levels_where_text_is_on_both_sides() {
        let named = |name: &str| Leaf::discrete(2).named(name);
        let space = Space::of(["in.x", "c", "in.y", "a.", ".b"].map(named));
        space.check("observation").unwrap();
        let inner = Tree::Dict(vec![("x".into(), Tree::Leaf(0)), ("y".into(), Tree::Leaf(2))]);
        let branches = [("in", inner), ("c", Tree::Leaf(1)), ("a.", Tree::Leaf(3)), (".b", Tree::Leaf(4))];
        assert_eq!(space.tree(), &Tree::Dict(branches.map(|(key, tree)| (key.into(), tree)).into()));
        for (one, other) in [("a", "a"), ("a", "a.b"), ("a.b", "a"), ("a.b.c", "a.b")] {
            let why = fault(Space::of([named(one), named(other)]));
            assert_eq!(why, format!("observation space, leaf '{other}': its name clashes with '{one}'"));
        }
        assert!(fault(Space::of([Leaf::discrete(2), named("b")])).contains("needs a name"));
    }

    #[test]
    fn trees_hang_in_trees() {
        let pair = Space::tuple([leaf(), Space::dict([("x", leaf())])]);
        let space = Space::dict([("b", pair.clone()), ("a", leaf())]);
        space.check("observation").unwrap();
        assert_eq!(names(&space), ["b.0", "b.1.x", "a"]);
        let renamed = space.map(|leaf| Leaf::image(&[2]).named(leaf.name.to_uppercase()));
        assert_eq!((names(&renamed), renamed.tree()), (names(&space), space.tree()));
        let joined = space.join(Space::of([Leaf::discrete(2).named("c")])).unwrap();
        assert_eq!(names(&joined), ["b.0", "b.1.x", "a", "c"]);
        joined.check("observation").unwrap();
        for none in [pair, leaf()] {
            assert!(Space::empty().join(none.clone()).is_err());
            assert!(none.join(Space::empty()).is_err());
        }
    }

    #[test]
    fn joined_structs_share_their_levels() {
        let one = |name: &str| Space::of([Leaf::discrete(2).named(name)]);
        let joined = one("in.x").join(one("in.y")).unwrap();
        assert_eq!(joined, Space::of(["in.x", "in.y"].map(|name| Leaf::discrete(2).named(name))));
        assert!(fault(one("in").join(one("in.y")).unwrap()).contains("clashes"));
        assert!(fault(one("in.y").join(one("in")).unwrap()).contains("clashes"));
    }

    #[test]
    fn a_tree_is_what_its_nodes_say() {
        let space = Space::tuple([
            leaf(),
            Space::dict([("x.y", leaf()), ("", Space::tuple([]))]),
            Space::empty(),
            Space::tuple([leaf()]),
        ]);
        let nodes = space.tree().nodes();
        assert_eq!(Tree::from_nodes(nodes.clone()).as_ref(), Ok(space.tree()));
        let text = serde_json::to_string(&space).unwrap();
        assert_eq!(serde_json::from_str::<Space>(&text).unwrap(), space);
        for short in 0..nodes.len() {
            assert!(Tree::from_nodes(nodes[..short].to_vec()).unwrap_err().contains("ends before"));
        }
        let long = [nodes.clone(), nodes].concat();
        assert!(Tree::from_nodes(long).unwrap_err().contains("under no other"));
    }

    #[test]
    fn a_tree_that_its_leaves_do_not_fit_is_refused() {
        let two = || vec![Leaf::discrete(2), Leaf::discrete(3)];
        let fault = |leaves: &[usize]| {
            fault(Space::with_tree(two(), Tree::Tuple(leaves.iter().map(|k| Tree::Leaf(*k)).collect())))
        };
        assert!(fault(&[0, 2, 1]).contains("its tree has leaf 2, and there are 2"));
        assert!(fault(&[1]).contains("leaf 0 is 0 times in its tree"));
        assert!(fault(&[0, 1, 0]).contains("leaf 0 is 2 times in its tree"));
        Space::with_tree(two(), Tree::Tuple(vec![Tree::Leaf(1), Tree::Leaf(0)]))
            .check("observation")
            .unwrap();
    }

    #[test]
    fn a_tree_has_so_many_levels_and_no_more() {
        let deep = |levels: usize| (1..levels).fold(leaf(), |space, _| Space::tuple([space]));
        deep(MAX_LEVELS).check("observation").unwrap();
        assert!(fault(deep(MAX_LEVELS + 1)).contains("more than 64 levels"));
        let mut nodes = vec![Node { key: String::new(), kind: NodeKind::Tuple(1) }; 1_000_000];
        assert!(Tree::from_nodes(nodes.clone()).unwrap_err().contains("more than 64 levels"));
        nodes[0].kind = NodeKind::Dict(usize::MAX);
        assert!(Tree::from_nodes(nodes[..2].to_vec()).unwrap_err().contains("ends before"));
    }
}
