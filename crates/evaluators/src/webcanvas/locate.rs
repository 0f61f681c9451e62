//! The selector and the XPath that WebCanvas computes for an element. Source: `agent/Environment/html_env/build_tree.py`
//! and `utils.py`.

use arenad_dom::{NodeId, NodeKind, Tree, libxml};

use super::Raised;
use crate::text::python;

/// `stringfy_selector`: a class list or an id as a part of a selector.
///
/// # Errors
///
/// Returns an error for a text without any word, as Python raises.
pub fn stringfy_selector(text: &str) -> Result<String, Raised> {
    let words: Vec<String> = python::split(text)
        .map(|word| {
            word.chars().fold(String::new(), |mut out, c| {
                if "#.>+~[]():*^$|=%@!'".contains(c) {
                    out.push('\\');
                }
                out.push(c);
                out
            })
        })
        .collect();
    let joined = words.join(".");
    match joined.chars().next() {
        None => Err(Raised::new("IndexError", "an empty text".to_owned())),
        Some(first) if python::is_digit(first) => {
            Ok(format!("\\{:X} {}", u32::from(first), &joined[first.len_utf8()..]))
        }
        Some(_) => Ok(joined),
    }
}

/// An element with its two paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Name of the element.
    pub tag: String,
    /// The CSS selector of the element.
    pub selector: String,
    /// The XPath of the element.
    pub xpath: String,
}

/// `get_selector_and_xpath` of the element with an index, breadth first from the root, which has index 0. Comments count.
///
/// # Errors
///
/// Returns an error where the published code finds no path: for the root, for comments, beyond the last element, and for
/// a page without an active element, from which the code takes everything out.
pub fn selector_and_xpath(html: &str, index: usize) -> Result<Located, Raised> {
    let tree = libxml::parse(html);
    let nodes = breadth_first(&tree);
    if !nodes.iter().any(|node| is_active(&tree, *node)) {
        return Err(Raised::new("AttributeError", "the page has no active element".to_owned()));
    }
    let gone = || Raised::new("TypeError", format!("there is no element {index}"));
    let node = *nodes.get(index).ok_or_else(gone)?;
    let tag = tree.name(node).ok_or_else(gone)?.to_owned();
    Ok(Located { tag, selector: selector(&tree, node)?, xpath: xpath(&tree, node).ok_or_else(gone)? })
}

/// The names of elements that agents may see. Source: `TagNameList`.
const SEEN: [&str; 26] = [
    "button",
    "a",
    "input",
    "select",
    "textarea",
    "option",
    "datalist",
    "label",
    "div",
    "span",
    "p",
    "th",
    "tr",
    "td",
    "ul",
    "li",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "filter-chip",
    "sup",
    "select-label",
    "optgroup",
];

/// The values of `style` that hide an element.
const HIDING: [&str; 4] = ["display: none", "opacity: 0", "visibility: hidden", "visibility: collapse"];

/// Whether the published code keeps an element for agents. Source: `ActiveElements.is_valid_element`.
fn is_active(tree: &Tree, node: NodeId) -> bool {
    let Some(name) = tree.name(node).filter(|name| SEEN.contains(name)) else { return false };
    let attribute = |name: &str| tree.attribute(node, name).unwrap_or_default();
    let acts_as = match name {
        "input" => match attribute("type") {
            kind @ ("checkbox" | "radio" | "button") => kind,
            _ => "input",
        },
        "span" | "td" | "th" | "tr" | "li" | "div" | "label" | "filter-chip" => match attribute("role") {
            "textbox" => "input",
            role @ ("button" | "option") => role,
            _ => "unknown",
        },
        "a" => "link",
        other => other,
    };
    let can_be_disabled = ["select", "option", "input", "textarea", "button"].contains(&acts_as);
    let is_inert =
        acts_as == "input" && attribute("type") == "hidden" || can_be_disabled && !attribute("disabled").is_empty();
    let is_hidden =
        attribute("aria-hidden") == "true" || HIDING.iter().any(|hiding| attribute("style").contains(hiding));
    !is_inert && !is_hidden
}

/// The children that lxml counts: elements and comments.
fn children(tree: &Tree, node: NodeId) -> Vec<NodeId> {
    let counts = |child: &NodeId| matches!(tree.kind(*child), NodeKind::Element { .. } | NodeKind::Comment(_));
    tree.children(node).iter().copied().filter(counts).collect()
}

fn breadth_first(tree: &Tree) -> Vec<NodeId> {
    let mut found: Vec<NodeId> = tree.root().into_iter().collect();
    let mut next = 0;
    while next < found.len() {
        found.extend(children(tree, found[next]));
        next += 1;
    }
    found
}

/// The parent element and the siblings of a node, itself included; `None` for the root.
fn family(tree: &Tree, node: NodeId) -> Option<(NodeId, Vec<NodeId>)> {
    let parent = tree.parent(node).filter(|parent| tree.is_element(*parent))?;
    Some((parent, children(tree, parent)))
}

fn xpath(tree: &Tree, node: NodeId) -> Option<String> {
    let mut path = String::new();
    let mut current = node;
    let (mut parent, mut siblings) = family(tree, current)?;
    loop {
        let name = tree.name(current)?;
        let before = siblings.iter().take_while(|sibling| **sibling != current);
        let twins = before.filter(|sibling| tree.name(**sibling) == Some(name)).count();
        path = format!("/{name}[{}]{path}", twins + 1);
        current = parent;
        match family(tree, current) {
            Some(next) => (parent, siblings) = next,
            None => return Some(format!("/{}{path}", tree.name(current)?)),
        }
    }
}

fn selector(tree: &Tree, node: NodeId) -> Result<String, Raised> {
    let mut out = String::new();
    let mut current = node;
    while let Some((parent, siblings)) = family(tree, current) {
        let name = tree.name(current).unwrap_or_default();
        let attribute = |node: NodeId, name: &str| tree.attribute(node, name).filter(|value| !value.is_empty());
        if let Some(id) = attribute(current, "id") {
            return Ok(format!("#{}{out}", stringfy_selector(id)?));
        }
        let others = || siblings.iter().copied().filter(|sibling| *sibling != current);
        let class = attribute(current, "class");
        let is_alone = others().all(|other| tree.name(other) != Some(name));
        let has_own_class = class.is_some() && others().all(|other| tree.attribute(other, "class") != class);
        out = match class {
            _ if is_alone => format!(" > {name}{out}"),
            Some(class) if has_own_class => format!(" > {name}.{}{out}", stringfy_selector(class)?),
            _ => {
                let place = siblings.iter().position(|sibling| *sibling == current).unwrap_or_default();
                format!(" > {name}:nth-child({}){out}", place + 1)
            }
        };
        current = parent;
    }
    Ok(format!("{}{out}", tree.name(current).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_and_signs_escaped() {
        let cases = [("a  b\n c", "a.b.c"), ("x#y", "x\\#y"), ("9f", "\\39 f"), ("a.b c", "a\\.b.c"), ("\u{a0}a", "a")];
        for (text, expected) in cases {
            assert_eq!(stringfy_selector(text).as_deref(), Ok(expected), "{text}");
        }
        assert!(stringfy_selector("  ").is_err());
    }

    #[test]
    fn comments_count_as_siblings() {
        let located = |index| selector_and_xpath("<div><!-- c --><p>x</p><p>y</p></div>", index);
        let second = located(5).expect("the second paragraph");
        assert_eq!(second.selector, "html > body > div > p:nth-child(3)");
        assert_eq!(second.xpath, "/html/body[1]/div[1]/p[2]");
        assert!(located(0).is_err() && located(3).is_err() && located(6).is_err());
    }
}
