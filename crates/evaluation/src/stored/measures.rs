//! The measures that a benchmark publishes over many tasks.

use std::collections::BTreeMap;

use arenad_evaluators::mind2web::{self, MacroSteps};
use arenad_evaluators::turkingbench;
use arenad_evaluators::webcanvas::{self, Measures, scores};
use arenad_verdict::{Benchmark, EpisodeEvidence, Profile, Verdict};
use serde_json::{Value, json};

use super::case::StoredCase;
use crate::CaseError;

/// Returns the measures of a benchmark over episodes under a profile, by the names of its own result files.
///
/// # Errors
///
/// Returns an error if an episode cannot be read.
pub fn measures(benchmark: Benchmark, episodes: &[&EpisodeEvidence], profile: Profile) -> Result<Value, CaseError> {
    let cases = episodes
        .iter()
        .map(|evidence| Ok((StoredCase::of(evidence)?, *evidence)))
        .collect::<Result<Vec<_>, CaseError>>()?;
    Ok(match benchmark {
        Benchmark::WebCanvas => webcanvas_measures(&cases, profile),
        Benchmark::TurkingBench => turking_measures(&cases, profile),
        _ => mind2web_measures(&cases, profile),
    })
}

/// Returns the mean; `None` of nothing.
fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.fold((0.0, 0.0), |(sum, count), number| (sum + number, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

fn webcanvas_measures(cases: &[(StoredCase, &EpisodeEvidence)], profile: Profile) -> Value {
    let (mut own, mut recorded, mut cost): (Vec<Measures>, Vec<scores::TaskScores>, f64) = Default::default();
    for (case, evidence) in cases {
        let StoredCase::WebCanvas { task, trajectory } = case else { continue };
        own.push(webcanvas::measures(task, trajectory, &evidence.told, profile));
        cost += trajectory.cost_usd;
        if let Some(status) = &trajectory.status {
            recorded.push(scores::TaskScores { status: status.clone(), scores: trajectory.recorded.clone() });
        }
    }
    let tasks: Vec<scores::TaskScores> = own
        .iter()
        .map(|own| scores::TaskScores { status: own.status.to_owned(), scores: own.scores.clone() })
        .collect();
    let mut out = match scores::summarize(&tasks, cost) {
        Ok(sums) => json!(sums),
        Err(error) => json!({ "error": error.to_string() }),
    };
    out["average_task_length_score"] = json!(mean(own.iter().filter_map(|own| own.task_length_score)));
    out["human_alignment_score"] = json!(mean(own.iter().filter_map(|own| own.alignment)));
    // The paper measures the steps of completed tasks only.
    let finished = own.iter().filter(|own| own.status == "finished").filter_map(|own| own.efficiency);
    out["efficiency_of_finished_tasks"] = json!(mean(finished));
    if !recorded.is_empty() {
        out["recorded"] = match scores::summarize(&recorded, cost) {
            Ok(sums) => json!(sums),
            Err(error) => json!({ "error": error.to_string() }),
        };
    }
    out
}

fn turking_measures(cases: &[(StoredCase, &EpisodeEvidence)], profile: Profile) -> Value {
    let mut tasks: BTreeMap<&str, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    let mut instances = Vec::new();
    for (case, evidence) in cases {
        let StoredCase::TurkingBench { instance, fields, .. } = case else { continue };
        let of_task = tasks.entry(&instance.task).or_default();
        for (kind, score) in turkingbench::field_scores(instance, fields, profile) {
            of_task.entry(kind).or_default().push(score);
        }
        instances.extend(case.report(&evidence.told, profile).score);
    }
    // A range without a label that is a number scores NaN, which would make every mean NaN.
    let mean_of = |scores: &[f64]| json!(mean(scores.iter().copied().filter(|score| !score.is_nan())));
    let all: Vec<f64> = tasks.values().flat_map(BTreeMap::values).flatten().copied().collect();
    let by_task: BTreeMap<&str, BTreeMap<&str, Value>> = tasks
        .iter()
        .map(|(task, kinds)| {
            let own: Vec<f64> = kinds.values().flatten().copied().collect();
            let kinds = kinds.iter().map(|(kind, scores)| (kind.as_str(), mean_of(scores)));
            (*task, kinds.chain([("all", mean_of(&own))]).collect())
        })
        .collect();
    json!({
        "instances": instances.len(), "fields": all.len(), "mean_of_instances": mean(instances.into_iter()),
        "mean_of_fields": mean_of(&all), "tasks": by_task,
    })
}

fn mind2web_measures(cases: &[(StoredCase, &EpisodeEvidence)], profile: Profile) -> Value {
    let mut steps = Vec::new();
    let (mut rates, mut right, mut counted, mut done) = (Vec::new(), 0.0, 0.0, 0.0);
    for (case, evidence) in cases {
        let StoredCase::Mind2Web { task, predictions, top_k } = case else { continue };
        for step in &task.steps {
            steps.push((step, mind2web::score_step(step, predictions.get(&step.action), *top_k)));
        }
        let report = case.report(&evidence.told, profile);
        let own =
            |verdict: Verdict| report.checks.iter().filter(|check| check.verdict == verdict).map(|_| 1.0).sum::<f64>();
        let (passed, failed) = (own(Verdict::Passed), own(Verdict::Failed));
        (right, counted) = (right + passed, counted + passed + failed);
        rates.extend((passed + failed > 0.0).then(|| passed / (passed + failed)));
        done += f64::from(u8::from(report.verdict == Verdict::Passed));
    }
    let only: Vec<_> = steps.iter().map(|(step, _)| *step).collect();
    let caps = mind2web::steps::recall_caps(&only);
    if profile == Profile::Strict {
        #[expect(clippy::cast_precision_loss, reason = "a run has few tasks")]
        let tasks = cases.len() as f64;
        return json!({
            "steps": counted, "step_acc": (counted > 0.0).then(|| right / counted), "macro_step_acc": mean(rates.into_iter()),
            "task_success": (tasks > 0.0).then(|| done / tasks), "candidates": caps,
        });
    }
    let mut out = match mind2web::summarize(&steps, MacroSteps::UpToLastCounted) {
        Ok(sums) => json!(sums),
        Err(error) => json!({ "error": error.to_string() }),
    };
    // The published macro measures leave out the last steps if those have no right candidate.
    if let Ok(all) = mind2web::summarize(&steps, MacroSteps::All) {
        out["macro_over_all_steps"] = json!({
            "element_acc": all.marco_element_acc, "action_f1": all.marco_action_f1, "step_acc": all.marco_step_acc,
            "task_success": all.error_ratio.get("0").copied().unwrap_or_default(),
        });
    }
    out["candidates"] = json!(caps);
    out
}
