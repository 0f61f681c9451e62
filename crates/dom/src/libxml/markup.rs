//! The tokens of libxml2 2.14, which follow HTML5.

/// A token of the markup.
#[derive(Debug)]
pub(super) enum Markup {
    Start {
        name: String,
        attributes: Vec<(String, String)>,
        is_closed: bool,
    },
    End(String),
    /// A start tag inside of which the text ends.
    Cut(String),
    Text(String),
    Comment(String),
}

pub(super) struct Scanner<'a> {
    rest: &'a str,
    /// The element whose content is text, and whether character references count in it.
    verbatim: Option<(String, bool)>,
}

/// Attributes that have their own name as their value if they have none.
const BOOLEAN: [&str; 13] = [
    "checked", "compact", "declare", "defer", "disabled", "ismap", "multiple", "nohref", "noresize", "noshade",
    "nowrap", "readonly", "selected",
];

/// Names and values of attributes, each name once.
type Attributes = Vec<(String, String)>;

const SPACES: [char; 5] = [' ', '\t', '\n', '\r', '\u{c}'];

impl<'a> Scanner<'a> {
    pub(super) fn new(html: &'a str) -> Self {
        Self { rest: html.trim_start_matches('\u{feff}').trim_start_matches(SPACES), verbatim: None }
    }

    /// Takes the text before a place, and steps over what follows it.
    fn take(&mut self, end: usize, skipped: usize) -> &'a str {
        let text = &self.rest[..end];
        self.rest = self.rest.get(end + skipped..).unwrap_or_default();
        text
    }

    pub(super) fn next(&mut self) -> Option<Markup> {
        if self.rest.is_empty() {
            return None;
        }
        if let Some((name, decodes)) = self.verbatim.take() {
            let end = end_of(self.rest, &name).unwrap_or(self.rest.len());
            let text = self.take(end, 0);
            if !text.is_empty() {
                let text = if decodes { htmlize::unescape(text).into_owned() } else { text.to_owned() };
                return Some(Markup::Text(text));
            }
            return self.next();
        }
        if !self.rest.starts_with('<') {
            return Some(self.text(0));
        }
        let after = &self.rest[1..];
        match after.chars().next() {
            Some(c) if c.is_ascii_alphabetic() => self.start(),
            Some('/') => match after[1..].chars().next() {
                Some(c) if c.is_ascii_alphabetic() => self.end(),
                Some('>') => {
                    self.take(0, 3);
                    self.next()
                }
                Some(_) => Some(self.bogus(2)),
                None => Some(self.text(2)),
            },
            Some('!') if after.starts_with("!--") => Some(self.comment()),
            Some('!') if after.get(1..8).is_some_and(|own| own.eq_ignore_ascii_case("doctype")) => {
                let end = self.rest.find('>').unwrap_or(self.rest.len());
                self.take(end, 1);
                self.next()
            }
            Some('!') => Some(self.bogus(2)),
            Some('?') => Some(self.bogus(1)),
            _ => Some(self.text(1)),
        }
    }

    /// Text up to the next `<`, which is not searched for within the first bytes.
    fn text(&mut self, from: usize) -> Markup {
        let end = self.rest[from..].find('<').map_or(self.rest.len(), |found| from + found);
        Markup::Text(htmlize::unescape(self.take(end, 0)).into_owned())
    }

    fn bogus(&mut self, from: usize) -> Markup {
        self.take(0, from);
        let end = self.rest.find('>').unwrap_or(self.rest.len());
        Markup::Comment(self.take(end, 1).to_owned())
    }

    fn comment(&mut self) -> Markup {
        self.take(0, 4);
        for short in [">", "->"] {
            if self.rest.starts_with(short) {
                self.take(0, short.len());
                return Markup::Comment(String::new());
            }
        }
        let ends = ["-->", "--!>"].into_iter().filter_map(|end| Some((self.rest.find(end)?, end.len())));
        let (end, length) = ends.min().unwrap_or((self.rest.len(), 0));
        Markup::Comment(self.take(end, length).to_owned())
    }

    fn end(&mut self) -> Option<Markup> {
        self.take(0, 2);
        let (name, _, _) = self.tag()?;
        Some(Markup::End(name))
    }

    fn start(&mut self) -> Option<Markup> {
        self.take(0, 1);
        let end = self.rest.find(|c| SPACES.contains(&c) || c == '/' || c == '>').unwrap_or(self.rest.len());
        let cut = self.rest[..end].to_ascii_lowercase();
        let Some((name, attributes, is_closed)) = self.tag() else {
            self.rest = "";
            return Some(Markup::Cut(cut));
        };
        if !is_closed {
            self.verbatim = match name.as_str() {
                "script" | "style" | "iframe" | "noframes" | "xmp" | "noembed" => Some((name.clone(), false)),
                "title" | "textarea" => Some((name.clone(), true)),
                "plaintext" => Some((String::new(), false)),
                _ => None,
            };
        }
        Some(Markup::Start { name, attributes, is_closed })
    }

    /// The name and the attributes of a tag; `None` if the text ends inside of it.
    fn tag(&mut self) -> Option<(String, Attributes, bool)> {
        let is_end = |c: char| SPACES.contains(&c) || c == '/' || c == '>';
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let name = self.take(end, 0).to_ascii_lowercase();
        let mut attributes: Vec<(String, String)> = Vec::new();
        loop {
            self.rest = self.rest.trim_start_matches(SPACES);
            if self.rest.is_empty() {
                return None;
            }
            if self.rest.starts_with("/>") {
                self.take(0, 2);
                return Some((name, attributes, true));
            }
            if self.rest.starts_with('>') {
                self.take(0, 1);
                return Some((name, attributes, false));
            }
            if self.rest.starts_with('/') {
                self.take(0, 1);
                continue;
            }
            // A name may begin with an equals sign.
            let from = usize::from(self.rest.starts_with('='));
            let end = self.rest[from..].find(|c| is_end(c) || c == '=').map_or(self.rest.len(), |found| from + found);
            let attribute = self.take(end, 0).to_ascii_lowercase();
            let value = match self.value()? {
                Some(value) => value,
                None if BOOLEAN.contains(&attribute.as_str()) => attribute.clone(),
                None => String::new(),
            };
            if !attributes.iter().any(|(known, _)| *known == attribute) {
                attributes.push((attribute, value));
            }
        }
    }

    /// The value of an attribute, if it has one; `None` if the text ends inside of it.
    fn value(&mut self) -> Option<Option<String>> {
        let after = self.rest.trim_start_matches(SPACES);
        let Some(after) = after.strip_prefix('=') else { return Some(None) };
        self.rest = after.trim_start_matches(SPACES);
        let text = match self.rest.chars().next()? {
            quote @ ('"' | '\'') => {
                self.take(0, 1);
                let end = self.rest.find(quote)?;
                self.take(end, 1)
            }
            '>' => "",
            _ => {
                let end = self.rest.find(|c| SPACES.contains(&c) || c == '>').unwrap_or(self.rest.len());
                self.take(end, 0)
            }
        };
        Some(Some(htmlize::unescape_attribute(text).into_owned()))
    }
}

/// The place of the end tag of an element whose content is text.
fn end_of(text: &str, name: &str) -> Option<usize> {
    if name.is_empty() {
        return None;
    }
    text.match_indices("</").map(|(at, _)| at).find(|at| {
        let after = &text[at + 2..];
        after.get(..name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name))
            && after[name.len()..].starts_with(|c| SPACES.contains(&c) || c == '/' || c == '>')
    })
}
