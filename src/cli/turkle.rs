//! `arenad turkle load`: publishes task folders of TurkingBench.
//!
//! The tasks are stored in the folder that a configuration step of the site names as its `input`. They are part of what
//! the baseline is made from, so `up` makes a new one, and every reset leads back to it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use super::args::{Global, TurkleCommand, TurkleLoadArgs};
use super::failure::CommandFailure;
use super::{definition, exit_code, find, output, progress, up};
use arenad_api::Operation;
use arenad_evaluation::stored::{FolderProblem, TaskFolder};
use arenad_model::configure::StepInput;
use arenad_model::site::{Environment, Site};

/// The file of a stored task that names its workers. The site's `publish` reads it.
const WORKERS: &str = "workers.txt";

/// A task that was loaded.
#[derive(Serialize)]
struct LoadedTask {
    /// The name of the folder, which is that of the project and of the batch.
    name: String,
    /// The number of HITs.
    hits: usize,
    /// Whether the same content was loaded before.
    unchanged: bool,
}

/// The result, in the shape of `--json`.
#[derive(Serialize)]
struct LoadResult {
    tasks: Vec<LoadedTask>,
    /// The operation that makes the baseline and brings the site up; none with `--check`.
    operations: Vec<Operation>,
}

/// Runs one of the commands for tasks of Turkle.
pub async fn run(global: &Global, command: &TurkleCommand) -> Result<u8, CommandFailure> {
    match command {
        TurkleCommand::Load(args) => load(global, args).await,
    }
}

async fn load(global: &Global, args: &TurkleLoadArgs) -> Result<u8, CommandFailure> {
    let located = definition::locate(args.environment.as_deref(), None, args.root.as_deref())?;
    let found = definition::load(&located)?;
    let environment = &found.loaded.environment;
    let site = find::defined(environment, &args.site, " with --site")?;
    let input = input(environment, site)?;
    accounts(site, &args.workers)?;
    let tasks = TaskFolder::read_all(&args.folders).map_err(|problems| broken(&problems))?;
    for warning in tasks.iter().flat_map(|task| &task.warnings) {
        errln!("warning: {warning}");
    }
    let mut loaded = Vec::new();
    for task in &tasks {
        let files = files(task, &args.workers);
        let folder = input.folder.join(&task.name);
        let unchanged = has(&folder, &files);
        if !unchanged && !args.check {
            store(&input.folder, &folder, &files).with_context(|| format!("store {}", folder.display())).map_err(
                |error| {
                    CommandFailure::from(error)
                        .hint("copy environments/ and compose/ to a folder of your own, and name it with --root")
                },
            )?;
        }
        if !global.json {
            let hits = format!("{} {}", task.hits, if task.hits == 1 { "HIT" } else { "HITs" });
            outln!("{}: {hits}{}", task.name, if unchanged { ", unchanged" } else { "" });
        }
        loaded.push(LoadedTask { name: task.name.clone(), hits: task.hits, unchanged });
    }
    let mut operations = Vec::new();
    if !args.check {
        let (accepted, is_ended) = up::bring_up(global, &args.up(), &found, vec![args.site.clone()]).await?;
        operations = accepted.operations;
        if operations.is_empty() {
            let failure =
                anyhow::anyhow!("an episode has {}, which keeps its baseline until the episode ends", site.name);
            return Err(CommandFailure::new(exit_code::BUSY, failure).hint(format!(
                "the tasks are stored; run `arenad up {} {}` when the episode has ended",
                environment.name, site.name
            )));
        }
        if is_ended {
            progress::check(&operations)?;
        }
    }
    if global.json {
        output::print_json(&LoadResult { tasks: loaded, operations })?;
    }
    Ok(exit_code::OK)
}

/// Returns the folder that the site publishes tasks from.
fn input<'a>(environment: &Environment, site: &'a Site) -> Result<&'a StepInput, CommandFailure> {
    let mut inputs = site.baseline.configure.iter().filter_map(|step| step.input.as_ref());
    inputs.next().ok_or_else(|| {
        CommandFailure::usage(format!("no configuration step of {}/{} has an `input`", environment.name, site.name))
            .hint("see `baseline.configure` of turkle in environments/mini.yaml")
    })
}

/// Checks that workers are accounts of the site.
fn accounts(site: &Site, workers: &[String]) -> Result<(), CommandFailure> {
    let known: Vec<&str> = site.accounts.iter().map(|account| account.username.as_str()).collect();
    match workers.iter().find(|worker| !known.contains(&worker.as_str())) {
        None => Ok(()),
        Some(worker) => {
            Err(CommandFailure::usage(format!("{} has no account with the username `{worker}`", site.name))
                .hint(format!("choose from {}", known.join(", "))))
        }
    }
}

/// Returns the failure of folders that cannot be loaded. Nothing was stored.
fn broken(problems: &[FolderProblem]) -> CommandFailure {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let count = if problems.len() == 1 { "1 problem".to_owned() } else { format!("{} problems", problems.len()) };
    CommandFailure::usage(format!("the folders have {count}\n\n{}", lines.join("\n")))
}

/// The files of a task as they are stored.
fn files(task: &TaskFolder, workers: &[String]) -> BTreeMap<&'static str, String> {
    let mut files = BTreeMap::from(task.files().map(|(name, text)| (name, text.to_owned())));
    if !workers.is_empty() {
        files.insert(WORKERS, format!("{}\n", workers.join("\n")));
    }
    files
}

/// Whether a folder has these files and no others.
fn has(folder: &Path, files: &BTreeMap<&str, String>) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let is_same = |(name, content): (&&str, &String)| {
        std::fs::read(folder.join(name)).is_ok_and(|read| read == content.as_bytes())
    };
    entries.count() == files.len() && files.iter().all(is_same)
}

/// Replaces a folder. A daemon that packs all folders meanwhile finds the old one, the new one or none.
fn store(input: &Path, folder: &Path, files: &BTreeMap<&str, String>) -> std::io::Result<()> {
    let beside = input.parent().unwrap_or(input);
    let made = tempfile::Builder::new().prefix(".loading-").tempdir_in(beside)?;
    let task = made.path().join("task");
    std::fs::create_dir(&task)?;
    for (name, content) in files {
        std::fs::write(task.join(name), content)?;
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::rename(&task, folder)
}
