//! The strict profile of WebArena and VisualWebArena. It implements the intent of their evaluators without the defects
//! that let wrong answers pass or right ones fail. Both benchmarks share one set of rules;
//! `docs/reference/evaluators.md` lists each difference.
//!
//! The profile does not guess: a task without requirements, or with unknown ones, is `unsupported`.

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

use super::webarena::{EpisodeContext, Eval, HelperSignature, TaskError};
use arenad_verdict::question::{KnownAnswers, Question};
use arenad_verdict::{Check, Profile, Report, Verdict};

/// The properties of a benchmark that the profile needs.
pub(super) struct BenchmarkDialect {
    /// The names of the benchmark's evaluators.
    pub(super) eval_types: &'static [&'static str],
    /// The rule for URLs if the task names none.
    pub(super) url_rule: &'static str,
    /// The helpers that tasks may call.
    pub(super) helpers: &'static [HelperSignature],
    /// Whether the published rule considers an answer equal to a reference.
    pub(super) is: fn(reference: &str, answer: &str) -> bool,
    /// Whether the published rule finds a reference in an answer. The last argument is whether the task has only one
    /// reference.
    pub(super) includes: fn(reference: &str, answer: &str, is_alone: bool) -> bool,
}

/// Returns the questions whose answers the evaluators need.
pub(super) fn questions(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
    dialect: &BenchmarkDialect,
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

/// Judges a task: every evaluator of `eval_types` has to pass.
pub(super) fn evaluate(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
    dialect: &BenchmarkDialect,
) -> Result<Report, TaskError> {
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

/// Makes the check of a requirement that is unknown or that no answer can fail.
fn void(evaluator: &'static str, rule: &str, expected: &Value, reason: &str) -> Check {
    Check::open(evaluator, rule, "task", expected.clone(), Verdict::Unsupported, reason)
}
