//! A task and the result that the agent left, ready to be judged.

use arenad_evaluators::visualwebarena;
use arenad_evaluators::webarena::{self, EpisodeContext, TaskError, WebArenaTask};
use arenad_evaluators::webarena_verified::{self as verified, Day, Submission, today};
use arenad_evaluators::{ground_truth, mind2web, turkingbench, webcanvas};
use arenad_verdict::question::{KnownAnswers, Question};
use arenad_verdict::{Profile, Report};

use super::placeholders;
use super::stored::StoredCase;
use arenad_verdict::Benchmark;
use arenad_verdict::{EpisodeEvidence, EpisodeReports};

/// The reason why an episode cannot be judged, which is always a fault of its task.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The task does not have the format of its benchmark, or mentions a site without an address.
    #[error(transparent)]
    WebArena(#[from] webarena::WebArenaFileError),
    /// The task does not have the format of WebArena-Verified.
    #[error(transparent)]
    Verified(#[from] verified::VerifiedFileError),
    /// The task does not have the format of WebCanvas.
    #[error(transparent)]
    WebCanvas(#[from] webcanvas::WebCanvasFileError),
    /// The stored steps do not have the form of a trajectory.
    #[error(transparent)]
    Trajectory(#[from] webcanvas::TrajectoryError),
    /// The instance or its answer does not have the format of TurkingBench.
    #[error(transparent)]
    Turking(#[from] turkingbench::InstanceError),
    /// The task does not have the format of Mind2Web.
    #[error(transparent)]
    Mind2Web(#[from] mind2web::Mind2WebFileError),
    /// The benchmark's own code would fail on the task.
    #[error("task {task}: the benchmark's own code fails on it")]
    Task {
        /// Number of the task.
        task: String,
        /// The place in the task at which the code would fail.
        #[source]
        cause: TaskError,
    },
}

/// A task and the result that the agent left.
pub struct EvaluationCase {
    id: String,
    kind: CaseKind,
}

enum CaseKind {
    WebArena { task: Box<WebArenaTask>, context: EpisodeContext },
    VisualWebArena { task: Box<WebArenaTask>, context: EpisodeContext },
    Verified { task: Box<verified::VerifiedTask>, submission: Box<Submission> },
    Stored(Box<StoredCase>),
}

impl EvaluationCase {
    /// Reads the evidence of an episode.
    ///
    /// # Errors
    ///
    /// Returns an error if the task does not have the format of its benchmark.
    pub fn of(evidence: &EpisodeEvidence) -> Result<Self, CaseError> {
        let kind = match evidence.benchmark {
            Benchmark::WebCanvas | Benchmark::TurkingBench | Benchmark::Mind2Web => {
                CaseKind::Stored(Box::new(StoredCase::of(evidence)?))
            }
            Benchmark::WebArenaVerified => {
                let task = verified::read_one(evidence.task.clone(), &evidence.urls)?;
                let submission = match &evidence.traffic {
                    Some(traffic) => Submission::read(&evidence.answer, traffic.bytes()),
                    None => Submission::without_traffic(&evidence.answer),
                };
                CaseKind::Verified { task: Box::new(task), submission: Box::new(submission) }
            }
            dialect => {
                let mut filled = evidence.task.clone();
                webarena::fill(&mut filled, &placeholders::first(&evidence.urls))?;
                let task = Box::new(webarena::task(&filled)?);
                let context = EpisodeContext {
                    intent: task.intent.clone(),
                    answer: evidence.answer.clone(),
                    url: evidence.url.clone(),
                };
                match dialect {
                    Benchmark::VisualWebArena => CaseKind::VisualWebArena { task, context },
                    _ => CaseKind::WebArena { task, context },
                }
            }
        };
        Ok(Self { id: evidence.id.clone(), kind })
    }

    /// Judges as of a day, from which the code of WebArena-Verified completes dates; by default as of the present day.
    #[must_use]
    pub(crate) fn on(mut self, day: Day) -> Self {
        if let CaseKind::Verified { submission, .. } = &mut self.kind {
            submission.today = day;
        }
        self
    }

    /// Returns the instruction that the agent was given.
    #[must_use]
    pub fn intent(&self) -> &str {
        match &self.kind {
            CaseKind::WebArena { task, .. } | CaseKind::VisualWebArena { task, .. } => &task.intent,
            CaseKind::Verified { task, .. } => &task.intent,
            CaseKind::Stored(stored) => stored.intent(),
        }
    }

    /// Returns the sites that the task needs, by the benchmark's names.
    #[must_use]
    pub(crate) fn sites(&self) -> &[String] {
        match &self.kind {
            CaseKind::WebArena { task, .. } | CaseKind::VisualWebArena { task, .. } => &task.sites,
            CaseKind::Verified { task, .. } => &task.sites,
            CaseKind::Stored(_) => &[],
        }
    }

    /// Returns the questions that are still open under any of the profiles, without duplicates.
    ///
    /// # Errors
    ///
    /// Returns an error if the benchmark's own code would fail on the task.
    pub fn questions(&self, told: &KnownAnswers, profiles: &[Profile]) -> Result<Vec<Question>, CaseError> {
        let mut open: Vec<Question> = Vec::new();
        for profile in profiles {
            let asked = match &self.kind {
                CaseKind::WebArena { task, context } => webarena::questions(context, &task.eval, told, *profile),
                CaseKind::VisualWebArena { task, context } => {
                    visualwebarena::questions(context, &task.eval, told, *profile)
                }
                CaseKind::Verified { .. } => Ok(Vec::new()),
                CaseKind::Stored(stored) => Ok(stored.questions(told, *profile)),
            };
            for question in asked.map_err(|cause| self.failed(cause))? {
                if !open.contains(&question) {
                    open.push(question);
                }
            }
        }
        Ok(open)
    }

    /// Judges the episode from the answers in `told`.
    ///
    /// # Errors
    ///
    /// Returns an error if the benchmark's own code would fail on the task.
    pub(crate) fn report(&self, told: &KnownAnswers, profile: Profile) -> Result<Report, CaseError> {
        let judged = match &self.kind {
            CaseKind::WebArena { task, context } => webarena::evaluate(context, &task.eval, told, profile),
            CaseKind::VisualWebArena { task, context } => visualwebarena::evaluate(context, &task.eval, told, profile),
            CaseKind::Verified { task, submission } => Ok(verified::evaluate(task, submission, profile)),
            CaseKind::Stored(stored) => Ok(stored.report(told, profile)),
        };
        judged.map_err(|cause| self.failed(cause))
    }

    /// Returns further information that readers of a report need.
    #[must_use]
    pub(crate) fn warnings(&self) -> Vec<String> {
        match &self.kind {
            CaseKind::WebArena { task, .. } => ground_truth::of_webarena(task.task_id)
                .map(|fault| format!("the published check is known to be wrong: {} ({})", fault.reason, fault.source))
                .into_iter()
                .collect(),
            CaseKind::VisualWebArena { .. } | CaseKind::Stored(_) => Vec::new(),
            CaseKind::Verified { task, submission } => match &submission.trace {
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

/// Judges an episode by its evidence, and by nothing else but the present day.
///
/// # Errors
///
/// Returns an error if the task is at fault.
pub fn evaluate(evidence: &EpisodeEvidence, profiles: &[Profile]) -> Result<EpisodeReports, CaseError> {
    evaluate_on(today(), evidence, profiles)
}

/// Judges an episode as of a day, by its evidence and by nothing else: WebArena-Verified completes dates from the day of
/// the evaluation.
///
/// # Errors
///
/// Returns an error if the task is at fault.
pub fn evaluate_on(day: Day, evidence: &EpisodeEvidence, profiles: &[Profile]) -> Result<EpisodeReports, CaseError> {
    let case = EvaluationCase::of(evidence)?.on(day);
    let reports = profiles.iter().map(|profile| case.report(&evidence.told, *profile));
    let mut warnings = case.warnings();
    warnings.extend(elsewhere(evidence));
    Ok(EpisodeReports {
        benchmark: evidence.benchmark,
        task: evidence.id.clone(),
        intent: case.intent().to_owned(),
        sites: case.sites().to_vec(),
        reports: reports.collect::<Result<_, _>>()?,
        warnings,
    })
}

/// Returns a warning if the agent ended on a host that belongs to no site, because the result may come from another
/// installation.
fn elsewhere(evidence: &EpisodeEvidence) -> Option<String> {
    let host = |url: &str| {
        let url = url::Url::parse(url).ok()?;
        Some((url.host_str()?.to_owned(), url.port_or_known_default()))
    };
    let ended = host(&evidence.url)?;
    let is_known = evidence.urls.values().flatten().any(|url| host(url).as_ref() == Some(&ended));
    (!is_known && !evidence.urls.is_empty()).then(|| {
        format!("the agent ended at {}, where none of the sites is; --site NAME=URL says where they were", evidence.url)
    })
}

#[cfg(test)]
mod tests {
    use arenad_verdict::Urls;
    use serde_json::json;

    use super::*;

    fn evidence(url: &str) -> EpisodeEvidence {
        EpisodeEvidence {
            benchmark: Benchmark::WebArena,
            id: "1".to_owned(),
            task: json!({
                "task_id": 1, "sites": ["shopping"], "start_url": "__SHOPPING__", "intent": "?",
                "eval": { "eval_types": ["url_match"], "reference_url": "__SHOPPING__/a" },
            }),
            urls: Urls::from([("__SHOPPING__".to_owned(), vec!["http://h:7770".to_owned()])]),
            answer: String::new(),
            url: url.to_owned(),
            told: KnownAnswers::default(),
            traffic: None,
            looked_at: Vec::new(),
        }
    }

    #[test]
    fn evidence_gives_the_same_reports_after_it_was_kept() {
        let kept = serde_json::to_string(&evidence("http://h:7770/a")).expect("JSON");
        let back: EpisodeEvidence = serde_json::from_str(&kept).expect("evidence");
        let evaluated = evaluate(&back, &[Profile::Compat, Profile::Strict]).expect("a task");
        assert_eq!(
            evaluated.reports,
            evaluate(&evidence("http://h:7770/a"), &[Profile::Compat, Profile::Strict]).expect("a task").reports
        );
        assert!(evaluated.reports.iter().all(|report| report.score == Some(1.0)) && evaluated.warnings.is_empty());
    }

    #[test]
    fn a_page_of_another_installation_is_warned_of() {
        let warnings = |url: &str| evaluate(&evidence(url), &[Profile::Compat]).expect("a task").warnings;
        assert!(warnings("http://h:7771/a")[0].contains("--site"));
        assert!(warnings("").is_empty() && warnings("http://h:7770/").is_empty());
    }

    #[test]
    fn a_task_without_an_address_is_no_case() {
        let mut nowhere = evidence("");
        nowhere.urls.clear();
        let said = evaluate(&nowhere, &[Profile::Compat]).expect_err("no address").to_string();
        assert!(said.contains("__SHOPPING__"), "{said}");
    }
}
