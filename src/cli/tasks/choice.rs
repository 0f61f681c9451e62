//! Selects task files and their environment.

use std::path::{Path, PathBuf};

use crate::cli::definition;
use crate::cli::failure::CommandFailure;
use arenad_definition::{Diagnostics, SourceFile, Style, tasks};
use arenad_model::site::Environment;
use arenad_model::task::Task;

/// Task files of one environment, and that environment.
pub struct ChosenTasks {
    /// The environment that the tasks belong to.
    pub environment: Environment,
    /// All task files of the environment, or those that were named.
    pub files: Vec<SourceFile>,
}

impl ChosenTasks {
    /// Selects all task files of an environment.
    pub fn of_environment(name: Option<&str>, root: Option<&Path>) -> Result<Self, CommandFailure> {
        let environment = environment(name, root)?;
        let files = tasks::read_tasks(&environment.root, &environment.name).map_err(definition::from_definition)?;
        if files.is_empty() {
            let failure = CommandFailure::usage(format!("{} has no tasks", environment.name));
            return Err(failure.hint(format!("they are expected in environments/{}/tasks/*.yaml", environment.name)));
        }
        Ok(Self { environment, files })
    }

    /// Selects a file, a folder of files, or the files of an environment, and groups them by environment.
    pub fn of_words(what: Option<&str>, root: Option<&Path>) -> Result<Vec<Self>, CommandFailure> {
        let path = what.map(PathBuf::from).filter(|path| path.exists());
        let Some(path) = path else {
            let looks_like_a_path = what.is_some_and(|what| what.contains(['/', '.']));
            return match what.filter(|_| looks_like_a_path) {
                Some(what) => Err(CommandFailure::usage(format!("{what} does not exist"))),
                None => Ok(vec![Self::of_environment(what, root)?]),
            };
        };
        let root = definition::root(root)?;
        let read = match path.is_dir() {
            true => tasks::read_folder(&root, &path),
            false => tasks::read_file(&root, &path).map(|file| vec![file]),
        };
        let files = read.map_err(definition::from_definition)?;
        if files.is_empty() {
            return Err(CommandFailure::usage(format!("{} contains no .yaml file", path.display())));
        }
        let mut chosen: Vec<Self> = Vec::new();
        for file in files {
            // A file that names no environment is read with the default one, whose diagnostics report the missing name.
            let name = tasks::environment_of(&file);
            match chosen
                .iter_mut()
                .find(|known| name.as_deref().is_none_or(|name| name == known.environment.name.as_str()))
            {
                Some(known) => known.files.push(file),
                None => {
                    let environment = environment(name.as_deref(), Some(&root))?;
                    chosen.push(Self { environment, files: vec![file] });
                }
            }
        }
        Ok(chosen)
    }

    /// Returns the task of that name.
    pub fn find(&self, name: &str) -> Result<Task, CommandFailure> {
        let loaded = tasks::load(&self.files, &self.environment);
        if let Some(task) = loaded.find(name) {
            return Ok(task.clone());
        }
        let failure = CommandFailure::usage(format!("{} has no task `{name}`", self.environment.name));
        Err(match (loaded.suggestion(name), &loaded.problems) {
            (Some(close), _) => failure.hint(format!("did you mean `{close}`?")),
            (None, Some(_)) => failure.hint("run `arenad tasks lint` to list the problems of its tasks"),
            (None, None) => failure.hint("`arenad tasks ls` lists them"),
        })
    }
}

fn environment(name: Option<&str>, root: Option<&Path>) -> Result<Environment, CommandFailure> {
    let located = definition::locate(name, None, root)?;
    Ok(definition::load(&located)?.loaded.environment)
}

/// Returns the problems in the form for people.
pub fn rendered(problems: &Diagnostics) -> String {
    problems.render(Style { color: crate::cli::output::is_colored(), prefix: "" }).trim_end().to_owned()
}
