//! Kinds of values that several keys share.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;

/// A mapping whose keys are names; it keeps the order of the file.
#[derive(Debug, Clone)]
pub(crate) struct Entries<T>(pub(crate) Vec<(String, T)>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Entries<T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Entries<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(InOrder(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Entries<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Entries_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<T>() })
    }
}

/// A part of a file that is skipped if it was refused, so that the other parts can still be examined.
#[derive(Debug, Clone)]
pub(crate) enum FilePart<T> {
    /// The part could be read.
    Good(Box<T>),
    /// The part could not be read; the reason is used only if no problem was reported for it.
    Broken(String),
}

impl<T> FilePart<T> {
    /// Returns the part if it could be read.
    pub(crate) fn good(&self) -> Option<&T> {
        match self {
            Self::Good(part) => Some(part),
            Self::Broken(_) => None,
        }
    }
}

impl<'de, T: serde::de::DeserializeOwned> Deserialize<'de> for FilePart<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Json::deserialize(deserializer)?;
        Ok(match serde_json::from_value(value) {
            Ok(part) => Self::Good(Box::new(part)),
            Err(error) => Self::Broken(error.to_string()),
        })
    }
}

impl<T: JsonSchema> JsonSchema for FilePart<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Declares a kind of value with its schema, whose title describes the accepted values for people.
macro_rules! value_type {
    ($(#[$doc:meta])* $name:ident, $schema:tt) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub(crate) struct $name(pub(crate) Json);

        impl<'de> Deserialize<'de> for $name {
            // Of several untagged forms, the first that accepts a value wins, so each form must refuse the values of
            // the others.
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = Json::deserialize(deserializer)?;
                let schema = json_schema!($schema);
                if is_of_type(&value, schema.get("type")) {
                    Ok(Self(value))
                } else {
                    Err(serde::de::Error::custom(concat!("no value for ", stringify!($name))))
                }
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

/// Returns whether a value has one of the types that a schema's `type` names.
fn is_of_type(value: &Json, types: Option<&Json>) -> bool {
    let is = |kind: &Json| match kind.as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("array") => value.is_array(),
        _ => false,
    };
    match types {
        Some(Json::Array(kinds)) => kinds.iter().any(is),
        Some(kind) => is(kind),
        None => true,
    }
}

/// Returns a value as text: numbers and truth values as in JSON, null as an empty text.
pub(crate) fn text_of(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Null => String::new(),
        other => other.to_string(),
    }
}

value_type!(
    /// A period of time, such as `1m30s`.
    Period,
    {
        "type": "string",
        "title": "a duration such as `500ms`, `30s` or `1m30s`",
        "pattern": r"^([0-9]+(\.[0-9]+)?(us|ms|s|m|h))+$"
    }
);

value_type!(
    /// A size in bytes, such as `512m`.
    Size,
    {
        "type": ["string", "integer"],
        "title": "a size such as `512m` or `1.5g`, or a whole number of bytes",
        "pattern": r"^[0-9]+(\.[0-9]+)?\s*([kKmMgGtT]([iI]?[bB])?|[bB])?$",
        "minimum": 0
    }
);

value_type!(
    /// A TCP port from 1 to 65535.
    Port,
    { "type": "integer", "title": "a port number from 1 to 65535", "minimum": 1, "maximum": 65535 }
);

value_type!(
    /// A port that Compose also accepts as text.
    PortOrText,
    {
        "type": ["integer", "string"],
        "title": "a port number from 1 to 65535",
        "pattern": "^[0-9]{1,5}$",
        "minimum": 1,
        "maximum": 65535
    }
);

value_type!(
    /// A number of CPUs, which may be fractional.
    Cpus,
    {
        "type": ["number", "string"],
        "title": "a number of CPUs such as `1.5`",
        "pattern": r"^[0-9]+(\.[0-9]+)?$",
        "minimum": 0
    }
);

value_type!(
    /// A value of an environment variable, label or build argument.
    Scalar,
    { "type": ["string", "number", "boolean", "null"], "title": "text, a number or a truth value" }
);

value_type!(
    /// A value that is compared as text.
    TextOrNumber,
    { "type": ["string", "number"], "title": "text or a number" }
);

value_type!(
    /// An HTTP status code.
    Status,
    { "type": "integer", "title": "a status code from 100 to 599", "minimum": 100, "maximum": 599 }
);

value_type!(
    /// A number, or a task's variable that holds one.
    NumberOrVariable,
    {
        "type": ["number", "string"],
        "title": "a number, or a variable such as `\"{{price}}\"`",
        "pattern": r"^\{\{[a-z_]+\}\}$"
    }
);

value_type!(
    /// The members of a list, or a task's variable that holds a list.
    MembersOrVariable,
    {
        "type": ["array", "string"],
        "title": "a list, or a variable such as `\"{{names}}\"`",
        "items": true,
        "pattern": r"^\{\{[a-z_]+\}\}$"
    }
);

value_type!(
    /// The name of a task or template.
    TaskName,
    {
        "type": "string",
        "title": "1 to 80 lower-case letters, digits, `.`, `-` and `_`, such as `shopping.order-quantity`",
        "pattern": "^[a-z0-9][a-z0-9._-]{0,79}$"
    }
);

impl Port {
    /// Returns the port number. The schema guarantees a number.
    pub(crate) fn number(&self) -> Option<u16> {
        self.0.as_u64().and_then(|number| u16::try_from(number).ok())
    }
}

/// One text or a list of texts.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a text or a list of texts")]
pub(crate) enum OneOrMany {
    /// One text instead of a list.
    One(String),
    /// A list of texts.
    Many(Vec<String>),
}

impl OneOrMany {
    pub(crate) fn to_vec(&self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text.clone()],
            Self::Many(texts) => texts.clone(),
        }
    }
}

/// One status code or a list of them.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a status code such as `200`, or a list of them")]
pub(crate) enum Statuses {
    /// A single status code.
    One(Status),
    /// A list of status codes.
    Many(Vec<Status>),
}

/// Names and values, as a mapping or as a list of `name=value`.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a mapping of names to values, or a list of `NAME=value`")]
pub(crate) enum KeyValues {
    /// `- NAME=value`.
    List(Vec<String>),
    /// `NAME: value`.
    Map(Entries<Scalar>),
}
