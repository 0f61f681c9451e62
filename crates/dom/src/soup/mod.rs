//! The tree that Beautiful Soup builds with Python's `html.parser`. That parser knows nothing of HTML's structure: no
//! element is implied, and none is closed by another one. An end tag closes everything inside its element, and is
//! ignored if no such element is open.

mod markup;

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
    open: Vec<(NodeId, String)>,
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
            open: vec![(Tree::DOCUMENT, String::new())],
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
        self.open.last().map_or(Tree::DOCUMENT, |(node, _)| *node)
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Start { name, attributes, is_closed } => {
                self.start(&name, attributes);
                if is_closed {
                    self.pop_to(&name);
                } else if EMPTY.contains(&name.as_str()) {
                    self.pop_to(&name);
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

    fn start(&mut self, name: &str, attributes: Vec<(String, String)>) {
        self.flush();
        let parent = self.current();
        let node = self.tree.append(parent, NodeKind::Element { name: name.to_owned(), attributes });
        self.open.push((node, name.to_owned()));
        *self.counts.entry(name.to_owned()).or_default() += 1;
        self.preserving += usize::from(is_preserving(name));
    }

    fn pop_to(&mut self, name: &str) {
        self.flush();
        if self.counts.get(name).copied().unwrap_or_default() == 0 {
            return;
        }
        while self.open.len() > 1 {
            let Some((_, popped)) = self.open.pop() else { return };
            if let Some(count) = self.counts.get_mut(&popped) {
                *count -= 1;
            }
            self.preserving -= usize::from(is_preserving(&popped));
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
