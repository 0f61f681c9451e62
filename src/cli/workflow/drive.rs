//! The replay of a workflow, step by step.

use super::visit::{Unreachable, WorkflowBrowser};
use crate::cli::client::ApiClient;
use crate::cli::exit_code;
use crate::cli::failure::CommandFailure;
use crate::cli::run::{EpisodeHold, TTL_SECONDS, granted};
use arenad_api::EpisodeRecording;
use arenad_api::episodes::{EpisodeStartRequest, StartedEpisode};
use arenad_evaluators::webcanvas::Observation;
use arenad_workflow::{
    ElementSight, FoundBy, PageSight, Replay, ReplayedStep, Workflow, WorkflowStep, find, page_sight,
};

/// The record of each step, and the steps as key nodes are compared with them.
pub type Replayed = (Replay, Vec<Observation>);

/// Starts an episode that a connection of this process holds, and waits until it has its slots.
pub async fn episode<'a>(
    client: &'a ApiClient,
    sites: &[String],
    environment: Option<&str>,
    record: EpisodeRecording,
) -> Result<(StartedEpisode, EpisodeHold<'a>), CommandFailure> {
    if sites.is_empty() {
        return Err(CommandFailure::usage("the workflow names no sites for an episode"));
    }
    let request = EpisodeStartRequest {
        record: Some(record),
        environment: environment.map(str::to_owned),
        sites: sites.to_owned(),
        ttl_seconds: Some(TTL_SECONDS),
        hold: true,
        ..EpisodeStartRequest::default()
    };
    let (started, mut hold) = EpisodeHold::start(client, &request).await?;
    granted(&mut hold).await?;
    Ok((started, hold))
}

/// Replays a workflow on pristine sites.
pub async fn on_sites(
    client: &ApiClient,
    workflow: &Workflow,
    environment: Option<&str>,
) -> Result<Replayed, CommandFailure> {
    let started = episode(client, &workflow.sites, environment, EpisodeRecording::Nothing).await;
    let (_, hold) = started.map_err(|failure| match workflow.sites.is_empty() {
        true => failure.hint("pass --live to visit the sites of the internet directly"),
        false => failure,
    })?;
    let path = hold.path();
    let replayed = match WorkflowBrowser::of_episode(client, path.clone(), workflow, true).await {
        Ok(opened) => replay(opened, workflow).await,
        Err(failure) => Err(failure),
    };
    match client.delete(&path).await {
        Err(failure) if failure.code == exit_code::VOID => Err(failure),
        // The connection that holds the episode ends with this function, and the episode with it.
        Ok(()) | Err(_) => replayed,
    }
}

/// Replays a workflow on live sites.
pub async fn live(workflow: &Workflow) -> Result<Replayed, CommandFailure> {
    replay(WorkflowBrowser::live(workflow).await?, workflow).await
}

async fn replay(
    (mut browser, unreachable): (WorkflowBrowser<'_>, Unreachable),
    workflow: &Workflow,
) -> Result<Replayed, CommandFailure> {
    if unreachable.is_some() {
        return Ok((Replay { steps: Vec::new(), unreachable }, Vec::new()));
    }
    let mut replay = Replay::default();
    for step in &workflow.steps {
        let replayed = replay_step(&mut browser, step).await?;
        let is_done = replayed.is_done();
        replay.steps.push(replayed);
        if !is_done {
            break;
        }
    }
    Ok((replay, browser.seen().await?))
}

async fn replay_step(browser: &mut WorkflowBrowser<'_>, step: &WorkflowStep) -> Result<ReplayedStep, CommandFailure> {
    let mut replayed = look(browser, step).await?;
    act(browser, step, &mut replayed).await?;
    Ok(replayed)
}

/// Compares the page before a step with the recorded one, and finds the element.
pub async fn look(browser: &WorkflowBrowser<'_>, step: &WorkflowStep) -> Result<ReplayedStep, CommandFailure> {
    let shown = browser.elements().await?;
    let page = page_sight(&step.url, &shown);
    let element = step.element.as_ref().filter(|_| page.is_shown()).map(|element| find(element, &shown.elements));
    Ok(ReplayedStep { page, element, error: None })
}

/// Performs a step, if the page and the element are there.
pub async fn act(
    browser: &mut WorkflowBrowser<'_>,
    step: &WorkflowStep,
    replayed: &mut ReplayedStep,
) -> Result<(), CommandFailure> {
    if replayed.is_done() {
        replayed.error = browser.step(step.notation(), selector(step, replayed)).await?;
    }
    Ok(())
}

/// Returns the selector of the element that was found.
pub fn selector(step: &WorkflowStep, replayed: &ReplayedStep) -> Option<String> {
    let found = replayed.element.as_ref()?.found(step.element.as_ref()?)?;
    Some(found.selector.clone())
}

/// Describes what has changed at a step that was done.
pub fn drift(step: &ReplayedStep) -> String {
    let mut said = Vec::new();
    if let PageSight::Redirected { to, .. } = &step.page {
        said.push(format!("the page is {to}"));
    }
    if let Some(ElementSight::Moved { by, element }) = &step.element {
        let by = match by {
            FoundBy::Id => "its id",
            FoundBy::Label => "its label",
            FoundBy::Address => "its address",
            FoundBy::Surroundings => "the text around it",
            FoundBy::Place => "its place",
        };
        said.push(format!("the element was found by {by}: {} `{}`", element.tag, element.name));
    }
    said.join("; ")
}
