//! The episode of a session: how it begins, and what its agent is rewarded with.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::session::{ID_LABEL, SLOTS_LIMIT, failed, without_reward};
use super::tasks;
use crate::api::episodes::service;
use crate::api::{Api, ApiError};
use arenad_api::browser::{BrowserObservationKind, BrowserResetRequest, BrowserStep, BrowserViewport};
use arenad_api::checks::Begun;
use arenad_api::episodes::{EpisodeEvaluation, EpisodeEvaluationRequest, EpisodeStartRequest, TASK_LABEL};
use arenad_api::{EpisodeRecording, EpisodeVerdict, EvaluationRequest};
use arenad_episodes::HoldGuard;
use arenad_model::episode::ids::EpisodeId;
use arenad_openenv::{ErrorCode, ErrorFrame, ResetParameters, ViewportSize, WantedObservation};
use arenad_verdict::Benchmark;

/// The episode of a session. Dropping it ends the episode.
pub(super) struct SessionEpisode {
    pub(super) id: EpisodeId,
    _hold: HoldGuard,
    /// The id that the client gave the episode.
    pub(super) given_id: Option<String>,
    pub(super) task: Option<SessionTask>,
    pub(super) environment: String,
    /// The reward of steps before the last one.
    step_reward: Option<f64>,
    pub(super) steps: u64,
    /// The result of the judgement, once the agent has stopped.
    pub(super) outcome: Option<Result<SessionOutcome, ErrorFrame>>,
}

/// The task of an episode.
pub(super) struct SessionTask {
    pub(super) name: String,
    intent: String,
    pictures: Vec<String>,
    kind: SessionTaskKind,
}

enum SessionTaskKind {
    Native { begun: Option<Begun> },
    Benchmark { benchmark: Benchmark, task: Json },
}

/// The result of an episode whose agent has stopped.
#[derive(Debug, Clone)]
pub(super) struct SessionOutcome {
    /// The reward; `None` if the verdict is neither `passed` nor `failed`, or there is no task.
    pub(super) reward: Option<f64>,
    /// The verdict; `None` if there is no task.
    pub(super) verdict: Option<EpisodeVerdict>,
}

impl SessionEpisode {
    /// Requests an episode and opens its browser.
    pub(super) async fn begin(api: &Arc<Api>, parameters: ResetParameters) -> Result<(Self, BrowserStep), ApiError> {
        let mut start = EpisodeStartRequest {
            environment: parameters.environment,
            sites: parameters.sites,
            snapshots: parameters.injected_state,
            wait_seconds: Some(SLOTS_LIMIT.as_secs()),
            labels: parameters.episode_id.iter().map(|id| (ID_LABEL.to_owned(), id.clone())).collect(),
            ..EpisodeStartRequest::default()
        };
        let mut url = parameters.url;
        let mut accounts = parameters.accounts;
        let mut task = None;
        match parameters.task {
            None => {}
            Some(name) => match tasks::benchmark_of(&name) {
                None => start.task = Some(name),
                Some((benchmark, id)) => {
                    let known = service::benchmark_task(api, benchmark, id, start.environment.as_deref()).await?;
                    let beginning = tasks::start(&name, &known.task, &known.environment)?;
                    for site in &beginning.sites {
                        if !start.sites.iter().any(|named| named == site.as_str()) {
                            start.sites.push(site.to_string());
                        }
                    }
                    start.environment = Some(known.environment.name.to_string());
                    start.labels.insert(TASK_LABEL.to_owned(), name.clone());
                    if benchmark == Benchmark::WebArenaVerified {
                        start.record = Some(EpisodeRecording::All);
                    }
                    for (site, account) in tasks::accounts(&beginning, &known.environment) {
                        accounts.entry(site).or_insert(Some(account));
                    }
                    url = url.or(Some(beginning.url));
                    task = Some(SessionTask {
                        name,
                        intent: beginning.intent,
                        pictures: beginning.pictures,
                        kind: SessionTaskKind::Benchmark { benchmark, task: known.task },
                    });
                }
            },
        }
        let granted = service::grant(api, start).await?;
        if let Some(native) = granted.task {
            let begun = match native.needs_beginning() {
                true => Some(service::begin(api, &granted.id).await?),
                false => None,
            };
            for (site, account) in &native.accounts {
                accounts.entry(site.to_string()).or_insert_with(|| Some(account.clone()));
            }
            url = url.or(Some(native.start));
            task = Some(SessionTask {
                name: native.name,
                intent: native.intent,
                pictures: Vec::new(),
                kind: SessionTaskKind::Native { begun },
            });
        }
        let opened = BrowserResetRequest {
            url,
            accounts,
            viewport: parameters.viewport.map(|ViewportSize { width, height }| BrowserViewport { width, height }),
            observation: Some(match parameters.observation {
                WantedObservation::AccessibilityTree => BrowserObservationKind::AccessibilityTree,
                WantedObservation::Html => BrowserObservationKind::Html,
                WantedObservation::SetOfMarks => BrowserObservationKind::SetOfMarks,
                WantedObservation::Nothing => BrowserObservationKind::None,
            }),
            current_viewport_only: parameters.current_viewport_only,
            screenshot: parameters.screenshot,
            elements: false,
            trajectory: parameters.trajectory,
            files: parameters.files,
        };
        let page = service::open_browser(api, &granted.id, opened).await?;
        let episode = Self {
            given_id: parameters.episode_id,
            task,
            environment: granted.environment,
            id: granted.id,
            _hold: granted.hold,
            step_reward: parameters.step_reward,
            steps: 0,
            outcome: None,
        };
        Ok((episode, page))
    }

    /// Judges the episode, whose agent has stopped, and keeps the result.
    pub(super) async fn judge(&mut self, api: &Arc<Api>) -> Result<SessionOutcome, ErrorFrame> {
        let outcome = match &self.task {
            Some(task) => judge(api, &self.id, task).await,
            None => Ok(SessionOutcome { reward: None, verdict: None }),
        };
        self.outcome = Some(outcome.clone());
        outcome
    }

    /// Returns the answer to a reset or a step, as OpenEnv serializes observations: the reward and the end are beside the
    /// observation, and metadata are in it as well.
    pub(super) fn observed(&self, page: BrowserStep, outcome: Option<&SessionOutcome>) -> Json {
        let reward = match outcome {
            Some(outcome) => outcome.reward,
            None => self.step_reward.filter(|_| self.steps > 0),
        };
        let verdict = outcome.and_then(|outcome| outcome.verdict).map(|verdict| json!(verdict));
        let task = self.task.as_ref();
        let metadata = json!({
            "episode_id": self.id.to_string(), "task": task.map(|task| &task.name), "step": self.steps,
            "verdict": verdict, "error": page.error,
        });
        json!({
            "observation": {
                "metadata": metadata,
                "text": page.observation.text,
                "url": page.url,
                "tabs": page.tabs,
                "intent": task.map(|task| &task.intent),
                "images": task.map_or(&[][..], |task| task.pictures.as_slice()),
                "screenshot": page.observation.screenshot,
                "error": page.error.map(|error| error.message),
                "answer": page.answer,
                "verdict": verdict,
            },
            "reward": reward,
            "done": outcome.is_some(),
            "metadata": metadata,
        })
    }
}

/// Judges an episode.
///
/// Errors: the episode is void, or could not be judged. There is no reward then.
async fn judge(api: &Arc<Api>, id: &EpisodeId, task: &SessionTask) -> Result<SessionOutcome, ErrorFrame> {
    let mut request = EpisodeEvaluationRequest { certificate: Some(false), ..EpisodeEvaluationRequest::default() };
    match &task.kind {
        SessionTaskKind::Native { begun } => {
            request.task = Some(task.name.clone());
            request.begun = begun.clone();
        }
        // The daemon adds the agent's answer and its last page, which it knows.
        SessionTaskKind::Benchmark { benchmark, task } => request.benchmark = Some(asked(*benchmark, task.clone())),
    }
    let judged = service::judge(api, id, request).await.map_err(|error| failed(&error))?;
    match judged {
        EpisodeEvaluation { verdict: EpisodeVerdict::Void, ending, .. } => {
            let reason = ending.as_ref().map_or("the environment failed it", |ending| ending.reason.as_str());
            let message = format!("the episode has no reward: {reason}");
            Err(without_reward(ErrorFrame::new(ErrorCode::ExecutionError, message))
                .with("problem", json!("void"))
                .with("ending", json!(ending)))
        }
        EpisodeEvaluation { verdict, reward, .. } => Ok(SessionOutcome { reward, verdict: Some(verdict) }),
    }
}

fn asked(benchmark: Benchmark, task: Json) -> EvaluationRequest {
    EvaluationRequest {
        benchmark,
        task,
        urls: Default::default(),
        answer: Json::Null,
        url: String::new(),
        traffic: None,
        cdp: None,
        accounts: Default::default(),
        profiles: Vec::new(),
        told: Default::default(),
    }
}
