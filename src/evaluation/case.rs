//! A task and what the agent left, ready to be judged.

use crate::evaluators::ground_truth;
use crate::evaluators::question::{Question, Told};
use crate::evaluators::verdict::{Profile, Report};
use crate::evaluators::visualwebarena;
use crate::evaluators::webarena::{self, Context, Task, TaskError};
use crate::evaluators::webarena_verified::{self as verified, Submission};

use super::evidence::Evidence;
use super::{Benchmark, placeholders};

/// Why an episode cannot be judged: its task is at fault.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The task is not as the benchmark's are, or speaks of a site without an address.
    #[error(transparent)]
    WebArena(#[from] webarena::TaskFileError),
    /// The task is not as WebArena-Verified's are.
    #[error(transparent)]
    Verified(#[from] verified::TaskFileError),
    /// The benchmark's own code would fail on it.
    #[error("task {task}: the benchmark's own code fails on it")]
    Task {
        /// The task.
        task: String,
        /// Where.
        #[source]
        cause: TaskError,
    },
}

/// A task and what the agent left.
pub struct Case {
    id: String,
    kind: Kind,
}

enum Kind {
    WebArena { task: Box<Task>, context: Context },
    VisualWebArena { task: Box<Task>, context: Context },
    Verified { task: Box<verified::Task>, submission: Box<Submission> },
}

impl Case {
    /// Reads what is known of an episode.
    ///
    /// # Errors
    ///
    /// When the task is not as the benchmark's are.
    pub fn of(evidence: &Evidence) -> Result<Self, CaseError> {
        let kind = match evidence.benchmark {
            Benchmark::WebArenaVerified => {
                let task = verified::read_one(evidence.task.clone(), &evidence.urls)?;
                let submission = match &evidence.traffic {
                    Some(traffic) => Submission::read(&evidence.answer, traffic.bytes()),
                    None => Submission::without_traffic(&evidence.answer),
                };
                Kind::Verified { task: Box::new(task), submission: Box::new(submission) }
            }
            dialect => {
                let mut filled = evidence.task.clone();
                webarena::fill(&mut filled, &placeholders::first(&evidence.urls))?;
                let task = Box::new(webarena::task(&filled)?);
                let context =
                    Context { intent: task.intent.clone(), answer: evidence.answer.clone(), url: evidence.url.clone() };
                match dialect {
                    Benchmark::VisualWebArena => Kind::VisualWebArena { task, context },
                    _ => Kind::WebArena { task, context },
                }
            }
        };
        Ok(Self { id: evidence.id.clone(), kind })
    }

    /// What the agent was told.
    #[must_use]
    pub fn intent(&self) -> &str {
        match &self.kind {
            Kind::WebArena { task, .. } | Kind::VisualWebArena { task, .. } => &task.intent,
            Kind::Verified { task, .. } => &task.intent,
        }
    }

    /// The sites that the task needs, by the benchmark's names.
    #[must_use]
    pub fn sites(&self) -> &[String] {
        match &self.kind {
            Kind::WebArena { task, .. } | Kind::VisualWebArena { task, .. } => &task.sites,
            Kind::Verified { task, .. } => &task.sites,
        }
    }

    /// What has to be known and has not been told yet, under any of the profiles, each once.
    ///
    /// # Errors
    ///
    /// When the benchmark's own code would fail on the task.
    pub fn questions(&self, told: &Told, profiles: &[Profile]) -> Result<Vec<Question>, CaseError> {
        let mut open: Vec<Question> = Vec::new();
        for profile in profiles {
            let asked = match &self.kind {
                Kind::WebArena { task, context } => webarena::questions(context, &task.eval, told, *profile),
                Kind::VisualWebArena { task, context } => {
                    visualwebarena::questions(context, &task.eval, told, *profile)
                }
                Kind::Verified { .. } => Ok(Vec::new()),
            };
            for question in asked.map_err(|cause| self.failed(cause))? {
                if !open.contains(&question) {
                    open.push(question);
                }
            }
        }
        Ok(open)
    }

    /// Judges by what was told.
    ///
    /// # Errors
    ///
    /// When the benchmark's own code would fail on the task.
    pub fn report(&self, told: &Told, profile: Profile) -> Result<Report, CaseError> {
        let judged = match &self.kind {
            Kind::WebArena { task, context } => webarena::evaluate(context, &task.eval, told, profile),
            Kind::VisualWebArena { task, context } => visualwebarena::evaluate(context, &task.eval, told, profile),
            Kind::Verified { task, submission } => Ok(verified::evaluate(task, submission, profile)),
        };
        judged.map_err(|cause| self.failed(cause))
    }

    /// What whoever reads a report should know besides.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        match &self.kind {
            Kind::WebArena { task, .. } => ground_truth::of_webarena(task.task_id)
                .map(|fault| format!("the published check is known to be wrong: {} ({})", fault.reason, fault.source))
                .into_iter()
                .collect(),
            Kind::VisualWebArena { .. } => Vec::new(),
            Kind::Verified { task, submission } => match &submission.trace {
                Ok(trace) => {
                    let lacks = trace.lacks(&task.sites).map(|lacks| format!("the recording is not whole: {lacks}"));
                    trace.warnings().iter().cloned().chain(lacks).collect()
                }
                Err(_) => Vec::new(),
            },
        }
    }

    fn failed(&self, cause: TaskError) -> CaseError {
        CaseError::Task { task: self.id.clone(), cause }
    }
}
