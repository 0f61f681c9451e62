//! Error responses: RFC 9457 problems with a stable code, a hint, and the id under which the log has the request.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::environments::EnvironmentError;
use crate::export::ExportError;
use crate::imports::ImportError;
use crate::locate::LocatingError;
use arenad_api::Problem;
use arenad_api::episodes::ReportedEnding;
use arenad_baseline::BaselineError;
use arenad_doctor as doctor;
use arenad_engine::EngineError;
use arenad_instance::AskError;
use arenad_launch::RemoveError;
use arenad_locators::LocateError;
use arenad_model::cause::SHORTEN_FILE;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::error::describe;
use arenad_model::instance::InstanceId;
use arenad_storage::StorageError;
use arenad_store::StoreError;

/// An error as it is sent to a client.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    detail: String,
    hint: Option<String>,
    retry_after: Option<Duration>,
    /// Boxed, because few errors have it.
    ending: Option<Box<ReportedEnding>>,
}

/// The time after which a client should try again when the daemon cannot tell.
const RETRY_AFTER: Duration = Duration::from_secs(2);

impl ApiError {
    /// Returns an error with the given status and code, without a hint.
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), hint: None, retry_after: None, ending: None }
    }

    /// Sets the hint of the error.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the time after which the client should try again.
    pub(crate) fn retry_after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    /// Sets the ending of the episode that the request was about.
    pub(crate) fn ending(mut self, ending: ReportedEnding) -> Self {
        self.ending = Some(Box::new(ending));
        self
    }

    /// Returns the error for a task of the daemon that panicked or was cancelled.
    pub(crate) fn internal(error: tokio::task::JoinError) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
    }

    /// Returns the error for a change of an instance that an episode has.
    fn leased(detail: String, episode: &EpisodeId) -> Self {
        let hint = format!("end the episode first with `arenad episode end {episode}`, or wait until it has ended");
        Self::new(StatusCode::CONFLICT, "leased", detail).hint(hint)
    }

    /// Returns the error for a mistake of the daemon itself.
    pub(crate) fn bug(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    /// Returns the status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the error and its hint in one line, for clients that do not know problems in JSON.
    pub(crate) fn told(&self) -> String {
        let hint = self.hint.iter().map(|hint| format!("; {hint}"));
        std::iter::once(self.detail.clone()).chain(hint).collect()
    }

    /// Returns the code of the problem.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// Returns how the episode of the request ended, if the error is that it has ended.
    pub(crate) fn reported_ending(&self) -> Option<&ReportedEnding> {
        self.ending.as_deref()
    }

    /// Replaces the detail of the error.
    pub(crate) fn detailed(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Puts the object that the error is about in front of the detail.
    pub(crate) fn about(mut self, object: &str) -> Self {
        self.detail = format!("{object}: {}", self.detail);
        self
    }

    /// Returns the error for a request that says something invalid.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", detail)
    }

    /// Returns the error for an object that does not exist.
    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("{what} does not exist"))
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let problem = Problem {
            kind: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            code: self.code.to_owned(),
            hint: self.hint,
            request_id: format!("{:016x}", rand::random::<u64>()),
            ending: self.ending.map(|ending| *ending),
        };
        let level_is_error = self.status.is_server_error();
        if level_is_error {
            tracing::error!(request.id = problem.request_id, code = problem.code, "{}", problem.detail);
        } else {
            tracing::debug!(request.id = problem.request_id, code = problem.code, "{}", problem.detail);
        }
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        let is_away = self.status == StatusCode::SERVICE_UNAVAILABLE;
        if let Some(pause) = self.retry_after.or(is_away.then_some(RETRY_AFTER)) {
            // At least one second, because the header has no fractions.
            headers.insert(header::RETRY_AFTER, HeaderValue::from(pause.as_secs().max(1)));
        }
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        if let StoreError::InUse { snapshot, users } = &error {
            let detail = format!("snapshot {snapshot} is in use by {}", InstanceId::listed(users));
            return Self::new(StatusCode::CONFLICT, "in_use", detail).hint("take those down first with `arenad down`");
        }
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store", describe(&error))
            .hint("the state directory may be full or read-only; the daemon's log says more")
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        let detail = describe(&error);
        match error {
            EngineError::Unreachable { ref endpoint, .. } => {
                let cure = doctor::away(endpoint, &error).and_then(|finding| finding.cure);
                Self::new(StatusCode::BAD_GATEWAY, "engine_unreachable", detail).hint(cure.unwrap_or_default())
            }
            EngineError::NotFound { .. } => Self::new(StatusCode::NOT_FOUND, "not_found", detail),
            EngineError::Conflict { .. } => Self::new(StatusCode::CONFLICT, "conflict", detail),
            EngineError::TimedOut { .. } => Self::new(StatusCode::GATEWAY_TIMEOUT, "engine_timeout", detail),
            EngineError::TooOld { .. }
            | EngineError::Refused { .. }
            | EngineError::Build { .. }
            | EngineError::Broken { .. } => Self::new(StatusCode::BAD_GATEWAY, "engine", detail),
        }
    }
}

impl From<AskError> for ApiError {
    fn from(error: AskError) -> Self {
        let detail = error.to_string();
        match error {
            AskError::Busy { .. } => Self::new(StatusCode::CONFLICT, "busy", detail).hint("try again when it is done"),
            AskError::NotUp { .. } => {
                Self::new(StatusCode::CONFLICT, "not_up", detail).hint("bring it up first with `arenad up`")
            }
            AskError::Leased { episode, .. } => Self::leased(detail, &episode),
            AskError::Full { .. } => Self::new(StatusCode::SERVICE_UNAVAILABLE, "full", detail),
            AskError::Stopping => Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", detail)
                .hint("try again in a moment: `arenad up` starts it anew"),
        }
    }
}

impl From<LocatingError> for ApiError {
    fn from(error: LocatingError) -> Self {
        let detail = describe(&error);
        match error {
            LocatingError::Ask(error) => error.into(),
            LocatingError::Reset(_) => Self::new(StatusCode::CONFLICT, "busy", detail).hint("try again"),
            LocatingError::Locate(error) => error.into(),
        }
    }
}

impl From<LocateError> for ApiError {
    fn from(error: LocateError) -> Self {
        let detail = describe(&error);
        match error {
            LocateError::Refused(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "locator_refused", detail)
                .hint("locators only read; configuration steps and scripts are what may write"),
            LocateError::Unknown(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_locator", detail),
            LocateError::Failed(_) | LocateError::Threw(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "locator_failed", detail)
            }
            LocateError::TooLarge { .. } => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "locator_too_large", detail)
                .hint("ask for less: one column, one element, a `LIMIT`"),
            LocateError::FileTooLarge { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "locator_too_large", detail).hint(SHORTEN_FILE)
            }
            LocateError::NoRoom(_) => Self::new(StatusCode::INSUFFICIENT_STORAGE, "no_room", detail)
                .hint("`arenad df` shows what takes the room, `arenad prune` makes some; then try again"),
            LocateError::Unavailable(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
                .hint("`arenad status` says how the site is"),
            LocateError::TimedOut { .. } => Self::new(StatusCode::GATEWAY_TIMEOUT, "timed_out", detail)
                .hint("give it longer with `timeout=`, as in `sql(timeout=30s): …`, or ask for less"),
        }
    }
}

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        let answer = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "storage", describe(&error));
        match error.hint() {
            Some(hint) => answer.hint(hint),
            None => answer,
        }
    }
}

impl From<BaselineError> for ApiError {
    fn from(error: BaselineError) -> Self {
        let detail = describe(&error);
        match error {
            BaselineError::Engine(error) => error.into(),
            BaselineError::Store(error) => error.into(),
            BaselineError::Remove(RemoveError::Engine(error)) => error.into(),
            BaselineError::KeptElsewhere { .. } => Self::new(StatusCode::CONFLICT, "kept_elsewhere", detail),
            BaselineError::Remove(RemoveError::State(error)) | BaselineError::State(error) => error.into(),
            BaselineError::Image { .. }
            | BaselineError::Launch(_)
            | BaselineError::Configure { .. }
            | BaselineError::Start { .. }
            | BaselineError::NotReady { .. }
            | BaselineError::Warm(_)
            | BaselineError::Quiesce(_)
            | BaselineError::NotClean { .. }
            | BaselineError::Input { .. }
            | BaselineError::NoData { .. } => Self::new(StatusCode::BAD_GATEWAY, "baseline", detail),
        }
    }
}

impl From<ExportError> for ApiError {
    fn from(error: ExportError) -> Self {
        let detail = describe(&error);
        match error {
            ExportError::NotWhole { .. } | ExportError::Changed { .. } => {
                Self::new(StatusCode::CONFLICT, "not_whole", detail)
                    .hint("take the snapshot again, or let `arenad up` make the baseline anew, and remove this one")
            }
            ExportError::Engine(error) => error.into(),
            ExportError::State(error) => error.into(),
            ExportError::Store(error) => error.into(),
            ExportError::Write { .. } => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "export", detail),
        }
    }
}

impl From<ImportError> for ApiError {
    fn from(error: ImportError) -> Self {
        let detail = describe(&error);
        match error {
            ImportError::Manifest(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_manifest", detail)
                .hint("get the file anew: this copy was damaged or changed on its way"),
            ImportError::NameTaken { .. } => Self::new(StatusCode::CONFLICT, "name_taken", detail)
                .hint("give the imported one another name with --name, or remove the one that is there"),
            ImportError::NoStateRoot(_) => Self::new(StatusCode::CONFLICT, "no_state_root", detail)
                .hint("run the daemon as root; `arenad storage status` says where state is kept"),
            ImportError::NotBegun(_) => Self::new(StatusCode::CONFLICT, "not_begun", detail).hint("begin it again"),
            ImportError::NoPart { .. } => Self::new(StatusCode::NOT_FOUND, "not_found", detail),
            ImportError::Damaged { .. } => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "damaged", detail)
                .hint("import it again: what arrived whole is kept, the rest is sent anew"),
            ImportError::NoRoom(_) => Self::new(StatusCode::INSUFFICIENT_STORAGE, "no_room", detail).hint(
                "`arenad df` shows what takes the room, `arenad prune` makes some; the same command then goes on",
            ),
            ImportError::Engine(error) => error.into(),
            ImportError::State(error) => error.into(),
            ImportError::Store(error) => error.into(),
            ImportError::File { .. } => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "storage", detail)
                .hint("`arenad df` shows what takes the room; the same command then goes on"),
        }
    }
}

impl From<EnvironmentError> for ApiError {
    fn from(error: EnvironmentError) -> Self {
        let detail = describe(&error);
        match error {
            EnvironmentError::Definition(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "definition", detail),
            EnvironmentError::UnknownEnvironment { .. } => {
                Self::new(StatusCode::NOT_FOUND, "unknown_environment", detail).hint("bring it up with `arenad up`")
            }
            EnvironmentError::UnknownSite { .. } => Self::new(StatusCode::NOT_FOUND, "unknown_site", detail),
            EnvironmentError::UnknownSlot { .. } => Self::new(StatusCode::NOT_FOUND, "unknown_slot", detail)
                .hint("`arenad status` lists the slots; further ones are made when episodes wait for them"),
            EnvironmentError::InvalidSlotName(_) => Self::bad_request(detail),
            EnvironmentError::PortsTaken(_) => Self::new(StatusCode::CONFLICT, "ports_taken", detail)
                .hint("stop what holds them, or change `public.port` or `ports` of the sites"),
            EnvironmentError::DoesNotFit(findings) => {
                let cures: Vec<&str> = findings.iter().filter_map(|finding| finding.cure.as_deref()).collect();
                Self::new(StatusCode::CONFLICT, "does_not_fit", detail)
                    .hint(format!("{}; or `arenad up --force` to try all the same", cures.join("; ")))
            }
            EnvironmentError::OtherVariables { ref variables, .. } => {
                let hint =
                    format!("set {} as before, or give --recreate to bring the sites up without", variables.join(", "));
                Self::new(StatusCode::CONFLICT, "other_variables", detail).hint(hint)
            }
            EnvironmentError::StillUp(_) => {
                Self::new(StatusCode::CONFLICT, "still_up", detail).hint("take it down first with `arenad down`")
            }
            EnvironmentError::Leased { episode, .. } => Self::leased(detail, &episode),
            EnvironmentError::Ask(error) => error.into(),
            EnvironmentError::Store(error) => error.into(),
            EnvironmentError::Baseline(error) => error.into(),
            EnvironmentError::Engine(error) | EnvironmentError::Remove(RemoveError::Engine(error)) => error.into(),
            EnvironmentError::Remove(RemoveError::State(error)) => error.into(),
            EnvironmentError::Stranded { trouble, .. } => {
                Self::new(StatusCode::CONFLICT, "stranded", detail).hint(trouble.hint)
            }
            EnvironmentError::NotDown(_) => Self::new(StatusCode::BAD_GATEWAY, "not_down", detail)
                .hint("what is left goes when the engine answers again; `arenad down` may be repeated"),
        }
    }
}
