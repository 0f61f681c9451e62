//! Task folders in TurkingBench's layout, as they are loaded into Turkle: `template.html` with `batch.csv` or `input.csv`.
//!
//! The content of `input.csv` is that of the benchmark's own script. Everything for which Turkle would refuse the task, or
//! leave it empty without a word, is a problem with its place in the file.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use arenad_evaluators::turkingbench::{self, ANSWER, Batch};

use super::csv::{self, CsvRecord, TextPosition};

/// The largest template that the site accepts, in bytes: its setting `TURKLE_TEMPLATE_LIMIT` is in KiB.
const TEMPLATE_MAX: usize = 512 << 10;

/// The files of a folder.
pub(super) const TEMPLATE: &str = "template.html";
pub(super) const BATCH: &str = "batch.csv";
const INPUT: &str = "input.csv";

/// A task that can be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFolder {
    /// Name of the folder, which is that of the task.
    pub name: String,
    /// The template, without a byte order mark.
    pub template: String,
    /// The input of each HIT, without a byte order mark.
    pub input: String,
    /// Number of HITs that Turkle makes of the input.
    pub hits: usize,
    /// Facts that do not prevent loading, each with its place.
    pub warnings: Vec<FolderProblem>,
}

/// A defect of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderProblem {
    /// The file or folder.
    pub path: PathBuf,
    /// The place in the file; `None` if the whole file or folder is meant.
    pub position: Option<TextPosition>,
    /// Description of the defect.
    pub what: String,
}

/// `PATH:LINE:COLUMN: WHAT`.
impl fmt::Display for FolderProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.path.display())?;
        if let Some(position) = self.position {
            write!(out, ":{}:{}", position.line, position.column)?;
        }
        write!(out, ": {}", self.what)
    }
}

impl TaskFolder {
    /// Returns the files from which Turkle makes the task, as names and texts.
    pub fn files(&self) -> [(&'static str, &str); 2] {
        [(TEMPLATE, &self.template), (INPUT, &self.input)]
    }

    /// Reads the task in a folder, or the tasks in the folders below it.
    ///
    /// # Errors
    ///
    /// Returns all problems of all folders.
    pub fn read_all(folders: &[PathBuf]) -> Result<Vec<Self>, Vec<FolderProblem>> {
        let (mut tasks, mut problems): (Vec<Self>, Vec<FolderProblem>) = Default::default();
        for folder in folders {
            match within(folder) {
                Err(problem) => problems.push(problem),
                Ok(found) => {
                    for task in found {
                        match Self::read(&task) {
                            Ok(read) if tasks.iter().any(|known| known.name == read.name) => {
                                let what = format!("another folder has the name `{}` as well", read.name);
                                problems.push(FolderProblem { path: task, position: None, what });
                            }
                            Ok(read) => tasks.push(read),
                            Err(own) => problems.extend(own),
                        }
                    }
                }
            }
        }
        if problems.is_empty() { Ok(tasks) } else { Err(problems) }
    }

    /// Reads the task in a folder.
    ///
    /// # Errors
    ///
    /// Returns all problems of the folder.
    pub fn read(folder: &Path) -> Result<Self, Vec<FolderProblem>> {
        let problem = |path: &Path, position: Option<TextPosition>, what: String| FolderProblem {
            path: path.to_owned(),
            position,
            what,
        };
        let named = folder.canonicalize().ok().and_then(|real| Some(real.file_name()?.to_str()?.to_owned()));
        let name = named.ok_or_else(|| vec![problem(folder, None, "the folder has no name in UTF-8".to_owned())])?;
        let (template_path, batch_path) = (folder.join(TEMPLATE), folder.join(BATCH));
        let has_batch = batch_path.is_file();
        let table_path = if has_batch { batch_path } else { folder.join(INPUT) };
        let (template, table) = match (text(&template_path), text(&table_path)) {
            (Ok(template), Ok(table)) => (template, table),
            (template, table) => return Err([template.err(), table.err()].into_iter().flatten().collect()),
        };
        let (mut problems, mut warnings) = (Vec::new(), Vec::new());
        if template.len() > TEMPLATE_MAX {
            let what =
                format!("the template has {} KiB; Turkle accepts {} KiB", template.len() >> 10, TEMPLATE_MAX >> 10);
            problems.push(problem(&template_path, Some(TextPosition::START), what));
        }
        if turkingbench::process_template(&template).is_err() {
            let what = "the template has no `input`, `select` or `textarea`, and Turkle refuses it".to_owned();
            problems.push(problem(&template_path, Some(TextPosition::START), what));
        }
        let records = match csv::records(&table) {
            Ok(records) => records,
            Err(position) => {
                problems.push(problem(
                    &table_path,
                    Some(position),
                    "the quotes of this cell are never closed".to_owned(),
                ));
                return Err(problems);
            }
        };
        let Some((header, rows)) = records.split_first() else {
            problems.push(problem(&table_path, None, "the table is empty; expected a header and rows".to_owned()));
            return Err(problems);
        };
        problems
            .extend(shape(header, rows, has_batch).into_iter().map(|(at, what)| problem(&table_path, Some(at), what)));
        let columns: BTreeSet<&str> =
            header.cells.iter().map(|cell| cell.text.as_str()).filter(|name| !name.starts_with(ANSWER)).collect();
        for (placeholder, position) in placeholders(&template) {
            if !columns.contains(placeholder) {
                let file = table_path.file_name().unwrap_or_default().to_string_lossy();
                let what =
                    format!("the placeholder `{placeholder}` has no column in {file}, and Turkle refuses the batch");
                problems.push(problem(&template_path, Some(position), what));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        // The script of the benchmark reads its own table again before the upload, so the cells are those of the labels.
        let (input, hits) = if has_batch {
            let read = Batch::read(&table).and_then(|batch| Ok((turkingbench::create_input_csv(&table)?, batch)));
            let (input, batch) = read.map_err(|error| vec![problem(&table_path, None, error.to_string())])?;
            for (number, column) in (0..batch.instances()).filter_map(|number| Some((number, batch.gap(number)?))) {
                let what = format!(
                    "the input `{column}` of HIT {number} is empty, so it has no labels: an empty cell equals nothing"
                );
                warnings.push(problem(&table_path, None, what));
            }
            (input.trim_start_matches('\u{feff}').to_owned(), batch.instances())
        } else {
            (table, rows.len())
        };
        let hosts = hosts(&template);
        if !hosts.is_empty() {
            let hosts = hosts.into_iter().collect::<Vec<_>>().join(", ");
            let what = format!("the pages load from {hosts}; a browser without Internet shows them without it");
            warnings.push(problem(&template_path, None, what));
        }
        Ok(Self { name, template, input, hits, warnings })
    }
}

/// Returns the folder itself if it is a task, otherwise the tasks below it.
fn within(folder: &Path) -> Result<Vec<PathBuf>, FolderProblem> {
    let problem = |what: String| FolderProblem { path: folder.to_owned(), position: None, what };
    if !folder.is_dir() {
        return Err(problem("there is no such folder".to_owned()));
    }
    let is_task = |folder: &Path| [TEMPLATE, BATCH, INPUT].iter().any(|name| folder.join(name).is_file());
    if is_task(folder) {
        return Ok(vec![folder.to_owned()]);
    }
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(|error| problem(error.to_string()))?;
    let mut found: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).filter(|path| is_task(path)).collect();
    found.sort_unstable();
    if found.is_empty() {
        return Err(problem(format!("there is no task; expected {TEMPLATE} with {BATCH} or {INPUT}")));
    }
    Ok(found)
}

/// Reads a file, without a byte order mark.
fn text(path: &Path) -> Result<String, FolderProblem> {
    let problem = |position, what: String| FolderProblem { path: path.to_owned(), position, what };
    let bytes = std::fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => problem(None, "the file is missing".to_owned()),
        _ => problem(None, error.to_string()),
    })?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        }),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let byte = error.as_bytes()[at];
            let before = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
            let before = before.trim_start_matches('\u{feff}');
            Err(problem(Some(TextPosition::after(before)), format!("the byte 0x{byte:02x} is not UTF-8")))
        }
    }
}

/// Returns the defects of a table's shape. Missing cells at the end of a row of `batch.csv` are empty; in `input.csv` they
/// make Turkle refuse the batch.
fn shape(header: &CsvRecord, rows: &[CsvRecord], is_batch: bool) -> Vec<(TextPosition, String)> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let inputs = header.cells.iter().filter(|cell| !cell.text.starts_with(ANSWER)).count();
    if inputs == 0 {
        found.push((header.position, "the table has no column with input".to_owned()));
    }
    for cell in &header.cells {
        if !seen.insert(cell.text.as_str()) {
            found.push((cell.position, format!("a second column has the name `{}`", cell.text)));
        }
    }
    if rows.is_empty() {
        found.push((header.position, "the table has no row below its header".to_owned()));
    }
    let width = header.cells.len();
    for row in rows {
        if let Some(surplus) = row.cells.get(width) {
            found.push((surplus.position, format!("the row has {} cells, the header {width}", row.cells.len())));
        } else if row.cells.len() < width && !is_batch {
            found.push((row.position, format!("the row has {} cells, the header {width}", row.cells.len())));
        }
    }
    found
}

/// Returns the placeholders of a template with their places, each at its first one.
fn placeholders(template: &str) -> Vec<(&str, TextPosition)> {
    let mut found: Vec<(&str, TextPosition)> = Vec::new();
    for (at, _) in template.match_indices("${") {
        let Some((name, _)) = template[at + 2..].split_once('}') else { continue };
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if is_name && !found.iter().any(|(known, _)| *known == name) {
            found.push((name, TextPosition::after(&template[..at])));
        }
    }
    found
}

/// Returns the hosts from which a template loads files.
fn hosts(template: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for attribute in ["src", "href"] {
        for (at, _) in template.match_indices(attribute) {
            let rest = template[at + attribute.len()..].trim_start();
            let Some(value) = rest.strip_prefix('=') else { continue };
            let value = value.trim_start().trim_start_matches(['"', '\'']);
            let value = value.strip_prefix("https:").or_else(|| value.strip_prefix("http:")).unwrap_or(value);
            let Some(rest) = value.strip_prefix("//") else { continue };
            let host = rest.split(['/', '"', '\'', '>', '?', '#', ' ', '\n']).next().unwrap_or_default();
            if !host.is_empty() && !host.contains("${") {
                found.insert(host);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("works");
        let task = root.path().join("Task");
        std::fs::create_dir(&task).expect("works");
        for (name, content) in files {
            std::fs::write(task.join(name), content).expect("works");
        }
        root
    }

    /// Reads a folder whose problems are returned without the path of the folder.
    fn problems(files: &[(&str, &[u8])]) -> Vec<String> {
        let root = folder(files);
        let task = root.path().join("Task");
        let found = TaskFolder::read(&task).err().unwrap_or_default();
        found.iter().map(|problem| problem.to_string().replace(&format!("{}/", task.display()), "")).collect()
    }

    const FORM: &[u8] = b"<p>${x}</p><input name=a>";

    #[test]
    fn input_is_that_of_the_script() {
        let csv = "\u{feff}x,y,Answer.a\r\n01,\"two\r\nlines\",é\r\n1,\"two\r\nlines\",f\r\n2,z,\r\n";
        let root = folder(&[("template.html", FORM), ("batch.csv", csv.as_bytes())]);
        let read = TaskFolder::read_all(&[root.path().to_owned()]).expect("works");
        assert_eq!(read[0].input, "x,y\n1,\"two\r\nlines\"\n2,z\n", "answers and equal rows are left out");
        assert_eq!((read[0].name.as_str(), read[0].hits, read[0].warnings.len()), ("Task", 2, 0));
    }

    #[test]
    fn problems_have_their_places() {
        let batch: (&str, &[u8]) = ("batch.csv", b"x,Answer.a\n1,2\n");
        let form = ("template.html", FORM);
        assert_eq!(problems(&[]), ["template.html: the file is missing", "input.csv: the file is missing"]);
        assert_eq!(
            problems(&[("template.html", b"<p>\n  ${x} ${other}</p><select name=a></select>"), batch]),
            ["template.html:2:8: the placeholder `other` has no column in batch.csv, and Turkle refuses the batch"]
        );
        assert_eq!(
            problems(&[("template.html", b"<p>${x}</p>"), batch]),
            ["template.html:1:1: the template has no `input`, `select` or `textarea`, and Turkle refuses it"]
        );
        assert_eq!(
            problems(&[("template.html", b"<p>\xc3\xa9\n \xe2 x"), ("input.csv", b"x\n\xff\n")]),
            ["template.html:2:2: the byte 0xe2 is not UTF-8", "input.csv:2:1: the byte 0xff is not UTF-8"]
        );
        assert_eq!(
            problems(&[form, ("batch.csv", b"x,Answer.a\n1,\"2\n3,4\n")]),
            ["batch.csv:2:3: the quotes of this cell are never closed"]
        );
        assert_eq!(
            problems(&[form, ("batch.csv", b"x,Answer.a\n1,2,3\n4\n")]),
            ["batch.csv:2:5: the row has 3 cells, the header 2"]
        );
        assert_eq!(
            problems(&[form, ("input.csv", b"x,y\n\"1\n2\",3\n4\n")]),
            ["input.csv:4:1: the row has 1 cells, the header 2"]
        );
        assert_eq!(
            problems(&[form, ("input.csv", b"x,x\n")]),
            ["input.csv:1:3: a second column has the name `x`", "input.csv:1:1: the table has no row below its header"]
        );
        assert_eq!(
            problems(&[("template.html", b"<input name=a>"), ("batch.csv", b"Answer.a\n1\n")]),
            ["batch.csv:1:1: the table has no column with input"]
        );
        assert_eq!(
            problems(&[form, ("batch.csv", b"")]),
            ["batch.csv: the table is empty; expected a header and rows"]
        );
        let large = [FORM, &vec![b' '; TEMPLATE_MAX]].concat();
        assert_eq!(
            problems(&[("template.html", &large), batch]),
            ["template.html:1:1: the template has 512 KiB; Turkle accepts 512 KiB"]
        );
    }

    #[test]
    fn doubtful_folders_are_loaded_with_a_warning() {
        let form = b"<script src='https://cdn.example/a.js'></script><img src=\"${x}\"><a href=//other.example>b</a><input name=a>";
        let root = folder(&[("template.html", form), ("batch.csv", b"x,y,Answer.a\n1,,2\n2,b,3\n")]);
        let read = TaskFolder::read(&root.path().join("Task")).expect("works");
        let warnings: Vec<&str> = read.warnings.iter().map(|warning| warning.what.as_str()).collect();
        assert_eq!(
            warnings,
            [
                "the input `y` of HIT 0 is empty, so it has no labels: an empty cell equals nothing",
                "the pages load from cdn.example, other.example; a browser without Internet shows them without it"
            ]
        );
    }

    #[test]
    fn names_are_those_of_one_folder_each() {
        let (one, two) =
            (folder(&[("template.html", FORM), ("input.csv", b"x\n1\n")]), tempfile::tempdir().expect("works"));
        let found = TaskFolder::read_all(&[one.path().to_owned(), one.path().join("Task"), two.path().join("none")]);
        let found: Vec<String> = found.expect_err("problems").into_iter().map(|problem| problem.what).collect();
        assert_eq!(found, ["another folder has the name `Task` as well", "there is no such folder"]);
        let empty = TaskFolder::read_all(&[two.path().to_owned()]).expect_err("problems");
        assert!(empty[0].what.starts_with("there is no task; expected template.html"), "{}", empty[0]);
    }
}
