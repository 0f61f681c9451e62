//! Waits for operations: one line per site that is updated on a terminal; elsewhere plain lines, one per change.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use anyhow::Context;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use reqwest::Method;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::client::ApiClient;
use super::failure::CommandFailure;
use super::output::{self, first_line, milliseconds};
use super::{exit_code, reset};
use arenad_api::{InstanceState, Operation, OperationKind, OperationState, SiteStatus, Status};

/// The interval at which the status is polled while waiting.
const LOOK_INTERVAL: Duration = Duration::from_millis(150);

/// The time for which the daemon holds one request for an operation's end, in seconds.
const HOLD_SECONDS: u32 = 30;

/// Shows the current step of each site.
struct SiteBoard {
    bars: MultiProgress,
    lines: BTreeMap<String, ProgressBar>,
    said: BTreeMap<String, String>,
    is_terminal: bool,
    is_silent: bool,
}

impl SiteBoard {
    fn new(is_silent: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let target =
            if is_terminal && !is_silent { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self {
            bars: MultiProgress::with_draw_target(target),
            lines: BTreeMap::new(),
            said: BTreeMap::new(),
            is_terminal,
            is_silent,
        }
    }

    fn show(&mut self, name: &str, text: &str) {
        if self.is_silent {
            return;
        }
        if self.is_terminal {
            let bars = &self.bars;
            let line = self.lines.entry(name.to_owned()).or_insert_with(|| {
                let line = bars.add(ProgressBar::new_spinner());
                let style = ProgressStyle::with_template("{spinner} {prefix:16} {wide_msg}");
                line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
                line.set_prefix(name.to_owned());
                line.enable_steady_tick(Duration::from_millis(100));
                line
            });
            line.set_message(first_line(text).to_owned());
        } else {
            // Without a terminal, the builder's hundreds of lines and every failure of a probe would be noise, so a
            // line is printed only when the kind of work changes.
            let kind = text.split(':').next().unwrap_or(text).to_owned();
            if self.said.get(name) != Some(&kind) {
                errln!("{name}: {kind}");
                self.said.insert(name.to_owned(), kind);
            }
        }
    }

    fn finish(&mut self, name: &str, text: &str) {
        if self.is_silent {
            return;
        }
        match self.lines.get(name) {
            Some(line) => {
                if let Ok(style) = ProgressStyle::with_template("{prefix:18} {wide_msg}") {
                    line.set_style(style);
                }
                line.finish_with_message(first_line(text).to_owned());
            }
            None => errln!("{name}: {text}"),
        }
    }
}

/// Returns whether work on a site is in progress: a site that is ready or down is waiting for its turn or has had it.
fn is_at_work(site: &SiteStatus) -> bool {
    site.stage.is_some()
        || !matches!(
            site.state,
            InstanceState::Ready | InstanceState::Down | InstanceState::Failed | InstanceState::Unhealthy
        )
}

/// Returns the name of a site, with its environment if the operations concern several.
fn name_of(operations: &[Operation], environment: &str, site: &str) -> String {
    let is_alone = output::is_alone(operations.iter().map(|operation| operation.environment.as_str()));
    output::site_name(environment, site, is_alone)
}

fn doing(site: &SiteStatus) -> String {
    match (&site.stage, &site.waiting_for) {
        (Some(stage), Some(waiting)) => format!("{stage}: {waiting}"),
        (Some(stage), None) => stage.clone(),
        (None, _) => site.state.to_string(),
    }
}

/// Waits until every operation has ended, showing the progress. Ctrl-C and the time-out end the waiting, not the work.
pub async fn wait(
    client: &ApiClient,
    operations: Vec<Operation>,
    limit: Option<Duration>,
    is_silent: bool,
) -> Result<Vec<Operation>, CommandFailure> {
    let deadline = limit.map(|limit| Instant::now() + limit);
    let mut board = SiteBoard::new(is_silent);
    let mut ended = Vec::new();
    let mut look = tokio::time::interval(LOOK_INTERVAL);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The handler is installed once, so that no signal is lost during a status request.
    let mut interrupts = signal(SignalKind::interrupt()).context("listen for Ctrl-C")?;
    let all = wait_all(client, operations.clone());
    let mut all = std::pin::pin!(all);
    loop {
        tokio::select! {
            biased;
            done = &mut all => {
                ended.extend(done?);
                break;
            }
            _ = interrupts.recv() => {
                return Err(CommandFailure::interrupted()
                    .hint("the work continues in the background; `arenad status` shows its progress"));
            }
            () = sleep_until(deadline) => {
                let what = unfinished(client, &operations).await;
                let limit = limit.map(humantime::format_duration).map(|limit| limit.to_string()).unwrap_or_default();
                let error = anyhow::anyhow!("not done within {limit}: {what}");
                let failure = CommandFailure::new(exit_code::TIMED_OUT, error);
                return Err(failure.hint("the work continues in the background; `arenad status` shows its progress"));
            }
            _ = look.tick() => {
                // If the daemon has just ended, the answers for the operations state the reason.
                if let Ok(status) = client.status().await {
                    for site in sites_of(&status, &operations).filter(|site| is_at_work(site)) {
                        board.show(&name_of(&operations, &site.environment, &site.name), &doing(site));
                    }
                }
            }
        }
    }
    for operation in &ended {
        let took = operation.duration_ms.map(milliseconds).unwrap_or_default();
        let text = match (operation.state, operation.kind) {
            (OperationState::Done, OperationKind::Reset) => {
                reset::told(operation.reset.as_ref().map(|reset| reset.strategy), &took)
            }
            (OperationState::Done, OperationKind::Snapshot) => format!("snapshot taken in {took}"),
            (OperationState::Done, _) => format!("ready after {took}"),
            (state, _) => state.to_string(),
        };
        let slot = output::slot_name(&operation.site, &operation.instance);
        board.finish(&name_of(&operations, &operation.environment, &slot), &text);
    }
    Ok(ended)
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn wait_all(client: &ApiClient, operations: Vec<Operation>) -> Result<Vec<Operation>, CommandFailure> {
    futures_util::future::try_join_all(operations.into_iter().map(|operation| wait_one(client, operation))).await
}

async fn wait_one(client: &ApiClient, operation: Operation) -> Result<Operation, CommandFailure> {
    let path = format!("/v1/operations/{}?wait={HOLD_SECONDS}", operation.id);
    loop {
        let now: Operation = client.json(Method::GET, &path).await?;
        if now.state != OperationState::Running {
            return Ok(now);
        }
    }
}

/// Returns the sites whose slots 1 the operations concern. The status does not tell the steps of other slots.
fn sites_of<'a>(status: &'a Status, operations: &'a [Operation]) -> impl Iterator<Item = &'a SiteStatus> {
    status
        .environments
        .iter()
        .flat_map(|environment| &environment.sites)
        .filter(|site| operations.iter().any(|operation| operation.instance == site.instance))
}

async fn unfinished(client: &ApiClient, operations: &[Operation]) -> String {
    let Ok(status) = client.status().await else {
        return "the daemon does not answer".to_owned();
    };
    let told = |site: &SiteStatus| match is_at_work(site) {
        true => format!("{} is {} ({})", site.name, site.state, doing(site)),
        // The site's operation is queued, or has just ended.
        false => format!("{} has not started", site.name),
    };
    let mut all: Vec<String> = sites_of(&status, operations).map(told).collect();
    let is_further = |operation: &&Operation| output::slot_name(&operation.site, &operation.instance) != operation.site;
    let further = operations.iter().filter(is_further);
    all.extend(
        further.map(|operation| format!("{} has not ended", output::slot_name(&operation.site, &operation.instance))),
    );
    all.join("; ")
}

/// Combines the operations that did not succeed into one failure.
pub fn check(operations: &[Operation]) -> Result<(), CommandFailure> {
    let failed: Vec<&Operation> =
        operations.iter().filter(|operation| operation.state != OperationState::Done).collect();
    let Some(first) = failed.first() else { return Ok(()) };
    let told: Vec<String> = failed
        .iter()
        .map(|operation| {
            let reason = operation.reason.as_deref().unwrap_or("another operation replaced it");
            format!("{}: {reason}", output::slot_name(&operation.site, &operation.instance))
        })
        .collect();
    let failure = CommandFailure::new(exit_code::FAILED, anyhow::anyhow!("{}", told.join("\n")));
    Err(match &first.hint {
        Some(hint) => failure.hint(hint.clone()),
        None => failure.hint("run `arenad status` for details"),
    })
}
