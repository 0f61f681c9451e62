//! `arenad up --dry-run`: prints the steps of bringing an environment up, in order. It asks the engine which images are
//! present, if the engine answers; it needs no daemon and creates nothing.

mod plan;
mod print;

use std::time::Duration;

use super::args::EngineArgs;
use super::failure::CommandFailure;
use super::{exit_code, output};
use arenad_engine::Engine;
use arenad_engine::docker::DockerEngine;
use arenad_model::site::Environment;

/// The time limit for the engine to answer.
const ENGINE_PATIENCE: Duration = Duration::from_secs(5);

/// Prints the plan for some sites of an environment, or for all sites if none is named.
pub async fn run(
    environment: &Environment,
    sites: &[String],
    engine: &EngineArgs,
    is_json: bool,
) -> Result<u8, CommandFailure> {
    let mut meant = environment.clone();
    meant.sites.retain(|site| sites.is_empty() || sites.iter().any(|name| name == site.name.as_str()));
    let engine = DockerEngine::new(&engine.engine);
    let answers = tokio::time::timeout(ENGINE_PATIENCE, engine.ping()).await;
    let engine = matches!(answers, Ok(Ok(()))).then_some(&engine as &dyn Engine);
    let plan = plan::of(&meant, engine).await?;
    if is_json {
        output::print_json(&plan)?;
    } else {
        print::plan(&plan);
    }
    Ok(exit_code::OK)
}
