//! The JSON Schemas of all files, for editors and for the checker alike, so that the two never disagree.

use std::sync::LazyLock;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value as Json, json};

use super::raw::compose::RawCompose;
use super::raw::environment::RawEnvironment;
use super::raw::tasks::{RawTask, RawTasks};

/// The schema of `environments/<name>.yaml`.
pub(crate) static ENVIRONMENT: LazyLock<Json> = LazyLock::new(generate::<RawEnvironment>);

/// The schema of `compose/<name>.yaml`.
pub(crate) static COMPOSE: LazyLock<Json> = LazyLock::new(generate::<RawCompose>);

/// The schema of `environments/<name>/tasks/*.yaml`.
pub(crate) static TASKS: LazyLock<Json> = LazyLock::new(generate::<RawTasks>);

/// The schema of one task whose variables are filled in.
pub(crate) static TASK: LazyLock<Json> = LazyLock::new(generate::<RawTask>);

fn generate<T: JsonSchema>() -> Json {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    adjust(&mut schema);
    schema
}

/// Adapts the generated schema to the rules of the files: an optional key may be missing but not null, and mappings
/// with fixed keys may have extensions.
fn adjust(schema: &mut Json) {
    match schema {
        Json::Array(items) => items.iter_mut().for_each(adjust),
        Json::Object(object) => {
            if let Some(Json::Object(properties)) = object.get_mut("properties") {
                properties.values_mut().for_each(refuse_null);
            }
            if object.get("additionalProperties") == Some(&Json::Bool(false)) {
                object.insert("patternProperties".to_owned(), json!({ "^x-": {} }));
            }
            object.values_mut().for_each(adjust);
        }
        _ => {}
    }
}

fn refuse_null(property: &mut Json) {
    let Json::Object(property) = property else {
        return;
    };
    if let Some(Json::Array(types)) = property.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
    if let Some(Json::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Json::Array(forms)) = property.get_mut("anyOf") {
        forms.retain(|form| form.get("type") != Some(&Json::from("null")));
        if let [Json::Object(only)] = forms.as_slice() {
            // The property's own description is more specific than that of its type, so it is kept.
            let only: Map<String, Json> = only.clone();
            property.remove("anyOf");
            for (key, value) in only {
                property.entry(key).or_insert(value);
            }
        }
    }
    property.remove("default");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_documented() {
        fn walk(schema: &Json, path: &str) {
            if let Some(Json::Object(properties)) = schema.get("properties") {
                for (name, property) in properties {
                    let text = property.get("description").and_then(Json::as_str).unwrap_or_default();
                    assert!(text.len() > 3, "{path}.{name} has no description");
                }
            }
            match schema {
                Json::Object(object) => object.iter().for_each(|(key, value)| walk(value, &format!("{path}.{key}"))),
                Json::Array(items) => items.iter().for_each(|item| walk(item, path)),
                _ => {}
            }
        }
        walk(&ENVIRONMENT, "environment");
        walk(&COMPOSE, "compose");
        walk(&TASKS, "tasks");
    }
}
