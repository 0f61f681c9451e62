//! `arenad tasks ls` and `arenad tasks show`: list native tasks.

use serde_json::{Value as Json, json};

use super::choice::{ChosenTasks, rendered};
use crate::cli::args::{Global, TasksLsArgs, TasksShowArgs};
use crate::cli::failure::CommandFailure;
use crate::cli::{exit_code, output};
use arenad_definition::tasks;
use arenad_evaluators::native::words;
use arenad_model::task::{Criterion, CriterionKind, Task};

/// Lists the tasks of an environment.
pub fn list(global: &Global, args: &TasksLsArgs) -> Result<u8, CommandFailure> {
    let chosen =
        ChosenTasks::of_environment(args.environment.as_deref().or(args.named.as_deref()), args.root.as_deref())?;
    let loaded = tasks::load(&chosen.files, &chosen.environment);
    if global.json {
        output::print_json(&loaded.tasks.iter().map(summary).collect::<Vec<_>>())?;
    } else {
        let mut table = output::table(&["TASK", "KIND", "SITES", "INTENT"]);
        for task in &loaded.tasks {
            table.add_row([task.name.as_str(), task.kind.name(), &sites(task).join(","), &task.intent]);
        }
        output::print_fitted(&mut table, 3, output::width());
    }
    // Tasks that cannot be read are missing from the list, so their problems are reported.
    if let Some(problems) = &loaded.problems {
        return Err(CommandFailure::new(
            exit_code::USAGE,
            anyhow::anyhow!("some tasks are left out\n\n{}", rendered(problems)),
        ));
    }
    Ok(exit_code::OK)
}

/// Prints one task, with the commands that prepare it.
pub fn one(global: &Global, args: &TasksShowArgs) -> Result<u8, CommandFailure> {
    let chosen = ChosenTasks::of_environment(args.environment.as_deref(), args.root.as_deref())?;
    let task = chosen.find(&args.task)?;
    if global.json {
        let mut shown = summary(&task);
        shown["reset"] = json!(resets(&task));
        shown["before"] = task.before.iter().map(|(name, reading)| (name.clone(), words::reading(reading))).collect();
        shown["check"] = criterion(&task.criterion);
        output::print_json(&shown)?;
    } else {
        out!("{}", text(&task));
    }
    Ok(exit_code::OK)
}

fn sites(task: &Task) -> Vec<&str> {
    task.sites.iter().map(|site| site.as_str()).collect()
}

fn summary(task: &Task) -> Json {
    let accounts: serde_json::Map<String, Json> =
        task.accounts.iter().map(|(site, account)| (site.to_string(), json!(account))).collect();
    json!({
        "name": task.name, "kind": task.kind.name(), "sites": sites(task), "accounts": accounts,
        "start": task.start, "intent": task.intent,
    })
}

/// Returns the commands that reset the task's sites to the state that it starts from.
fn resets(task: &Task) -> Vec<String> {
    let mut commands = Vec::new();
    let of_baseline: Vec<&str> =
        task.sites.iter().filter(|site| task.snapshot(site).is_none()).map(|site| site.as_str()).collect();
    if !of_baseline.is_empty() {
        commands.push(format!("arenad reset {}", of_baseline.join(" ")));
    }
    commands.extend(task.snapshots.iter().map(|(site, name)| format!("arenad reset {site} --to {name}")));
    commands
}

fn criterion(part: &Criterion) -> Json {
    let mut shown = match &part.kind {
        CriterionKind::All(parts) => json!({ "all": parts.iter().map(criterion).collect::<Vec<_>>() }),
        CriterionKind::Any(parts) => json!({ "any": parts.iter().map(criterion).collect::<Vec<_>>() }),
        CriterionKind::Not(part) => json!({ "not": criterion(part) }),
        _ => {
            let leaf = words::leaf(part);
            json!({ "place": leaf.place, "rule": leaf.rule, "expected": leaf.expected })
        }
    };
    if let Some(name) = &part.name {
        shown["name"] = json!(name);
    }
    shown
}

fn text(task: &Task) -> String {
    let mut out = format!("{}  ({})\n\n  {}\n\n", task.name, task.kind.name(), task.intent);
    let mut line = |label: &str, value: &str| out.push_str(&format!("{label:9} {value}\n"));
    line("sites", &sites(task).join(", "));
    for (site, account) in &task.accounts {
        line("account", &format!("{account} on {site}"));
    }
    line("start", &task.start);
    for command in resets(task) {
        line("reset", &command);
    }
    for (name, reading) in &task.before {
        line("before", &format!("{name} = {}", words::reading(reading)));
    }
    out.push_str("check\n");
    describe(&task.criterion, 1, &mut out);
    out
}

fn describe(part: &Criterion, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let name = part.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    let line = match &part.kind {
        CriterionKind::All(_) => "all".to_owned(),
        CriterionKind::Any(_) => "any".to_owned(),
        CriterionKind::Not(_) => "not".to_owned(),
        _ => {
            let leaf = words::leaf(part);
            format!("{} {} {}", leaf.place, leaf.rule, leaf.expected)
        }
    };
    out.push_str(&format!("{indent}{name}{line}\n"));
    for part in part.parts() {
        describe(part, depth + 1, out);
    }
}
