//! Judges of meaning: whether an answer means what a reference does, and what a picture shows. Evaluators ask
//! ([`Question::Judge`], [`Question::Look`]), whoever runs them puts the question to a
//! [`Judge`] by [`answer`] and tells them the [`Answer`].
//!
//! Three judges: [`Off`], which leaves the verdict open (`needs_judge`); [`Endpoint`], a model behind an OpenAI-compatible
//! interface; [`Recorded`], replies from a file. None ever turns its own failure into a verdict on the agent.
//!
//! ```no_run
//! use std::time::Duration;
//! use arenad_judge::{Endpoint, Settings};
//!
//! # use arenad_verdict::question::{Question, Told};
//! # async fn f(question: Question, told: &mut Told) -> Result<(), Box<dyn std::error::Error>> {
//! let judge = Endpoint::new(Settings {
//!     url: "http://localhost:11434/v1".to_owned(),
//!     model: "qwen2.5:32b".to_owned(),
//!     key: None,
//!     timeout: Duration::from_secs(60),
//!     attempts: 5,
//!     pause: Duration::from_secs(1),
//!     folder: Some("judge".into()),
//! })?;
//! if let Some(answer) = arenad_judge::answer(&judge, &question, told).await {
//!     told.tell(question, answer);
//! }
//! println!("{:?}", judge.spent());
//! # Ok(()) }
//! ```

mod archive;
mod endpoint;
mod exchange;
mod prompt;

use std::io;
use std::path::PathBuf;

use async_trait::async_trait;
use serde_json::Value;

pub use archive::{Record, Recorded, Spent, Usage};
pub use endpoint::{Endpoint, Settings};
pub use prompt::{About, Prompt};

use arenad_evaluators::visualwebarena::similarity::Pixels;
use arenad_verdict::question::{Answer, Comparison, Picture, Question, Told};

/// Someone who replies to a prompt.
#[async_trait]
pub trait Judge: Send + Sync {
    /// The reply, as it is.
    ///
    /// Cancellation: dropping the future gives the question up; a reply that has been paid for may be lost.
    ///
    /// Errors: [`JudgeError::Absent`] if there is nobody to reply; others if someone failed to.
    async fn reply(&self, prompt: &Prompt) -> Result<String, JudgeError>;
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// There is nobody to judge this.
    #[error("{0}")]
    Absent(String),
    /// The judge's address is unusable.
    #[error("the judge's address `{0}` is none; expected http://HOST/v1 or https://HOST/v1")]
    Address(String),
    /// The judge could not be reached, or what it sent was no reply, however often it was asked.
    #[error("the judge at {host} gave no reply in {attempts} attempts: {last}")]
    Unreachable {
        /// The judge's host.
        host: String,
        /// How often it was asked.
        attempts: usize,
        /// What came of the last attempt.
        last: String,
    },
    /// The judge will not reply to this, however often it is asked.
    #[error("the judge at {host} refuses with status {status}: {detail}")]
    Refused {
        /// The judge's host.
        host: String,
        /// The HTTP status.
        status: u16,
        /// What it says, in short.
        detail: String,
    },
    /// The judge replied something else than one of the verdicts.
    #[error("the judge said `{0}`, which is no verdict")]
    NoVerdict(String),
    /// The file of replies cannot be used.
    #[error("{path}: {what}")]
    Archive {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line where it has one.
        what: String,
        /// Why.
        #[source]
        cause: Option<io::Error>,
    },
}

/// No judge: whatever needs one stays open.
#[derive(Debug, Clone, Copy, Default)]
pub struct Off;

#[async_trait]
impl Judge for Off {
    async fn reply(&self, _: &Prompt) -> Result<String, JudgeError> {
        Err(JudgeError::Absent("there is no judge".to_owned()))
    }
}

/// What a judge answers to an evaluator's question; nothing if it is none for a judge. A question about pictures is about those
/// that the answer to [`Question::Pictures`] has, so tell that first: evaluators ask for it first.
pub async fn answer(judge: &dyn Judge, question: &Question, told: &Told) -> Option<Answer> {
    match question {
        Question::Judge(comparison) => Some(compare(judge, comparison).await),
        Question::Look { place, selector, question } => {
            let asked = Question::Pictures { place: place.clone(), selector: selector.clone() };
            Some(match told.ask(&asked) {
                Answer::Pictures(pictures) => look(judge, question, &pictures).await,
                other => other,
            })
        }
        _ => None,
    }
}

/// What a judge makes of a comparison: a truth value, or why there is none.
pub async fn compare(judge: &dyn Judge, comparison: &Comparison) -> Answer {
    let prompt = Prompt::of(comparison);
    match judge.reply(&prompt).await {
        Ok(reply) => match prompt.verdict(&reply) {
            Some(same) => Answer::Value(Value::Bool(same)),
            None => unanswered(&JudgeError::NoVerdict(shortened(&reply))),
        },
        Err(error) => unanswered(&error),
    }
}

/// What a judge replies to a question about each of some pictures; those that cannot be read are left out.
pub async fn look(judge: &dyn Judge, question: &str, pictures: &[Picture]) -> Answer {
    let mut replies = Vec::new();
    for picture in pictures.iter().filter(|picture| Pixels::decode(&picture.bytes).is_ok()) {
        match judge.reply(&Prompt::look(question, picture)).await {
            Ok(reply) => replies.push(Value::String(reply)),
            Err(error) => return unanswered(&error),
        }
    }
    Answer::Value(Value::Array(replies))
}

fn unanswered(error: &JudgeError) -> Answer {
    match error {
        JudgeError::Absent(reason) => Answer::NoJudge(reason.clone()),
        other => Answer::Unavailable(other.to_string()),
    }
}

/// How much of what a judge says is repeated in messages, in characters.
const QUOTED: usize = 200;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
