//! The nodes of a page, from `DOMSnapshot.captureSnapshot`, with the documents of frames inlined.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

/// A box in CSS pixels of the page, not of the viewport.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NodeBox {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl NodeBox {
    pub(super) fn has_area(&self) -> bool {
        self.width > 0.0 && self.height > 0.0
    }

    pub(super) fn centre(&self) -> (f64, f64) {
        (self.x + self.width / 2.0, self.y + self.height / 2.0)
    }

    pub(super) fn has_point(&self, (x, y): (f64, f64)) -> bool {
        (self.x..=self.x + self.width).contains(&x) && (self.y..=self.y + self.height).contains(&y)
    }

    pub(super) fn has_box(&self, other: &Self) -> bool {
        self.has_point((other.x, other.y)) && self.has_point((other.x + other.width, other.y + other.height))
    }
}

/// An element or a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DumpedNode {
    /// The `backendNodeId` of the DevTools protocol.
    pub(super) id: i64,
    pub(super) parent: Option<usize>,
    pub(super) children: Vec<usize>,
    /// The tag in lower case; `text` for a text.
    pub(super) tag: String,
    /// The attributes of the source with Mind2Web's names, and those that it adds for the state of fields.
    pub(super) attributes: Vec<(String, String)>,
    /// The text; empty for an element.
    pub(super) text: String,
    pub(super) bounds: Option<NodeBox>,
    pub(super) is_clickable: bool,
}

impl DumpedNode {
    pub(super) fn is_text(&self) -> bool {
        self.tag == TEXT
    }

    pub(super) fn is_shown(&self) -> bool {
        self.bounds.is_some_and(|bounds| bounds.has_area())
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The tag of texts in Mind2Web's data.
pub(super) const TEXT: &str = "text";

/// The nodes of a page. A child comes after its parent.
#[derive(Debug, Default)]
pub(super) struct DumpedPage {
    pub(super) nodes: Vec<DumpedNode>,
    by_id: HashMap<i64, usize>,
}

/// The types of nodes, as the DOM numbers them.
const ELEMENT: i64 = 1;
const TEXT_NODE: i64 = 3;
const DOCUMENT: i64 = 9;
const FRAGMENT: i64 = 11;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Snapshot {
    documents: Vec<Document>,
    strings: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Document {
    nodes: Nodes,
    layout: Layout,
    scroll_offset_x: f64,
    scroll_offset_y: f64,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Nodes {
    parent_index: Vec<i64>,
    node_type: Vec<i64>,
    node_name: Vec<i64>,
    node_value: Vec<i64>,
    backend_node_id: Vec<i64>,
    attributes: Vec<Vec<i64>>,
    shadow_root_type: Rare,
    pseudo_type: Rare,
    text_value: Rare,
    input_value: Rare,
    input_checked: Rare,
    option_selected: Rare,
    content_document_index: Rare,
    is_clickable: Rare,
}

/// A property that few nodes have. Those that are either true or false have no values.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Rare {
    index: Vec<usize>,
    value: Vec<i64>,
}

impl Rare {
    fn values(&self) -> HashMap<usize, i64> {
        let values = self.value.iter().copied().chain(std::iter::repeat(0));
        self.index.iter().copied().zip(values).collect()
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Layout {
    node_index: Vec<usize>,
    bounds: Vec<Vec<f64>>,
}

impl DumpedPage {
    /// Reads the answer of the browser. A part that is missing or malformed is left out.
    pub(super) fn read(dom: &Value) -> Self {
        let snapshot = Snapshot::deserialize(dom).unwrap_or_default();
        let mut page = Self::default();
        let mut open = vec![(0, None, (0.0, 0.0))];
        let mut is_read = vec![false; snapshot.documents.len()];
        while let Some((at, frame, offset)) = open.pop() {
            // A document that contains itself would have no end.
            if snapshot.documents.get(at).is_some() && !std::mem::replace(&mut is_read[at], true) {
                open.extend(page.add(&snapshot, &snapshot.documents[at], frame, offset));
            }
        }
        page.by_id = page.nodes.iter().enumerate().map(|(at, node)| (node.id, at)).collect();
        page
    }

    /// Adds the nodes of a document. Returns the documents of its frames: the index, the node of the frame, and the place
    /// of the document's origin in the page.
    fn add(
        &mut self,
        snapshot: &Snapshot,
        document: &Document,
        frame: Option<usize>,
        (left, top): (f64, f64),
    ) -> Vec<(usize, Option<usize>, (f64, f64))> {
        let text = |index: Option<&i64>| {
            let index = index.and_then(|index| usize::try_from(*index).ok());
            index.and_then(|index| snapshot.strings.get(index)).cloned().unwrap_or_default()
        };
        let nodes = &document.nodes;
        let mut boxes: HashMap<usize, NodeBox> = HashMap::new();
        for (node, bounds) in document.layout.node_index.iter().zip(&document.layout.bounds) {
            if let [x, y, width, height] = bounds[..] {
                boxes.entry(*node).or_insert(NodeBox { x: x + left, y: y + top, width, height });
            }
        }
        let [texts, inputs, checked, selected, shadows, pseudo, clickable, frames] = [
            &nodes.text_value,
            &nodes.input_value,
            &nodes.input_checked,
            &nodes.option_selected,
            &nodes.shadow_root_type,
            &nodes.pseudo_type,
            &nodes.is_clickable,
            &nodes.content_document_index,
        ]
        .map(Rare::values);
        // The place of each node of the snapshot in the page: its own, or that of the node that stands for it.
        let mut places: Vec<Place> = Vec::new();
        let mut inner = Vec::new();
        for (at, kind) in nodes.node_type.iter().enumerate() {
            let parent = nodes.parent_index.get(at).and_then(|parent| usize::try_from(*parent).ok());
            let above = match parent {
                Some(parent) => places.get(parent).copied().unwrap_or(Place::LeftOut),
                None => Place::Within(frame),
            };
            let is_own = shadows.get(&at).is_some_and(|kind| text(Some(kind)) == "user-agent");
            let place = match (above, *kind) {
                (Place::LeftOut, _) => Place::LeftOut,
                _ if is_own || pseudo.contains_key(&at) => Place::LeftOut,
                (above, DOCUMENT | FRAGMENT) => above,
                (Place::Within(parent), ELEMENT | TEXT_NODE) => {
                    let is_text = *kind == TEXT_NODE;
                    let name = text(nodes.node_name.get(at));
                    let pairs = nodes.attributes.get(at).map(Vec::as_slice).unwrap_or_default().chunks_exact(2);
                    let mut attributes: Vec<(String, String)> =
                        pairs.map(|pair| (attribute_name(&text(pair.first())), text(pair.get(1)))).collect();
                    let state = [("text_value", &texts), ("input_value", &inputs)];
                    let state = state.into_iter().map(|(name, values)| (name, text(values.get(&at))));
                    attributes.extend(state.filter(|(_, value)| !value.is_empty()).map(|(n, v)| (n.to_owned(), v)));
                    let marks = [("input_checked", &checked), ("option_selected", &selected)];
                    let marks = marks.into_iter().filter(|(_, nodes)| nodes.contains_key(&at));
                    attributes.extend(marks.map(|(name, _)| (name.to_owned(), "true".to_owned())));
                    Place::Within(Some(self.push(DumpedNode {
                        id: nodes.backend_node_id.get(at).copied().unwrap_or_default(),
                        parent,
                        children: Vec::new(),
                        tag: if is_text { TEXT.to_owned() } else { name.to_lowercase() },
                        attributes,
                        text: if is_text { text(nodes.node_value.get(at)) } else { String::new() },
                        bounds: boxes.get(&at).copied(),
                        is_clickable: clickable.contains_key(&at),
                    })))
                }
                _ => Place::LeftOut,
            };
            places.push(place);
            if let (Place::Within(Some(node)), Some(document)) = (place, frames.get(&at))
                && let Ok(index) = usize::try_from(*document)
            {
                let scrolled = snapshot
                    .documents
                    .get(index)
                    .map_or((0.0, 0.0), |inner| (inner.scroll_offset_x, inner.scroll_offset_y));
                let origin = self.nodes[node].bounds.map_or((left, top), |bounds| (bounds.x, bounds.y));
                inner.push((index, Some(node), (origin.0 - scrolled.0, origin.1 - scrolled.1)));
            }
        }
        inner
    }

    fn push(&mut self, node: DumpedNode) -> usize {
        let at = self.nodes.len();
        if let Some(parent) = node.parent {
            self.nodes[parent].children.push(at);
        }
        self.nodes.push(node);
        at
    }

    /// Returns the position of a node by its `backendNodeId`.
    pub(super) fn position(&self, id: i64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Returns a node and its ancestors, from the node up.
    pub(super) fn upward(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(at), |at| self.nodes[*at].parent)
    }

    /// Returns the nodes below a node, in the order of the page.
    pub(super) fn below(&self, at: usize) -> Vec<usize> {
        let (mut found, mut open) = (Vec::new(), self.nodes[at].children.clone());
        while let Some(next) = open.pop() {
            found.push(next);
            open.extend(&self.nodes[next].children);
        }
        found.sort_unstable();
        found
    }
}

/// Returns the name of an attribute in Mind2Web's data.
fn attribute_name(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

/// The place of a node of the snapshot.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Its children belong to this node; to none at the top.
    Within(Option<usize>),
    /// Neither it nor its children are part of the page.
    LeftOut,
}
