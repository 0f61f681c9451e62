//! A YAML document as a tree whose keys and values know their places in the file.
//!
//! Scalars keep their text. Their type is determined on request, by the YAML 1.2 core schema, because interpolation may
//! still change the text.

use serde_json::{Map, Number, Value as Json};

use super::source::Span;

/// A value of the document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DocumentNode {
    /// Place of the value; for an aliased value, the place of its definition.
    pub(crate) span: Span,
    /// Content of the value, with aliases expanded.
    pub(crate) value: DocumentValue,
}

/// The content of a value, by its kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DocumentValue {
    Scalar(Scalar),
    Sequence(Vec<DocumentNode>),
    Mapping(Vec<MappingEntry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MappingEntry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) value: DocumentNode,
}

/// A single value and its notation in the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scalar {
    /// The text; after interpolation, the interpolated text.
    pub(crate) text: String,
    /// Text in the file, if interpolation changed it.
    pub(crate) written: Option<String>,
    /// Whether quotes, a block or a tag make the value a text, even if it looks like a number or another type.
    pub(crate) is_text: bool,
}

/// A scalar's value by the YAML 1.2 core schema.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TypedScalar {
    Null,
    Bool(bool),
    Integer(Number),
    Float(Number),
    /// `.inf` and `.nan`: numbers that no setting accepts and JSON cannot represent.
    NotFinite,
    Text,
}

impl Scalar {
    /// Returns the value with its type, by the YAML 1.2 core schema.
    pub(crate) fn typed(&self) -> TypedScalar {
        if self.is_text {
            return TypedScalar::Text;
        }
        match self.text.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => TypedScalar::Null,
            "true" | "True" | "TRUE" => TypedScalar::Bool(true),
            "false" | "False" | "FALSE" => TypedScalar::Bool(false),
            other => number(other).unwrap_or(TypedScalar::Text),
        }
    }
}

/// Maximum length of a number, in bytes. Settings need shorter ones only, and parsing long numbers takes time.
const NUMBER_MAX: usize = 64;

fn number(text: &str) -> Option<TypedScalar> {
    if text.len() > NUMBER_MAX {
        return None;
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(TypedScalar::NotFinite);
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return u64::from_str_radix(digits, radix)
                .ok()
                .filter(|_| !digits.starts_with('+'))
                .map(|value| TypedScalar::Integer(value.into()));
        }
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        let plain = text.strip_prefix('+').unwrap_or(text);
        if let Ok(value) = plain.parse::<i64>() {
            return Some(TypedScalar::Integer(value.into()));
        }
        if let Ok(value) = plain.parse::<u64>() {
            return Some(TypedScalar::Integer(value.into()));
        }
    }
    // Rust's own parser accepts words such as `infinity`, but the core schema does not.
    let shaped = unsigned.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !shaped || !unsigned.bytes().next()?.is_ascii_digit() && !unsigned.starts_with('.') {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    Some(Number::from_f64(value).map_or(TypedScalar::NotFinite, TypedScalar::Float))
}

impl DocumentNode {
    /// Describes the value in words, for messages.
    pub(crate) fn found(&self) -> String {
        match &self.value {
            DocumentValue::Sequence(items) if items.is_empty() => "an empty list".to_owned(),
            DocumentValue::Sequence(_) => "a list".to_owned(),
            DocumentValue::Mapping(entries) if entries.is_empty() => "an empty mapping".to_owned(),
            DocumentValue::Mapping(_) => "a mapping".to_owned(),
            DocumentValue::Scalar(scalar) => match scalar.typed() {
                TypedScalar::Null => "nothing".to_owned(),
                TypedScalar::Bool(value) => format!("the truth value `{value}`"),
                TypedScalar::Integer(_) | TypedScalar::Float(_) => format!("the number `{}`", scalar.text),
                TypedScalar::NotFinite => format!("`{}`, which is not a finite number", scalar.text),
                TypedScalar::Text => format!("the text `{}`", excerpt(&scalar.text)),
            },
        }
    }

    /// Returns the entry of a mapping with the given key, if there is one.
    pub(crate) fn entry(&self, key: &str) -> Option<&MappingEntry> {
        match &self.value {
            DocumentValue::Mapping(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// Returns the value as a scalar, if it is one.
    pub(crate) fn scalar(&self) -> Option<&Scalar> {
        match &self.value {
            DocumentValue::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// The tree as JSON, without extension keys (`x-...`).
    pub(crate) fn to_json(&self) -> Json {
        match &self.value {
            DocumentValue::Scalar(scalar) => match scalar.typed() {
                TypedScalar::Null | TypedScalar::NotFinite => Json::Null,
                TypedScalar::Bool(value) => Json::Bool(value),
                TypedScalar::Integer(value) | TypedScalar::Float(value) => Json::Number(value),
                TypedScalar::Text => Json::String(scalar.text.clone()),
            },
            DocumentValue::Sequence(items) => items.iter().map(DocumentNode::to_json).collect(),
            DocumentValue::Mapping(entries) => Json::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect::<Map<_, _>>(),
            ),
        }
    }
}

/// Returns the beginning of a text, for messages.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().nth(LONGEST).is_none() {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> TypedScalar {
        Scalar { text: text.to_owned(), written: None, is_text: false }.typed()
    }

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        assert_eq!(plain(""), TypedScalar::Null);
        assert_eq!(plain("True"), TypedScalar::Bool(true));
        assert_eq!(plain("yes"), TypedScalar::Text);
        assert_eq!(plain("-12"), TypedScalar::Integer((-12).into()));
        assert_eq!(plain("+12"), TypedScalar::Integer(12.into()));
        assert_eq!(plain("0x1F"), TypedScalar::Integer(31.into()));
        assert_eq!(plain("0o17"), TypedScalar::Integer(15.into()));
        assert_eq!(plain("7770:80"), TypedScalar::Text);
        assert_eq!(plain("1.5"), TypedScalar::Float(Number::from_f64(1.5).expect("finite")));
        assert_eq!(plain(".5"), TypedScalar::Float(Number::from_f64(0.5).expect("finite")));
        assert_eq!(plain(".nan"), TypedScalar::NotFinite);
        assert_eq!(plain("-.inf"), TypedScalar::NotFinite);
        assert_eq!(plain("1e999"), TypedScalar::NotFinite);
        for text in ["infinity", "nan", "1.2.3", "e5", ".", "-", "0x", "0x+1", "1_000", "--1"] {
            assert_eq!(plain(text), TypedScalar::Text, "{text}");
        }
    }
}
