//! Episodes as files: tasks of the benchmarks, answers of agents and observations, judged by every profile.

use arenad_evaluation::{TaskFiles, results};
use arenad_verdict::Benchmark;
use arenad_verdict::{self as verdict, Profile, Report};

use crate::target::{FuzzTarget, InputCheck, scratch};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "\"eval_types\":[\"string_match\"]",
        "\"program_html\"",
        "\"url_match\"",
        "\"page_image_query\"",
        "\"reference_answers\":{",
        "\"must_include\":[",
        "\"exact_match\":",
        "\"fuzzy_match\":[",
        "\"required_values\":[\">= 3\"]",
        " |OR| ",
        " |AND| ",
        "__SHOPPING__",
        "\"benchmark\":\"visualwebarena\"",
        "\"benchmark\":\"webarena\"",
        "\"benchmark\":\"webarena-verified\"",
        "\"results_schema\":{\"type\":\"array\",\"items\":{\"type\":\"number\"}}",
        "\"format\":\"date\"",
        "\"NetworkEventEvaluator\"",
        "\"AgentResponseEvaluator\"",
        "^.*$",
        "(a{1,1000}){1,1000}",
        "\\u0000",
        "\u{130}",
        "null",
        "[]",
        "{}",
        "-",
        "$1,234.50",
        "2h12m",
        "2024-02-30",
    ],
    ..FuzzTarget::new("episodes", open)
};

fn open() -> InputCheck {
    let folder = scratch();
    let path = folder.join("x.evidence.json");
    let tasks = folder.join("tasks.json");
    Box::new(move |input| {
        std::fs::write(&path, input).expect("a file");
        let evidence = match results::evidence(&path) {
            Ok(evidence) => evidence,
            // Input that is not valid evidence may be a task.
            Err(error) => {
                std::fs::write(&tasks, input).expect("a file");
                let found = TaskFiles::open(Benchmark::WebArena, &tasks).and_then(|files| files.find("1"));
                return format!("{} {}", error.to_string().len() / 16, found.is_ok());
            }
        };
        match arenad_evaluation::evaluate(&evidence, &[Profile::Compat, Profile::Strict]) {
            Ok(evaluated) => {
                let again =
                    arenad_evaluation::evaluate(&evidence, &[Profile::Compat, Profile::Strict]).expect("as before");
                assert_eq!(evaluated.reports, again.reports, "the same evidence has two verdicts");
                let kept = serde_json::to_string(&evidence).expect("JSON");
                let back: arenad_verdict::EpisodeEvidence = serde_json::from_str(&kept).expect("what was kept is read");
                let back = arenad_evaluation::evaluate(&back, &[Profile::Compat, Profile::Strict]).expect("as before");
                assert_eq!(evaluated.reports, back.reports, "evidence that was kept has another verdict");
                verdicts(&evaluated.reports)
            }
            Err(error) => arenad_model::error::describe(&error),
        }
    })
}

/// Returns the rules and verdicts of reports, without the values that were found.
pub fn verdicts(reports: &[Report]) -> String {
    let check = |check: &verdict::Check| format!("{} {:?}", check.rule, check.verdict);
    let of = |report: &Report| report.checks.iter().map(check).collect::<Vec<_>>().join(", ");
    reports.iter().map(of).collect::<Vec<_>>().join(" / ")
}
