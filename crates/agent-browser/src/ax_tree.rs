//! The accessibility tree as text.
//!
//! Source: `fetch_page_accessibility_tree`, `parse_accessibility_tree` and `clean_accesibility_tree` in
//! `browser_env/processors.py`.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::elements::{Bounds, Element, Elements};
use crate::python::{is_blank, repr, str_of};

/// The role of the root of a page, whose bounds are not asked for.
pub const ROOT_ROLE: &str = "RootWebArea";

/// Properties that are not shown. Source: `IGNORED_ACTREE_PROPERTIES`.
const IGNORED_PROPERTIES: [&str; 7] =
    ["focusable", "editable", "readonly", "level", "settable", "multiline", "invalid"];

/// Roles of elements that are not shown if they have neither a name nor properties.
const ROLES_WITH_NAMES: [&str; 11] = [
    "generic",
    "img",
    "list",
    "strong",
    "paragraph",
    "banner",
    "navigation",
    "Section",
    "LabelText",
    "Legend",
    "listitem",
];

/// The length at which a text ends, in bytes. Deep trees of a hostile page are indented far.
pub(crate) const TEXT_MAX: usize = 4 << 20;

/// The number of lines above a text in which the same text makes it redundant.
const LINES_ABOVE: usize = 3;

/// A node, as `Accessibility.getFullAXTree` returns it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AxNode {
    /// The id of the node, which is that of its DOM node if it has one.
    pub node_id: String,
    /// The role, such as `button`.
    pub role: Option<AxValue>,
    /// The accessible name, which may be empty.
    pub name: Option<AxValue>,
    /// Properties other than role and name.
    pub properties: Vec<AxProperty>,
    /// The ids of the children.
    pub child_ids: Vec<String>,
    /// The id of the DOM node.
    #[serde(rename = "backendDOMNodeId")]
    pub backend_node: Option<i64>,
}

/// A value of a node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AxValue {
    /// The value; some kinds of values have none.
    #[serde(deserialize_with = "present")]
    pub value: Option<Json>,
}

/// A property of a node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AxProperty {
    /// The name of the property.
    pub name: String,
    /// The value of the property.
    pub value: AxValue,
}

/// Reads a value that may be null, as distinct from one that is missing.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(from).map(Some)
}

impl AxNode {
    /// Returns the role, if it is a text.
    pub fn role(&self) -> Option<&str> {
        text(self.role.as_ref())
    }
}

fn text(value: Option<&AxValue>) -> Option<&str> {
    value?.value.as_ref()?.as_str()
}

/// Returns the text of a tree, and the elements in it.
///
/// `bounds` are those of the nodes, in the same order. `viewport` has the size of the screen if only its content is
/// observed.
pub fn written(nodes: &[AxNode], bounds: &[Option<Bounds>], viewport: Option<(f64, f64)>) -> (String, Elements) {
    let mut index_of: HashMap<&str, usize> = HashMap::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        // A few nodes are repeated; the first one counts.
        index_of.entry(&node.node_id).or_insert(index);
    }
    let bounds_of = |index: usize| bounds.get(index).copied().flatten();
    let is_shown = |index: usize| match viewport {
        Some(size) => bounds_of(index).is_some_and(|bounds| bounds.is_shown_in(size)),
        None => true,
    };
    let (mut lines, mut elements, mut length) = (Vec::new(), Elements::new(), 0);
    // The source puts the children of a removed node in its place, which is what visiting them at its depth does.
    let mut seen = HashSet::new();
    let mut left: Vec<(usize, usize)> = nodes.first().map(|_| (0, 0)).into_iter().collect();
    while let Some((index, depth)) = left.pop() {
        let Some(node) = nodes.get(index).filter(|_| seen.insert(index)) else { continue };
        let line = is_shown(index).then(|| line(node)).flatten();
        let mut is_level = false;
        if let Some(line) = line {
            let indented = format!("{}{line}", "\t".repeat(depth));
            length += indented.len() + 1;
            if length > TEXT_MAX {
                break;
            }
            lines.push(indented);
            // In the source, a node without a DOM node fails after its line is written.
            is_level = node.backend_node.is_some();
            if is_level {
                let element = Element { backend_node: node.backend_node, bounds: bounds_of(index), text: line };
                elements.insert(node.node_id.clone(), element);
            }
        }
        let children = node.child_ids.iter().rev().filter_map(|id| index_of.get(id.as_str()));
        left.extend(children.map(|child| (*child, depth + usize::from(is_level))));
    }
    (cleaned(&lines.join("\n")), elements)
}

/// Returns the line of a node, or `None` if it is not shown.
fn line(node: &AxNode) -> Option<String> {
    let (role, name) = (node.role()?, text(node.name.as_ref())?);
    let mut line = format!("[{}] {role} {}", node.node_id, repr(name));
    let mut has_properties = false;
    for property in &node.properties {
        let Some(value) = &property.value.value else { continue };
        if !IGNORED_PROPERTIES.contains(&property.name.as_str()) {
            line.push_str(&format!(" {}: {}", property.name, str_of(value)));
            has_properties = true;
        }
    }
    let is_empty = is_blank(name)
        && match has_properties {
            false => ROLES_WITH_NAMES.contains(&role),
            true => role == "listitem",
        };
    (!is_empty).then_some(line)
}

/// Removes texts that appear in one of the lines above.
fn cleaned(tree: &str) -> String {
    static STATIC_TEXT: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?s)\[\d+\] StaticText (.+)").expect("a valid expression"));
    let mut clean: Vec<&str> = Vec::new();
    for line in tree.split('\n') {
        if line.to_lowercase().contains("statictext") {
            // A line that merely contains the word is dropped, as in the source.
            let Some(quoted) = STATIC_TEXT.captures(line).and_then(|found| found.get(1)) else { continue };
            let mut characters = quoted.as_str().chars();
            characters.next();
            characters.next_back();
            let text = characters.as_str();
            let above = &clean[clean.len().saturating_sub(LINES_ABOVE)..];
            if text.is_empty() || above.iter().any(|line| line.contains(text)) {
                continue;
            }
        }
        clean.push(line);
    }
    clean.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nodes(nodes: Json) -> Vec<AxNode> {
        serde_json::from_value(nodes).expect("nodes")
    }

    fn node(id: &str, role: &str, name: &str, children: &[&str]) -> Json {
        json!({ "nodeId": id, "ignored": false, "role": { "type": "role", "value": role },
            "name": { "type": "computedString", "value": name }, "childIds": children,
            "backendDOMNodeId": id.parse::<i64>().expect("a number") })
    }

    fn at(y: f64) -> Option<Bounds> {
        Some(Bounds { x: 0.0, y, width: 100.0, height: 20.0 })
    }

    fn everything(tree: Json) -> String {
        let nodes = nodes(tree);
        written(&nodes, &vec![at(0.0); nodes.len()], None).0
    }

    #[test]
    fn elements_have_their_ids_roles_names_and_properties() {
        let mut button = node("12", "button", "Add to Cart", &[]);
        button["properties"] = json!([
            { "name": "focusable", "value": { "type": "booleanOrUndefined", "value": true } },
            { "name": "hasPopup", "value": { "type": "token", "value": "menu" } },
            { "name": "expanded", "value": { "type": "booleanOrUndefined", "value": false } },
            { "name": "controls", "value": { "type": "idrefList", "relatedNodes": [] } },
        ]);
        let tree = json!([
            node("1", "RootWebArea", "Shop's", &["2", "12"]),
            node("2", "generic", "", &["3"]),
            node("3", "link", "Home \"x\"", &[]),
            button,
        ]);
        let nodes = nodes(tree);
        let (text, elements) = written(&nodes, &[at(0.0), at(1.0), at(2.0), at(3.0)], None);
        assert_eq!(
            text,
            "[1] RootWebArea \"Shop's\"\n\t[3] link 'Home \"x\"'\n\t[12] button 'Add to Cart' hasPopup: menu expanded: False"
        );
        assert_eq!(elements["12"].bounds, at(3.0));
        assert_eq!(elements["12"].backend_node, Some(12));
        assert_eq!(elements["12"].text, "[12] button 'Add to Cart' hasPopup: menu expanded: False");
        assert!(!elements.contains_key("2"), "an empty generic element is not shown, and has no id");
    }

    #[test]
    fn texts_that_the_lines_above_contain_are_removed() {
        let tree = json!([
            node("1", "RootWebArea", "Page", &["2", "4", "5", "6", "7"]),
            node("2", "link", "Basket", &["3"]),
            node("3", "StaticText", "Basket", &[]),
            node("4", "StaticText", "Other", &[]),
            node("5", "StaticText", "", &[]),
            node("6", "StaticText", "Oth", &[]),
            // Contains the word without being such a text.
            node("7", "heading", "A statictext", &[]),
        ]);
        assert_eq!(everything(tree), "[1] RootWebArea 'Page'\n\t[2] link 'Basket'\n\t[4] StaticText 'Other'");
    }

    #[test]
    fn only_three_lines_above_count() {
        let tree = json!([
            node("1", "RootWebArea", "Page", &["2", "3", "4", "5", "6"]),
            node("2", "link", "same", &[]),
            node("3", "link", "a", &[]),
            node("4", "link", "b", &[]),
            node("5", "StaticText", "same", &[]),
            node("6", "StaticText", "same", &[]),
        ]);
        assert!(!everything(tree).contains("StaticText"));
        let tree = json!([
            node("1", "RootWebArea", "Page", &["2", "3", "4", "7", "5"]),
            node("2", "link", "same", &[]),
            node("3", "link", "a", &[]),
            node("4", "link", "b", &[]),
            node("7", "link", "c", &[]),
            node("5", "StaticText", "same", &[]),
        ]);
        assert!(everything(tree).ends_with("\t[5] StaticText 'same'"));
    }

    #[test]
    fn the_children_of_a_removed_element_take_its_place() {
        let tree = json!([
            node("1", "RootWebArea", "Page", &["2", "4", "5"]),
            node("2", "list", "hidden", &["3"]),
            node("3", "link", "shown", &["6"]),
            node("4", "link", "below", &[]),
            node("5", "link", "no box", &[]),
            node("6", "generic", "deeper", &[]),
        ]);
        let nodes = nodes(tree);
        let bounds = [Some(crate::elements::ROOT), at(900.0), at(10.0), at(900.0), None, at(20.0)];
        let (text, elements) = written(&nodes, &bounds, Some((1280.0, 720.0)));
        assert_eq!(text, "[1] RootWebArea 'Page'\n\t[3] link 'shown'\n\t\t[6] generic 'deeper'");
        assert_eq!(elements.len(), 3);
        let (text, _) = written(&nodes, &bounds, None);
        assert_eq!(text.lines().count(), 6, "without the filter everything is shown: {text}");
    }

    #[test]
    fn nodes_without_a_name_or_a_dom_node_are_treated_as_in_the_source() {
        let mut nameless = node("2", "generic", "", &["3"]);
        nameless.as_object_mut().expect("an object").remove("name");
        let mut without_dom = node("4", "ListMarker", "1.", &["5"]);
        without_dom.as_object_mut().expect("an object").remove("backendDOMNodeId");
        let mut named_null = node("6", "link", "", &[]);
        named_null["name"] = json!({ "type": "computedString", "value": null });
        let tree = json!([
            node("1", "RootWebArea", "Page", &["2", "4", "6", "99"]),
            nameless,
            node("3", "link", "in nameless", &[]),
            without_dom,
            node("5", "link", "in marker", &[]),
            named_null,
            // Repeated: the first one counts.
            node("3", "link", "again", &[]),
        ]);
        let nodes = nodes(tree);
        let (text, elements) = written(&nodes, &[], None);
        assert_eq!(
            text,
            "[1] RootWebArea 'Page'\n\t[3] link 'in nameless'\n\t[4] ListMarker '1.'\n\t[5] link 'in marker'"
        );
        assert!(!elements.contains_key("4"), "there is nothing to click on");
    }

    #[test]
    fn empty_list_items_are_not_shown_even_with_properties() {
        let mut item = node("2", "listitem", " ", &[]);
        item["properties"] = json!([{ "name": "posinset", "value": { "value": 1 } }]);
        let mut image = node("3", "img", "", &[]);
        image["properties"] = json!([{ "name": "url", "value": { "value": "x" } }]);
        let tree = json!([node("1", "RootWebArea", "", &["2", "3", "4"]), item, image, node("4", "img", "", &[])]);
        assert_eq!(everything(tree), "[1] RootWebArea ''\n\t[3] img '' url: x");
    }

    #[test]
    fn hostile_trees_end() {
        let circle = json!([node("1", "RootWebArea", "a", &["2"]), node("2", "link", "b", &["1", "2"])]);
        assert_eq!(everything(circle), "[1] RootWebArea 'a'\n\t[2] link 'b'");
        let deep: Vec<Json> =
            (0..50_000).map(|id: u32| node(&id.to_string(), "none", "", &[&(id + 1).to_string()])).collect();
        let mut deep = nodes(Json::Array(deep));
        // Empty generic elements add no depth, and therefore no quadratic indentation.
        deep.iter_mut().for_each(|node| node.role = Some(AxValue { value: Some(json!("generic")) }));
        assert_eq!(written(&deep, &[], None).0, "");
        assert_eq!(written(&[], &[], None).0, "");
    }
}
