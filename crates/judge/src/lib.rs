//! Judges of meaning: they decide whether an answer means the same as a reference, and describe pictures. Evaluators
//! ask questions ([`Question::Judge`], [`Question::Rule`], [`Question::Look`]). The evaluators' caller passes each question to a [`Judge`]
//! by [`answer`], and passes the resulting [`Answer`] back.
//!
//! There are three judges: [`Off`], which leaves the verdict open (`needs_judge`); [`EndpointJudge`], a model behind an
//! OpenAI-compatible interface; and [`RecordedJudge`], which takes replies from a file. A judge's own failure never
//! becomes a verdict on the agent.
//!
//! The crate depends on `evaluators`, `verdict` and `outbound`. Start reading at [`answer`], then `prompt.rs`.
//!
//! ```no_run
//! use std::time::Duration;
//! use arenad_judge::{EndpointJudge, Settings};
//!
//! # use arenad_verdict::question::{KnownAnswers, Question};
//! # async fn f(question: Question, told: &mut KnownAnswers) -> Result<(), Box<dyn std::error::Error>> {
//! let judge = EndpointJudge::new(Settings {
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

pub use archive::{RecordedJudge, ReplyRecord, Spent, Usage};
pub use endpoint::{EndpointJudge, Settings};
pub use prompt::{About, Prompt};

use arenad_evaluators::visualwebarena::similarity::Pixels;
use arenad_verdict::question::{Answer, KnownAnswers, Picture, Question, RuleQuestion, TextComparison};

/// A source of replies to prompts.
#[async_trait]
pub trait Judge: Send + Sync {
    /// Returns the reply, unchanged.
    ///
    /// Cancellation: dropping the future abandons the question; a reply that has been paid for may be lost.
    ///
    /// Errors: [`JudgeError::Absent`] if no reply is available; other variants if the judge failed.
    async fn reply(&self, prompt: &Prompt) -> Result<String, JudgeError>;
}

/// The reason why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// No judge is available for the question.
    #[error("{0}")]
    Absent(String),
    /// The address of the judge is invalid.
    #[error("the judge's address `{0}` is none; expected http://HOST/v1 or https://HOST/v1")]
    Address(String),
    /// No attempt led to a reply.
    #[error("the judge at {host} gave no reply in {attempts} attempts: {last}")]
    Unreachable {
        /// Host of the judge.
        host: String,
        /// Number of attempts that were made.
        attempts: usize,
        /// Description of the last failure.
        last: String,
    },
    /// The judge refused the question, so further attempts are useless.
    #[error("the judge at {host} refuses with status {status}: {detail}")]
    Refused {
        /// Host of the judge.
        host: String,
        /// The HTTP status code.
        status: u16,
        /// The judge's error message, shortened.
        detail: String,
    },
    /// The judge's reply is not one of the verdicts.
    #[error("the judge said `{0}`, which is not a verdict")]
    NoVerdict(String),
    /// The file of replies cannot be used.
    #[error("{path}: {what}")]
    Archive {
        /// Path of the file.
        path: PathBuf,
        /// Description of the defect, with the line number if there is one.
        what: String,
        /// Error of the operating system, if any.
        #[source]
        cause: Option<io::Error>,
    },
}

/// A judge that never replies, so every question for a judge stays open.
#[derive(Debug, Clone, Copy, Default)]
pub struct Off;

#[async_trait]
impl Judge for Off {
    async fn reply(&self, _: &Prompt) -> Result<String, JudgeError> {
        Err(JudgeError::Absent("there is no judge".to_owned()))
    }
}

/// Returns a judge's answer to an evaluator's question, or `None` if the question is not for a judge. A question about
/// pictures refers to the answer to [`Question::Pictures`], which must be given first. Evaluators ask for it first.
pub async fn answer(judge: &dyn Judge, question: &Question, told: &KnownAnswers) -> Option<Answer> {
    match question {
        Question::Judge(comparison) => Some(compare(judge, comparison).await),
        Question::Rule(question) => Some(grade(judge, question).await),
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

/// Asks a judge to compare two texts. Returns a truth value, or the reason why there is none.
pub async fn compare(judge: &dyn Judge, comparison: &TextComparison) -> Answer {
    let prompt = Prompt::of(comparison);
    match judge.reply(&prompt).await {
        Ok(reply) => match prompt.verdict(&reply) {
            Some(same) => Answer::Value(Value::Bool(same)),
            None => unanswered(&JudgeError::NoVerdict(shortened(&reply))),
        },
        Err(error) => unanswered(&error),
    }
}

/// Asks a judge how far a text satisfies a rule. Returns a number from 0 to 1, or the reason why there is none.
pub async fn grade(judge: &dyn Judge, question: &RuleQuestion) -> Answer {
    let prompt = Prompt::rule(question);
    match judge.reply(&prompt).await {
        Ok(reply) => match prompt.grade(&reply) {
            Some(grade) => Answer::Value(Value::from(grade)),
            None => unanswered(&JudgeError::NoVerdict(shortened(&reply))),
        },
        Err(error) => unanswered(&error),
    }
}

/// Asks a judge a question about each picture, and returns the list of replies. Pictures that cannot be decoded are
/// skipped.
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

/// The maximum length of a judge's text in messages, in characters.
const QUOTED: usize = 200;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
