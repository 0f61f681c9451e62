//! The pages of a data file as text: `raw_html` with all elements and attributes, `cleaned_html` with what a model needs,
//! and the candidates, which are the elements of the latter.
//!
//! Source: the published data. Tags are in lower case, texts are elements named `text`, other characters than letters,
//! digits and `_` in the names of attributes become `_`, and each element has its `backend_node_id`.

use serde_json::{Map, Value, json};

use super::page::{DumpedNode, DumpedPage, TEXT};
use super::targets::{Targets, is_clickable};

/// Elements that no one sees.
const HIDDEN: [&str; 8] = ["head", "link", "meta", "noscript", "script", "style", "template", "title"];

/// The attributes that a model gets in `cleaned_html`.
const SALIENT: [&str; 17] = [
    "alt",
    "aria_description",
    "aria_label",
    "aria_role",
    "input_checked",
    "input_value",
    "label",
    "name",
    "option_selected",
    "placeholder",
    "readonly",
    "role",
    "text_value",
    "title",
    "type",
    "value",
    "aria_describedby",
];

/// A page in the forms of a data file.
pub(super) struct WrittenPage {
    pub(super) raw_html: String,
    pub(super) cleaned_html: String,
    pub(super) positive: Vec<Value>,
    pub(super) negative: Vec<Value>,
    /// The labelled element, such as `[input]  Search`.
    pub(super) described: String,
}

/// Writes a page. `target` is the labelled element.
pub(super) fn written(page: &DumpedPage, target: Option<usize>, targets: &Targets, uid: &str) -> WrittenPage {
    let is_kept = kept(page, targets);
    let label = |at: usize| (Some(at) == target).then_some(uid);
    let raw_html = text(
        page,
        |at| !HIDDEN.contains(&page.nodes[at].tag.as_str()),
        |at| raw_attributes(&page.nodes[at], label(at)),
    );
    let cleaned_html = text(
        page,
        |at| is_kept[at],
        |at| {
            let node = &page.nodes[at];
            let mut own = vec![("backend_node_id".to_owned(), node.id.to_string())];
            let is_salient =
                |(name, value): &&(String, String)| SALIENT.contains(&name.as_str()) && !value.trim().is_empty();
            own.extend(node.attributes.iter().filter(is_salient).cloned());
            own
        },
    );
    let is_candidate = |at: &usize| {
        let node = &page.nodes[*at];
        targets.all.contains(at)
            || (is_kept[*at] && !node.is_text() && node.is_shown() && !["html", "body"].contains(&node.tag.as_str()))
    };
    let (mut positive, mut negative) = (Vec::new(), Vec::new());
    for at in (0..page.nodes.len()).filter(is_candidate) {
        let node = &page.nodes[at];
        let attributes: Map<String, Value> =
            raw_attributes(node, label(at)).into_iter().map(|(name, value)| (name, Value::from(value))).collect();
        let mut candidate = json!({
            "tag": node.tag,
            "attributes": Value::Object(attributes).to_string(),
            "backend_node_id": node.id.to_string(),
        });
        if targets.all.contains(&at) {
            candidate["is_original_target"] = json!(Some(at) == target);
            candidate["is_top_level_target"] = json!(Some(at) == targets.top);
            positive.push(candidate);
        } else {
            negative.push(candidate);
        }
    }
    let described = target.map(|target| described(page, target)).unwrap_or_default();
    WrittenPage { raw_html, cleaned_html, positive, negative, described }
}

/// Whether each node is part of `cleaned_html`: texts that are shown, elements with salient attributes, elements that can
/// be clicked, right ones, and everything around those.
fn kept(page: &DumpedPage, targets: &Targets) -> Vec<bool> {
    let mut kept = vec![false; page.nodes.len()];
    for target in &targets.all {
        kept[*target] = true;
    }
    for (at, node) in page.nodes.iter().enumerate().rev() {
        if HIDDEN.contains(&node.tag.as_str()) {
            kept[at] = false;
            continue;
        }
        let is_useful = match node.is_text() {
            true => !node.text.trim().is_empty(),
            false => is_clickable(node) || node.attributes.iter().any(|(name, _)| SALIENT.contains(&name.as_str())),
        };
        kept[at] |= (is_useful && node.is_shown()) || node.children.iter().any(|child| kept[*child]);
    }
    kept
}

fn raw_attributes(node: &DumpedNode, label: Option<&str>) -> Vec<(String, String)> {
    let mut own = vec![("backend_node_id".to_owned(), node.id.to_string())];
    if node.is_text() {
        return own;
    }
    let sides = node.bounds.map_or([-1.0; 4], |bounds| [bounds.x, bounds.y, bounds.width, bounds.height]);
    own.push(("bounding_box_rect".to_owned(), sides.map(|side| side.to_string()).join(",")));
    if node.is_clickable {
        own.push(("is_clickable".to_owned(), "true".to_owned()));
    }
    let label = label.map(|uid| ("data_pw_testid_buckeye".to_owned(), uid.to_owned()));
    for (name, value) in label.into_iter().chain(node.attributes.iter().cloned()) {
        if !own.iter().any(|(known, _)| *known == name) {
            own.push((name, value));
        }
    }
    own
}

/// Pages can have elements of any name, and XML cannot.
fn tag_name(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || "_-:".contains(c) { c } else { '_' }).collect()
}

/// Writes the nodes that are part of a text. The children of a node that is not are left out as well.
fn text(
    page: &DumpedPage,
    is_part: impl Fn(usize) -> bool,
    attributes: impl Fn(usize) -> Vec<(String, String)>,
) -> String {
    enum Open {
        Begin(usize),
        End(usize),
    }
    let mut out = String::new();
    let roots = (0..page.nodes.len()).rev().filter(|at| page.nodes[*at].parent.is_none());
    let mut open: Vec<Open> = roots.map(Open::Begin).collect();
    while let Some(next) = open.pop() {
        match next {
            Open::End(at) => out.extend(["</", &tag_name(&page.nodes[at].tag), ">"]),
            Open::Begin(at) if is_part(at) => {
                let node = &page.nodes[at];
                if node.is_text() && node.text.trim().is_empty() {
                    continue;
                }
                out.extend(["<", &tag_name(&node.tag)]);
                for (name, value) in attributes(at) {
                    out.extend([" ", &name, "=\""]);
                    escape(&mut out, &value);
                    out.push('"');
                }
                out.push('>');
                escape(&mut out, node.text.trim());
                open.push(Open::End(at));
                open.extend(node.children.iter().rev().map(|child| Open::Begin(*child)));
            }
            Open::Begin(_) => {}
        }
    }
    out
}

/// Appends a text, so that XML parsers read it. Characters that XML does not have are left out.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c < ' ' => {}
            c => out.push(c),
        }
    }
}

fn described(page: &DumpedPage, at: usize) -> String {
    let node = &page.nodes[at];
    let named = ["aria_label", "placeholder", "title", "name"].into_iter().find_map(|name| node.attribute(name));
    let below = page.below(at).into_iter().map(|at| &page.nodes[at]).filter(|node| node.tag == TEXT);
    let text: Vec<&str> = below.map(|node| node.text.trim()).filter(|text| !text.is_empty()).collect();
    let text = if text.is_empty() { named.unwrap_or_default().to_owned() } else { text.join(" ") };
    format!("[{}]  {text}", node.attribute("role").unwrap_or(&node.tag))
}
