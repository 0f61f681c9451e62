//! Compares a marked tree with a JSON Schema and reports every difference at its place.
//!
//! The checker supports the part of JSON Schema that [`super::schema`] produces. It reads two keywords in arenad's own
//! way: `title` describes the accepted values in words, and `x-refused-keys` gives the reason why a Compose key is
//! refused.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;
use serde_json::{Map, Value as Json};

use super::describe::{allowed_values, constants, describe, describe_range};
use super::kinds::{accepts, kind_of, scalar_kind};
use super::problems::{Problems, closest, did_you_mean, quoted_list};
use super::source::{SourceFile, Span};
use super::tree::{DocumentNode, DocumentValue, MappingEntry, Scalar, TypedScalar};

/// Limit on the entries of a list or mapping. The largest environment has about forty services. Later checks compare
/// every name with every other, so the lists of a hostile file must stay short.
const ENTRIES_MAX: usize = 500;

/// Reports every part of a document that its schema refuses, and returns the rest as JSON, without extensions.
///
/// A refused part is left out where its absence does not affect its surroundings: a refused key leaves its mapping, a
/// refused entry of a list of mappings becomes null so that the other entries keep their positions, and a list of texts
/// is dropped as a whole.
pub(crate) fn check(schema: &Json, root: &DocumentNode, source: &SourceFile, problems: &Problems) -> Json {
    check_part(schema, root, "the file", source, problems)
}

/// Checks a part of a document like [`check`]; messages call the part `name`.
pub(crate) fn check_part(
    schema: &Json,
    root: &DocumentNode,
    name: &str,
    source: &SourceFile,
    problems: &Problems,
) -> Json {
    let checker = Checker { definitions: schema.get("$defs").unwrap_or(&Json::Null), source, problems };
    let place = ValuePlace { name: name.to_owned(), span: root.span };
    checker.walk(root, schema, &place).unwrap_or_default()
}

struct Checker<'a> {
    definitions: &'a Json,
    source: &'a SourceFile,
    problems: &'a Problems,
}

/// The name of a value in messages, and a span to point to when the value itself has none.
struct ValuePlace {
    name: String,
    span: Span,
}

impl<'a> Checker<'a> {
    fn walk(&self, node: &DocumentNode, schema: &'a Json, place: &ValuePlace) -> Option<Json> {
        let forms = self.forms(schema);
        if let Some(plain) = retyped(node, &forms) {
            return self.walk(&plain, schema, place);
        }
        let kind = kind_of(node);
        let form = forms.iter().find(|form| accepts(form, kind));
        let Some(form) = form else {
            self.report_type(node, schema, &forms, place);
            return None;
        };
        let count = match &node.value {
            DocumentValue::Scalar(_) => 0,
            DocumentValue::Sequence(items) => items.len(),
            DocumentValue::Mapping(entries) => entries.len(),
        };
        if count > ENTRIES_MAX {
            self.problems
                .at(self.source, place.span, "too-large", format!("{} has {count} entries", place.name))
                .expected(format!("at most {ENTRIES_MAX}"))
                .report();
            return None;
        }
        match &node.value {
            DocumentValue::Scalar(scalar) => self.check_scalar(node, scalar, schema, form, place),
            DocumentValue::Sequence(items) => self.check_sequence(node, items, form, place),
            DocumentValue::Mapping(entries) => self.check_mapping(node, entries, form, place),
        }
    }

    /// Returns the alternatives of a schema, with references resolved.
    fn forms(&self, schema: &'a Json) -> Vec<&'a Json> {
        let schema = self.resolve(schema);
        let alternatives = schema.get("anyOf").or_else(|| {
            // An enumeration of documented values is written as alternatives of constants; it counts as one form.
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

    fn report_type(&self, node: &DocumentNode, schema: &Json, forms: &[&Json], place: &ValuePlace) {
        let found = node.found();
        let span = if matches!(&node.value, DocumentValue::Scalar(scalar) if scalar.text.is_empty()) {
            place.span
        } else {
            node.span
        };
        let wants_text = forms.iter().any(|form| accepts(form, "string"));
        let wants_list = forms.iter().any(|form| accepts(form, "array"));
        let help = match node.scalar() {
            Some(scalar) if scalar.text.is_empty() => None,
            Some(scalar) if scalar.typed() == TypedScalar::NotFinite => None,
            Some(scalar) if wants_text && scalar.typed() != TypedScalar::Text => Some(self.as_text(scalar, forms)),
            Some(scalar) if forms.iter().any(|form| accepts(form, "boolean")) && !wants_text => {
                in_plain_words(&scalar.text)
            }
            Some(scalar) if wants_list && place.name == "`command`" => {
                // A command written as one text is the usual mistake; elsewhere white space may be part of the text.
                let words: Vec<&str> = scalar.text.split_whitespace().collect();
                Some(format!("write `[{}]`", super::tree::excerpt(&words.join(", "))))
            }
            Some(scalar) if scalar.is_text && !wants_text && !wants_list => {
                let bare = Scalar { is_text: false, ..scalar.clone() };
                let kind = scalar_kind(&bare);
                forms.iter().any(|form| accepts(form, kind)).then(|| "remove the quotes".to_owned())
            }
            Some(scalar) if wants_list => Some(format!("write `[{}]`", super::tree::excerpt(&scalar.text))),
            _ => None,
        };
        self.problems
            .at(self.source, span, "type", format!("{} is {found}", place.name))
            .expected(describe(self.definitions, schema))
            .maybe_help(help)
            .report();
    }

    /// Suggests how to turn a number or truth value into the text that the schema requires.
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

    fn check_scalar(
        &self,
        node: &DocumentNode,
        scalar: &Scalar,
        whole: &Json,
        form: &Json,
        place: &ValuePlace,
    ) -> Option<Json> {
        let mut is_refused = false;
        let value = node.to_json();
        let refuse = |message: String| {
            let draft = self.problems.at(self.source, node.span, "value", message);
            draft.expected(describe(self.definitions, whole))
        };
        if let Some(allowed) = allowed_values(form) {
            if !allowed.contains(&value) {
                let words: Vec<&str> = allowed.iter().filter_map(Json::as_str).collect();
                refuse(format!("{} is {}", place.name, node.found()))
                    .expected(format!("one of {}", quoted_list(words.iter().copied())))
                    .maybe_help(did_you_mean(&scalar.text, words))
                    .report();
                return None;
            }
            return Some(value);
        }
        if let Some(number) = value.as_f64() {
            let below = form.get("minimum").and_then(Json::as_f64).is_some_and(|least| number < least);
            let above = form.get("maximum").and_then(Json::as_f64).is_some_and(|most| number > most);
            if below || above {
                is_refused = true;
                refuse(format!("{} is {}", place.name, node.found()))
                    .expected(describe_range(self.definitions, whole, form))
                    .report();
            }
        }
        if let (Json::String(text), Some(pattern)) = (&value, form.get("pattern").and_then(Json::as_str))
            && !self.matches(pattern, text)
        {
            is_refused = true;
            refuse(format!("{} is {}", place.name, node.found())).report();
        }
        (!is_refused).then_some(value)
    }

    fn check_sequence(
        &self,
        node: &DocumentNode,
        items: &[DocumentNode],
        form: &'a Json,
        place: &ValuePlace,
    ) -> Option<Json> {
        let least = form.get("minItems").and_then(Json::as_u64).unwrap_or(0);
        if (items.len() as u64) < least {
            self.problems
                .at(self.source, node.span, "value", format!("{} is {}", place.name, node.found()))
                .expected("at least one entry")
                .report();
        }
        let schema = form.get("items").unwrap_or(&Json::Bool(true));
        let named = |index: usize, item: &DocumentNode| ValuePlace {
            name: format!("entry {} of {}", index + 1, place.name),
            span: item.span,
        };
        let has_parts = self.has_parts(schema);
        let mut all_are_fine = true;
        let json = items.iter().enumerate().map(|(index, item)| {
            let found = self.walk(item, schema, &named(index, item));
            all_are_fine &= found.is_some();
            found.unwrap_or_default()
        });
        let json: Json = json.collect();
        (all_are_fine || has_parts).then_some(json)
    }

    fn check_mapping(
        &self,
        node: &DocumentNode,
        entries: &[MappingEntry],
        form: &'a Json,
        place: &ValuePlace,
    ) -> Option<Json> {
        let properties = form.get("properties").and_then(Json::as_object);
        let others = form.get("additionalProperties").unwrap_or(&Json::Bool(true));
        let has_extensions = form.get("patternProperties").is_some();
        let least = form.get("minProperties").and_then(Json::as_u64).unwrap_or(0);
        if (entries.len() as u64) < least {
            self.problems
                .at(self.source, place.span, "value", format!("{} is {}", place.name, node.found()))
                .expected("at least one entry")
                .report();
        }
        let mut json = Map::new();
        let mut all_are_fine = true;
        let mut meant = Vec::new();
        for entry in entries {
            let place = ValuePlace { name: format!("`{}`", entry.key), span: entry.key_span };
            let known = properties.and_then(|properties| properties.get(&entry.key));
            if let Some(schema) = known {
                json.extend(self.walk(&entry.value, schema, &place).map(|value| (entry.key.clone(), value)));
            } else if has_extensions && entry.key.starts_with("x-") {
                continue;
            } else if *others == Json::Bool(false) {
                meant.extend(self.report_unknown_key(entry, form, properties, node));
            } else {
                let found = self.walk(&entry.value, others, &place);
                all_are_fine &= found.is_some();
                json.insert(entry.key.clone(), found.unwrap_or_default());
            }
        }
        for required in form.get("required").and_then(Json::as_array).into_iter().flatten() {
            let Some(key) = required.as_str().filter(|key| node.entry(key).is_none() && !meant.contains(key)) else {
                continue;
            };
            let schema = properties.and_then(|properties| properties.get(key)).unwrap_or(&Json::Null);
            self.problems
                .at(self.source, place.span, "missing-key", format!("{} has no `{key}`", place.name))
                .expected(format!("`{key}`: {}", describe(self.definitions, schema)))
                .report();
        }
        (all_are_fine || self.has_parts(others)).then_some(Json::Object(json))
    }

    /// Returns whether the entries of a list or mapping can be left out one by one.
    fn has_parts(&self, schema: &'a Json) -> bool {
        self.forms(schema).iter().any(|form| form.get("type").is_some_and(|kind| kind == "object"))
    }

    /// Reports an unknown key and returns the key that its author probably meant.
    fn report_unknown_key<'p>(
        &self,
        entry: &MappingEntry,
        form: &Json,
        properties: Option<&'p Map<String, Json>>,
        node: &DocumentNode,
    ) -> Option<&'p str> {
        let key = entry.key.as_str();
        let reason = form.get("x-refused-keys").and_then(|keys| keys.get(key)).and_then(Json::as_str);
        if let Some(reason) = reason {
            self.problems
                .at(self.source, entry.key_span, "refused-key", format!("arenad does not support `{key}` here"))
                .help(reason)
                .report();
            return None;
        }
        let known: Vec<&'p str> = properties.into_iter().flat_map(|keys| keys.keys().map(String::as_str)).collect();
        let absent = known.iter().copied().filter(|known| node.entry(known).is_none());
        let expected = if known.is_empty() {
            describe(self.definitions, form)
        } else {
            format!("one of {}", quoted_list(known.iter().copied()))
        };
        self.problems
            .at(self.source, entry.key_span, "unknown-key", format!("unknown key `{}`", super::tree::excerpt(key)))
            .expected(expected)
            .maybe_help(did_you_mean(key, absent.clone()))
            .report();
        closest(key, absent)
    }

    /// Returns whether a text matches a pattern of the schemas.
    fn matches(&self, pattern: &str, text: &str) -> bool {
        // The cache holds the schemas' own patterns only. Compiling a pattern takes longer than the rest of a check.
        static PATTERNS: LazyLock<Mutex<HashMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);
        let compiled = {
            let mut patterns = PATTERNS.lock().unwrap_or_else(PoisonError::into_inner);
            match patterns.get(pattern) {
                Some(compiled) => compiled.clone(),
                None => patterns.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).ok()).clone(),
            }
        };
        compiled.is_none_or(|regex| regex.is_match(text))
    }
}

/// Returns the truth value that YAML 1.1 gave to a word.
fn in_plain_words(text: &str) -> Option<String> {
    let value = match text.to_ascii_lowercase().as_str() {
        "yes" | "on" | "y" | "true" => "true",
        "no" | "off" | "n" | "false" => "false",
        _ => return None,
    };
    Some(format!("write `{value}`"))
}

/// Converts a variable's value to the type that its place accepts: to text where only text is accepted, and to the type
/// that its form suggests where text is refused. Compose casts in the same way, and inside `{ }` YAML requires quotes
/// around `${PORT}`.
fn retyped(node: &DocumentNode, forms: &[&Json]) -> Option<DocumentNode> {
    let scalar = node.scalar().filter(|scalar| scalar.written.is_some())?;
    let takes = |kind: &str| forms.iter().any(|form| accepts(form, kind));
    if takes(kind_of(node)) || scalar.is_text == takes("string") {
        return None;
    }
    let other = Scalar { is_text: !scalar.is_text, ..scalar.clone() };
    Some(DocumentNode { span: node.span, value: DocumentValue::Scalar(other) })
}
