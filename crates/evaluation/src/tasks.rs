//! Task files: a benchmark's own files, those rendered from them, and their places in folders.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use arenad_verdict::Benchmark;

/// Returns the possible paths of a benchmark's files below a folder, which is the benchmark's repository or a folder
/// with the data of several benchmarks.
fn candidates(benchmark: Benchmark) -> &'static [&'static [&'static str]] {
    match benchmark {
        Benchmark::WebArena => &[&["webarena/test.raw.json"], &["config_files/test.raw.json"], &["test.raw.json"]],
        // BrowserGym numbers the tasks through all files in this order.
        Benchmark::VisualWebArena => &[
            &[
                "visualwebarena/test_classifieds.raw.json",
                "visualwebarena/test_reddit.raw.json",
                "visualwebarena/test_shopping.raw.json",
            ],
            &[
                "config_files/vwa/test_classifieds.raw.json",
                "config_files/vwa/test_reddit.raw.json",
                "config_files/vwa/test_shopping.raw.json",
            ],
            &["test_classifieds.raw.json", "test_reddit.raw.json", "test_shopping.raw.json"],
        ],
        Benchmark::WebArenaVerified => &[
            &["webarena-verified/webarena-verified.json"],
            &["assets/dataset/webarena-verified.json"],
            &["webarena-verified.json"],
        ],
        // Their tasks have other forms: see `stored/tasks.rs`.
        Benchmark::WebCanvas | Benchmark::TurkingBench | Benchmark::Mind2Web => &[&["a file of its own form"]],
    }
}

/// The reason why a task cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum TaskFilesError {
    /// A file or folder cannot be read.
    #[error("read {path}")]
    Read {
        /// Path of the unreadable file or folder.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// A file contains neither a list of tasks nor a task.
    #[error("{path} is neither a list of tasks nor a task")]
    Form {
        /// Path of the invalid file.
        path: PathBuf,
        /// Error of the JSON parser, with its position.
        #[source]
        cause: serde_json::Error,
    },
    /// A folder contains no task files.
    #[error("{path} has no tasks of {benchmark}: expected {expected} in it, or a file NUMBER.json for each task")]
    Empty {
        /// Path of the folder that was searched.
        path: PathBuf,
        /// Benchmark whose files were searched for.
        benchmark: Benchmark,
        /// First path that would have been accepted, relative to the folder.
        expected: &'static str,
    },
    /// The task does not exist in the files.
    #[error("{path} has no task {id}: {known}")]
    Unknown {
        /// Path of the file or folder that was searched.
        path: PathBuf,
        /// Requested number, as the caller wrote it.
        id: String,
        /// Description of the numbers that exist.
        known: String,
    },
}

/// A benchmark's tasks, unchanged from its files.
#[derive(Debug)]
pub struct TaskFiles {
    path: PathBuf,
    source: TaskSource,
}

#[derive(Debug)]
enum TaskSource {
    /// Files with a list of tasks each.
    Lists(Vec<List>),
    /// A folder with one file per task.
    Folder,
}

/// The tasks of one file.
#[derive(Debug)]
pub struct List {
    /// Path of the file.
    pub path: PathBuf,
    /// Name within the benchmark: `shopping` for `test_shopping.raw.json`, otherwise the file name up to its first dot.
    pub name: String,
    /// Content of the file, unchanged.
    pub text: String,
    /// Tasks in the order of the file.
    pub tasks: Vec<Value>,
}

impl TaskFiles {
    /// Reads a task file, or finds a benchmark's task files in a folder.
    ///
    /// # Errors
    ///
    /// Returns an error if there are no task files, or they are not lists of tasks.
    pub fn open(benchmark: Benchmark, path: &Path) -> Result<Self, TaskFilesError> {
        let source = if path.is_dir() { in_folder(benchmark, path)? } else { TaskSource::Lists(vec![list(path)?]) };
        Ok(Self { path: path.to_owned(), source })
    }

    /// Returns the files that contain lists of tasks; empty for a folder with one file per task.
    #[must_use]
    pub fn lists(&self) -> &[List] {
        match &self.source {
            TaskSource::Lists(lists) => lists,
            TaskSource::Folder => &[],
        }
    }

    /// Returns all tasks with the ids by which [`find`](Self::find) finds them, in the order of the files, or by number
    /// if each task has a file.
    ///
    /// # Errors
    ///
    /// Returns an error if a task's own file cannot be read.
    pub fn all(&self) -> Result<Vec<(String, Value)>, TaskFilesError> {
        let lists = match &self.source {
            TaskSource::Lists(lists) => lists,
            TaskSource::Folder => return self.in_files_of_their_own(),
        };
        let id_in = |list: &List, task: &Value| match lists.len() {
            1 => task["task_id"].to_string(),
            _ => format!("{}/{}", list.name, task["task_id"]),
        };
        let all = lists.iter().flat_map(|list| list.tasks.iter().map(move |task| (id_in(list, task), task.clone())));
        Ok(all.collect())
    }

    fn in_files_of_their_own(&self) -> Result<Vec<(String, Value)>, TaskFilesError> {
        let read = |cause| TaskFilesError::Read { path: self.path.clone(), cause };
        let mut numbers: Vec<u64> = std::fs::read_dir(&self.path)
            .map_err(read)?
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".json")?.parse().ok())
            .collect();
        numbers.sort_unstable();
        let found = numbers.into_iter().map(|number| Ok((number.to_string(), self.find(&number.to_string())?)));
        found.collect()
    }

    /// Returns the task with the given number. With several files, `FILE/NUMBER` such as `shopping/35` counts within
    /// one file, and a number alone counts through all files, as BrowserGym does.
    ///
    /// # Errors
    ///
    /// Returns an error if the task does not exist.
    pub fn find(&self, id: &str) -> Result<Value, TaskFilesError> {
        let unknown = |known: String| TaskFilesError::Unknown { path: self.path.clone(), id: id.to_owned(), known };
        let lists = match &self.source {
            TaskSource::Lists(lists) => lists,
            TaskSource::Folder => return self.in_file_of_its_own(id),
        };
        let (list, number) = match (id.split_once('/'), lists.as_slice()) {
            (Some((name, number)), _) => (lists.iter().find(|list| list.name == name), number.parse::<u64>().ok()),
            (None, [only]) => (Some(only), id.parse().ok()),
            (None, several) => id.parse().map_or((None, None), |number| counted_through(several, number)),
        };
        let has = |number: u64| move |task: &&Value| task["task_id"].as_u64() == Some(number);
        let found = list.zip(number).and_then(|(list, number)| list.tasks.iter().find(has(number)));
        found.cloned().ok_or_else(|| unknown(known(lists)))
    }

    fn in_file_of_its_own(&self, id: &str) -> Result<Value, TaskFilesError> {
        let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
        let file = self.path.join(format!("{id}.json"));
        if !is_number || !file.is_file() {
            let known = format!("there is no file {id}.json");
            return Err(TaskFilesError::Unknown { path: self.path.clone(), id: id.to_owned(), known });
        }
        let text = text(&file)?;
        serde_json::from_str(&text).map_err(|cause| TaskFilesError::Form { path: file, cause })
    }
}

/// Returns the file that holds the task with a number that counts through all files, and its number in that file.
fn counted_through(lists: &[List], mut number: u64) -> (Option<&List>, Option<u64>) {
    for list in lists {
        let count = list.tasks.len() as u64;
        if number < count {
            return (
                Some(list),
                list.tasks.get(usize::try_from(number).unwrap_or(usize::MAX)).and_then(|task| task["task_id"].as_u64()),
            );
        }
        number -= count;
    }
    (None, None)
}

fn known(lists: &[List]) -> String {
    let of = |list: &List| {
        let numbers = || list.tasks.iter().filter_map(|task| task["task_id"].as_u64());
        match (numbers().min(), numbers().max()) {
            (Some(first), Some(last)) if lists.len() == 1 => format!("it has {first} to {last}"),
            (Some(first), Some(last)) => format!("{0}/{first} to {0}/{last}", list.name),
            _ => format!("{} is empty", list.name),
        }
    };
    lists.iter().map(of).collect::<Vec<_>>().join(", ")
}

fn in_folder(benchmark: Benchmark, folder: &Path) -> Result<TaskSource, TaskFilesError> {
    let is_there = |files: &&&[&str]| files.iter().all(|file| folder.join(file).is_file());
    if let Some(files) = candidates(benchmark).iter().find(is_there) {
        return files.iter().map(|file| list(&folder.join(file))).collect::<Result<_, _>>().map(TaskSource::Lists);
    }
    let entries = std::fs::read_dir(folder).map_err(|cause| TaskFilesError::Read { path: folder.to_owned(), cause })?;
    let is_task = |name: &str| {
        name.strip_suffix(".json").is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_task)) {
        return Ok(TaskSource::Folder);
    }
    let expected = candidates(benchmark)[0][0];
    Err(TaskFilesError::Empty { path: folder.to_owned(), benchmark, expected })
}

fn text(path: &Path) -> Result<String, TaskFilesError> {
    std::fs::read_to_string(path).map_err(|cause| TaskFilesError::Read { path: path.to_owned(), cause })
}

/// Reads a file with a list of tasks or with a single task.
fn list(path: &Path) -> Result<List, TaskFilesError> {
    let text = text(path)?;
    let form = |cause| TaskFilesError::Form { path: path.to_owned(), cause };
    let tasks = match serde_json::from_str(&text).map_err(form)? {
        Value::Array(tasks) => tasks,
        one @ Value::Object(_) => vec![one],
        _ => return Err(form(serde::de::Error::custom("expected a list of objects"))),
    };
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let bare = file.split('.').next().unwrap_or_default();
    let name = bare.strip_prefix("test_").unwrap_or(bare).to_owned();
    Ok(List { path: path.to_owned(), name, text, tasks })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write(folder: &Path, file: &str, ids: std::ops::Range<u64>) {
        let tasks: Vec<Value> = ids.map(|id| json!({ "task_id": id, "in": file })).collect();
        std::fs::create_dir_all(folder.join(file).parent().expect("a folder")).expect("a folder");
        std::fs::write(folder.join(file), json!(tasks).to_string()).expect("a file");
    }

    fn found_task(files: &TaskFiles, id: &str) -> Value {
        files.find(id).expect("a task")
    }

    #[test]
    fn several_files_are_counted_through_or_named() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, count) in [("classifieds", 3), ("reddit", 2), ("shopping", 4)] {
            write(folder.path(), &format!("visualwebarena/test_{name}.raw.json"), 0..count);
        }
        let files = TaskFiles::open(Benchmark::VisualWebArena, folder.path()).expect("files");
        let found = |id: &str| {
            files.find(id).map(|task| (task["in"].as_str().expect("a file").to_owned(), task["task_id"].clone()))
        };
        let is = |id: &str, name: &str, number: u64| {
            let expected = (format!("visualwebarena/test_{name}.raw.json"), json!(number));
            assert_eq!(found(id).expect(id), expected, "{id}");
        };
        is("2", "classifieds", 2);
        is("3", "reddit", 0);
        is("8", "shopping", 3);
        is("shopping/0", "shopping", 0);
        let said = files.find("9").expect_err("too many").to_string();
        assert!(said.contains("no task 9") && said.contains("shopping/0 to shopping/3"), "{said}");
        assert!(files.find("ebay/1").is_err() && files.find("x").is_err());
        let all = files.all().expect("tasks");
        assert_eq!((all.len(), all[3].0.as_str(), &all[3].1), (9, "reddit/0", &found_task(&files, "reddit/0")));
    }

    #[test]
    fn tasks_may_lie_in_one_file_or_in_one_each() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || TaskFiles::open(Benchmark::WebArena, folder.path());
        let said = open().expect_err("nothing is there").to_string();
        assert!(said.contains("webarena/test.raw.json"), "{said}");
        std::fs::write(folder.path().join("7.json"), r#"{"task_id": 7}"#).expect("a file");
        assert_eq!(open().expect("a folder").find("7").expect("a task")["task_id"], 7);
        assert!(open().expect("a folder").find("../7").is_err());
        assert_eq!(open().expect("a folder").all().expect("tasks"), [("7".to_owned(), json!({ "task_id": 7 }))]);
        write(folder.path(), "webarena/test.raw.json", 0..9);
        assert_eq!(open().expect("a file").find("8").expect("a task")["task_id"], 8);
        assert_eq!(open().expect("a file").all().expect("tasks")[8].0, "8");
        let one = TaskFiles::open(Benchmark::WebArena, &folder.path().join("7.json")).expect("a file");
        assert_eq!(one.find("7").expect("a task")["task_id"], 7);
        std::fs::write(folder.path().join("bad.json"), "[1,").expect("a file");
        let bad = TaskFiles::open(Benchmark::WebArena, &folder.path().join("bad.json"));
        assert!(bad.expect_err("broken").to_string().contains("bad.json is neither a list of tasks"));
    }
}
