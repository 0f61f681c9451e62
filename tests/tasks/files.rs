//! The task files, parsed as plain YAML without arenad's own parser, so that the suite knows every task even if that
//! parser is wrong.

use std::path::Path;

use serde_json::Value;

#[derive(Debug)]
pub struct TemplateTask {
    /// The template's name, followed by a number if the template has variables.
    pub name: String,
    pub template: String,
    /// `information`, `navigation`, `content` or `unachievable`.
    pub kind: String,
    /// The sites that the task's episode needs: those that it may change and those whose state it relies on.
    pub sites: Vec<String>,
    /// The task's index among the tasks of its template, and the number of those tasks.
    pub place: (usize, usize),
    variables: Value,
}

impl TemplateTask {
    /// Returns a variable as text. Panics if it is a number in the YAML file.
    pub fn text(&self, name: &str) -> &str {
        self.variables[name].as_str().unwrap_or_else(|| panic!("{} has no text {name}", self.name))
    }

    /// Picks this task's value from a list with one value for each task of the template. Near misses use such values,
    /// which the task file does not contain.
    pub fn own<const N: usize, T: Copy>(&self, each: [T; N]) -> T {
        assert_eq!(N, self.place.1, "{}: a value for each task", self.template);
        each[self.place.0]
    }

    /// Returns a variable as a number.
    pub fn number(&self, name: &str) -> f64 {
        self.variables[name].as_f64().unwrap_or_else(|| panic!("{} has no number {name}", self.name))
    }

    /// Whether the task allows an agent to change the sites.
    pub fn may_write(&self) -> bool {
        self.kind == "content"
    }
}

/// Reads every task of a folder, in the order of files and lines. The tasks are leaked, so that they live as long as
/// the tests.
pub fn read(folder: &Path) -> &'static [TemplateTask] {
    let entries = std::fs::read_dir(folder).expect("the task files").map(|entry| entry.expect("a file").path());
    let mut files: Vec<_> = entries.filter(|file| file.extension().is_some_and(|kind| kind == "yaml")).collect();
    files.sort();
    let mut tasks = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a task file");
        let parsed: Value = serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        tasks.extend(parsed["tasks"].as_array().expect("tasks").iter().flat_map(instances));
    }
    Vec::leak(tasks)
}

fn instances(template: &Value) -> Vec<TemplateTask> {
    let text = |key: &str| template[key].as_str().expect("a text").to_owned();
    let sites = template["sites"].as_array().expect("sites").iter();
    let sites: Vec<String> = sites.map(|site| site.as_str().expect("a name").to_owned()).collect();
    let each = template["each"].as_array().cloned().unwrap_or_default();
    let task = |name: String, place, variables| TemplateTask {
        name,
        template: text("name"),
        kind: text("kind"),
        sites: sites.clone(),
        place,
        variables,
    };
    if each.is_empty() {
        return vec![task(text("name"), (0, 1), Value::Null)];
    }
    let count = each.len();
    let numbered = each.into_iter().enumerate();
    numbered
        .map(|(index, variables)| task(format!("{}.{}", text("name"), index + 1), (index, count), variables))
        .collect()
}
