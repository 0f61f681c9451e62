//! `arenad tasks lint`

use serde_json::json;

use super::choice::{Chosen, rendered};
use crate::cli::args::{Global, TasksLintArgs};
use crate::cli::failure::Failure;
use crate::cli::{exit_code, output};
use crate::definition::tasks;

/// Says everything that is wrong with task files.
pub fn run(global: &Global, args: &TasksLintArgs) -> Result<u8, Failure> {
    let mut is_fine = true;
    let mut told = Vec::new();
    for chosen in Chosen::of_words(args.what.as_deref(), args.root.as_deref())? {
        let loaded = tasks::load(&chosen.files, &chosen.environment);
        is_fine &= loaded.problems.is_none();
        let name = chosen.environment.name.as_str();
        if global.json {
            let names: Vec<&str> = loaded.tasks.iter().map(|task| task.name.as_str()).collect();
            let problems = loaded.problems.as_ref().map(|problems| problems.iter().cloned().collect::<Vec<_>>());
            told.push(json!({ "environment": name, "tasks": names, "problems": problems.unwrap_or_default() }));
            continue;
        }
        match &loaded.problems {
            Some(problems) => println!("{}", rendered(problems)),
            None => println!("{name}: {} tasks in {} files, nothing is wrong", loaded.tasks.len(), chosen.files.len()),
        }
    }
    if global.json {
        output::print_json(&told)?;
    }
    Ok(if is_fine { exit_code::OK } else { exit_code::USAGE })
}
