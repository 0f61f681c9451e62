//! Builds the marked tree from the events of a YAML parser, within limits, because definitions are not trusted.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span as YamlSpan, StrInput, Tag};

use super::problems::Problems;
use super::source::{Position, SOURCE_MAX_BYTES, SourceFile, Span};
use super::tree::{DocumentNode, DocumentValue, MappingEntry, Scalar, TypedScalar};

/// Maximum nesting depth of lists and mappings. Definitions need about ten levels.
const DEPTH_MAX: usize = 40;

/// Maximum number of values in a document after its aliases are expanded.
const NODES_MAX: usize = 50_000;

/// Maximum total length of the texts of a document after its aliases are expanded, in bytes.
const TEXT_MAX_BYTES: usize = 1024 * 1024;

/// Reads one YAML document.
///
/// Returns `None` if the file is not valid YAML, which has then been reported. Problems that do not hide the rest, such
/// as duplicate keys, are reported, and the tree is returned.
pub(crate) fn parse(source: &SourceFile, problems: &Problems) -> Option<DocumentNode> {
    if source.text.len() > SOURCE_MAX_BYTES {
        problems
            .at(source, Span::START, "too-large", format!("the file has {} bytes", source.text.len()))
            .expected(format!("at most {SOURCE_MAX_BYTES} bytes"))
            .report();
        return None;
    }
    let text = source.text.strip_prefix('\u{feff}').unwrap_or(&source.text);
    let mut builder =
        Builder { parser: Parser::new_from_str(text), source, problems, anchors: HashMap::new(), nodes: 0, bytes: 0 };
    let root = builder.document().ok()?;
    root.or_else(|| {
        Some(DocumentNode {
            span: Span::START,
            value: DocumentValue::Scalar(Scalar { text: String::new(), written: None, is_text: false }),
        })
    })
}

/// Signals that the document cannot be read further; the reason has been reported.
struct ParseStop;

struct Builder<'a> {
    parser: Parser<'a, StrInput<'a>>,
    source: &'a SourceFile,
    problems: &'a Problems,
    anchors: HashMap<usize, DocumentNode>,
    nodes: usize,
    bytes: usize,
}

impl<'a> Builder<'a> {
    fn document(&mut self) -> Result<Option<DocumentNode>, ParseStop> {
        let mut root = None;
        let mut documents = 0;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
                Event::DocumentStart(_) => {
                    documents += 1;
                    if documents > 1 {
                        let message = "the file holds more than one YAML document";
                        self.refuse("documents", span, message, "one document per file")?;
                    }
                }
                event => root = Some(self.node(event, span, 0)?),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), ParseStop> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, to_span(span))),
            Some(Err(error)) => {
                let span = Span::at(to_position(*error.marker()));
                if error.info().contains("unknown anchor") {
                    return self.refuse(
                        "alias",
                        span,
                        "the alias refers to an anchor that does not exist",
                        "an anchor further up, such as `&name`",
                    );
                }
                let draft = self.problems.at(self.source, span, "yaml", format!("this is not YAML: {}", error.info()));
                let line = self.source.line(span.start.line);
                let indent = line.len() - line.trim_start().len();
                let help = if line[..indent].contains('\t') {
                    Some("YAML indents with spaces, never with tabs".to_owned())
                } else if line.contains("${") && line.contains(['[', '{']) {
                    Some("inside of `[ ]` and `{ }`, put a value with a variable in quotes: `\"${NAME}\"`".to_owned())
                } else {
                    None
                };
                draft.maybe_help(help).report();
                Err(ParseStop)
            }
            None => Ok((Event::StreamEnd, Span::START)),
        }
    }

    fn refuse<T>(&self, code: &str, span: Span, message: &str, expected: &str) -> Result<T, ParseStop> {
        self.problems.at(self.source, span, code, message).expected(expected).report();
        Err(ParseStop)
    }

    /// Charges a value to the document's limits before the value is kept.
    fn charge(&mut self, span: Span, nodes: usize, bytes: usize) -> Result<(), ParseStop> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.nodes > NODES_MAX || self.bytes > TEXT_MAX_BYTES {
            let expected =
                format!("at most {NODES_MAX} values and {TEXT_MAX_BYTES} bytes of text once all aliases are expanded");
            return self.refuse("too-large", span, "the document grows too large here", &expected);
        }
        Ok(())
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<DocumentNode, ParseStop> {
        if depth > DEPTH_MAX {
            let expected = format!("at most {DEPTH_MAX} levels");
            return self.refuse("too-deep", span, "lists and mappings nest too deeply", &expected);
        }
        let (node, anchor) = match event {
            Event::Alias(id) => return self.alias(id, span),
            Event::Scalar(text, style, anchor, tag) => {
                self.charge(span, 1, text.len())?;
                let is_text = self.says_text(style, tag.as_deref(), span);
                let scalar = Scalar { text: text.into_owned(), written: None, is_text };
                let value = DocumentValue::Scalar(scalar);
                (DocumentNode { span, value }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.charge(span, 1, 0)?;
                self.collection_tag(tag.as_deref(), "seq", span);
                (self.sequence(span, depth)?, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                self.charge(span, 1, 0)?;
                self.collection_tag(tag.as_deref(), "map", span);
                (self.mapping(span, depth)?, anchor)
            }
            _ => return self.refuse("yaml", span, "the document ends too early", "a value"),
        };
        if anchor != 0 {
            // The copy kept for aliases is charged too. Otherwise nested anchors would multiply without limit.
            let (nodes, bytes) = weight(&node);
            self.charge(node.span, nodes, bytes)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<DocumentNode, ParseStop> {
        let Some(target) = self.anchors.get(&id) else {
            return self.refuse(
                "alias",
                span,
                "the alias stands inside of the value that it refers to",
                "an alias to a value that is complete",
            );
        };
        let (nodes, bytes) = weight(target);
        self.charge(span, nodes, bytes)?;
        Ok(self.anchors[&id].clone())
    }

    fn sequence(&mut self, start: Span, depth: usize) -> Result<DocumentNode, ParseStop> {
        let mut items = Vec::new();
        let end = loop {
            let (event, span) = self.next()?;
            match event {
                Event::SequenceEnd => break span,
                event => items.push(self.node(event, span, depth + 1)?),
            }
        };
        Ok(DocumentNode { span: Span { start: start.start, end: end.end }, value: DocumentValue::Sequence(items) })
    }

    fn mapping(&mut self, start: Span, depth: usize) -> Result<DocumentNode, ParseStop> {
        let mut entries: Vec<MappingEntry> = Vec::new();
        let mut places: HashMap<String, Span> = HashMap::new();
        let mut merged: Vec<(Span, DocumentNode)> = Vec::new();
        let end = loop {
            let (event, key_span) = self.next()?;
            if event == Event::MappingEnd {
                break key_span;
            }
            let is_merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let key = self.node(event, key_span, depth + 1)?;
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            let Some(key) = self.key_text(&key, key_span) else {
                continue;
            };
            if let Some(first) = places.insert(key.clone(), key_span) {
                self.problems
                    .at(self.source, key_span, "duplicate-key", format!("the key `{key}` occurs twice"))
                    .related(self.source, first, "the first one")
                    .help("remove one of the two")
                    .report();
                places.insert(key, first);
            } else if is_merge {
                merged.push((key_span, value));
            } else {
                entries.push(MappingEntry { key, key_span, value });
            }
        };
        for (key_span, value) in merged {
            self.merge(key_span, value, &mut places, &mut entries)?;
        }
        Ok(DocumentNode { span: Span { start: start.start, end: end.end }, value: DocumentValue::Mapping(entries) })
    }

    /// Adds the entries of `<<` that the mapping itself lacks. If several sources have a key, the first source wins.
    fn merge(
        &mut self,
        key_span: Span,
        value: DocumentNode,
        places: &mut HashMap<String, Span>,
        entries: &mut Vec<MappingEntry>,
    ) -> Result<(), ParseStop> {
        let sources = match value.value {
            DocumentValue::Sequence(items) => items,
            value_kind => vec![DocumentNode { span: value.span, value: value_kind }],
        };
        for source in sources {
            let DocumentValue::Mapping(inherited) = source.value else {
                self.problems
                    .at(self.source, key_span, "merge", format!("`<<` merges mappings, but this is {}", source.found()))
                    .expected("an alias to a mapping, or a list of them")
                    .report();
                continue;
            };
            for entry in inherited {
                if !places.contains_key(&entry.key) {
                    places.insert(entry.key.clone(), entry.key_span);
                    entries.push(entry);
                }
            }
        }
        Ok(())
    }

    fn key_text(&self, key: &DocumentNode, span: Span) -> Option<String> {
        let text = key.scalar().filter(|scalar| scalar.typed() != TypedScalar::Null).map(|scalar| scalar.text.clone());
        if text.is_none() {
            self.problems
                .at(self.source, span, "key", format!("a key must be text, but this is {}", key.found()))
                .report();
        }
        text
    }

    fn says_text(&self, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> bool {
        let Some(tag) = tag else {
            return style != ScalarStyle::Plain;
        };
        if tag.is_yaml_core_schema() && tag.suffix == "str" {
            return true;
        }
        let natural = ["int", "float", "bool", "null"].contains(&tag.suffix.as_str());
        if !(tag.is_yaml_core_schema() && natural && style == ScalarStyle::Plain) {
            self.report_tag(tag, span);
        }
        style != ScalarStyle::Plain
    }

    fn collection_tag(&self, tag: Option<&Tag>, natural: &str, span: Span) {
        if let Some(tag) = tag
            && !(tag.is_yaml_core_schema() && tag.suffix == natural)
        {
            self.report_tag(tag, span);
        }
    }

    fn report_tag(&self, tag: &Tag, span: Span) {
        let shown = if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
        self.problems
            .at(self.source, span, "tag", format!("the tag `{shown}` is not supported"))
            .expected("a plain value, or `!!str` before a text that looks like a number")
            .report();
    }
}

/// Returns the number of values and the bytes of text in a tree.
fn weight(node: &DocumentNode) -> (usize, usize) {
    let sum = |a: (usize, usize), b: (usize, usize)| (a.0 + b.0, a.1 + b.1);
    match &node.value {
        DocumentValue::Scalar(scalar) => (1, scalar.text.len()),
        DocumentValue::Sequence(items) => items.iter().map(weight).fold((1, 0), sum),
        DocumentValue::Mapping(entries) => {
            entries.iter().map(|entry| sum((1, entry.key.len()), weight(&entry.value))).fold((1, 0), sum)
        }
    }
}

fn to_position(marker: Marker) -> Position {
    Position { line: marker.line().max(1), column: marker.col() + 1 }
}

fn to_span(span: YamlSpan) -> Span {
    Span { start: to_position(span.start), end: to_position(span.end) }
}
