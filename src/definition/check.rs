//! Holds a marked tree against a JSON Schema and reports every difference at its place.
//!
//! It understands the part of JSON Schema that [`super::schema`] produces. Two keywords are arenad's own use: `title`
//! says in words what is accepted, and `x-refused-keys` says why a key that Compose knows is refused.

use std::cell::RefCell;
use std::collections::HashMap;

use regex::Regex;
use serde_json::{Map, Value as Json};

use super::problems::{Problems, did_you_mean, quoted_list};
use super::source::{SourceFile, Span};
use super::tree::{Entry, Node, Scalar, Typed, Value};

/// Reports everything about a document that its schema refuses; returns the document as JSON without its extensions.
pub(crate) fn check(schema: &Json, root: &Node, source: &SourceFile, problems: &Problems) -> Json {
    let checker = Checker {
        definitions: schema.get("$defs").unwrap_or(&Json::Null),
        source,
        problems,
        patterns: RefCell::default(),
    };
    checker.walk(
        root,
        schema,
        &Place {
            name: "the file".to_owned(),
            span: root.span,
        },
    )
}

struct Checker<'a> {
    definitions: &'a Json,
    source: &'a SourceFile,
    problems: &'a Problems,
    patterns: RefCell<HashMap<String, Option<Regex>>>,
}

/// What a value is called in messages, and where to point when the value itself shows nothing.
struct Place {
    name: String,
    span: Span,
}

impl<'a> Checker<'a> {
    fn walk(&self, node: &Node, schema: &'a Json, place: &Place) -> Json {
        let forms = self.forms(schema);
        let kind = kind_of(node);
        let form = forms.iter().find(|form| accepts(form, kind));
        let Some(form) = form else {
            self.report_type(node, schema, &forms, place);
            return Json::Null;
        };
        match &node.value {
            Value::Scalar(scalar) => self.check_scalar(node, scalar, schema, form, place),
            Value::Sequence(items) => self.check_sequence(node, items, form, place),
            Value::Mapping(entries) => self.check_mapping(node, entries, form, place),
        }
    }

    /// The alternatives that a schema stands for, without references.
    fn forms(&self, schema: &'a Json) -> Vec<&'a Json> {
        let schema = self.resolve(schema);
        let alternatives = schema.get("anyOf").or_else(|| {
            // An enumeration of documented values is an alternative of constants; it is one form, not several.
            schema.get("oneOf").filter(|forms| constants(forms).is_none())
        });
        match alternatives.and_then(Json::as_array) {
            Some(forms) => forms.iter().flat_map(|form| self.forms(form)).collect(),
            None => vec![schema],
        }
    }

    fn resolve(&self, schema: &'a Json) -> &'a Json {
        let target = schema.get("$ref").and_then(Json::as_str);
        target
            .and_then(|target| target.strip_prefix("#/$defs/"))
            .and_then(|name| self.definitions.get(name))
            .unwrap_or(schema)
    }

    fn report_type(&self, node: &Node, schema: &Json, forms: &[&Json], place: &Place) {
        let found = node.found();
        let span = if matches!(&node.value, Value::Scalar(scalar) if scalar.text.is_empty()) {
            place.span
        } else {
            node.span
        };
        let wants_text = forms.iter().any(|form| accepts(form, "string"));
        let wants_list = forms.iter().any(|form| accepts(form, "array"));
        let help = match node.scalar() {
            Some(scalar) if scalar.text.is_empty() => None,
            Some(scalar) if wants_text && scalar.typed() != Typed::Text => Some(self.as_text(scalar, forms)),
            Some(scalar) if scalar.is_text && !wants_text => {
                let bare = Scalar {
                    is_text: false,
                    ..scalar.clone()
                };
                let kind = scalar_kind(&bare);
                forms
                    .iter()
                    .any(|form| accepts(form, kind))
                    .then(|| "remove the quotes".to_owned())
            }
            Some(scalar) if wants_list => Some(format!("write `[{}]`", super::tree::excerpt(&scalar.text))),
            _ => None,
        };
        self.problems
            .at(self.source, span, "type", format!("{} is {found}", place.name))
            .expected(self.describe(schema))
            .maybe_help(help)
            .report();
    }

    /// How to turn a number or truth value into the text that is wanted.
    fn as_text(&self, scalar: &Scalar, forms: &[&Json]) -> String {
        let in_seconds = format!("{}s", scalar.text);
        let is_period = forms
            .iter()
            .filter_map(|form| form.get("pattern").and_then(Json::as_str))
            .any(|pattern| self.matches(pattern, &in_seconds) && !self.matches(pattern, "s"));
        if is_period {
            format!("write the unit: `{in_seconds}`")
        } else {
            format!("put it in quotes: `\"{}\"`", scalar.text)
        }
    }

    fn check_scalar(&self, node: &Node, scalar: &Scalar, whole: &Json, form: &Json, place: &Place) -> Json {
        let value = node.to_json();
        let refuse = |message: String| {
            let draft = self.problems.at(self.source, node.span, "value", message);
            draft.expected(self.describe(whole))
        };
        if let Some(allowed) = allowed_values(form) {
            if !allowed.contains(&value) {
                let words: Vec<&str> = allowed.iter().filter_map(Json::as_str).collect();
                refuse(format!("{} is {}", place.name, node.found()))
                    .expected(format!("one of {}", quoted_list(words.iter().copied())))
                    .maybe_help(did_you_mean(&scalar.text, words))
                    .report();
            }
            return value;
        }
        if let Some(number) = value.as_f64() {
            let below = form
                .get("minimum")
                .and_then(Json::as_f64)
                .is_some_and(|least| number < least);
            let above = form
                .get("maximum")
                .and_then(Json::as_f64)
                .is_some_and(|most| number > most);
            if below || above {
                refuse(format!("{} is {}", place.name, node.found()))
                    .expected(self.describe_range(whole, form))
                    .report();
            }
        }
        if let (Json::String(text), Some(pattern)) = (&value, form.get("pattern").and_then(Json::as_str))
            && !self.matches(pattern, text)
        {
            refuse(format!("{} is {}", place.name, node.found())).report();
        }
        value
    }

    fn check_sequence(&self, node: &Node, items: &[Node], form: &'a Json, place: &Place) -> Json {
        let least = form.get("minItems").and_then(Json::as_u64).unwrap_or(0);
        if (items.len() as u64) < least {
            self.problems
                .at(
                    self.source,
                    node.span,
                    "value",
                    format!("{} is {}", place.name, node.found()),
                )
                .expected("at least one entry")
                .report();
        }
        let schema = form.get("items").unwrap_or(&Json::Bool(true));
        let named = |index: usize, item: &Node| Place {
            name: format!("entry {} of {}", index + 1, place.name),
            span: item.span,
        };
        items
            .iter()
            .enumerate()
            .map(|(index, item)| self.walk(item, schema, &named(index, item)))
            .collect()
    }

    fn check_mapping(&self, node: &Node, entries: &[Entry], form: &'a Json, place: &Place) -> Json {
        let properties = form.get("properties").and_then(Json::as_object);
        let others = form.get("additionalProperties").unwrap_or(&Json::Bool(true));
        let has_extensions = form.get("patternProperties").is_some();
        let least = form.get("minProperties").and_then(Json::as_u64).unwrap_or(0);
        if (entries.len() as u64) < least {
            self.problems
                .at(
                    self.source,
                    place.span,
                    "value",
                    format!("{} is {}", place.name, node.found()),
                )
                .expected("at least one entry")
                .report();
        }
        let mut json = Map::new();
        for entry in entries {
            let place = Place {
                name: format!("`{}`", entry.key),
                span: entry.key_span,
            };
            let known = properties.and_then(|properties| properties.get(&entry.key));
            if let Some(schema) = known {
                json.insert(entry.key.clone(), self.walk(&entry.value, schema, &place));
            } else if has_extensions && entry.key.starts_with("x-") {
                continue;
            } else if *others == Json::Bool(false) {
                self.report_unknown_key(entry, form, properties, node);
            } else {
                json.insert(entry.key.clone(), self.walk(&entry.value, others, &place));
            }
        }
        for required in form.get("required").and_then(Json::as_array).into_iter().flatten() {
            let Some(key) = required.as_str().filter(|key| node.entry(key).is_none()) else {
                continue;
            };
            let schema = properties
                .and_then(|properties| properties.get(key))
                .unwrap_or(&Json::Null);
            self.problems
                .at(
                    self.source,
                    place.span,
                    "missing-key",
                    format!("{} has no `{key}`", place.name),
                )
                .expected(format!("`{key}`: {}", self.describe(schema)))
                .report();
        }
        Json::Object(json)
    }

    fn report_unknown_key(&self, entry: &Entry, form: &Json, properties: Option<&Map<String, Json>>, node: &Node) {
        let key = entry.key.as_str();
        let reason = form
            .get("x-refused-keys")
            .and_then(|keys| keys.get(key))
            .and_then(Json::as_str);
        if let Some(reason) = reason {
            self.problems
                .at(
                    self.source,
                    entry.key_span,
                    "refused-key",
                    format!("arenad does not support `{key}` here"),
                )
                .help(reason)
                .report();
            return;
        }
        let known: Vec<&str> = properties
            .into_iter()
            .flat_map(|keys| keys.keys().map(String::as_str))
            .collect();
        let absent = known.iter().copied().filter(|known| node.entry(known).is_none());
        let expected = if known.is_empty() {
            self.describe(form)
        } else {
            format!("one of {}", quoted_list(known.iter().copied()))
        };
        self.problems
            .at(
                self.source,
                entry.key_span,
                "unknown-key",
                format!("unknown key `{}`", super::tree::excerpt(key)),
            )
            .expected(expected)
            .maybe_help(did_you_mean(key, absent))
            .report();
    }

    fn matches(&self, pattern: &str, text: &str) -> bool {
        let mut patterns = self.patterns.borrow_mut();
        let compiled = patterns
            .entry(pattern.to_owned())
            .or_insert_with(|| Regex::new(pattern).ok());
        compiled.as_ref().is_none_or(|regex| regex.is_match(text))
    }

    /// What a schema accepts, in words.
    fn describe(&self, schema: &Json) -> String {
        let resolved = match schema
            .get("$ref")
            .and_then(Json::as_str)
            .and_then(|r| r.strip_prefix("#/$defs/"))
        {
            Some(name) => self.definitions.get(name).unwrap_or(schema),
            None => schema,
        };
        if let Some(title) = schema
            .get("title")
            .or_else(|| resolved.get("title"))
            .and_then(Json::as_str)
        {
            return title.to_owned();
        }
        if let Some(allowed) = allowed_values(resolved) {
            return format!("one of {}", quoted_list(allowed.iter().filter_map(Json::as_str)));
        }
        if let Some(forms) = resolved.get("anyOf").and_then(Json::as_array) {
            let words: Vec<String> = forms.iter().map(|form| self.describe(form)).collect();
            return words.join(", or ");
        }
        match resolved.get("type") {
            Some(Json::Array(kinds)) => {
                let words: Vec<&str> = kinds.iter().filter_map(Json::as_str).map(kind_in_words).collect();
                words.join(" or ")
            }
            Some(Json::String(kind)) if kind == "object" => describe_mapping(resolved),
            Some(Json::String(kind)) if kind == "array" => {
                match resolved.get("items").map(|items| self.describe(items)) {
                    Some(item) if item == "text" => "a list of texts".to_owned(),
                    Some(item) => format!("a list, each entry {item}"),
                    None => "a list".to_owned(),
                }
            }
            Some(Json::String(kind)) => kind_in_words(kind).to_owned(),
            _ => "a value".to_owned(),
        }
    }

    fn describe_range(&self, whole: &Json, form: &Json) -> String {
        if whole.get("title").is_some() {
            return self.describe(whole);
        }
        let bound = |key: &str| form.get(key).and_then(Json::as_f64);
        let kind = self.describe(form);
        match (bound("minimum"), bound("maximum")) {
            (Some(least), Some(most)) => format!("{kind} from {least} to {most}"),
            (Some(least), None) => format!("{kind} of at least {least}"),
            (None, Some(most)) => format!("{kind} of at most {most}"),
            (None, None) => kind,
        }
    }
}

fn describe_mapping(schema: &Json) -> String {
    match schema.get("properties").and_then(Json::as_object) {
        Some(keys) if keys.len() <= 12 => format!("a mapping with {}", quoted_list(keys.keys().map(String::as_str))),
        _ => "a mapping".to_owned(),
    }
}

fn kind_in_words(kind: &str) -> &str {
    match kind {
        "string" => "text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "`true` or `false`",
        "null" => "nothing",
        "array" => "a list",
        "object" => "a mapping",
        other => other,
    }
}

/// The values of an enumeration, in either of the two ways in which they are generated.
fn allowed_values(schema: &Json) -> Option<Vec<Json>> {
    if let Some(values) = schema.get("enum").and_then(Json::as_array) {
        return Some(values.clone());
    }
    constants(schema.get("oneOf")?)
}

fn constants(forms: &Json) -> Option<Vec<Json>> {
    forms
        .as_array()?
        .iter()
        .map(|form| form.get("const").cloned())
        .collect()
}

fn kind_of(node: &Node) -> &'static str {
    match &node.value {
        Value::Sequence(_) => "array",
        Value::Mapping(_) => "object",
        Value::Scalar(scalar) => scalar_kind(scalar),
    }
}

fn scalar_kind(scalar: &Scalar) -> &'static str {
    match scalar.typed() {
        Typed::Null => "null",
        Typed::Bool(_) => "boolean",
        Typed::Integer(_) => "integer",
        Typed::Float(_) => "number",
        Typed::NotFinite => "not finite",
        Typed::Text => "string",
    }
}

/// Whether a schema without alternatives takes values of a kind.
fn accepts(schema: &Json, kind: &str) -> bool {
    let is = |wanted: &Json| wanted == kind || (wanted == "number" && kind == "integer");
    match schema.get("type") {
        Some(Json::Array(kinds)) => kinds.iter().any(is),
        Some(wanted) => is(wanted),
        // Enumerations of constants carry their type in each constant; a schema without type takes everything.
        None if schema.get("oneOf").is_some() => kind == "string",
        None => kind != "not finite",
    }
}
