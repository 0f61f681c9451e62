//! The tree that libxml2 2.14 builds of HTML, as lxml gives it to XPath. It implies `html`, `head` and `body`, lets some
//! start tags close the current element, and lets end tags close others by their priority.

mod markup;
mod rules;

use crate::tree::{NodeId, NodeKind, Tree};
use markup::{Markup, Scanner};

/// Builds the tree of a document or a fragment. A text without any content gives a tree without a root.
#[must_use]
pub fn parse(html: &str) -> Tree {
    let mut builder = Builder { tree: Tree::new(), open: Vec::new(), seen_head: false, seen_body: false, ignored: 0 };
    let mut scanner = Scanner::new(html);
    while let Some(markup) = scanner.next() {
        builder.take(markup);
    }
    builder.tree
}

/// The element that `lxml.html.fromstring` returns, with its tree: the whole document if the text begins like one,
/// otherwise the only element, or the body under another name.
#[must_use]
pub fn fromstring(html: &str) -> Option<(Tree, NodeId)> {
    let mut tree = parse(html);
    let root = tree.root()?;
    let begin = html.trim_start_matches(crate::text::is_space).as_bytes();
    let begins = |with: &str| begin.get(..with.len()).is_some_and(|own| own.eq_ignore_ascii_case(with.as_bytes()));
    if begins("<html") || begins("<!doctype") {
        return Some((tree, root));
    }
    let child = |name: &str| tree.elements(root).find(|child| tree.name(*child) == Some(name));
    // With a head, the text has "some sort of structure", which is kept.
    let (Some(body), None) = (child("body"), child("head")) else { return Some((tree, root)) };
    let is_blank = |node: &NodeId| match tree.kind(*node) {
        NodeKind::Text(text) => text.chars().all(crate::text::is_space),
        _ => false,
    };
    let content: Vec<NodeId> = tree.children(body).iter().copied().filter(|node| !is_blank(node)).collect();
    if let [only] = content.as_slice()
        && !matches!(tree.kind(*only), NodeKind::Text(_))
    {
        return Some((tree.clone(), *only));
    }
    let has_block = tree.descendants(body).any(|node| tree.name(node).is_some_and(rules::is_block));
    if let NodeKind::Element { name, .. } = &mut tree.nodes[body.0].kind {
        *name = if has_block { "div" } else { "span" }.to_owned();
    }
    Some((tree, body))
}

struct Builder {
    tree: Tree,
    open: Vec<(NodeId, String)>,
    seen_head: bool,
    seen_body: bool,
    /// Start tags of `html`, `head` and `body` that were ignored; as many end tags are ignored too.
    ignored: usize,
}

impl Builder {
    fn take(&mut self, markup: Markup) {
        match markup {
            Markup::Start { name, attributes, is_closed } => self.start(&name, attributes, is_closed),
            Markup::End(name) => self.end(&name),
            Markup::Cut(name) => {
                self.auto_close(&name);
                self.imply(&name);
            }
            Markup::Text(text) => self.text(&text),
            Markup::Comment(text) => {
                let parent = self.open.last().map_or(Tree::DOCUMENT, |(node, _)| *node);
                self.tree.append(parent, NodeKind::Comment(text));
            }
        }
    }

    fn current(&self) -> Option<&str> {
        self.open.last().map(|(_, name)| name.as_str())
    }

    /// Opens an element. Content after the end of the root element gets a root of its own, which only XPath sees.
    fn push(&mut self, name: &str, attributes: Vec<(String, String)>) {
        self.seen_head |= name == "head" || name == "body";
        self.seen_body |= name == "body";
        let parent = self.open.last().map_or(Tree::DOCUMENT, |(node, _)| *node);
        let node = self.tree.append(parent, NodeKind::Element { name: name.to_owned(), attributes });
        self.open.push((node, name.to_owned()));
    }

    fn auto_close(&mut self, name: &str) {
        while self.current().is_some_and(|current| rules::closes(current, name)) {
            self.open.pop();
        }
    }

    fn imply(&mut self, name: &str) {
        if name == "html" {
            return;
        }
        if self.open.is_empty() {
            self.push("html", Vec::new());
        }
        if matches!(name, "body" | "head") {
            return;
        }
        if self.open.len() <= 1 && matches!(name, "script" | "style" | "meta" | "link" | "title" | "base") {
            if !self.seen_head {
                self.push("head", Vec::new());
            }
        } else if !matches!(name, "noframes" | "frame" | "frameset")
            && !self.seen_body
            && !self.open.iter().any(|(_, open)| matches!(open.as_str(), "body" | "head"))
        {
            self.push("body", Vec::new());
        }
    }

    fn start(&mut self, name: &str, attributes: Vec<(String, String)>, is_closed: bool) {
        self.auto_close(name);
        self.imply(name);
        let is_misplaced = match name {
            "html" => !self.open.is_empty(),
            "head" => self.open.len() != 1,
            "body" => self.open.iter().any(|(_, open)| open == "body"),
            _ => false,
        };
        if is_misplaced {
            self.ignored += 1;
            if is_closed {
                // The end of the tag closes the element that it is in.
                self.open.pop();
            }
            return;
        }
        self.push(name, attributes);
        if is_closed || rules::is_empty(name) {
            self.open.pop();
        }
    }

    fn end(&mut self, name: &str) {
        if self.ignored > 0 && matches!(name, "html" | "body" | "head") {
            self.ignored -= 1;
            return;
        }
        let priority = rules::priority(name);
        for (_, open) in self.open.iter().rev() {
            if open == name {
                break;
            }
            if rules::priority(open) > priority {
                return;
            }
        }
        if !self.open.iter().any(|(_, open)| open == name) {
            return;
        }
        while self.current().is_some_and(|current| current != name) {
            self.open.pop();
        }
        self.open.pop();
    }

    fn text(&mut self, text: &str) {
        let is_blank = text.chars().all(|c| " \t\r\n\u{c}".contains(c));
        if !is_blank {
            if self.current() == Some("head") {
                self.open.pop();
            }
            self.imply("#text");
        }
        // White space before and after the root element has no place.
        if let Some((node, _)) = self.open.last() {
            self.tree.append_text(*node, text);
        }
    }
}
