//! `arenad tasks lint`: checks task files.

use serde_json::json;

use super::choice::{ChosenTasks, rendered};
use super::live;
use crate::cli::args::{Global, TasksLintArgs};
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::{exit_code, output};
use arenad_definition::tasks;

/// Prints every problem of task files and, on request, of their checks when they are run in the tasks' initial state.
pub async fn run(global: &Global, args: &TasksLintArgs) -> Result<u8, CommandFailure> {
    let mut is_fine = true;
    let mut told = Vec::new();
    for chosen in ChosenTasks::of_words(args.what.as_deref(), args.root.as_deref())? {
        let loaded = tasks::load(&chosen.files, &chosen.environment);
        let findings = match args.live {
            true => live::findings(&ApiClient::new(global)?, &chosen, &loaded).await?,
            false => Vec::new(),
        };
        is_fine &= loaded.problems.is_none() && findings.is_empty();
        let name = chosen.environment.name.as_str();
        if global.json {
            let names: Vec<&str> = loaded.tasks.iter().map(|task| task.name.as_str()).collect();
            let problems: Vec<_> = loaded.problems.iter().flat_map(|problems| problems.iter().cloned()).collect();
            told.push(json!({ "environment": name, "tasks": names, "problems": problems, "live": findings }));
            continue;
        }
        if let Some(problems) = &loaded.problems {
            outln!("{}", rendered(problems));
        }
        for finding in &findings {
            outln!("{}: {}", finding.task, finding.problem);
        }
        if loaded.problems.is_none() && findings.is_empty() {
            let (tasks, files) = (loaded.tasks.len(), chosen.files.len());
            outln!("{name}: no problems in {tasks} tasks of {files} files");
        }
    }
    if global.json {
        output::print_json(&told)?;
    }
    Ok(if is_fine { exit_code::OK } else { exit_code::USAGE })
}
