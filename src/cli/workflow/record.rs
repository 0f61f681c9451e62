//! `arenad workflow record`: records the actions of a person in a browser window, and `arenad workflow review`: the page on
//! which the key nodes are chosen.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use reqwest::Method;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::drive;
use super::files::{self, WorkflowFile};
use crate::cli::args::{Global, WorkflowRecordArgs, WorkflowReviewArgs};
use crate::cli::client::ApiClient;
use crate::cli::exit_code;
use crate::cli::failure::CommandFailure;
use arenad_agent_browser::{RecordedAction, Recorder, RecorderProxy};
use arenad_api::{AccountSession, EpisodeRecording, StorageCookie};
use arenad_workflow::{StepAction, Workflow, WorkflowStep, propose};

/// The largest message of the browser, in bytes. Recordings need none of its large ones.
const MESSAGE_MAX: usize = 32 << 20;

/// The page without its data.
const REVIEW: &str = include_str!("review.html");

/// The place of the data in [`REVIEW`].
const DATA: &str = "/*data*/null";

/// Records until the person closes the window or presses Ctrl-C.
pub async fn record(global: &Global, args: &WorkflowRecordArgs) -> Result<u8, CommandFailure> {
    if args.file.exists() && !args.force {
        return Err(CommandFailure::usage(format!("{} exists", args.file.display())).hint("pass --force to replace it"));
    }
    let mut workflow = Workflow {
        task: args.task.clone().unwrap_or_default(),
        title: args.title.clone(),
        sites: args.sites.clone(),
        accounts: args.accounts.iter().cloned().collect(),
        start: args.start.clone(),
        ..Workflow::default()
    };
    if let Some((site, _)) = args.accounts.iter().find(|(site, _)| !args.sites.contains(site)) {
        return Err(CommandFailure::usage(format!("the account is one of {site}, which the episode does not have"))
            .hint(format!("add `--site {site}`")));
    }
    if args.sites.is_empty() {
        record_in(None, &[], args, &mut workflow).await?;
    } else {
        let client = ApiClient::new(global)?;
        let (started, hold) =
            drive::episode(&client, &args.sites, args.environment.as_deref(), EpisodeRecording::Nothing).await?;
        let proxy = started.proxy.ok_or_else(|| {
            CommandFailure::usage("recordings require the episode proxy, which the daemon does not offer")
                .hint("`arenad status` says why; `arenad serve --proxy ADDRESS` offers it")
        })?;
        let proxy = RecorderProxy { server: proxy.server, username: proxy.username, password: proxy.password };
        let recorded = match sign_in(&client, &hold.path(), &workflow).await {
            Ok(cookies) => record_in(Some(proxy), &cookies, args, &mut workflow).await,
            Err(failure) => Err(failure),
        };
        // The connection that holds the episode ends with this process, and the episode with it.
        let _ = client.delete(&hold.path()).await;
        recorded?;
    }
    let text = serde_json::to_string_pretty(&workflow)? + "\n";
    std::fs::write(&args.file, text).with_context(|| format!("write {}", args.file.display()))?;
    if global.json {
        crate::cli::output::print_json(&workflow)?;
    } else {
        let steps = workflow.steps.len();
        outln!("{}: {steps} {}", args.file.display(), if steps == 1 { "step" } else { "steps" });
        outln!("`arenad workflow review {}` proposes key nodes.", args.file.display());
    }
    Ok(exit_code::OK)
}

/// Signs the accounts of a workflow in, and returns the cookies of all of them.
async fn sign_in(client: &ApiClient, episode: &str, workflow: &Workflow) -> Result<Vec<StorageCookie>, CommandFailure> {
    let mut cookies = Vec::new();
    for (site, account) in &workflow.accounts {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(account.as_ref().map(|account| ("account", account)));
        let path = format!("{episode}/login/{site}?{}", query.finish());
        let session: AccountSession = client.json(Method::POST, &path).await?;
        if !session.headers.is_empty() {
            let said = format!("{} of {site} signs in with headers, which the browser does not send", session.account);
            return Err(CommandFailure::usage(said).hint("choose an account that signs in with cookies"));
        }
        cookies.extend(session.cookies);
    }
    Ok(cookies)
}

async fn record_in(
    proxy: Option<RecorderProxy>,
    cookies: &[StorageCookie],
    args: &WorkflowRecordArgs,
    workflow: &mut Workflow,
) -> Result<(), CommandFailure> {
    let profile = tempfile::Builder::new().prefix("arenad-recording-").tempdir()?;
    let (cdp, process) =
        arenad_agent_browser::start_shown(profile.path(), MESSAGE_MAX).await.map_err(anyhow::Error::from)?;
    let recorded = match Recorder::open(cdp.clone(), proxy, cookies, &args.start).await {
        Ok(recorder) => {
            record_with(recorder, args, workflow).await;
            Ok(())
        }
        Err(fault) => Err(anyhow::Error::from(fault).into()),
    };
    arenad_agent_browser::end_shown(&cdp, process, profile.path()).await;
    recorded
}

async fn record_with(mut recorder: Recorder, args: &WorkflowRecordArgs, workflow: &mut Workflow) {
    errln!("recording; close the window or press Ctrl-C to end it");
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        tokio::select! {
            action = recorder.next() => match action.and_then(step) {
                Some(step) => {
                    errln!("{}", said(&step));
                    workflow.steps.push(step);
                }
                None => break,
            },
            _ = &mut interrupted => break,
        }
    }
    let end = recorder.last_url().to_owned();
    if let Some(answer) = &args.answer {
        let url = end.clone();
        workflow.steps.push(WorkflowStep { action: StepAction::Stop, url, element: None, value: Some(answer.clone()) });
    }
    workflow.end = Some(end).filter(|end| !end.is_empty());
    if let Some(step) = workflow.secret_step() {
        errln!("note: step {} types a password, which is not kept, so that the workflow cannot be replayed", step + 1);
        errln!("`--account SITE` signs an account of a site in before the recording begins");
    }
}

/// Returns the step of an action.
fn step(action: RecordedAction) -> Option<WorkflowStep> {
    let RecordedAction { action, url, element, value } = action;
    let action = serde_json::from_value(Value::from(action)).ok()?;
    Some(WorkflowStep { action, url, element, value })
}

fn said(step: &WorkflowStep) -> String {
    let element = step.element.as_ref().map(|element| format!(" {} `{}`", element.role, element.name));
    let value = step.value.as_ref().map(|value| format!(" [{value}]"));
    format!("{}{}{}", step.action.name(), element.unwrap_or_default(), value.unwrap_or_default())
}

/// Writes the page on which a person chooses key nodes.
pub fn review(args: &WorkflowReviewArgs) -> Result<u8, CommandFailure> {
    let WorkflowFile { workflow, .. } = files::read_one(args.file.clone())?;
    let page = page(&workflow, &propose(&workflow))?;
    let path = args.out.clone().unwrap_or_else(|| beside(&args.file));
    let mut file = std::fs::File::create(&path).with_context(|| format!("write {}", path.display()))?;
    file.write_all(page.as_bytes()).with_context(|| format!("write {}", path.display()))?;
    outln!("{}: open it in a browser, choose the key nodes and save the task", path.display());
    Ok(exit_code::OK)
}

fn beside(file: &Path) -> PathBuf {
    file.with_extension("html")
}

fn page(workflow: &Workflow, entry: &Value) -> anyhow::Result<String> {
    // A text of a page must not end the script.
    let data = serde_json::to_string(&json!({ "workflow": workflow, "entry": entry }))?.replace('<', "\\u003c");
    Ok(REVIEW.replacen(DATA, &data, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_of_the_page_cannot_end_its_script() {
        let workflow = Workflow { title: "</script><script>alert(1)</script>".to_owned(), ..Workflow::default() };
        let page = page(&workflow, &json!({ "index": "" })).expect("a page");
        assert_eq!(page.matches("</script>").count(), 1);
        assert!(page.contains("\\u003c/script>") && !page.contains(DATA));
    }
}
