//! The tree that Beautiful Soup builds with Python's `html.parser`. That parser knows nothing of HTML's structure: no
//! element is implied, and none is closed by another one. An end tag closes everything inside its element, and is
//! ignored if no such element is open.

mod markup;
mod usual;

use std::collections::HashMap;

use crate::tree::{NodeId, NodeKind, Tree};
use markup::{Event, Scanner};

/// Elements without content, which are closed at once.
const EMPTY: [&str; 24] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "keygen", "link", "menuitem", "meta", "param",
    "source", "track", "wbr", "basefont", "bgsound", "command", "frame", "image", "isindex", "nextid", "spacer",
];

/// Builds the tree of a document or a fragment.
///
/// Markup that Python refuses (`<![x[`, for example) gives the tree up to that place; see [`try_parse`].
#[must_use]
pub fn parse(html: &str) -> Tree {
    let mut builder = Builder::new();
    let mut scanner = Scanner::new(html);
    scanner.run(&mut |event| builder.take(event));
    builder.end()
}

/// Builds the tree of a document, or returns `None` if Python refuses the markup.
#[must_use]
pub fn try_parse(html: &str) -> Option<Tree> {
    let mut builder = Builder::new();
    let mut scanner = Scanner::new(html);
    scanner.run(&mut |event| builder.take(event)).then(|| builder.end())
}

struct Builder {
    tree: Tree,
    /// The open elements, the document first.
    open: Vec<NodeId>,
    /// How many elements of a name are open.
    counts: HashMap<String, usize>,
    /// Empty elements that were closed without an end tag; a later end tag belongs to them.
    closed: HashMap<String, usize>,
    data: String,
    has_data: bool,
    /// The number of open elements that keep their white space.
    preserving: usize,
}

impl Builder {
    fn new() -> Self {
        Self {
            tree: Tree::new(),
            open: vec![Tree::DOCUMENT],
            counts: HashMap::new(),
            closed: HashMap::new(),
            data: String::new(),
            has_data: false,
            preserving: 0,
        }
    }

    fn end(mut self) -> Tree {
        self.flush();
        self.tree
    }

    fn current(&self) -> NodeId {
        self.open.last().copied().unwrap_or(Tree::DOCUMENT)
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start { name, attributes, is_closed } => {
                let is_empty = EMPTY.contains(&name.as_str());
                if !is_closed && !is_empty {
                    self.start(name, attributes);
                    return;
                }
                self.start(name.clone(), attributes);
                self.pop_to(&name);
                if !is_closed {
                    *self.closed.entry(name).or_default() += 1;
                }
            }
            Event::End(name) => match self.closed.get_mut(&name) {
                Some(count) if *count > 0 => *count -= 1,
                _ => self.pop_to(&name),
            },
            Event::Data(text) => {
                self.has_data = true;
                self.data.push_str(&text);
            }
            Event::Special(kind) => {
                self.flush();
                let parent = self.current();
                self.tree.append(parent, kind);
            }
        }
    }

    fn start(&mut self, name: String, attributes: Vec<(String, String)>) {
        self.flush();
        match self.counts.get_mut(&name) {
            Some(count) => *count += 1,
            None => _ = self.counts.insert(name.clone(), 1),
        }
        self.preserving += usize::from(is_preserving(&name));
        let parent = self.current();
        let node = self.tree.append(parent, NodeKind::Element { name, attributes });
        self.open.push(node);
    }

    fn pop_to(&mut self, name: &str) {
        self.flush();
        if self.counts.get(name).copied().unwrap_or_default() == 0 {
            return;
        }
        while self.open.len() > 1 {
            let Some(popped) = self.open.pop().and_then(|node| self.tree.name(node)) else { return };
            if let Some(count) = self.counts.get_mut(popped) {
                *count -= 1;
            }
            self.preserving -= usize::from(is_preserving(popped));
            if popped == name {
                return;
            }
        }
    }

    /// Ends a text. White space alone becomes one character.
    fn flush(&mut self) {
        if !std::mem::take(&mut self.has_data) {
            return;
        }
        let mut text = std::mem::take(&mut self.data);
        if self.preserving == 0 && text.chars().all(|c| "\n\t\u{c}\r ".contains(c)) {
            text = if text.contains('\n') { "\n" } else { " " }.to_owned();
        }
        let parent = self.current();
        self.tree.append(parent, NodeKind::Text(text));
    }
}

fn is_preserving(name: &str) -> bool {
    matches!(name, "pre" | "textarea")
}
