//! Queries over JSON text: a JSONPath or a jq filter.

use std::io;
use std::time::Duration;

use jaq_core::{Ctx, Vars, data};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::outcome::{LocatorOutcome, no_answer};
use super::{LocateError, SIZE_MAX};
use arenad_confined::Worker;
use arenad_model::locator::json::{parsed, to_value};
use arenad_model::locator::{JsonQuery, Value};

/// Name of the hidden command that runs this program as the worker process for queries that may never end.
pub const COMMAND: &str = "confined-filter";

/// A query with the JSON text that it reads.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JsonQueryInput {
    Jq { filter: String, input: String, all: bool },
    JsonPath { path: String, input: String, all: bool },
}

/// Runs a query; a query that may never end runs in a confined process.
pub(super) async fn ask(query: &JsonQuery, input: String, limit: Duration) -> Result<Value, LocateError> {
    let question = match query.clone() {
        // Two descendant segments can visit every value once for every value.
        JsonQuery::Path { path, all } if path.matches("..").count() < 2 => return json_path(&path, &input, all),
        JsonQuery::Path { path, all } => JsonQueryInput::JsonPath { path, input, all },
        JsonQuery::Jq { filter, all } => JsonQueryInput::Jq { filter, input, all },
    };
    let answer: Result<LocatorOutcome, _> = Worker::job(COMMAND, &question, limit).await;
    answer.map_err(|error| no_answer(error, "it has no value"))?.into_value(limit)
}

/// Runs one query; this is the entire execution of the hidden command.
pub fn serve() -> io::Result<()> {
    arenad_confined::serve(async |inside| {
        let mut parent = inside.alone()?;
        let found = match parent.question().await? {
            None => return Ok(()),
            Some(JsonQueryInput::Jq { filter, input, all }) => jq(&filter, &input, all),
            Some(JsonQueryInput::JsonPath { path, input, all }) => json_path(&path, &input, all),
        };
        parent.answer(&LocatorOutcome::from(found)).await
    })
}

fn json(input: &str) -> Result<Json, LocateError> {
    serde_json::from_str(input).map_err(|error| LocateError::Failed(format!("the answer is not JSON: {error}")))
}

/// Returns the value at a path of JSON text, or with `all` the list of all values.
///
/// Errors: `Unknown` for an invalid path; `Failed` for invalid JSON, or for several values without `all`.
pub fn json_path(path: &str, input: &str, all: bool) -> Result<Value, LocateError> {
    let parsed = arenad_queries::json_path::parse(path)
        .map_err(|reason| LocateError::Unknown(format!("invalid JSONPath `{}`: {reason}", shown(path))))?;
    let input = json(input)?;
    let found = parsed.query(&input).all();
    match (found.as_slice(), all) {
        (found, true) => Ok(Value::Json(Json::Array(found.iter().copied().cloned().collect()).to_string())),
        ([], false) => Ok(Value::Null),
        ([only], false) => Ok(to_value((*only).clone())),
        (several, false) => Err(several_values("jsonpath", several.len())),
    }
}

/// Returns as much of a query as an error message shows.
fn shown(query: &str) -> String {
    const SHOWN_MAX: usize = 200;
    let shown: String = query.chars().take(SHOWN_MAX).collect();
    if shown.len() < query.len() { format!("{shown}…") } else { shown }
}

fn several_values(kind: &str, count: usize) -> LocateError {
    LocateError::Failed(format!("there are {count} values or more; write `{kind}(all): …` for a list of them"))
}

/// Returns the output of a jq filter on JSON text, or with `all` the list of all outputs.
///
/// Errors: `Unknown` for an invalid filter; `Failed` for invalid JSON, an error of the filter, or several outputs
/// without `all`; `TooLarge` for more than [`SIZE_MAX`] bytes.
pub(crate) fn jq(filter: &str, input: &str, all: bool) -> Result<Value, LocateError> {
    let compiled = arenad_queries::jq::compile(filter)
        .map_err(|reason| LocateError::Unknown(format!("invalid jq filter `{}`: {reason}", shown(filter))))?;
    let input = jaq_json::read::parse_single(input.as_bytes())
        .map_err(|error| LocateError::Failed(format!("the answer is not JSON: {error}")))?;
    let context = Ctx::<data::JustLut<jaq_json::Val>>::new(&compiled.lut, Vars::new([]));
    let mut outputs = Vec::new();
    let mut size = 0;
    for output in compiled.id.run((context, input)) {
        // In jq's own program, `halt` would end the process.
        let output = output.map_err(|stop| match stop.get_err() {
            Ok(error) => LocateError::Failed(format!("jq says: {error}")),
            Err(_) => LocateError::Failed("the filter halts".to_owned()),
        })?;
        let output = output.to_string();
        size += output.len();
        if size > SIZE_MAX {
            return Err(LocateError::too_many_bytes("the filter yields much"));
        }
        outputs.push(output);
        if outputs.len() > 1 && !all {
            return Err(several_values("jq", outputs.len()));
        }
    }
    match (outputs.pop(), all) {
        (output, true) => {
            outputs.extend(output);
            Ok(Value::Json(format!("[{}]", outputs.join(","))))
        }
        (Some(only), false) => Ok(parsed(only)),
        (None, false) => Ok(Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: &str = r#"{"items": [{"id": 1, "name": "a"}, {"id": 2, "name": null}], "total": 1.5}"#;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn json_paths_yield_one_value_or_a_list() {
        let one = |path| json_path(path, INPUT, false);
        assert_eq!(one("$.items[0].name"), Ok(text("a")));
        assert_eq!(one("$.items[?@.id == 2].name"), Ok(Value::Null));
        assert_eq!(one("$.total"), Ok(Value::Float(1.5)));
        assert_eq!(one("$.nothing"), Ok(Value::Null));
        assert_eq!(one("$.items[0]"), Ok(Value::Json(r#"{"id":1,"name":"a"}"#.to_owned())));
        assert!(matches!(one("$.items[*].id"), Err(LocateError::Failed(said)) if said.contains("jsonpath(all)")));
        assert_eq!(json_path("$.items[*].id", INPUT, true), Ok(Value::Json("[1,2]".to_owned())));
        assert!(matches!(one("$.["), Err(LocateError::Unknown(_))));
        assert!(matches!(json_path("$", "<html>", false), Err(LocateError::Failed(_))));
    }

    #[test]
    fn jq_yields_one_value_or_a_list() {
        let one = |filter| jq(filter, INPUT, false);
        assert_eq!(one(".items | map(.id) | add"), Ok(Value::Integer(3)));
        assert_eq!(one(".items[] | select(.id == 9)"), Ok(Value::Null));
        assert_eq!(one(".items[0].name | ascii_upcase"), Ok(text("A")));
        assert!(matches!(one(".items[]"), Err(LocateError::Failed(_))));
        assert_eq!(jq(".items[].id", INPUT, true), Ok(Value::Json("[1,2]".to_owned())));
        assert_eq!(jq("empty", INPUT, true), Ok(Value::Json("[]".to_owned())));
        assert!(matches!(one(".items | nonsense"), Err(LocateError::Unknown(said)) if said.contains("nonsense")));
        assert!(matches!(one(".items ["), Err(LocateError::Unknown(_))));
        assert!(matches!(one(".total | keys"), Err(LocateError::Failed(_))));
        assert!(matches!(one("halt"), Err(LocateError::Failed(_))));
        assert!(matches!(
            jq("[limit(1000000; repeat(\"aaaaaaaa\"))] | .[]", "1", true),
            Err(LocateError::TooLarge { .. })
        ));
    }
}
