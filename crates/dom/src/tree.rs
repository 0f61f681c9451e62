//! A document tree: nodes in one vector, in the order in which the parser met them.

/// The place of a node in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) usize);

/// The content of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeKind {
    /// The document itself, which is the first node.
    Document,
    /// An element with its name in the case of the parser, and its attributes in the order of the source.
    Element {
        /// Name of the element.
        name: String,
        /// Names and values of the attributes, each name once.
        attributes: Vec<(String, String)>,
    },
    /// A text, with its references resolved.
    Text(String),
    /// A text in a `CDATA` section.
    CData(String),
    /// A comment, without its delimiters.
    Comment(String),
    /// A declaration or a processing instruction.
    Other,
}

/// A node with its links.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    pub(crate) parent: Option<NodeId>,
    pub(crate) children: Vec<NodeId>,
    /// Position among the children of the parent.
    pub(crate) place: usize,
}

/// A document tree, which does not change once it is built.
#[derive(Debug, Clone)]
pub struct Tree {
    pub(crate) nodes: Vec<Node>,
}

impl Tree {
    /// The node of the document itself.
    pub const DOCUMENT: NodeId = NodeId(0);

    pub(crate) fn new() -> Self {
        Self { nodes: vec![Node { kind: NodeKind::Document, parent: None, children: Vec::new(), place: 0 }] }
    }

    pub(crate) fn append(&mut self, parent: NodeId, kind: NodeKind) -> NodeId {
        let id = NodeId(self.nodes.len());
        let place = self.nodes[parent.0].children.len();
        self.nodes.push(Node { kind, parent: Some(parent), children: Vec::new(), place });
        self.nodes[parent.0].children.push(id);
        id
    }

    /// Appends text to the last child if that is a text, as a new child otherwise.
    pub(crate) fn append_text(&mut self, parent: NodeId, text: &str) {
        if let Some(last) = self.nodes[parent.0].children.last().copied()
            && let NodeKind::Text(old) = &mut self.nodes[last.0].kind
        {
            old.push_str(text);
            return;
        }
        self.append(parent, NodeKind::Text(text.to_owned()));
    }

    /// Returns a node's content.
    #[must_use]
    pub fn kind(&self, node: NodeId) -> &NodeKind {
        &self.nodes[node.0].kind
    }

    /// Returns a node's parent; the document has none.
    #[must_use]
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.nodes[node.0].parent
    }

    /// Returns a node's children, texts and comments included.
    #[must_use]
    pub fn children(&self, node: NodeId) -> &[NodeId] {
        &self.nodes[node.0].children
    }

    /// Returns the name of an element.
    #[must_use]
    pub fn name(&self, node: NodeId) -> Option<&str> {
        match self.kind(node) {
            NodeKind::Element { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Returns the attributes of a node; only elements have any.
    #[must_use]
    pub fn attributes(&self, node: NodeId) -> &[(String, String)] {
        match self.kind(node) {
            NodeKind::Element { attributes, .. } => attributes,
            _ => &[],
        }
    }

    /// Returns the value of an attribute.
    #[must_use]
    pub fn attribute(&self, node: NodeId, name: &str) -> Option<&str> {
        self.attributes(node).iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns whether a node is an element.
    #[must_use]
    pub fn is_element(&self, node: NodeId) -> bool {
        matches!(self.kind(node), NodeKind::Element { .. })
    }

    /// Returns the children that are elements.
    pub fn elements(&self, node: NodeId) -> impl DoubleEndedIterator<Item = NodeId> + '_ {
        self.children(node).iter().copied().filter(|child| self.is_element(*child))
    }

    /// Returns the siblings before and after a node.
    pub(crate) fn siblings(&self, node: NodeId) -> (&[NodeId], &[NodeId]) {
        match self.parent(node) {
            None => (&[], &[]),
            Some(parent) => {
                let (place, all) = (self.nodes[node.0].place, self.children(parent));
                (&all[..place], &all[place + 1..])
            }
        }
    }

    /// Returns the nodes below a node in document order, without recursion.
    pub fn descendants(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let mut open: Vec<NodeId> = self.children(node).iter().rev().copied().collect();
        std::iter::from_fn(move || {
            let next = open.pop()?;
            open.extend(self.children(next).iter().rev());
            Some(next)
        })
    }

    /// Returns the ancestors of a node, from its parent to the document.
    pub fn ancestors(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(self.parent(node), |node| self.parent(*node))
    }

    /// Returns the first element of the document.
    #[must_use]
    pub fn root(&self) -> Option<NodeId> {
        self.elements(Self::DOCUMENT).next()
    }

    /// Returns the elements of the tree breadth first, the root with index 0.
    #[must_use]
    pub fn breadth_first(&self) -> Vec<NodeId> {
        let mut found: Vec<NodeId> = self.root().into_iter().collect();
        let mut next = 0;
        while next < found.len() {
            let node = found[next];
            found.extend(self.elements(node));
            next += 1;
        }
        found
    }

    /// Returns the text below a node, without comments.
    #[must_use]
    pub fn text(&self, node: NodeId) -> String {
        let mut out = String::new();
        if let NodeKind::Text(text) | NodeKind::CData(text) = self.kind(node) {
            out.push_str(text);
        }
        for below in self.descendants(node) {
            if let NodeKind::Text(text) | NodeKind::CData(text) = self.kind(below) {
                out.push_str(text);
            }
        }
        out
    }
}
