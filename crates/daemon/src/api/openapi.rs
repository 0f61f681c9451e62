//! `GET /v1/openapi.json`: the OpenAPI document, which is generated from the routes and the signatures of their handlers.

use std::sync::LazyLock;

use axum::Json;
use serde_json::Value;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| super::routes().document());

/// Returns the OpenAPI 3.1 document of the API.
#[must_use]
pub fn openapi() -> &'static Value {
    &DOCUMENT
}

/// `GET /v1/openapi.json`.
pub(super) async fn document() -> Json<&'static Value> {
    Json(openapi())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn operations() -> impl Iterator<Item = (String, &'static Value)> {
        let paths = openapi()["paths"].as_object().expect("paths").iter();
        paths.flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods").iter();
            methods.map(move |(method, operation)| (format!("{method} {path}"), operation))
        })
    }

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => {
                found.extend(object.get("$ref").and_then(Value::as_str).map(str::to_owned));
                object.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_operation_has_an_id_of_its_own_and_says_what_it_answers() {
        let mut ids = BTreeSet::new();
        for (name, operation) in operations() {
            let id = operation["operationId"].as_str().expect("an id");
            assert!(ids.insert(id), "{name}: {id}");
            assert!(id.chars().all(|letter| letter.is_ascii_alphanumeric()), "{name}: {id}");
            let responses = operation["responses"].as_object().expect("responses");
            assert!(responses.contains_key("default"), "{name}");
            for (status, response) in responses.iter().filter(|(status, _)| *status != "default") {
                // A part of an import is received without an answer, and the daemon ends without one.
                let is_empty = status == "204" || name.contains("/parts/") || name.contains("shutdown");
                assert_eq!(response.get("content").is_none(), is_empty, "{name}: {status}");
            }
        }
        assert!(ids.len() > 50, "{}", ids.len());
    }

    #[test]
    fn every_reference_leads_to_a_schema_and_every_schema_is_referred_to() {
        let mut found = BTreeSet::new();
        references(openapi(), &mut found);
        for reference in &found {
            let pointer = reference.strip_prefix('#').expect("a reference within the document");
            assert!(openapi().pointer(pointer).is_some(), "{reference}");
        }
        for name in openapi()["components"]["schemas"].as_object().expect("schemas").keys() {
            assert!(found.contains(&format!("#/components/schemas/{name}")), "{name} is not used");
        }
    }

    #[test]
    fn every_parameter_of_a_path_is_declared_and_every_parameter_is_described() {
        for (name, operation) in operations() {
            let parameters = operation.get("parameters").and_then(Value::as_array).into_iter().flatten();
            let mut declared = Vec::new();
            for parameter in parameters {
                let text = parameter["description"].as_str().unwrap_or_default();
                assert!(text.len() > 10, "{name}: {parameter}");
                if parameter["in"] == "path" {
                    declared.push(format!("{{{}}}", parameter["name"].as_str().unwrap_or_default()));
                }
            }
            let path = name.split_once(' ').map_or("", |(_, path)| path);
            let expected: Vec<&str> = path.split('/').filter(|word| word.starts_with('{')).collect();
            assert_eq!(declared, expected, "{name}");
        }
    }
}
