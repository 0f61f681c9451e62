//! The task files, read as plain YAML: the suite has to know every task, whatever arenad makes of them.

use std::path::Path;

use serde_json::Value;

/// A task.
#[derive(Debug)]
pub struct Task {
    /// Its name: the template's, and a number where the template has variables.
    pub name: String,
    /// The template's name.
    pub template: String,
    /// `information`, `navigation`, `content`, `unachievable`.
    pub kind: String,
    /// The sites that its episode needs: those that it may change, and those whose rest it relies on.
    pub sites: Vec<String>,
    /// Its place among the template's tasks, and how many these are.
    pub place: (usize, usize),
    variables: Value,
}

impl Task {
    /// A variable's text; numbers as YAML has them.
    pub fn text(&self, name: &str) -> &str {
        self.variables[name].as_str().unwrap_or_else(|| panic!("{} has no text {name}", self.name))
    }

    /// What belongs to this task, of values for each task of its template: what a near miss needs and the task does not tell.
    pub fn own<const N: usize, T: Copy>(&self, each: [T; N]) -> T {
        assert_eq!(N, self.place.1, "{}: a value for each task", self.template);
        each[self.place.0]
    }

    /// A variable's number.
    pub fn number(&self, name: &str) -> f64 {
        self.variables[name].as_f64().unwrap_or_else(|| panic!("{} has no number {name}", self.name))
    }

    /// Whether an agent may change the sites.
    pub fn may_write(&self) -> bool {
        self.kind == "content"
    }
}

/// Every task of a folder, in the order of files and lines. They live as long as the tests.
pub fn read(folder: &Path) -> &'static [Task] {
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

fn instances(template: &Value) -> Vec<Task> {
    let text = |key: &str| template[key].as_str().expect("a text").to_owned();
    let sites = template["sites"].as_array().expect("sites").iter();
    let sites: Vec<String> = sites.map(|site| site.as_str().expect("a name").to_owned()).collect();
    let each = template["each"].as_array().cloned().unwrap_or_default();
    let task = |name: String, place, variables| Task {
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
