//! `arenad up --dry-run`: what would be done, in order. Asks the engine which images are there, if it answers; needs no
//! daemon and makes nothing.

mod plan;
mod print;

use std::time::Duration;

use super::args::EngineArgs;
use super::failure::Failure;
use super::{exit_code, output};
use arenad_engine::Engine;
use arenad_engine::docker::DockerEngine;
use arenad_model::site::Environment;

/// How long the engine gets to say that it is there.
const ENGINE_PATIENCE: Duration = Duration::from_secs(5);

/// Prints the plan for some sites of an environment; for all if none is named.
pub async fn run(
    environment: &Environment,
    sites: &[String],
    engine: &EngineArgs,
    is_json: bool,
) -> Result<u8, Failure> {
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
