//! `arenad images`. Unlike other commands it works without the daemon; [`arenad_images`] explains the reason.

pub mod board;
mod choice;
mod show;
mod work;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::choice::SelectedImages;
use self::work::{ImagesContext, ItemAction};
use super::args::{Global, ImagesChoice, ImagesCommand, ImagesWriteArgs};
use super::failure::CommandFailure;
use super::{client, exit_code};
use arenad_api::{ImageList, ImageOutcome};
use arenad_engine::Engine;
use arenad_engine::docker::DockerEngine;
use arenad_images::ImagesError;
use arenad_images::fetch::{Fetcher, Patience};
use arenad_images::load::Works;
use arenad_images::shelf::Shelf;

/// Lists, fetches, loads or verifies images and data.
pub async fn run(global: &Global, command: &ImagesCommand) -> Result<u8, CommandFailure> {
    match command {
        ImagesCommand::Ls(args) => list(global, &args.choice).await,
        ImagesCommand::Pull(args) => {
            let fetcher = Fetcher::new(Patience { stall: args.stall_timeout, tries: args.tries });
            work(global, &args.choice, Some(&args.write), ItemAction::Pull(Box::new(fetcher))).await
        }
        ImagesCommand::Load(args) => {
            work(global, &args.choice, Some(&args.write), ItemAction::Load(args.from.clone())).await
        }
        ImagesCommand::Verify(args) => work(global, &args.choice, None, ItemAction::Verify(args.from.clone())).await,
    }
}

async fn list(global: &Global, chosen: &ImagesChoice) -> Result<u8, CommandFailure> {
    let choice = SelectedImages::make(chosen)?;
    let works = works(global, chosen, None).await?;
    let mut items = Vec::new();
    for image in &choice.images {
        items.push(show::image(image, &works.standing(image).await.map_err(failure)?, &works));
    }
    for data in &choice.data {
        items.push(show::data(&choice.environment, data, &works.standing_of_data(data), &works));
    }
    let listed = ImageList { environment: choice.environment.name.to_string(), items };
    match global.json {
        true => super::output::print_json(&listed)?,
        false => show::table(&listed),
    }
    Ok(exit_code::OK)
}

/// Processes every selected item; the failure of one does not stop the others.
async fn work(
    global: &Global,
    chosen: &ImagesChoice,
    write: Option<&ImagesWriteArgs>,
    task: ItemAction,
) -> Result<u8, CommandFailure> {
    let choice = SelectedImages::make(chosen)?;
    task.check(&choice)?;
    let session = ImagesContext { works: works(global, chosen, write).await?, task, is_silent: global.json };
    let cancel = CancellationToken::new();
    let interrupted = cancel.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupted.cancel();
        }
    });
    let mut items = Vec::new();
    let mut errors: Vec<(String, ImagesError)> = Vec::new();
    for image in &choice.images {
        let done = session.image(image, &cancel).await;
        let item = show::image(image, &session.works.standing(image).await.map_err(failure)?, &session.works);
        items.push(session.told(item, done, &mut errors)?);
    }
    for data in &choice.data {
        let done = session.data(data, &cancel).await;
        let item = show::data(&choice.environment, data, &session.works.standing_of_data(data), &session.works);
        items.push(session.told(item, done, &mut errors)?);
    }
    let is_sound = items.iter().all(|item| item.outcome != Some(ImageOutcome::Failed));
    if global.json {
        super::output::print_json(&ImageList { environment: choice.environment.name.to_string(), items })?;
    }
    match errors.len() {
        0 if is_sound => Ok(exit_code::OK),
        0 => Ok(exit_code::FAILED),
        // Each item's error has been printed already; the command ends with one failure and one hint.
        _ => Err(together(errors)),
    }
}

async fn works(
    global: &Global,
    chosen: &ImagesChoice,
    write: Option<&ImagesWriteArgs>,
) -> Result<Works, CommandFailure> {
    if let Some(host) = global.host.as_ref().filter(|host| !host.starts_with("unix://")) {
        let failure =
            CommandFailure::usage(format!("`images` works with the engine of this machine, not through {host}"));
        return Err(failure.hint("run it on the machine of the engine, without --host and ARENAD_HOST"));
    }
    let engine: Arc<dyn Engine> = Arc::new(DockerEngine::new(&chosen.engine));
    let version = engine.version().await.map_err(|error| super::engine::away(&chosen.engine, error))?;
    // On another machine the path would denote a different folder.
    let is_here = chosen.engine.starts_with("unix://");
    let state_dir = client::state_dir(global)?;
    Ok(Works {
        engine,
        shelf: Shelf::new(&state_dir),
        engine_root: Some(version.root).filter(|root| is_here && root.is_dir()),
        ignore_space: write.is_some_and(|write| write.ignore_space),
        replace: write.is_some_and(|write| write.replace),
        discard: write.is_some_and(|write| write.discard),
    })
}

/// Returns the failure of the whole command.
fn failure(error: ImagesError) -> CommandFailure {
    let code = match error {
        ImagesError::Busy { .. } => exit_code::BUSY,
        ImagesError::Cancelled => exit_code::INTERRUPTED,
        _ => exit_code::FAILED,
    };
    let hint = error.hint();
    let failure = CommandFailure::new(code, error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Combines the errors of several items; the first one determines the exit code.
fn together(mut errors: Vec<(String, ImagesError)>) -> CommandFailure {
    let (name, first) = errors.remove(0);
    let mut text = format!("{name}: {}", arenad_model::error::describe(&first));
    for (name, error) in &errors {
        text.push_str(&format!("\n{name}: {}", arenad_model::error::describe(error)));
    }
    CommandFailure { error: anyhow::anyhow!("{text}"), ..failure(first) }
}
