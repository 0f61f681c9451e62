//! Matches elements against selectors.

use std::borrow::Cow;
use std::collections::HashMap;

use super::selector::{
    AttributeTest, Compound, Contains, Flag, Nth, Place, Relation, SelectorList, TagTest, ValueTest,
};
use crate::text::{is_space, lower};
use crate::tree::{NodeId, NodeKind, Tree};

/// Positions of elements among their siblings, by parent and rule.
type Positions = HashMap<(NodeId, *const Nth), HashMap<NodeId, i64>>;

pub(super) struct Matcher<'a> {
    tree: &'a Tree,
    root: Option<NodeId>,
    positions: Positions,
    /// The positions of elements among their siblings from the start and from the end, by node; empty until one is asked for.
    places: Vec<(u32, u32)>,
    /// Whether one of an element's ancestors matches, by relation.
    ancestors: HashMap<(NodeId, *const Relation), bool>,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(tree: &'a Tree) -> Self {
        Self { tree, root: tree.root(), positions: HashMap::new(), places: Vec::new(), ancestors: HashMap::new() }
    }

    /// Returns the elements of the document in order. The content of `template` is not part of it.
    pub(super) fn candidates(tree: &'a Tree) -> impl Iterator<Item = NodeId> + 'a {
        let mut open: Vec<NodeId> = tree.elements(Tree::DOCUMENT).rev().collect();
        std::iter::from_fn(move || {
            let element = open.pop()?;
            if !is_template(tree, element) {
                open.extend(tree.elements(element).rev());
            }
            Some(element)
        })
    }

    fn is_template(&self, node: NodeId) -> bool {
        is_template(self.tree, node)
    }

    /// Returns the parent element within the same tree.
    fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.tree.parent(node).filter(|parent| self.tree.is_element(*parent) && !self.is_template(*parent))
    }

    fn elements(&self, node: NodeId) -> Vec<NodeId> {
        if self.is_template(node) { Vec::new() } else { self.tree.elements(node).collect() }
    }

    pub(super) fn matches(&mut self, element: NodeId, list: &SelectorList) -> bool {
        list.is_not != list.alternatives.iter().any(|one| self.fits(element, one))
    }

    fn fits(&mut self, element: NodeId, one: &Compound) -> bool {
        !one.is_void
            && one.tag.as_ref().is_none_or(|tag| self.is_tag(element, tag))
            && one.flags.iter().all(|flag| self.has_flag(element, *flag))
            && one.nth.iter().all(|nth| self.is_nth(element, nth))
            && one.ids.iter().all(|id| self.value(element, "id").unwrap_or_default() == *id.as_str())
            && self.has_classes(element, &one.classes)
            && one.attributes.iter().all(|test| self.has_attribute(element, test))
            && one.languages.iter().all(|ranges| self.has_language(element, ranges))
            && one.lists.iter().all(|list| self.matches(element, list))
            && one.relation.as_ref().is_none_or(|relation| self.is_related(element, relation))
            && one.contains.iter().all(|contains| self.contains(element, contains))
    }

    fn is_tag(&self, element: NodeId, tag: &TagTest) -> bool {
        // Every element is in the namespace of HTML, and no prefix is declared.
        tag.prefix.as_deref().is_none_or(|prefix| prefix == "*")
            && (tag.name == "*" || self.tree.name(element).is_some_and(|name| name.eq_ignore_ascii_case(&tag.name)))
    }

    fn has_flag(&self, element: NodeId, flag: Flag) -> bool {
        match flag {
            // In a document, the scope is its root.
            Flag::Scope => self.root == Some(element),
            Flag::Root => self.root == Some(element) && self.stands_alone(element),
            Flag::Empty => {
                self.is_template(element)
                    || self.tree.children(element).iter().all(|child| match self.tree.kind(*child) {
                        NodeKind::Element { .. } => false,
                        NodeKind::Text(text) => text.chars().all(|c| " \t\r\n\u{c}".contains(c)),
                        _ => true,
                    })
            }
            Flag::Defined => self
                .tree
                .name(element)
                .is_some_and(|name| (!name.contains('-') && self.value(element, "is").is_none()) || name.contains(':')),
        }
    }

    fn stands_alone(&self, element: NodeId) -> bool {
        let (before, after) = self.tree.siblings(element);
        before.iter().chain(after).all(|sibling| match self.tree.kind(*sibling) {
            NodeKind::Element { .. } | NodeKind::CData(_) => false,
            NodeKind::Text(text) => text.chars().all(is_space),
            _ => true,
        })
    }

    /// Returns the value of an attribute; Beautiful Soup splits lists of words and joins them again.
    fn value(&self, element: NodeId, name: &str) -> Option<Cow<'a, str>> {
        let attributes = self.tree.attributes(element);
        let (known, value) = attributes.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        if !is_list(self.tree.name(element).unwrap_or_default(), known) {
            return Some(Cow::Borrowed(value));
        }
        Some(Cow::Owned(value.split(is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")))
    }

    fn has_classes(&self, element: NodeId, classes: &[String]) -> bool {
        if classes.is_empty() {
            return true;
        }
        let attributes = self.tree.attributes(element);
        let Some((_, value)) = attributes.iter().find(|(known, _)| known.eq_ignore_ascii_case("class")) else {
            return false;
        };
        classes.iter().all(|class| value.split(is_space).any(|known| known == class && !known.is_empty()))
    }

    fn has_attribute(&self, element: NodeId, test: &AttributeTest) -> bool {
        let Some(value) = self.value(element, &test.name) else {
            return matches!(test.test, ValueTest::Differs(_));
        };
        let value = if test.ignores_case { Cow::Owned(lower(&value)) } else { value };
        let is_css_space = |c: char| " \t\r\n\u{c}".contains(c);
        match &test.test {
            ValueTest::Exists => true,
            ValueTest::Equals(text) => value == *text,
            ValueTest::Differs(text) => value != *text,
            ValueTest::Begins(text) => !text.is_empty() && value.starts_with(text.as_str()),
            ValueTest::Ends(text) => !text.is_empty() && value.ends_with(text.as_str()),
            ValueTest::Includes(text) => !text.is_empty() && value.contains(text.as_str()),
            ValueTest::Word(text) => {
                !text.is_empty() && !text.contains(is_css_space) && value.split(is_css_space).any(|word| word == text)
            }
            ValueTest::Dashed(text) => {
                value.strip_prefix(text.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            }
        }
    }

    fn is_nth(&mut self, element: NodeId, nth: &Nth) -> bool {
        let Some(parent) = self.tree.parent(element) else { return false };
        let index = if nth.of.is_none() && !nth.of_type {
            self.place(element, nth.from_end)
        } else {
            let key = (parent, std::ptr::from_ref(nth));
            if !self.positions.contains_key(&key) {
                let positions = self.counted(parent, nth);
                self.positions.insert(key, positions);
            }
            let Some(index) = self.positions[&key].get(&element).copied() else { return false };
            index
        };
        let distance = index - nth.offset;
        if nth.step == 0 { distance == 0 } else { distance % nth.step == 0 && distance / nth.step >= 0 }
    }

    /// Returns the position of an element among the elements of its parent.
    fn place(&mut self, element: NodeId, from_end: bool) -> i64 {
        if self.places.is_empty() {
            self.places = places(self.tree);
        }
        let (from_start, of_end) = self.places[element.0];
        i64::from(if from_end { of_end } else { from_start })
    }

    /// Returns the positions of the children that a rule counts.
    fn counted(&mut self, parent: NodeId, nth: &Nth) -> HashMap<NodeId, i64> {
        let mut children: Vec<NodeId> = self.tree.elements(parent).collect();
        if nth.from_end {
            children.reverse();
        }
        let (mut counts, mut out) = (HashMap::new(), HashMap::new());
        for child in children {
            if nth.of.as_ref().is_some_and(|of| !self.matches(child, of)) {
                continue;
            }
            let kind = if nth.of_type { self.tree.name(child).map(lower).unwrap_or_default() } else { String::new() };
            let count: &mut i64 = counts.entry(kind).or_default();
            *count += 1;
            out.insert(child, *count);
        }
        out
    }

    fn is_related(&mut self, element: NodeId, relation: &Relation) -> bool {
        let (before, after) = self.tree.siblings(element);
        let is_element = |node: &NodeId| self.tree.is_element(*node);
        let candidates: Vec<NodeId> = match relation.place {
            Place::Ancestor => return self.has_ancestor(element, relation),
            Place::Parent => self.parent(element).into_iter().collect(),
            Place::EarlierSibling => before.iter().copied().filter(is_element).collect(),
            Place::PreviousSibling => before.iter().rev().copied().find(is_element).into_iter().collect(),
            Place::Child => self.elements(element),
            Place::LaterSibling => after.iter().copied().filter(is_element).collect(),
            Place::NextSibling => after.iter().copied().find(is_element).into_iter().collect(),
            Place::Descendant => {
                let (mut out, mut open) = (Vec::new(), self.elements(element));
                while let Some(next) = open.pop() {
                    out.push(next);
                    open.extend(self.elements(next));
                }
                out
            }
        };
        candidates.into_iter().any(|other| self.fits(other, &relation.other))
    }

    /// Returns whether an ancestor fits. The answer is kept for all ancestors on the way, so that deep documents take
    /// no time that grows with the square of their depth.
    fn has_ancestor(&mut self, element: NodeId, relation: &Relation) -> bool {
        let rule = std::ptr::from_ref(relation);
        let (mut visited, mut found, mut next) = (Vec::new(), false, self.parent(element));
        while let Some(ancestor) = next {
            if let Some(known) = self.ancestors.get(&(ancestor, rule)) {
                found = *known;
                break;
            }
            visited.push(ancestor);
            if self.fits(ancestor, &relation.other) {
                found = true;
                break;
            }
            next = self.parent(ancestor);
        }
        self.ancestors.extend(visited.into_iter().map(|ancestor| ((ancestor, rule), found)));
        found
    }

    /// Returns whether the language of an element, which the nearest `lang` names, is in one of some ranges.
    fn has_language(&self, element: NodeId, ranges: &[String]) -> bool {
        let nearest = std::iter::once(element).chain(self.tree.ancestors(element));
        let language = nearest.into_iter().find_map(|node| self.value(node, "lang")).unwrap_or_default();
        let language = lower(&language);
        let tags: Vec<&str> = language.split('-').collect();
        ranges.iter().any(|range| {
            let range = lower(range);
            if range.is_empty() || language.is_empty() {
                return range.is_empty() && language.is_empty();
            }
            let mut parts = range.split('-');
            let first = parts.next().unwrap_or_default();
            if first != "*" && first != tags[0] {
                return false;
            }
            let mut at = 1;
            parts.filter(|part| *part != "*").all(|part| {
                let skipped =
                    tags[at.min(tags.len())..].iter().take_while(|tag| **tag != part && tag.len() > 1).count();
                at += skipped + 1;
                tags.get(at - 1) == Some(&part)
            })
        })
    }

    fn contains(&self, element: NodeId, contains: &Contains) -> bool {
        let is_text = |node: &NodeId| match self.tree.kind(*node) {
            NodeKind::Text(text) => Some(text.as_str()),
            _ => None,
        };
        if self.is_template(element) {
            return contains.texts.iter().any(String::is_empty) && !contains.own;
        }
        if contains.own {
            let own: Vec<&str> = self.tree.children(element).iter().filter_map(is_text).collect();
            return contains.texts.iter().any(|text| own.iter().any(|own| own.contains(text.as_str())));
        }
        let (mut whole, mut open) = (String::new(), vec![element]);
        while let Some(node) = open.pop() {
            whole.extend(is_text(&node));
            if !self.is_template(node) {
                open.extend(self.tree.children(node).iter().rev());
            }
        }
        contains.texts.iter().any(|text| whole.contains(text.as_str()))
    }
}

fn is_template(tree: &Tree, node: NodeId) -> bool {
    tree.name(node).is_some_and(|name| name.eq_ignore_ascii_case("template"))
}

/// Returns the positions of all elements among the elements of their parents, from the start and from the end, by node.
fn places(tree: &Tree) -> Vec<(u32, u32)> {
    let mut places = vec![(0, 0); tree.nodes.len()];
    for parent in (0..tree.nodes.len()).map(NodeId) {
        for (child, place) in tree.elements(parent).zip(1..) {
            places[child.0].0 = place;
        }
        for (child, place) in tree.elements(parent).rev().zip(1..) {
            places[child.0].1 = place;
        }
    }
    places
}

/// Returns whether Beautiful Soup takes an attribute for a list of words.
fn is_list(element: &str, attribute: &str) -> bool {
    match attribute {
        "class" | "accesskey" | "dropzone" => true,
        "rel" => matches!(element, "a" | "link" | "area"),
        "rev" => matches!(element, "a" | "link"),
        "headers" => matches!(element, "td" | "th"),
        "accept-charset" => element == "form",
        "archive" => element == "object",
        "sizes" => element == "icon",
        "sandbox" => element == "iframe",
        "for" => element == "output",
        _ => false,
    }
}
