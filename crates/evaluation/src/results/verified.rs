//! Folders of WebArena-Verified: `<id>/agent_response.json`, `network.har` or `trace.zip`, and `eval_result.json` if
//! the benchmark's own code has judged the result.

use std::path::Path;

use super::{Benchmark, Left, ResultError, form, text, traffic, unfinished};
use arenad_evaluators::webarena_verified::parse_json;

/// Files of which such a folder has at least one.
pub(super) const FILES: [&str; 3] = [RESPONSE, "network.har", "eval_result.json"];

const RESPONSE: &str = "agent_response.json";

pub(super) fn read(folder: &Path) -> Result<Left, ResultError> {
    let id = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let response = folder.join(RESPONSE);
    if !response.is_file() {
        return Err(unfinished(folder, "it has no agent_response.json: the agent never answered"));
    }
    let verdict = folder.join("eval_result.json");
    let recorded = if verdict.is_file() {
        let verdict_text = text(&verdict)?;
        // Python writes numbers that JSON does not have, if the agent's answer contained them.
        let found = parse_json(&verdict_text).ok().flatten();
        let found = found.ok_or_else(|| form(&verdict, "a result of the benchmark", "it is not JSON"))?;
        found["score"].as_f64()
    } else {
        None
    };
    Ok(Left {
        benchmark: Some(Benchmark::WebArenaVerified),
        id,
        answer: text(&response)?,
        url: String::new(),
        traffic: traffic(folder)?,
        recorded,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_the_answer_the_traffic_and_what_was_recorded() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("107");
        std::fs::create_dir(&folder).expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a file");
        write("network.har", "{}");
        assert!(read(&folder).expect_err("no answer").to_string().contains("never answered"));
        write("agent_response.json", "{\"status\": \"SUCCESS\"}");
        let left = read(&folder).expect("a result");
        assert_eq!((left.id.as_str(), left.recorded), ("107", None));
        assert!(left.traffic.is_some());
        write("eval_result.json", "{\"score\": 1.0}");
        assert_eq!(read(&folder).expect("a result").recorded, Some(1.0));
        write("eval_result.json", "{\"actual\": [NaN], \"score\": 0.0}");
        assert_eq!(read(&folder).expect("a result").recorded, Some(0.0));
        write("eval_result.json", "{\"score\": 1.0");
        assert!(read(&folder).expect_err("broken").to_string().contains("eval_result.json is not a result"));
    }
}
