//! The canonical form of a JSON document: RFC 8785 (JCS), for documents without fractions.
//!
//! Members are sorted by the UTF-16 code units of their names, there is no white space, and strings have only the
//! escapes that JSON requires. RFC 8785 writes numbers as ECMAScript does, as 64-bit floating-point numbers. A document
//! here has no numbers but integers that such a number holds exactly, so that no implementation can round one.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The largest integer up to which 64-bit floating-point numbers hold every integer: 2^53 - 1.
const INTEGER_MAX: i64 = (1 << 53) - 1;

/// The reason why a document has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum NotCanonical {
    /// The text is not JSON, or an object has two members of one name.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// A number is not an integer between -(2^53 - 1) and 2^53 - 1.
    #[error("the number {0} is not an integer of at most 53 bits")]
    Number(Number),
}

/// Parses a document. An object with two members of one name is refused: programs disagree about which one counts.
///
/// # Errors
///
/// Returns an error if the text is not JSON, nests deeper than 128 levels, or has a member twice.
pub fn parse(text: &str) -> Result<Value, NotCanonical> {
    Ok(serde_json::from_str::<Strict>(text)?.0)
}

/// Returns the canonical form of a document.
///
/// # Errors
///
/// Returns an error if the document has a number other than an integer of at most 53 bits.
pub fn text(document: &Value) -> Result<String, NotCanonical> {
    let mut out = String::new();
    write(document, &mut out)?;
    Ok(out)
}

fn write(value: &Value, out: &mut String) -> Result<(), NotCanonical> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => match number.as_i64().filter(|whole| (-INTEGER_MAX..=INTEGER_MAX).contains(whole)) {
            Some(whole) => out.push_str(&whole.to_string()),
            None => return Err(NotCanonical::Number(number.clone())),
        },
        Value::String(text) => quote(text, out)?,
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out)?;
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            sorted.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            out.push('{');
            for (index, (name, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                quote(name, out)?;
                out.push(':');
                write(value, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

/// Writes a string. The escapes of `serde_json` are those of RFC 8785: `\b \t \n \f \r \" \\`, `\u00xx` in lower case
/// for other control characters, and none else.
fn quote(text: &str, out: &mut String) -> Result<(), NotCanonical> {
    out.push_str(&serde_json::to_string(text)?);
    Ok(())
}

/// A JSON value whose objects have each member once.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = input.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = input.next_key::<String>()? {
            if members.contains_key(&name) {
                return Err(A::Error::custom(format!("the member {name:?} stands there twice")));
            }
            let Strict(value) = input.next_value()?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn canonical(text: &str) -> String {
        super::text(&parse(text).expect("JSON")).expect("canonical")
    }

    #[test]
    fn members_are_sorted_as_rfc_8785_shows() {
        // The example of section 3.2.3, without its fraction.
        let text = "{\"\\u20ac\": \"Euro Sign\", \"\\r\": \"Carriage Return\", \"\\ufb33\": \"Hebrew Letter Dalet With Dagesh\", \
                    \"1\": \"One\", \"\\ud83d\\ude00\": \"Emoji: Grinning Face\", \"\\u0080\": \"Control\", \
                    \"\\u00f6\": \"Latin Small Letter O With Diaeresis\"}";
        let names = ["\"\\r\"", "\"1\"", "\"\u{80}\"", "\"ö\"", "\"€\"", "\"😀\"", "\"\u{fb33}\""];
        let found = canonical(text);
        let places: Vec<Option<usize>> = names.iter().map(|name| found.find(&format!("{name}:"))).collect();
        assert!(places.iter().all(Option::is_some), "{found}");
        assert!(places.is_sorted(), "{found}");
    }

    #[test]
    fn strings_have_only_the_escapes_that_are_needed() {
        // The example of section 3.2.2.2, without its numbers.
        let text = r#"{"string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"#;
        assert_eq!(canonical(text), r#"{"literals":[null,true,false],"string":"€$\u000f\nA'B\"\\\\\"/"}"#);
    }

    #[test]
    fn numbers_that_an_implementation_may_round_have_no_form() {
        assert_eq!(canonical("[9007199254740991, -9007199254740991, 0]"), "[9007199254740991,-9007199254740991,0]");
        for text in ["9007199254740992", "1.5", "1.0", "1e3", "-0.0", "18446744073709551615"] {
            let document = parse(text).expect("JSON");
            assert!(matches!(super::text(&document), Err(NotCanonical::Number(_))), "{text}");
        }
    }

    #[test]
    fn a_member_that_stands_there_twice_is_refused() {
        for text in [r#"{"a": 1, "a": 1}"#, r#"[{"b": {"a": 1, "\u0061": 2}}]"#] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse(r#"{"a": {"a": [1, "x", null]}}"#).expect("JSON"), json!({ "a": { "a": [1, "x", null] } }));
    }
}
