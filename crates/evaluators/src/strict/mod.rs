//! The strict profile of WebArena and VisualWebArena: what their evaluators mean, without the holes that let wrong answers
//! pass or fail right ones. One set of rules serves both; `README.md` of this layer lists each difference.
//!
//! What it cannot decide it does not guess: a task that requires nothing, or in words that nobody knows, is `unsupported`.

pub(super) mod addresses;
mod answers;
mod hedges;
pub(super) mod leniency;
pub(super) mod numbers;
mod pages;
mod pictures;
mod said;
mod spoken;
pub(super) mod verified;
pub(super) mod words;

use serde_json::Value;

use super::webarena::{Context, Eval, Helper, TaskError};
use arenad_verdict::question::{Question, Told};
use arenad_verdict::{Check, Profile, Report, Verdict};

/// What the profile has to know of a benchmark.
pub(super) struct Dialect {
    /// The evaluators that the benchmark has.
    pub(super) eval_types: &'static [&'static str],
    /// The rule for URLs where the task names none.
    pub(super) url_rule: &'static str,
    /// The helpers that tasks may call.
    pub(super) helpers: &'static [Helper],
    /// Whether the published rule takes an answer for a reference.
    pub(super) is: fn(reference: &str, answer: &str) -> bool,
    /// Whether the published rule finds a reference in an answer. The last argument says whether the task has but one reference.
    pub(super) includes: fn(reference: &str, answer: &str, is_alone: bool) -> bool,
}

/// What has to be known.
pub(super) fn questions(
    context: &Context,
    eval: &Eval,
    told: &Told,
    dialect: &Dialect,
) -> Result<Vec<Question>, TaskError> {
    let mut questions = Vec::new();
    for kind in &eval.eval_types {
        match kind.as_str() {
            "string_match" => questions.extend(answers::questions(context, eval)?),
            "program_html" => questions.extend(pages::questions(context, eval, told, dialect.helpers)?),
            "page_image_query" => questions.extend(pictures::questions(context, eval, dialect.helpers)?),
            _ => {}
        }
    }
    Ok(questions)
}

/// Judges a task.
pub(super) fn evaluate(context: &Context, eval: &Eval, told: &Told, dialect: &Dialect) -> Result<Report, TaskError> {
    let mut checks = Vec::new();
    for kind in &eval.eval_types {
        if !dialect.eval_types.contains(&kind.as_str()) {
            return Err(TaskError::new("eval_types", "evaluators that the benchmark has", &kind.as_str().into()));
        }
        let (evaluator, made) = match kind.as_str() {
            "string_match" => ("string_match", answers::string_match(context, eval, told, dialect)?),
            "url_match" => ("url_match", addresses::url_match(context, eval, dialect.url_rule)?),
            "program_html" => ("program_html", pages::program_html(context, eval, told, dialect.helpers)?),
            _ => ("page_image_query", pictures::page_image_query(context, eval, told, dialect.helpers)?),
        };
        let is_void = made.is_empty();
        checks.extend(made);
        if is_void {
            checks.push(void(evaluator, "", &Value::Null, "the task requires nothing here"));
        }
    }
    if eval.eval_types.is_empty() {
        checks.push(void("eval_types", "", &Value::Null, "the task names no evaluator"));
    }
    Ok(Report::of(Profile::Strict, checks))
}

/// A requirement that nothing could fail, or that nobody understands.
fn void(evaluator: &'static str, rule: &str, expected: &Value, reason: &str) -> Check {
    Check::open(evaluator, rule, "task", expected.clone(), Verdict::Unsupported, reason)
}
