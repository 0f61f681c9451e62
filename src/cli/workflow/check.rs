//! `arenad workflow check`: replays workflows, and says which key nodes are broken and why.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use serde::Serialize;

use super::drive;
use super::files::{self, TaskFiles, WorkflowFile};
use crate::cli::args::{Global, WorkflowCheckArgs};
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::{exit_code, output};
use arenad_evaluators::webcanvas::WebCanvasTask;
use arenad_workflow::{Diagnosis, Health, Workflow, diagnose, updated, version};

/// The result of one workflow, in the shape of `--json` and of the history.
#[derive(Debug, Serialize)]
struct CheckedWorkflow {
    /// The path of the workflow.
    workflow: PathBuf,
    /// The id of the task; empty without one.
    task: String,
    /// The time of the end of the replay.
    at: String,
    /// Whether the first replay failed and the second one did not.
    is_flaky: bool,
    #[serde(flatten)]
    diagnosis: Diagnosis,
    /// For each step of `drifted`, the change.
    drift: Vec<String>,
    /// The number of the new version of the task; null if none was written.
    version: Option<u64>,
}

/// The longest wait without a look at the clock, which may be set meanwhile.
const LOOK: Duration = Duration::from_secs(30);

/// The workflows, their task files, and the task of each.
type Known<'a> = (Vec<WorkflowFile>, TaskFiles<'a>, Vec<Option<WebCanvasTask>>);

/// Replays the workflows once, or at the times of a schedule until the command is interrupted.
pub async fn run(global: &Global, args: &WorkflowCheckArgs) -> Result<u8, CommandFailure> {
    // All mistakes in files are reported before the first replay.
    let known = read(args)?;
    let Some(schedule) = &args.cron else { return replay(global, args, known).await };
    loop {
        let next = schedule.next_after(Timestamp::now()).context("the schedule has ended")?;
        errln!("next replay at {next}");
        while let Ok(left) = Duration::try_from(next.duration_since(Timestamp::now())) {
            if left.is_zero() {
                break;
            }
            tokio::time::sleep(left.min(LOOK)).await;
        }
        // The files may have changed since the last time. A daemon that does not answer may do so at the next time.
        let replayed = async { replay(global, args, read(args)?).await };
        if let Err(failure) = replayed.await {
            failure.print();
        }
    }
}

fn read(args: &WorkflowCheckArgs) -> Result<Known<'_>, CommandFailure> {
    let workflows = files::read(&args.files)?;
    let mut tasks = TaskFiles::new(args.tasks.as_deref());
    let mut known = Vec::new();
    for file in &workflows {
        let task = tasks.of(file)?.map(|tasks| tasks.task(&file.workflow.task)).transpose()?;
        known.push(task);
    }
    Ok((workflows, tasks, known))
}

/// Replays the workflows one after the other: their sites may be the same, and a live site is asked by one visitor.
async fn replay(
    global: &Global,
    args: &WorkflowCheckArgs,
    (workflows, mut tasks, known): Known<'_>,
) -> Result<u8, CommandFailure> {
    // Live sites are visited without a daemon.
    let client = (!args.live).then(|| ApiClient::new(global)).transpose()?;
    let mut checked = Vec::new();
    for (file, task) in workflows.iter().zip(&known) {
        let (mut result, seen) = check(client.as_ref(), file, task.as_ref(), args.environment.as_deref()).await?;
        if let Some(seen) = seen.filter(|seen| args.update && *seen != file.workflow) {
            files::write(&file.path, &seen)?;
        }
        if args.write
            && let Some(tasks) = tasks.of(file)?
            && let Some(entry) = tasks.entry(&file.workflow.task)
            && let Some(next) = version(entry, &result.diagnosis, &result.at).map_err(anyhow::Error::from)?
        {
            result.version = next["version"].as_u64();
            tasks.replace(&file.workflow.task, next)?;
        }
        if let Some(history) = &args.history {
            append(history, &result).with_context(|| format!("write {}", history.display()))?;
        }
        if !global.json {
            print(&result, task.as_ref());
        }
        checked.push(result);
    }
    let count = |health| checked.iter().filter(|checked| checked.diagnosis.health == health).count();
    let (broken, unknown) = (count(Health::Broken), count(Health::Blocked) + count(Health::SiteDown));
    if global.json {
        output::print_json(&checked)?;
    } else {
        let (valid, drifted) = (count(Health::Valid), count(Health::Drifted));
        outln!("{valid} valid, {drifted} drifted, {broken} broken, {unknown} not seen");
    }
    Ok(match (broken, unknown) {
        (0, 0) => exit_code::OK,
        (0, _) => exit_code::UNDECIDED,
        _ => exit_code::FAILED,
    })
}

async fn check(
    client: Option<&ApiClient>,
    file: &WorkflowFile,
    task: Option<&WebCanvasTask>,
    environment: Option<&str>,
) -> Result<(CheckedWorkflow, Option<Workflow>), CommandFailure> {
    let mut result = once(client, file, task, environment).await?;
    if result.0.diagnosis.health == Health::Broken {
        // A slow page or a late script breaks a replay as well; only a second failure says something about the task.
        result = once(client, file, task, environment).await?;
        result.0.is_flaky = result.0.diagnosis.health != Health::Broken;
    }
    Ok(result)
}

/// Replays a workflow once. Returns the result, and the workflow as it was seen.
async fn once(
    client: Option<&ApiClient>,
    file: &WorkflowFile,
    task: Option<&WebCanvasTask>,
    environment: Option<&str>,
) -> Result<(CheckedWorkflow, Option<Workflow>), CommandFailure> {
    let (replay, seen) = match client {
        Some(client) => drive::on_sites(client, &file.workflow, environment).await?,
        None => drive::live(&file.workflow).await?,
    };
    let nodes = task.map(|task| task.nodes.as_slice()).unwrap_or_default();
    let diagnosis = diagnose(nodes, &file.workflow, &replay, &seen);
    let updated = updated(&file.workflow, &replay, &seen, &diagnosis);
    let drift = diagnosis.drifted.iter().map(|step| drive::drift(&replay.steps[*step])).collect();
    let checked = CheckedWorkflow {
        workflow: file.path.clone(),
        task: file.workflow.task.clone(),
        at: Timestamp::now().to_string(),
        is_flaky: false,
        diagnosis,
        drift,
        version: None,
    };
    Ok((checked, updated))
}

fn append(history: &Path, result: &CheckedWorkflow) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(result)?;
    line.push(b'\n');
    std::fs::OpenOptions::new().create(true).append(true).open(history)?.write_all(&line)
}

fn print(checked: &CheckedWorkflow, task: Option<&WebCanvasTask>) {
    let diagnosis = &checked.diagnosis;
    let state = match diagnosis.health {
        Health::Valid => "valid",
        Health::Drifted => "drifted",
        Health::Broken => "broken",
        Health::Blocked => "blocked",
        Health::SiteDown => "site down",
    };
    let flaky = if checked.is_flaky { " (at the second attempt)" } else { "" };
    outln!("{}: {state}{flaky}", checked.workflow.display());
    if let Some(cause) = &diagnosis.cause {
        match diagnosis.broken_at {
            Some(step) => outln!("  step {}: {cause}", step + 1),
            None => outln!("  {cause}"),
        }
    }
    for (step, drift) in diagnosis.drifted.iter().zip(&checked.drift) {
        outln!("  step {}: {drift}", step + 1);
    }
    for node in &diagnosis.nodes {
        let name = format!("key node {} ({})", node.node + 1, node.function);
        match &node.cause {
            Some(cause) => outln!("  {name}: {cause}"),
            None if diagnosis.health == Health::Drifted && node.reached_at != node.expected_at => {
                let step = |step: Option<usize>| step.map_or("none".to_owned(), |step| (step + 1).to_string());
                outln!(
                    "  {name}: reached at step {}, recorded at step {}",
                    step(node.reached_at),
                    step(node.expected_at)
                );
            }
            None if node.needs_judge => outln!("  {name}: only a judge can tell"),
            None => {}
        }
        if let Some(repair) = &node.repair {
            outln!("    repair: {} `{}` becomes `{}`", repair.field, repair.from, repair.to);
        }
    }
    if let (Some(version), Some(task)) = (checked.version, task) {
        outln!("  task {} has version {version}", task.id);
    }
}
