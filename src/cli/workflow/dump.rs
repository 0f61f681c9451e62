//! `arenad workflow dump`: replays workflows, and writes them as recorded tasks in the layout of Mind2Web.
//!
//! ```text
//!   DIR/data/recorded/recorded_0.json                     the tasks with the pages as text, and the candidates
//!   DIR/raw_dump/task_meta.json                           the session of each task
//!   DIR/raw_dump/task/TASK/processed/dom_content.json     the nodes before and after each action
//!   DIR/raw_dump/task/TASK/processed/snapshots/ACTION_before.mhtml, ACTION_after.mhtml
//!   DIR/raw_dump/session/SESSION/session.har              the requests of the episode
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use serde_json::{Value, json};

use super::drive;
use super::files::{self, WorkflowFile};
use super::visit::WorkflowBrowser;
use crate::cli::args::{Global, WorkflowDumpArgs};
use crate::cli::client::ApiClient;
use crate::cli::episode::export;
use crate::cli::failure::CommandFailure;
use crate::cli::{exit_code, output};
use arenad_api::EpisodeRecording;
use arenad_api::browser::{PageResource, PageSnapshot};
use arenad_workflow::{DumpedAction, DumpedTask, Replay, Workflow, diagnose, dump, is_dumped};

/// The result of one workflow, in the shape of `--json`.
#[derive(Debug, Serialize)]
struct DumpedWorkflow {
    /// The path of the workflow.
    workflow: PathBuf,
    /// The `annotation_id` of the task; null if it was not written.
    task: Option<String>,
    /// The number of actions of the task.
    actions: usize,
    /// The id of the episode.
    session: String,
    /// The reason why the workflow could not be replayed; null if it was.
    error: Option<String>,
}

/// Replays the workflows one after the other, each on pristine sites.
pub async fn run(global: &Global, args: &WorkflowDumpArgs) -> Result<u8, CommandFailure> {
    let workflows = files::read(&args.files)?;
    let out = DumpFolder::make(&args.output)?;
    let client = ApiClient::new(global)?;
    let (mut tasks, mut sessions, mut results) = (Vec::new(), BTreeMap::new(), Vec::new());
    for WorkflowFile { path, workflow } in &workflows {
        let (session, recorded) = record(&client, workflow, args.environment.as_deref()).await?;
        let mut result = DumpedWorkflow { workflow: path.clone(), task: None, actions: 0, session, error: None };
        match recorded {
            Ok(actions) => {
                let task = dump(workflow, &actions);
                let mut har: Value = serde_json::from_slice(&export::fetch(&client, &result.session).await?)
                    .context("parse the daemon's answer")?;
                complete(&mut har, &actions);
                out.write_task(&task, &actions, &result.session, &har)?;
                result.actions = task.actions.len();
                sessions.insert(task.id.clone(), json!({ "session_id": result.session }));
                result.task = Some(task.id);
                tasks.push(task.entry);
            }
            Err(reason) => result.error = Some(reason),
        }
        // If the command is interrupted, the folder is a dump of the tasks so far.
        out.write_lists(&tasks, &sessions)?;
        if !global.json {
            match &result.error {
                Some(error) => outln!("{}: not recorded: {error}", path.display()),
                None => outln!("{}: {} actions", path.display(), result.actions),
            }
        }
        results.push(result);
    }
    let failed = results.iter().filter(|result| result.error.is_some()).count();
    let written = tasks.len();
    if global.json {
        output::print_json(&results)?;
    } else {
        outln!("{}: {written} recorded, {failed} not recorded", args.output.display());
    }
    Ok(if failed == 0 { exit_code::OK } else { exit_code::FAILED })
}

/// The dumped actions of a workflow, or the reason why it could not be replayed.
type Recorded<'a> = Result<Vec<DumpedAction<'a>>, String>;

/// Replays a workflow, and returns the id of its episode.
async fn record<'a>(
    client: &ApiClient,
    workflow: &'a Workflow,
    environment: Option<&str>,
) -> Result<(String, Recorded<'a>), CommandFailure> {
    let (started, hold) = drive::episode(client, &workflow.sites, environment, EpisodeRecording::All).await?;
    let path = hold.path();
    let recorded = match WorkflowBrowser::of_episode(client, path.clone(), workflow, false).await {
        Ok((_, Some(reason))) => Ok(Err(cause(workflow, &Replay { steps: Vec::new(), unreachable: Some(reason) }))),
        Ok((mut browser, None)) => replay(&mut browser, workflow).await,
        Err(failure) => Err(failure),
    };
    // Requests are part of the record when they have ended, which the end of the episode sees to.
    match client.delete(&path).await {
        Err(failure) if failure.code == exit_code::VOID => Err(failure),
        Ok(()) | Err(_) => Ok((started.episode.id, recorded?)),
    }
}

/// Says why a replay did not reach its end.
fn cause(workflow: &Workflow, replay: &Replay) -> String {
    let diagnosis = diagnose(&[], workflow, replay, &[]);
    let cause = diagnosis.cause.map_or_else(|| "unknown".to_owned(), |cause| cause.to_string());
    match diagnosis.broken_at {
        Some(step) => format!("step {}: {cause}", step + 1),
        None => cause,
    }
}

async fn replay<'a>(browser: &mut WorkflowBrowser<'_>, workflow: &'a Workflow) -> Result<Recorded<'a>, CommandFailure> {
    let (mut actions, mut known) = (Vec::<DumpedAction<'a>>::new(), Replay::default());
    for (position, step) in workflow.steps.iter().enumerate() {
        let mut replayed = drive::look(browser, step).await?;
        // Enter is pressed in the field that has the focus.
        let selector = match &step.element {
            Some(_) => drive::selector(step, &replayed),
            None => Some(":focus".to_owned()),
        };
        let before = browser.snapshot(selector.as_deref()).await?;
        drive::act(browser, step, &mut replayed).await?;
        let is_done = replayed.is_done();
        known.steps.push(replayed);
        if !is_done {
            return Ok(Err(cause(workflow, &known)));
        }
        // The page after an action is the one that the next action finds.
        if let Some(last) = actions.last_mut().filter(|last| last.after == PageSnapshot::default()) {
            last.after = before.clone();
        }
        if is_dumped(step) {
            actions.push(DumpedAction { position, step, before, after: PageSnapshot::default() });
        }
    }
    if let Some(last) = actions.last_mut().filter(|last| last.after == PageSnapshot::default()) {
        last.after = browser.snapshot(None).await?;
    }
    Ok(Ok(actions))
}

/// Adds the bodies that the record of an episode leaves out, which are those of scripts, styles and images, as the browser
/// has got them.
fn complete(har: &mut Value, actions: &[DumpedAction<'_>]) {
    let pages = actions.iter().flat_map(|action| [&action.before, &action.after]);
    let resources: BTreeMap<&str, &PageResource> =
        pages.flat_map(|page| &page.resources).map(|resource| (resource.url.as_str(), resource)).collect();
    let entries = har["log"]["entries"].as_array_mut().into_iter().flatten();
    // 304 says that the browser has it already.
    for entry in entries.filter(|entry| [200, 304].iter().any(|status| entry["response"]["status"] == *status)) {
        let resource = entry["request"]["url"].as_str().and_then(|url| resources.get(url));
        let content = &mut entry["response"]["content"];
        let (Some(resource), true) = (resource, content["text"].is_null()) else {
            continue;
        };
        content["text"] = json!(resource.content);
        if let Some(content) = content.as_object_mut() {
            content.remove("comment");
            if resource.is_base64 {
                content.insert("encoding".to_owned(), json!("base64"));
            }
        }
        if let Some(lost) = entry["_lost"].as_array_mut() {
            lost.clear();
        }
    }
}

/// The folder of a dump.
struct DumpFolder {
    root: PathBuf,
}

impl DumpFolder {
    fn make(root: &Path) -> Result<Self, CommandFailure> {
        let is_used = root.is_file() || root.read_dir().is_ok_and(|mut entries| entries.next().is_some());
        if is_used {
            return Err(CommandFailure::usage(format!("{} is not empty", root.display()))
                .hint("name a folder that does not exist"));
        }
        std::fs::create_dir_all(root).with_context(|| format!("create {}", root.display()))?;
        Ok(Self { root: root.to_owned() })
    }

    fn write(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        let path = self.root.join(name);
        let doing = || format!("write {}", path.display());
        std::fs::create_dir_all(path.parent().unwrap_or(&self.root)).with_context(doing)?;
        // An interrupted command leaves the former content or none.
        let partial = path.with_file_name(".partial");
        std::fs::write(&partial, content).with_context(doing)?;
        std::fs::rename(&partial, &path).with_context(doing)
    }

    fn write_task(
        &self,
        task: &DumpedTask,
        actions: &[DumpedAction<'_>],
        session: &str,
        har: &Value,
    ) -> anyhow::Result<()> {
        let folder = format!("raw_dump/task/{}/processed", task.id);
        self.write(&format!("{folder}/dom_content.json"), &serde_json::to_vec(&task.dom_content)?)?;
        for (action, uid) in actions.iter().zip(&task.actions) {
            for (when, page) in [("before", &action.before), ("after", &action.after)] {
                let name = format!("snapshots/{uid}_{when}.mhtml");
                match &page.mhtml {
                    Some(archive) => self.write(&format!("{folder}/{name}"), archive.as_bytes())?,
                    None => errln!("warning: {} is too large to be archived; {name} is missing", page.url),
                }
            }
        }
        self.write(&format!("raw_dump/session/{session}/session.har"), &serde_json::to_vec(har)?)
    }

    fn write_lists(&self, tasks: &[Value], sessions: &BTreeMap<String, Value>) -> anyhow::Result<()> {
        self.write("raw_dump/task_meta.json", &serde_json::to_vec_pretty(sessions)?)?;
        self.write("data/recorded/recorded_0.json", &serde_json::to_vec(tasks)?)
    }
}
