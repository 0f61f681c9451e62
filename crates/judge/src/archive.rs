//! Replies that are stored in a file, one JSON object per line. Lines are appended and never changed.
//!
//! ```json
//! {"about": {"comparison": {"kind": "answer", "wording": "strict", "intent": "…", "reference": "…", "answer": "…"}},
//!  "reply": "correct", "model": "…", "usage": {"prompt_tokens": 210, "completion_tokens": 1}, "at": "2026-01-31T12:00:00Z"}
//! ```
//! A file that is written by hand needs only `about` and `reply`. The file of an
//! [`EndpointJudge`](super::EndpointJudge) has the same format, so [`RecordedJudge`] can use it to judge the same
//! episodes again without the endpoint.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::prompt::{About, Prompt};
use super::{Judge, JudgeError};

/// The number of tokens that a model read and wrote for a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens that the model read.
    #[serde(default)]
    pub prompt_tokens: u64,
    /// Tokens that the model wrote.
    #[serde(default)]
    pub completion_tokens: u64,
}

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyRecord {
    /// The subject of the question that was asked.
    pub about: About,
    /// The model's reply, verbatim.
    pub reply: String,
    /// Name of the model that replied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens that the reply cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Time of the reply, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<jiff::Timestamp>,
    /// Whether the reply contains no verdict. Such a reply is stored because of its cost, and is never used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unusable: bool,
}

/// The total cost of replies so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Number of replies that were paid for.
    pub replies: u64,
    /// Number of replies that were found in the archive.
    pub from_archive: u64,
    /// Tokens that models read.
    pub prompt_tokens: u64,
    /// Tokens that models wrote.
    pub completion_tokens: u64,
}

impl Spent {
    pub(super) fn add(&mut self, usage: Usage) {
        self.replies += 1;
        self.prompt_tokens += usage.prompt_tokens;
        self.completion_tokens += usage.completion_tokens;
    }
}

/// A judge that repeats recorded replies.
#[derive(Debug)]
pub struct RecordedJudge {
    path: PathBuf,
    replies: HashMap<About, String>,
}

impl RecordedJudge {
    /// Reads a file of replies. If several records have the same subject, the last one is used.
    ///
    /// Errors: [`JudgeError::Archive`] if the file cannot be read, with the number of the line that is not a record.
    pub fn open(path: &Path) -> Result<Self, JudgeError> {
        let text = std::fs::read_to_string(path).map_err(|cause| unusable(path, "cannot be read", Some(cause)))?;
        let records = parse(path, &text)?.into_iter().filter(|record| !record.unusable);
        Ok(Self { path: path.to_owned(), replies: records.map(|record| (record.about, record.reply)).collect() })
    }
}

#[async_trait]
impl Judge for RecordedJudge {
    async fn reply(&self, prompt: &Prompt) -> Result<String, JudgeError> {
        let reply = self.replies.get(prompt.about()).cloned();
        reply.ok_or_else(|| JudgeError::Absent(format!("{} has no reply to this", self.path.display())))
    }
}

/// An append-only file of replies.
#[derive(Debug)]
pub(super) struct ReplyArchive {
    path: PathBuf,
    file: File,
    replies: HashMap<(String, About), String>,
    spent: Spent,
}

impl ReplyArchive {
    /// Opens the archive of a folder, and creates it if it is missing.
    pub(super) fn open(folder: &Path) -> Result<Self, JudgeError> {
        let path = folder.join("replies.jsonl");
        let failed = |cause| unusable(&path, "cannot be kept", Some(cause));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let file = OpenOptions::new().create(true).read(true).append(true).open(&path).map_err(failed)?;
        let mut archive = Self { path, file, replies: HashMap::new(), spent: Spent::default() };
        archive.load()?;
        Ok(archive)
    }

    fn load(&mut self) -> Result<(), JudgeError> {
        let mut text = String::new();
        let read = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.read_to_string(&mut text));
        read.map_err(|cause| unusable(&self.path, "cannot be read", Some(cause)))?;
        // A crash may have cut the last line off. No reply was used before its line was complete, so the fragment is
        // removed; otherwise the next line would be appended to it.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            let cut = self.file.set_len(whole as u64);
            cut.map_err(|cause| unusable(&self.path, "cannot be mended", Some(cause)))?;
        }
        for record in parse(&self.path, &text[..whole])? {
            self.take(record);
        }
        Ok(())
    }

    fn take(&mut self, record: ReplyRecord) {
        self.spent.add(record.usage.unwrap_or_default());
        if let (false, Some(model)) = (record.unusable, record.model) {
            self.replies.insert((model, record.about), record.reply);
        }
    }

    /// Returns a reply of the same model to the same question.
    pub(super) fn find(&mut self, model: &str, about: &About) -> Option<String> {
        let found = self.replies.get(&(model.to_owned(), about.clone())).cloned();
        self.spent.from_archive += u64::from(found.is_some());
        found
    }

    pub(super) fn keep(&mut self, record: ReplyRecord) -> Result<(), JudgeError> {
        let failed = |cause: io::Error| unusable(&self.path, "cannot be written", Some(cause));
        let mut line = serde_json::to_string(&record).map_err(|error| failed(error.into()))?;
        line.push('\n');
        // The line is appended in one write, so lines of two processes do not mix.
        self.file.write_all(line.as_bytes()).map_err(failed)?;
        self.take(record);
        Ok(())
    }

    pub(super) fn spent(&self) -> Spent {
        self.spent
    }
}

fn parse(path: &Path, text: &str) -> Result<Vec<ReplyRecord>, JudgeError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            serde_json::from_str(line)
                .map_err(|error| unusable(path, &format!("line {} is not a reply: {error}", index + 1), None))
        })
        .collect()
}

fn unusable(path: &Path, what: &str, cause: Option<io::Error>) -> JudgeError {
    JudgeError::Archive { path: path.to_owned(), what: what.to_owned(), cause }
}
