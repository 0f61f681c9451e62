//! Turns the task files of an environment into tasks, or reports all problems in them.
//!
//! ```text
//!   environments/x/tasks/*.yaml ─► parse ─► schema ─► for each entry of `each`: fill in ─► schema ─► validate ─► Task
//! ```
//! Each task of a template is checked with its variables in place, so that problems of a single task are found. A
//! problem that all tasks of a template share is reported once, because it has one place in the file.

mod files;
mod variables;

use std::collections::{BTreeMap, BTreeSet};

use super::problems::{Problems, closest};
use super::raw::tasks::RawTask;
use super::scope::{Document, Scope};
use super::source::{SourceFile, Span};
use super::tree::{DocumentNode, DocumentValue};
use super::{Diagnostics, check, parse, schema, validate};
use arenad_model::locator::Arguments;
use arenad_model::site::Environment;
use arenad_model::task::Task;
pub use files::{environment_of, read_file, read_folder, read_tasks};
pub(super) use variables::is_name;
use variables::{EACH, TaskVariables};

/// Maximum number of tasks in a file; each task of a template counts.
const TASKS_MAX: usize = 1000;

/// The tasks of one or several files.
#[derive(Debug)]
pub struct LoadedTasks {
    /// The valid tasks, in the order of the files.
    pub tasks: Vec<Task>,
    /// The problems of the invalid tasks.
    pub problems: Option<Diagnostics>,
}

impl LoadedTasks {
    /// Returns the task with the given name.
    pub fn find(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.name == name)
    }

    /// Returns the existing name that is closest to an unknown one.
    pub fn suggestion(&self, name: &str) -> Option<&str> {
        closest(name, self.tasks.iter().map(|task| task.name.as_str()))
    }
}

/// Loads the tasks of files, which belong to one environment.
pub fn load(files: &[SourceFile], environment: &Environment) -> LoadedTasks {
    load_some(files, environment, None)
}

/// Loads only the template that defines `name`, which is faster than loading all tasks.
pub fn load_for(files: &[SourceFile], environment: &Environment, name: &str) -> LoadedTasks {
    load_some(files, environment, Some(name))
}

fn load_some(files: &[SourceFile], environment: &Environment, wanted: Option<&str>) -> LoadedTasks {
    let problems = Problems::default();
    let mut names = TaskNames::default();
    let mut tasks = Vec::new();
    for source in files {
        if let Some(root) = parse::parse(source, &problems) {
            let document = Document { source, root };
            // This check covers the file itself. A template's tasks are checked separately, with their variables in
            // place.
            check::check(&schema::TASKS, &document.root, source, &problems);
            let scope = Scope::new(&document, &problems);
            of_environment(scope, &document.root, environment);
            tasks.extend(of_file(&document, scope, environment, wanted, &mut names));
        }
    }
    LoadedTasks { tasks, problems: problems.into_result().err() }
}

/// Checks that a file is in the folder of the environment that it names.
fn of_environment(scope: Scope<'_>, root: &DocumentNode, environment: &Environment) {
    let named = root.entry("environment").and_then(|entry| entry.value.scalar());
    if let Some(named) = named.filter(|named| named.text != environment.name.as_str()) {
        let message = format!("the tasks are `{}`'s, but are looked at for `{}`", named.text, environment.name);
        scope.key("environment").error("name", message).expected(format!("`{}`", environment.name)).report();
    }
}

fn of_file<'f>(
    document: &Document<'f>,
    scope: Scope<'_>,
    environment: &Environment,
    wanted: Option<&str>,
    names: &mut TaskNames<'f>,
) -> Vec<Task> {
    let mut tasks = Vec::new();
    let templates = match document.root.entry("tasks").map(|entry| &entry.value.value) {
        Some(DocumentValue::Sequence(templates)) => templates.as_slice(),
        _ => &[],
    };
    let mut count = 0;
    let is_meant = |(_, template): &(usize, &DocumentNode)| wanted.is_none_or(|wanted| is_of(template, wanted));
    for (index, template) in templates.iter().enumerate().filter(is_meant) {
        let scope = scope.key("tasks").index(index);
        let entries = entries(template, scope);
        count += entries.len().max(1);
        if count > TASKS_MAX {
            scope
                .error("too-large", format!("the file has more than {TASKS_MAX} tasks"))
                .help("divide it into several files")
                .report();
            break;
        }
        tasks.extend(of_template(document, index, &entries, scope, environment, names));
    }
    tasks
}

/// Returns whether a task with the given name could belong to the template.
fn is_of(template: &DocumentNode, task: &str) -> bool {
    let name = template.entry("name").and_then(|entry| entry.value.scalar()).map(|scalar| scalar.text.as_str());
    let rest = name.and_then(|name| task.strip_prefix(name));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the entries of a template's `each`, which must all have the same variables.
fn entries<'a>(template: &'a DocumentNode, scope: Scope<'_>) -> Vec<&'a DocumentNode> {
    let Some(DocumentValue::Sequence(items)) = template.entry(EACH).map(|entry| &entry.value.value) else {
        return Vec::new();
    };
    let scope = scope.key(EACH);
    let first: Vec<&str> =
        items.first().map(|item| TaskVariables::of(Some(item)).names().collect()).unwrap_or_default();
    for name in first.iter().filter(|name| !is_name(name)) {
        scope
            .index(0)
            .key(name)
            .key_error("name", format!("invalid variable name `{name}`"))
            .expected("lower-case letters and `_`, such as `product`")
            .report();
    }
    for (index, item) in items.iter().enumerate().skip(1) {
        let names: Vec<&str> = TaskVariables::of(Some(item)).names().collect();
        for missing in first.iter().filter(|name| !names.contains(name)) {
            scope
                .index(index)
                .error("variable", format!("entry {} has no `{missing}`, which the first one has", index + 1))
                .report();
        }
        for extra in names.iter().filter(|name| !first.contains(name)) {
            scope
                .index(index)
                .key(extra)
                .key_error("variable", format!("the first entry has no `{extra}`"))
                .maybe_help(closest(extra, first.iter().copied()).map(|close| format!("did you mean `{close}`?")))
                .report();
        }
    }
    items.iter().collect()
}

/// Returns the valid tasks of the template with the given index.
fn of_template<'f>(
    document: &Document<'f>,
    index: usize,
    entries: &[&DocumentNode],
    scope: Scope<'_>,
    environment: &Environment,
    names: &mut TaskNames<'f>,
) -> Vec<Task> {
    let mut used = BTreeSet::new();
    let mut tasks = Vec::new();
    let numbered = entries.iter().enumerate().map(|(number, entry)| (Some(number + 1), Some(*entry)));
    let each: Vec<(Option<usize>, Option<&DocumentNode>)> =
        if entries.is_empty() { vec![(None, None)] } else { numbered.collect() };
    for (number, entry) in each {
        // Problems are deduplicated across tasks, so each task collects its own first; otherwise a repeated problem
        // would go unnoticed.
        let problems = Problems::default();
        let task = one(document, index, (number, entry), &problems, &mut used, environment);
        let is_fine = problems.count() == 0;
        scope.problems().absorb(problems);
        tasks.extend(task.filter(|_| is_fine));
    }
    let unused =
        entries.first().into_iter().flat_map(|entry| TaskVariables::of(Some(entry)).names().collect::<Vec<_>>());
    for name in unused.filter(|name| is_name(name) && !used.contains(*name)) {
        let draft = scope.key(EACH).index(0).key(name).key_error("unused", format!("nothing uses `{name}`"));
        draft.help(format!("write `{{{{{name}}}}}` in a text or `{{{name}}}` in a locator, or remove it")).report();
    }
    tasks.retain(|task| names.claim(&task.name, document.source, scope.key("name")));
    tasks
}

/// Builds one task with its variables in place. Returns `None` if it cannot be built.
fn one(
    document: &Document<'_>,
    index: usize,
    (number, entry): (Option<usize>, Option<&DocumentNode>),
    problems: &Problems,
    used: &mut BTreeSet<String>,
    environment: &Environment,
) -> Option<Task> {
    let Some(DocumentValue::Sequence(templates)) = document.root.entry("tasks").map(|entry| &entry.value.value) else {
        return None;
    };
    let place = Scope::new(document, problems).key("tasks").index(index);
    let variables = TaskVariables::of(entry);
    let root = variables.fill(templates.get(index)?, place, used);
    let filled = Document { source: document.source, root };
    // The name matches that of the whole file's check, so that a problem found by both is reported once.
    let name = format!("entry {} of `tasks`", index + 1);
    let json = check::check_part(&schema::TASK, &filled.root, &name, filled.source, problems);
    let scope = Scope::new(&filled, problems);
    match serde_json::from_value::<RawTask>(json) {
        Ok(raw) => validate::task(scope, &raw, number, Arguments(variables.texts()), environment),
        // The checker refuses every value that these types refuse. If the two ever differ, the task is still refused.
        Err(error) if problems.count() == 0 => {
            scope.error("unreadable", format!("the task cannot be read: {error}")).report();
            None
        }
        Err(_) => None,
    }
}

/// The used names and their places.
#[derive(Default)]
struct TaskNames<'a>(BTreeMap<String, (&'a SourceFile, Span)>);

impl<'a> TaskNames<'a> {
    /// Claims a name, unless another task has it.
    fn claim(&mut self, name: &str, source: &'a SourceFile, scope: Scope<'_>) -> bool {
        if let Some((other, place)) = self.0.get(name) {
            let draft = scope.error("duplicate-name", format!("another task is called `{name}`"));
            draft.related(other, *place, "the other one").report();
            return false;
        }
        self.0.insert(name.to_owned(), (source, scope.span()));
        true
    }
}
