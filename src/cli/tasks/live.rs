//! `arenad tasks lint --live`: runs every check in the initial state of its task. There it must fail, and each of its
//! readings must be possible.

use reqwest::Method;
use serde::Serialize;

use super::choice::ChosenTasks;
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use arenad_api::SourceText;
use arenad_api::checks::{BeginRequest, Begun, CheckRequest, Checked};
use arenad_definition::tasks::LoadedTasks;
use arenad_model::locator::{JsPage, LocatorKind};
use arenad_model::task::{CriterionKind, ReadingRecipe, Task};
use arenad_verdict::{Check, Verdict};

/// A problem of a task in its initial state.
#[derive(Debug, Serialize)]
pub struct TaskFinding {
    /// The name of the task.
    pub task: String,
    /// The description of the problem.
    pub problem: String,
}

/// Runs every check of some tasks on the running environment.
pub async fn findings(
    client: &ApiClient,
    chosen: &ChosenTasks,
    loaded: &LoadedTasks,
) -> Result<Vec<TaskFinding>, CommandFailure> {
    let mut findings = Vec::new();
    for task in &loaded.tasks {
        let file = chosen.files.iter().find(|file| file.text.contains(template(&task.name)));
        let file = file.map(|file| SourceText { path: file.path.display().to_string(), text: file.text.clone() });
        let problems = match look(client, chosen.environment.name.as_str(), task, file).await {
            Ok(checked) => problems(task, &checked),
            Err(failure) => vec![failure.error.to_string()],
        };
        findings.extend(problems.into_iter().map(|problem| TaskFinding { task: task.name.clone(), problem }));
    }
    Ok(findings)
}

/// Returns the name of a task in its file: without the number that tasks of a template with variables have.
fn template(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((template, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => template,
        _ => name,
    }
}

async fn look(
    client: &ApiClient,
    environment: &str,
    task: &Task,
    file: Option<SourceText>,
) -> Result<Checked, CommandFailure> {
    let path = format!("/v1/environments/{environment}/checks");
    let begin = BeginRequest { task: task.name.clone(), file: file.clone(), reset: false };
    let begun: Begun = client.send(Method::POST, &format!("{path}/begin"), &begin).await?;
    let check = CheckRequest {
        task: task.name.clone(),
        file,
        begun: Some(begun),
        answer: String::new(),
        url: Some(task.start.clone()),
        cdp: None,
        evidence: false,
    };
    client.send(Method::POST, &path, &check).await
}

fn problems(task: &Task, checked: &Checked) -> Vec<String> {
    let mut problems = Vec::new();
    if checked.report.verdict == Verdict::Passed {
        problems.push("its check passes although nothing has been done".to_owned());
    }
    // There is no agent, so checks that read its page cannot be run.
    if !reads_agents_page(task) {
        checked.report.checks.iter().for_each(|check| open(check, &mut problems));
    }
    problems
}

/// Collects the readings that could not be taken.
fn open(check: &Check, problems: &mut Vec<String>) {
    let is_open = !matches!(check.verdict, Verdict::Passed | Verdict::Failed);
    if check.parts.is_empty() && is_open {
        let reason = check.reason.as_deref().unwrap_or_default();
        problems.push(format!("{} cannot be checked: {reason}", check.place));
    }
    check.parts.iter().for_each(|part| open(part, problems));
}

fn reads_agents_page(task: &Task) -> bool {
    task.criterion.leaves().iter().any(|leaf| match &leaf.kind {
        CriterionKind::Site(reading, _) => match &reading.recipe {
            ReadingRecipe::Locator(locator) => matches!(&locator.kind, LocatorKind::Js(js) if js.page == JsPage::Live),
            ReadingRecipe::Helper { .. } => false,
        },
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_that_cannot_be_checked_are_named_even_where_another_decides() {
        let down = Check::open("site", "equals", "shop: sql: x", json!(1), Verdict::Unsupported, "no such table");
        let failed = Check::of("site", "equals", "shop: sql: y", json!(1), json!(2), false);
        let any = Check { parts: vec![down, failed], ..Check::of("", "any", "", json!(2), json!(0), false) };
        let mut problems = Vec::new();
        open(&any, &mut problems);
        assert_eq!(problems, ["shop: sql: x cannot be checked: no such table"]);
    }
}
