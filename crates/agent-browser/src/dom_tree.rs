//! The DOM tree as text. Source: `fetch_page_html` and `parse_html` in `browser_env/processors.py`.

use serde::Deserialize;

use crate::ax_tree::TEXT_MAX;
use crate::elements::{Bounds, Element, Elements};
use crate::python::joined_words;

/// The answer to `DOMSnapshot.captureSnapshot`, as far as it is read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DomSnapshot {
    /// The document of the page, and those of its frames.
    pub documents: Vec<DomDocument>,
    /// The texts to which the documents refer by index.
    pub strings: Vec<String>,
}

/// The document of a page or of a frame.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DomDocument {
    /// The nodes, in document order.
    pub nodes: DomNodes,
}

/// The nodes of a document, a list for each field.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DomNodes {
    /// The index of the parent; -1 for the root.
    pub parent_index: Vec<i64>,
    /// The names, as indexes of texts.
    pub node_name: Vec<i64>,
    /// The values, as indexes of texts; -1 for none.
    pub node_value: Vec<i64>,
    /// The ids by which the browser finds the nodes.
    pub backend_node_id: Vec<i64>,
    /// Names and values of attributes in turn.
    pub attributes: Vec<Vec<i64>>,
    /// The roots of shadow trees, those of the browser's own included.
    pub shadow_root_type: DomMarks,
    /// The pseudo-elements, such as `::before`.
    pub pseudo_type: DomMarks,
}

/// The nodes of a document that have a property which most nodes lack.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DomMarks {
    /// The indexes of the nodes.
    pub index: Vec<i64>,
}

impl DomSnapshot {
    /// Returns the nodes of the page's own document.
    pub fn nodes(&self) -> Option<&DomNodes> {
        self.documents.first().map(|document| &document.nodes)
    }

    /// Returns the value of an attribute. An empty one has the index -1, which in Python is the last text of all. That is
    /// what WebArena shows.
    fn attribute(&self, index: Option<&i64>) -> &str {
        match index {
            Some(-1) => self.strings.last().map_or("", String::as_str),
            index => self.text(index),
        }
    }

    /// Returns the text with an index; the empty text if there is none.
    pub(crate) fn text(&self, index: Option<&i64>) -> &str {
        let index = index.and_then(|index| usize::try_from(*index).ok());
        index.and_then(|index| self.strings.get(index)).map_or("", String::as_str)
    }
}

/// Returns the text of a page's document, and the elements in it.
///
/// `bounds` are those of the nodes, in the same order. `viewport` has the size of the screen if only its content is
/// observed.
pub fn written(snapshot: &DomSnapshot, bounds: &[Option<Bounds>], viewport: Option<(f64, f64)>) -> (String, Elements) {
    let (mut text, mut elements) = (String::new(), Elements::new());
    let Some(nodes) = snapshot.nodes() else { return (text, elements) };
    let count = nodes.node_name.len();
    let bounds_of = |index: usize| bounds.get(index).copied().flatten();
    let is_shown = |index: usize| match viewport {
        Some(size) => bounds_of(index).is_some_and(|bounds| bounds.is_shown_in(size)),
        None => true,
    };
    let mut children = vec![Vec::new(); count];
    for (index, parent) in nodes.parent_index.iter().enumerate().take(count) {
        if let Some(parent) = usize::try_from(*parent).ok().filter(|parent| *parent < index) {
            children[parent].push(index);
        }
    }
    // The ids of the text count the nodes that are left.
    let mut number = 0;
    let numbers: Vec<usize> = (0..count)
        .map(|index| {
            let own = number;
            number += usize::from(is_shown(index));
            own
        })
        .collect();
    let mut left = if count == 0 { Vec::new() } else { vec![(0, 0)] };
    while let Some((index, depth)) = left.pop() {
        let mut child_depth = depth;
        if is_shown(index)
            && let Some((attributes, value)) = content(snapshot, nodes, index)
        {
            let mut line = format!("[{}] <{}", numbers[index], snapshot.text(nodes.node_name.get(index)));
            if !attributes.is_empty() {
                line.push(' ');
                line.push_str(&attributes);
            }
            line.push_str("> ");
            line.push_str(&value);
            if text.len() + depth + line.len() > TEXT_MAX {
                break;
            }
            text.push_str(&"\t".repeat(depth));
            text.push_str(&line);
            text.push('\n');
            let backend_node = nodes.backend_node_id.get(index).copied();
            elements.insert(numbers[index].to_string(), Element { backend_node, bounds: bounds_of(index), text: line });
            child_depth += 1;
        }
        left.extend(children[index].iter().rev().map(|child| (*child, child_depth)));
    }
    (text, elements)
}

/// Returns the attributes and the value of a node, or `None` if it has neither.
fn content(snapshot: &DomSnapshot, nodes: &DomNodes, index: usize) -> Option<(String, String)> {
    let pairs = nodes.attributes.get(index).map(Vec::as_slice).unwrap_or_default().chunks_exact(2);
    let pairs = pairs
        .map(|pair| format!("{}=\"{}\"", snapshot.text(pair.first()), joined_words(snapshot.attribute(pair.get(1)))));
    let attributes = pairs.collect::<Vec<_>>().join(" ");
    let value = joined_words(snapshot.text(nodes.node_value.get(index)));
    (!attributes.is_empty() || !value.is_empty()).then_some((attributes, value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `<html><body class="a  b"><p> Hello,\n world</p><br></body></html>` as a snapshot.
    fn snapshot() -> DomSnapshot {
        let strings = ["#document", "HTML", "BODY", "class", "a  b", "P", "#text", " Hello,\n world", "BR"];
        serde_json::from_value(json!({
            "documents": [{ "nodes": {
                "parentIndex": [-1, 0, 1, 2, 3, 2],
                "nodeType": [9, 1, 1, 1, 3, 1],
                "nodeName": [0, 1, 2, 5, 6, 8],
                "nodeValue": [-1, -1, -1, -1, 7, -1],
                "backendNodeId": [1, 2, 3, 4, 5, 6],
                "attributes": [[], [], [3, 4], [], [], []],
            } }],
            "strings": strings,
        }))
        .expect("a snapshot")
    }

    fn at(y: f64) -> Option<Bounds> {
        Some(Bounds { x: 0.0, y, width: 100.0, height: 20.0 })
    }

    #[test]
    fn nodes_with_attributes_or_text_are_shown() {
        let (text, elements) = written(&snapshot(), &[at(0.0); 6], None);
        assert_eq!(text, "[2] <BODY class=\"a b\"> \n\t[4] <#text> Hello, world\n");
        assert_eq!(elements["4"].backend_node, Some(5));
        assert_eq!(elements["4"].text, "[4] <#text> Hello, world");
    }

    #[test]
    fn ids_count_the_nodes_in_the_viewport() {
        let bounds = [Some(crate::elements::ROOT), at(0.0), at(900.0), None, at(10.0), at(20.0)];
        let (text, elements) = written(&snapshot(), &bounds, Some((1280.0, 720.0)));
        assert_eq!(text, "[2] <#text> Hello, world\n");
        assert_eq!(elements["2"].backend_node, Some(5));
    }

    #[test]
    fn an_empty_attribute_has_the_value_that_the_source_shows() {
        let mut snapshot = snapshot();
        snapshot.documents[0].nodes.attributes[2] = vec![3, -1];
        assert!(written(&snapshot, &[at(0.0); 6], None).0.starts_with("[2] <BODY class=\"BR\"> \n"));
    }

    #[test]
    fn damaged_snapshots_have_no_text() {
        let mut damaged = snapshot();
        damaged.strings.clear();
        damaged.documents[0].nodes.parent_index = vec![5, 5, 5];
        assert_eq!(written(&damaged, &[], None).0, "");
        assert_eq!(written(&DomSnapshot::default(), &[], None).0, "");
    }
}
