//! The protocol of NeMo Gym's resources servers, without I/O. Source: `nemo-gym` 0.4.0, `base_resources_server.py`,
//! `server_utils.py` and `reward_profile.py`.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

/// The name of the cookie that identifies a session.
pub const COOKIE: &str = "arenad_session";

/// The field of a rollout that has the number of its task.
const TASK_INDEX: &str = "_ng_task_index";

/// The field of a rollout that has its number within its task.
const ROLLOUT_INDEX: &str = "_ng_rollout_index";

/// Returns the value of the session's cookie in the header of a request.
pub fn cookie_of(header: &str) -> Option<&str> {
    let pairs = header.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.into_iter().find(|(name, value)| *name == COOKIE && !value.is_empty()).map(|(_, value)| value)
}

/// Returns the header that sets the session's cookie, as Starlette's sessions set theirs. It is part of every answer,
/// because agents send only the cookies of the last one.
pub fn set_cookie(session: &str) -> String {
    format!("{COOKIE}={session}; path=/; Max-Age=1209600; httponly; samesite=lax")
}

/// Returns the parameters of a reset that a row of a data set has: its fields, and those in `verifier_metadata` that it
/// does not have itself.
pub fn parameters(row: &Map<String, Json>) -> Map<String, Json> {
    let mut parameters = row.clone();
    if let Some(Json::Object(metadata)) = row.get("verifier_metadata") {
        for (name, value) in metadata {
            parameters.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    parameters
}

/// Returns the answer of an agent that has not called `stop`: the text of its last message, on one line.
pub fn last_answer(response: &Json) -> String {
    let items = response["output"].as_array().into_iter().flatten();
    let is_answer = |item: &&Json| item["type"] == "message" && item["role"] == "assistant";
    let Some(last) = items.rev().find(is_answer) else { return String::new() };
    let parts = match &last["content"] {
        Json::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        content => content.as_str().unwrap_or_default().to_owned(),
    };
    parts.replace(['\r', '\n'], " ").trim().to_owned()
}

/// Returns the answer to `/verify`: the request, and the reward with further facts.
pub fn verified(mut request: Map<String, Json>, reward: f64, facts: &[(&str, Json)]) -> Json {
    for (name, value) in facts {
        request.insert((*name).to_owned(), value.clone());
    }
    request.insert("reward".to_owned(), json!(reward));
    Json::Object(request)
}

/// The reason why there are no metrics.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoMetrics {
    /// A rollout has no number. The source fails with a `KeyError`.
    #[error("a verify response has no {0}, which is an integer")]
    NoIndex(&'static str),
    /// Two rollouts have the same numbers. The source fails with a `ValueError`.
    #[error("two verify responses have the task index {task} and the rollout index {rollout}")]
    Duplicate {
        /// The number of the task.
        task: i64,
        /// The number of the rollout within its task.
        rollout: i64,
    },
}

/// One rollout: its numbers, and its numeric fields.
struct Rollout {
    task: i64,
    rollout: i64,
    fields: BTreeMap<String, f64>,
    /// The description of the rollout in the metrics of its task.
    shown: Json,
}

/// Returns the answer to `/aggregate_metrics`: statistics of all numeric fields of the rollouts, for each task and for
/// all of them. Source: `compute_aggregate_metrics`, without metrics of a server's own.
pub fn aggregate(responses: &[Map<String, Json>]) -> Result<Json, NoMetrics> {
    let mut rollouts: Vec<Rollout> = responses.iter().map(Rollout::read).collect::<Result<_, _>>()?;
    rollouts.sort_by_key(|it| (it.task, it.rollout));
    if let Some(pair) =
        rollouts.windows(2).find(|pair| (pair[0].task, pair[0].rollout) == (pair[1].task, pair[1].rollout))
    {
        return Err(NoMetrics::Duplicate { task: pair[0].task, rollout: pair[0].rollout });
    }
    let mut names: Vec<&String> = rollouts.iter().flat_map(|it| it.fields.keys()).collect();
    names.sort();
    names.dedup();
    let groups = rollouts.chunk_by(|one, other| one.task == other.task).map(|group| {
        let mut metrics = statistics(group, &names);
        let rollouts: Vec<&Json> = group.iter().map(|it| &it.shown).collect();
        let count = group.len();
        let further = json!({
            TASK_INDEX: group[0].task,
            "sample": { "agent_ref": { "name": "agent" } },
            "num_rollouts": count,
            "expected_num_rollouts": count,
            "missing_num_rollouts": 0,
            "reward_profile_completion_pct": 100.0,
            "rollout_infos": rollouts,
        });
        if let Json::Object(further) = further {
            metrics.extend(further);
        }
        Json::Object(metrics)
    });
    let groups: Vec<Json> = groups.collect();
    let all = if rollouts.is_empty() { Map::new() } else { statistics(&rollouts, &names) };
    let key: Map<String, Json> =
        all.iter().filter(|(name, _)| name.starts_with("mean/")).map(|(name, it)| (name.clone(), it.clone())).collect();
    Ok(json!({ "group_level_metrics": groups, "agent_metrics": all, "key_metrics": key }))
}

/// Returns a value as a number, as Python's does: true is 1.
fn number(value: &Json) -> Option<f64> {
    value.as_f64().or_else(|| value.as_bool().map(|is_true| f64::from(u8::from(is_true))))
}

/// Returns a value as it is shown, if it is a number.
fn shown_number(value: &Json) -> Option<Json> {
    match value {
        Json::Bool(is_true) => Some(json!(u8::from(*is_true))),
        Json::Number(_) => Some(value.clone()),
        _ => None,
    }
}

impl Rollout {
    fn read(response: &Map<String, Json>) -> Result<Self, NoMetrics> {
        let index = |name: &'static str| response.get(name).and_then(Json::as_i64).ok_or(NoMetrics::NoIndex(name));
        let (task, rollout) = (index(TASK_INDEX)?, index(ROLLOUT_INDEX)?);
        let no_usage = Map::new();
        let usage = response.get("response").and_then(|response| response["usage"].as_object()).unwrap_or(&no_usage);
        // Usage comes last, so it prevails.
        let all =
            response.iter().chain(usage).filter(|(name, _)| ![TASK_INDEX, ROLLOUT_INDEX].contains(&name.as_str()));
        let fields = all.filter_map(|(name, value)| Some((name.clone(), number(value)?))).collect();
        let mut shown = Map::new();
        shown.insert("rollout_id".to_owned(), json!(format!("{task}:{rollout}")));
        shown.insert(TASK_INDEX.to_owned(), json!(task));
        shown.insert(ROLLOUT_INDEX.to_owned(), json!(rollout));
        if let Some(reward) = response.get("reward") {
            shown.insert("reward".to_owned(), reward.clone());
        }
        let own = response
            .iter()
            .filter(|(name, _)| ![TASK_INDEX, ROLLOUT_INDEX, "reward", "response"].contains(&name.as_str()));
        for (name, value) in usage.iter().chain(own) {
            if let Some(value) = shown_number(value) {
                shown.insert(name.clone(), value);
            }
        }
        Ok(Self { task, rollout, fields, shown: Json::Object(shown) })
    }
}

/// Returns mean, maximum, minimum, median and standard deviation of each field, where there are values.
///
/// The deviation of a single value is not a number and left out, but 0 if that holds for every field (and for this one
/// in every rollout).
fn statistics(rollouts: &[Rollout], names: &[&String]) -> Map<String, Json> {
    let values_of = |name: &String| -> Vec<f64> {
        rollouts.iter().filter_map(|it| it.fields.get(name)).copied().filter(|it| !it.is_nan()).collect()
    };
    let columns: Vec<(&String, Vec<f64>)> = names.iter().map(|name| (*name, values_of(name))).collect();
    let no_deviation = columns.iter().all(|(_, values)| values.len() < 2);
    let mut metrics = Map::new();
    for (name, mut values) in columns {
        if values.is_empty() {
            continue;
        }
        values.sort_by(f64::total_cmp);
        let count = values.len();
        #[expect(clippy::cast_precision_loss, reason = "there are fewer rollouts than 2^52")]
        let size = |count: usize| count as f64;
        let mean = values.iter().sum::<f64>() / size(count);
        let median = (values[(count - 1) / 2] + values[count / 2]) / 2.0;
        let deviation = match count {
            1 => (no_deviation && count == rollouts.len()).then_some(0.0),
            _ => {
                let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
                Some((squares / size(count - 1)).sqrt())
            }
        };
        let mut add = |kind: &str, value: f64| drop(metrics.insert(format!("{kind}/{name}"), json!(value)));
        add("mean", mean);
        add("max", values[count - 1]);
        add("min", values[0]);
        add("median", median);
        if let Some(deviation) = deviation {
            add("std", deviation);
        }
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Json) -> Map<String, Json> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        assert_eq!(cookie_of("a=b; arenad_session=xyz; Server___model=1"), Some("xyz"));
        assert_eq!(cookie_of("a=b; arenad_session="), None);
        assert_eq!(set_cookie("xyz"), "arenad_session=xyz; path=/; Max-Age=1209600; httponly; samesite=lax");
    }

    #[test]
    fn a_row_has_its_parameters_itself_or_in_its_metadata() {
        let row = map(json!({ "task": "a", "verifier_metadata": { "task": "b", "environment": "mini" } }));
        let read = parameters(&row);
        assert_eq!((&read["task"], &read["environment"]), (&json!("a"), &json!("mini")));
    }

    #[test]
    fn the_last_message_is_the_answer() {
        let message = |text: &str| json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] });
        let call = json!({ "type": "function_call", "name": "click", "arguments": "{}" });
        assert_eq!(last_answer(&json!({ "output": [message("no"), call, message(" $5\nin all ")] })), "$5 in all");
        assert_eq!(last_answer(&json!({ "output": [call] })), "");
    }

    #[test]
    fn a_verdict_is_the_request_with_a_reward() {
        let request = map(json!({ "response": { "id": "r" }, "label": 3 }));
        assert_eq!(
            verified(request, 1.0, &[("verdict", json!("passed"))]),
            json!({ "response": { "id": "r" }, "label": 3, "verdict": "passed", "reward": 1.0 })
        );
    }

    /// The vectors are answers of `nemo_gym.reward_profile.compute_aggregate_metrics` itself, made by
    /// `tests/vectors/nemo-gym/make.py`.
    #[test]
    fn metrics_are_those_of_nemo_gym() {
        let vectors: Json =
            serde_json::from_str(include_str!("../../../tests/vectors/nemo-gym/aggregate_metrics.json")).expect("JSON");
        let vectors = vectors.as_array().expect("a list");
        assert!(vectors.len() >= 6);
        for vector in vectors {
            let responses: Vec<_> =
                vector["verify_responses"].as_array().expect("a list").iter().cloned().map(map).collect();
            match &vector["raised"] {
                Json::Null => {
                    let metrics = aggregate(&responses).expect("metrics");
                    assert_eq!(rounded(&metrics), rounded(&vector["metrics"]), "{vector:#}");
                }
                _ => drop(aggregate(&responses).expect_err("an error")),
            }
        }
    }

    /// Rounds numbers to twelve digits: sums are not computed in the same order.
    fn rounded(value: &Json) -> Json {
        match value {
            Json::Number(number) => json!(format!("{:.12e}", number.as_f64().unwrap_or_default())),
            Json::Array(items) => items.iter().map(rounded).collect(),
            Json::Object(fields) => {
                Json::Object(fields.iter().map(|(name, value)| (name.clone(), rounded(value))).collect())
            }
            other => other.clone(),
        }
    }
}
