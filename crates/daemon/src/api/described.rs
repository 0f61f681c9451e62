//! The parts of handlers' signatures, in the terms of OpenAPI: what a handler takes and answers describes it.
//!
//! [`DescribedHandler`] holds for asynchronous functions whose arguments are [`DescribedArgument`]s and whose result is a
//! [`DescribedAnswer`]. So a handler with another body or another answer changes the document by itself.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequestParts, Path, Query, RawQuery, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::Api;
use super::error::ApiError;

/// Where the document keeps the schemas of types.
const DEFINITIONS: &str = "/components/schemas";

/// The generators of schemas. Bodies of requests may leave out what has a default, and answers may not, so that a type
/// can have a schema for each direction.
pub(super) struct Schemas {
    taken: SchemaGenerator,
    answered: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let settings = || {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = DEFINITIONS.into();
            settings.meta_schema = None;
            settings
        };
        Self {
            taken: SchemaGenerator::new(settings().for_deserialize()),
            answered: SchemaGenerator::new(settings().for_serialize()),
        }
    }

    /// Returns the schema of an answer.
    pub(super) fn of_answer<T: JsonSchema>(&mut self) -> Value {
        self.answered.subschema_for::<T>().to_value()
    }

    /// Returns the schema of the body of a request.
    fn of_request<T: JsonSchema>(&mut self) -> Value {
        self.taken.subschema_for::<T>().to_value()
    }

    /// Returns the schemas of all named types, those of requests first. A type that differs by direction has the suffix
    /// `Input` in requests; `paths` is changed accordingly.
    pub(super) fn named(mut self, paths: &mut Value) -> Map<String, Value> {
        let mut taken = self.taken.take_definitions(true);
        let answered = self.answered.take_definitions(true);
        let differing = differing(&taken, &answered);
        for schema in taken.values_mut() {
            rename(schema, &differing);
        }
        if let Value::Object(paths) = paths {
            for operation in paths.values_mut().filter_map(Value::as_object_mut).flat_map(|path| path.values_mut()) {
                if let Some(body) = operation.get_mut("requestBody") {
                    rename(body, &differing);
                }
            }
        }
        let renamed = taken.into_iter().map(|(name, schema)| {
            if differing.contains(&name) { (format!("{name}Input"), schema) } else { (name, schema) }
        });
        let mut all: Vec<(String, Value)> = renamed.chain(answered).collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all.into_iter().collect()
    }
}

/// Returns the names of the types that differ by direction, or refer to one that does.
fn differing(taken: &Map<String, Value>, answered: &Map<String, Value>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    loop {
        let more = taken.iter().find(|(name, schema)| {
            let is_shared = answered.contains_key(*name) && !found.contains(name);
            is_shared && (answered.get(*name) != Some(*schema) || refers(schema, &found))
        });
        match more {
            Some((name, _)) => found.push(name.clone()),
            None => return found,
        }
    }
}

/// Returns whether a schema refers to one of some types.
fn refers(schema: &Value, names: &[String]) -> bool {
    match schema {
        Value::Object(object) => object.iter().any(|(key, value)| match value {
            Value::String(reference) if key == "$ref" => is_of(reference, names),
            other => refers(other, names),
        }),
        Value::Array(items) => items.iter().any(|item| refers(item, names)),
        _ => false,
    }
}

/// Returns whether a reference leads to one of some types.
fn is_of(reference: &str, names: &[String]) -> bool {
    let name = reference.rsplit('/').next().unwrap_or_default();
    names.iter().any(|known| known == name)
}

/// Changes the references to some types into those to their forms in requests.
fn rename(schema: &mut Value, names: &[String]) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                match value {
                    Value::String(reference) if key == "$ref" => {
                        if is_of(reference, names) {
                            reference.push_str("Input");
                        }
                    }
                    other => rename(other, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        _ => {}
    }
}

/// The parts of an operation that the signature of its handler determines.
#[derive(Default)]
pub(super) struct Signature {
    /// The parameters of the query.
    pub query: Vec<Value>,
    /// The body of the request.
    pub body: Option<Value>,
    /// The status and the content of a success.
    pub success: Option<(u16, Option<Value>)>,
}

/// An argument of a handler.
pub(super) trait DescribedArgument {
    /// Adds what the argument demands of a request; most demand nothing, and the path describes its own parameters.
    fn describe(_signature: &mut Signature, _schemas: &mut Schemas) {}
}

impl DescribedArgument for State<Arc<Api>> {}
impl<T> DescribedArgument for Path<T> {}
impl DescribedArgument for HeaderMap {}

impl<T: JsonSchema> DescribedArgument for Query<T> {
    fn describe(signature: &mut Signature, schemas: &mut Schemas) {
        signature.query = parameters::<T>(schemas);
    }
}

impl<T: JsonSchema> DescribedArgument for Result<Json<T>, JsonRejection> {
    fn describe(signature: &mut Signature, schemas: &mut Schemas) {
        let schema = schemas.of_request::<T>();
        signature.body = Some(json!({ "required": true, "content": { "application/json": { "schema": schema } } }));
    }
}

impl DescribedArgument for Request {
    fn describe(signature: &mut Signature, _schemas: &mut Schemas) {
        signature.body = Some(json!({ "required": true, "content": { "application/octet-stream": {} } }));
    }
}

/// The text of a query that the handler parses by itself, because a parameter may be repeated. `T` describes it.
pub(super) struct TextQuery<T>(pub String, PhantomData<T>);

impl<T, S: Send + Sync> FromRequestParts<S> for TextQuery<T> {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let RawQuery(text) = RawQuery::from_request_parts(parts, state).await?;
        Ok(Self(text.unwrap_or_default(), PhantomData))
    }
}

impl<T: JsonSchema> DescribedArgument for TextQuery<T> {
    fn describe(signature: &mut Signature, schemas: &mut Schemas) {
        signature.query = parameters::<T>(schemas);
    }
}

/// Returns the fields of a type as parameters of a query.
fn parameters<T: JsonSchema>(schemas: &mut Schemas) -> Vec<Value> {
    let Value::Object(schema) = T::json_schema(&mut schemas.taken).to_value() else {
        return Vec::new();
    };
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let shown = properties.map(|(name, property)| {
        let mut schema = property.clone();
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        json!({
            "name": name,
            "in": "query",
            "required": required.contains(&name.as_str()),
            "description": description,
            "schema": schema,
        })
    });
    shown.collect()
}

/// The result of a handler.
pub(super) trait DescribedAnswer {
    /// Adds what a success looks like. A handler that builds its response by hand says so where it is routed.
    fn describe(signature: &mut Signature, schemas: &mut Schemas);
}

impl<T: JsonSchema> DescribedAnswer for Json<T> {
    fn describe(signature: &mut Signature, schemas: &mut Schemas) {
        signature.success = Some((StatusCode::OK.as_u16(), Some(schemas.of_answer::<T>())));
    }
}

impl<T: JsonSchema> DescribedAnswer for (StatusCode, Json<T>) {
    fn describe(signature: &mut Signature, schemas: &mut Schemas) {
        Json::<T>::describe(signature, schemas);
    }
}

impl DescribedAnswer for StatusCode {
    fn describe(signature: &mut Signature, _schemas: &mut Schemas) {
        signature.success = Some((StatusCode::NO_CONTENT.as_u16(), None));
    }
}

impl DescribedAnswer for () {
    fn describe(signature: &mut Signature, _schemas: &mut Schemas) {
        signature.success = Some((StatusCode::OK.as_u16(), None));
    }
}

impl DescribedAnswer for Response {
    fn describe(_signature: &mut Signature, _schemas: &mut Schemas) {}
}

impl<T: DescribedAnswer> DescribedAnswer for Result<T, ApiError> {
    fn describe(signature: &mut Signature, schemas: &mut Schemas) {
        T::describe(signature, schemas);
    }
}

/// A handler whose signature describes it. `Arguments` is the tuple of its arguments.
pub(super) trait DescribedHandler<Arguments> {
    /// Returns what the signature says.
    fn signature(schemas: &mut Schemas) -> Signature;
}

macro_rules! described {
    ($($argument:ident),*) => {
        impl<F, Answer, $($argument),*> DescribedHandler<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Answer,
            Answer: Future,
            Answer::Output: DescribedAnswer,
            $($argument: DescribedArgument),*
        {
            fn signature(schemas: &mut Schemas) -> Signature {
                let mut signature = Signature::default();
                $($argument::describe(&mut signature, schemas);)*
                Answer::Output::describe(&mut signature, schemas);
                signature
            }
        }
    };
}

described!();
described!(A);
described!(A, B);
described!(A, B, C);
described!(A, B, C, D);
