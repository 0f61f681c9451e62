//! A model behind an OpenAI-compatible interface: `POST URL/chat/completions`.
//!
//! Every reply is stored with its cost before it is used, so that no question is paid for twice. Failures that may be
//! temporary (429, 5xx, time-outs, broken connections, malformed answers) are retried after increasing pauses that
//! respect `Retry-After`. Other failures are reported at once.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable};
use http::header::RETRY_AFTER;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::archive::{ReplyArchive, ReplyRecord, Spent, Usage};
use super::prompt::Prompt;
use super::{Judge, JudgeError, exchange, shortened};
use arenad_model::site::Secret;
use arenad_outbound::Connector;

/// The maximum pause between two attempts, even if `Retry-After` is longer.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The maximum number of replies that are requested for a question until one contains a verdict.
const VERDICT_TRIES: usize = 2;

/// The address of a model, and the limits of its use.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Base URL of the interface, such as `https://api.openai.com/v1`.
    pub url: String,
    /// Name of the model.
    pub model: String,
    /// The key that is sent as a bearer token, if any.
    pub key: Option<Secret>,
    /// Time limit of one attempt.
    pub timeout: Duration,
    /// Maximum number of attempts to get one reply.
    pub attempts: usize,
    /// Pause after the first attempt. It doubles after each further one.
    pub pause: Duration,
    /// Folder in which replies and their cost are stored. `None` stores nothing, and a repeated question is paid for
    /// again.
    pub folder: Option<PathBuf>,
}

/// A judge model behind an OpenAI-compatible endpoint.
pub struct EndpointJudge {
    settings: Settings,
    url: Url,
    connector: Connector,
    archive: Mutex<Option<ReplyArchive>>,
    /// The cost of replies if there is no archive.
    spent: Mutex<Spent>,
}

impl EndpointJudge {
    /// Prepares the endpoint without connecting to it.
    ///
    /// Errors: [`JudgeError::Address`], or [`JudgeError::Archive`] if the folder cannot be used.
    pub fn new(settings: Settings) -> Result<Self, JudgeError> {
        let wrong = || JudgeError::Address(settings.url.clone());
        let base = Url::parse(&settings.url).ok();
        let base =
            base.filter(|base| matches!(base.scheme(), "http" | "https") && base.has_host()).ok_or_else(wrong)?;
        let url = format!("{}/chat/completions", base.as_str().trim_end_matches('/')).parse().map_err(|_| wrong())?;
        let archive = settings.folder.as_deref().map(ReplyArchive::open).transpose()?;
        let (archive, spent) = (Mutex::new(archive), Mutex::new(Spent::default()));
        Ok(Self { settings, url, connector: Connector::default(), archive, spent })
    }

    /// Returns the cost of replies: of all those in the folder, or of those since the start if there is no folder.
    #[must_use]
    pub fn spent(&self) -> Spent {
        let archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        archive.as_ref().map_or_else(|| *self.spent.lock().unwrap_or_else(PoisonError::into_inner), ReplyArchive::spent)
    }

    async fn ask(&self, prompt: &Prompt) -> Result<(String, Usage), JudgeError> {
        let document = json!({
            "model": self.settings.model,
            "messages": prompt.messages(),
            // The benchmarks use the same parameters.
            "temperature": 0,
            "top_p": 1,
            "max_tokens": 768,
        });
        let pauses = ExponentialBuilder::default()
            .with_min_delay(self.settings.pause)
            .with_max_delay(PAUSE_MAX)
            .with_max_times(self.settings.attempts.saturating_sub(1))
            .with_jitter();
        let attempts = AtomicUsize::new(0);
        let attempt = || async {
            attempts.fetch_add(1, Ordering::Relaxed);
            let posted = exchange::post(&self.connector, &self.url, self.settings.key.as_ref(), &document);
            let posted = tokio::time::timeout(self.settings.timeout, posted).await;
            read(
                posted
                    .map_err(|_| AttemptFailure::transient(format!("no answer within {:?}", self.settings.timeout)))?,
            )
        };
        let asked = attempt
            .retry(pauses)
            .when(|failure: &AttemptFailure| failure.is_transient)
            .adjust(|failure, pause| {
                pause.map(|pause| failure.retry_after.map_or(pause, |after| after.min(PAUSE_MAX).max(pause)))
            })
            .await;
        let asked = asked.map(|(reply, usage)| (self.without_key(reply), usage));
        asked.map_err(|failure| {
            let host = self.url.host_str().unwrap_or_default().to_owned();
            let detail = self.without_key(failure.what);
            match failure.status {
                Some(status) if !failure.is_transient => JudgeError::Refused { host, status, detail },
                _ => JudgeError::Unreachable { host, attempts: attempts.load(Ordering::Relaxed), last: detail },
            }
        })
    }

    /// Removes the key from a text of the endpoint. An endpoint may repeat the key, and its texts are stored and shown.
    fn without_key(&self, text: String) -> String {
        match &self.settings.key {
            Some(key) if !key.expose().is_empty() => text.replace(key.expose(), "…"),
            _ => text,
        }
    }

    fn find(&self, prompt: &Prompt) -> Option<String> {
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        archive.as_mut()?.find(&self.settings.model, prompt.about())
    }

    /// Stores a reply. The line has only a few hundred bytes, so the write does not need another thread.
    fn keep(&self, prompt: &Prompt, reply: &str, usage: Usage) -> Result<(), JudgeError> {
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(archive) = archive.as_mut() else {
            self.spent.lock().unwrap_or_else(PoisonError::into_inner).add(usage);
            return Ok(());
        };
        archive.keep(ReplyRecord {
            about: prompt.about().clone(),
            reply: reply.to_owned(),
            model: Some(self.settings.model.clone()),
            usage: Some(usage),
            at: Some(jiff::Timestamp::now()),
            unusable: !prompt.accepts(reply),
        })
    }
}

#[async_trait]
impl Judge for EndpointJudge {
    async fn reply(&self, prompt: &Prompt) -> Result<String, JudgeError> {
        if let Some(reply) = self.find(prompt) {
            return Ok(reply);
        }
        let mut said = String::new();
        for _ in 0..VERDICT_TRIES {
            let (reply, usage) = self.ask(prompt).await?;
            self.keep(prompt, &reply, usage)?;
            if prompt.accepts(&reply) {
                return Ok(reply);
            }
            said = reply;
        }
        Err(JudgeError::NoVerdict(shortened(&said)))
    }
}

/// The failure of one attempt.
struct AttemptFailure {
    what: String,
    status: Option<u16>,
    is_transient: bool,
    retry_after: Option<Duration>,
}

impl AttemptFailure {
    fn transient(what: String) -> Self {
        Self { what, status: None, is_transient: true, retry_after: None }
    }
}

/// The relevant part of an answer.
#[derive(Deserialize)]
struct Completion {
    choices: Vec<ChatChoice>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct ChatChoice {
    message: ChatMessage,
}

#[derive(Deserialize)]
struct ChatMessage {
    content: Option<String>,
}

fn read(answer: io::Result<exchange::EndpointResponse>) -> Result<(String, Usage), AttemptFailure> {
    let answer = answer.map_err(|error| AttemptFailure::transient(error.to_string()))?;
    let status = answer.status;
    if !status.is_success() {
        let seconds = answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        return Err(AttemptFailure {
            what: format!("status {status}, {}", detail(&answer.body)),
            status: Some(status.as_u16()),
            is_transient: matches!(status.as_u16(), 408 | 425 | 429) || status.is_server_error(),
            retry_after: seconds.map(Duration::from_secs),
        });
    }
    let completion: Completion = serde_json::from_slice(&answer.body)
        .map_err(|error| AttemptFailure::transient(format!("the answer is not a chat completion: {error}")))?;
    let reply = completion.choices.into_iter().next().and_then(|choice| choice.message.content);
    let reply = reply.ok_or_else(|| AttemptFailure::transient("the answer has no text".to_owned()))?;
    Ok((reply, completion.usage.unwrap_or_default()))
}

/// Returns the endpoint's error message: `error.message`, or the beginning of the body.
fn detail(body: &[u8]) -> String {
    let message = serde_json::from_slice::<Value>(body).ok().and_then(|body| {
        let message = body.pointer("/error/message")?.as_str()?;
        Some(message.to_owned())
    });
    shortened(&message.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned()))
}
