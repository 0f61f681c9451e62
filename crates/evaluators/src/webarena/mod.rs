//! WebArena's evaluators: `string_match`, `url_match`, `program_html`.
//!
//! [`questions`] lists the facts that the evaluators need, and [`evaluate`] judges when they are known. This module
//! also contains the code shared with VisualWebArena's evaluators, which began as a copy of these.

mod calls;
pub(super) mod pages;
pub mod strings;
pub(crate) mod task;
mod tasks;
pub mod urls;

pub(super) use calls::SHOP_REVIEWS;
pub use calls::{HELPERS, HelperSignature, Returns, reddit_get_post_url};
pub use task::{Eval, PageTarget, PictureQuery, TaskError, VisualQuestion};
pub(super) use task::{OR, text_of, texts_of};
pub use tasks::{WebArenaFileError, WebArenaTask, fill, read, task};

use super::strict;
use arenad_verdict::question::{KnownAnswers, Question, open};
use arenad_verdict::{Profile, Report};

/// The episode as the evaluators see it.
#[derive(Debug, Clone, Default)]
pub struct EpisodeContext {
    /// The task, in the words that the agent received.
    pub intent: String,
    /// The agent's answer; empty if there is none.
    pub answer: String,
    /// The URL of the agent's last page.
    pub url: String,
}

/// Returns the open questions under a profile, each once. Questions may depend on earlier answers, so the caller asks
/// again until none is left; two rounds are enough.
///
/// # Errors
///
/// Returns an error if the benchmark's own code would fail on the task.
pub fn questions(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
    profile: Profile,
) -> Result<Vec<Question>, TaskError> {
    if profile == Profile::Strict {
        return Ok(open(strict::questions(context, eval, told, &DIALECT)?, told));
    }
    let mut questions = Vec::new();
    for kind in &eval.eval_types {
        match kind.as_str() {
            "string_match" => questions.extend(strings::questions(context, eval)?),
            "program_html" => questions.extend(pages::questions(context, eval)?),
            _ => {}
        }
    }
    Ok(open(questions, told))
}

/// Judges a task: every evaluator of `eval_types` has to pass.
///
/// # Errors
///
/// Returns an error if the benchmark's own code would fail on the task.
pub fn evaluate(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
    profile: Profile,
) -> Result<Report, TaskError> {
    if profile == Profile::Strict {
        return strict::evaluate(context, eval, told, &DIALECT);
    }
    let mut checks = Vec::new();
    for kind in &eval.eval_types {
        checks.extend(match kind.as_str() {
            "string_match" => strings::string_match(context, eval, told)?,
            "url_match" => urls::url_match(context, eval)?,
            "program_html" => pages::program_html(context, eval, told)?,
            _ => {
                return Err(TaskError::new(
                    "eval_types",
                    "string_match, url_match or program_html",
                    &kind.as_str().into(),
                ));
            }
        });
    }
    Ok(Report::of(Profile::Compat, checks))
}

/// The properties of WebArena that the strict profile needs.
const DIALECT: strict::BenchmarkDialect = strict::BenchmarkDialect {
    eval_types: &["string_match", "url_match", "program_html"],
    url_rule: "GOLD in PRED",
    helpers: &HELPERS,
    is: |reference, answer| strings::exact_match(reference, &strings::clean_answer(answer)),
    includes: |reference, answer, is_alone| strings::must_include(reference, &strings::clean_answer(answer), is_alone),
};
