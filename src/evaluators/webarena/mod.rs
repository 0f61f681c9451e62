//! WebArena's evaluators: `string_match`, `url_match`, `program_html`.
//!
//! [`questions`] says what has to be known, [`evaluate`] judges when it is.

mod calls;
mod pages;
pub mod strings;
mod task;
mod tasks;
pub mod urls;

use std::collections::{HashMap, HashSet};

pub use calls::{HELPERS, reddit_get_post_url};
pub use task::{Eval, Target, TaskError};
pub use tasks::{Task, TaskFileError, read};

use super::question::{Answer, Question};
use super::verdict::{Profile, Report};

/// What the agent left.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The task, as the agent was told.
    pub intent: String,
    /// What it answered; empty if nothing.
    pub answer: String,
    /// The URL of the page where it ended.
    pub url: String,
}

/// What was seen, by what was asked.
#[derive(Debug, Clone, Default)]
pub struct Told(HashMap<Question, Answer>);

impl Told {
    /// Keeps an answer.
    pub fn tell(&mut self, question: Question, answer: Answer) {
        self.0.insert(question, answer);
    }

    fn ask(&self, question: &Question) -> Answer {
        self.0.get(question).cloned().unwrap_or_else(|| Answer::Unavailable("nobody looked".to_owned()))
    }
}

/// What has to be known, each once.
///
/// # Errors
///
/// When the benchmark's own code would fail on the task.
pub fn questions(context: &Context, eval: &Eval) -> Result<Vec<Question>, TaskError> {
    let mut questions = Vec::new();
    for kind in &eval.eval_types {
        match kind.as_str() {
            "string_match" => questions.extend(strings::questions(context, eval)?),
            "program_html" => questions.extend(pages::questions(context, eval)?),
            _ => {}
        }
    }
    let mut seen = HashSet::new();
    questions.retain(|question| seen.insert(question.clone()));
    Ok(questions)
}

/// Judges a task: every evaluator of `eval_types` has to pass.
///
/// # Errors
///
/// When the benchmark's own code would fail on the task.
pub fn evaluate(context: &Context, eval: &Eval, told: &Told) -> Result<Report, TaskError> {
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
