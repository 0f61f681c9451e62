//! `arenad init`: creates an environment from a Compose file, with proposals that a person reviews and corrects.
//!
//! ```text
//!   Compose file ──► services ──► roles (database, cache, application) ──► stores, writers, probes, databases ──► two files
//!                      ▲
//!                      └── running containers: entry points, paths written to, databases with tables, the page of the site
//! ```
//! Comments in the files mark the values that are guesses.

mod databases;
mod dockerfile;
mod files;
mod propose;
mod running;
mod services;
mod text;

use std::path::{Path, PathBuf};

use anyhow::Context;

use self::services::ComposeSource;
use super::args::{Global, InitArgs};
use super::failure::CommandFailure;
use super::{definition, exit_code, output};
use arenad_engine::docker::DockerEngine;
use arenad_model::ids::EnvironmentName;

/// The public port of a site whose Compose file publishes none.
const PORT: u16 = 8080;

/// Writes the files of a new environment.
pub async fn run(global: &Global, args: &InitArgs) -> Result<u8, CommandFailure> {
    let name = EnvironmentName::parse(&args.name)
        .map_err(|error| CommandFailure::usage(format!("`{}`: {error}", args.name)))?;
    let root = root(args.root.as_deref())?;
    let place = files::EnvironmentPaths::new(&root, name.as_str());
    if !args.force {
        place.refuse_existing(args.from.is_some())?;
    }
    let source = match &args.from {
        Some(file) => ComposeSource::read(file)?,
        None => match place.compose().is_file() {
            true => ComposeSource::read(&place.compose())?,
            false => ComposeSource::template(name.as_str()),
        },
    };
    let mut services = services::of(&source)?;
    let engine = DockerEngine::new(&args.engine);
    if args.running {
        running::look(&engine, &source, &mut services).await?;
    } else {
        // Images that the engine already has reveal their commands; if the engine does not answer, the proposal does
        // without.
        running::look_at_images(&engine, &mut services).await;
    }
    let proposal = propose::of(&services, args.port, PORT)?;
    let copied = files::CopiedPaths::make(&place, &source, &proposal, args.force)?;
    let written = vec![
        place.write(&place.compose(), &text::compose(name.as_str(), &source, &proposal, &copied)?)?,
        place.write(&place.environment(), &text::environment(name.as_str(), &proposal))?,
    ];
    let helpers = if proposal.is_supervised() { files::write_helpers(&place)? } else { Vec::new() };
    let all: Vec<PathBuf> = written.into_iter().chain(copied.paths()).chain(helpers).collect();
    report(global, name.as_str(), &root, &all, &proposal)
}

/// Returns the folder that the files are written to.
fn root(given: Option<&Path>) -> Result<PathBuf, CommandFailure> {
    let here = std::env::current_dir().context("find the current folder")?;
    let root = match given {
        Some(given) => given.to_owned(),
        None => arenad_definition::find_root(&here).unwrap_or(here),
    };
    std::fs::create_dir_all(&root).with_context(|| format!("create the folder {}", root.display()))?;
    Ok(root.canonicalize().with_context(|| format!("find {}", root.display()))?)
}

/// Prints the files that were written, the result of validating them, and the steps that remain.
fn report(
    global: &Global,
    name: &str,
    root: &Path,
    written: &[PathBuf],
    proposal: &propose::Proposal,
) -> Result<u8, CommandFailure> {
    let located = definition::locate(Some(name), None, Some(root))?;
    let problems = definition::read(&located)?.err();
    let shown = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
    let notes = proposal.notes();
    if global.json {
        let problems: Vec<_> = problems.iter().flat_map(|problems| problems.iter()).collect();
        output::print_json(&serde_json::json!({
            "name": name, "root": root, "written": written.iter().map(|path| shown(path)).collect::<Vec<_>>(),
            "notes": notes, "valid": problems.is_empty(), "problems": problems,
        }))?;
        return Ok(if problems.is_empty() { exit_code::OK } else { exit_code::USAGE });
    }
    outln!("wrote in {}:", root.display());
    written.iter().for_each(|path| outln!("  {}", shown(path)));
    if !notes.is_empty() {
        outln!("\nto review:");
        notes.iter().for_each(|note| out!("{}", output::wrapped(note, "  ", output::width())));
    }
    if let Some(problems) = problems {
        return Err(
            definition::invalid(&problems).hint(format!("correct the files, then run `arenad validate {name}`"))
        );
    }
    outln!("\nnext:");
    outln!("  arenad up {name} --keep-failed    builds the images and creates the baseline");
    outln!("  arenad reset -e {name} -v         resets it, and shows the time of each stage");
    outln!("  arenad verify -e {name}           compares it with its baseline");
    Ok(exit_code::OK)
}
