//! `arenad tasks render`: writes a benchmark's task files with an environment's URLs.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde_json::json;

use crate::cli::args::Global;
use crate::cli::eval::{args as options, places};
use crate::cli::failure::CommandFailure;
use crate::cli::{definition, exit_code, output};
use arenad_evaluation::TaskFiles;
use arenad_evaluation::render::{self, Rendered};
use arenad_verdict::Benchmark;

/// The task files to render, the addresses of the sites, and the folder to write to.
#[derive(Debug, Args)]
pub struct RenderArgs {
    /// Environment [default: the only one that is up, else mini]
    #[arg(value_name = "ENVIRONMENT")]
    pub environment: Option<String>,
    /// Benchmark: webarena or visualwebarena
    #[arg(long, value_name = "NAME", value_parser = options::benchmark, default_value = "webarena")]
    pub benchmark: Benchmark,
    /// Task file of the benchmark, or folder that contains it
    #[arg(long, env = "ARENAD_BENCHMARK_DATA", value_name = "FILE|DIR", required = true)]
    pub tasks: PathBuf,
    /// URL of a site outside of the environment, such as MAP=http://localhost:3000; may be repeated
    #[arg(long = "site", value_name = "NAME=URL", value_parser = options::site)]
    pub sites: Vec<(String, String)>,
    /// Folder to write to, created if missing
    #[arg(long, value_name = "DIR", default_value = "config_files")]
    pub out: PathBuf,
}

/// Writes `test.json` and one file per task; for VisualWebArena, one folder for each of its task files.
pub async fn run(global: &Global, args: &RenderArgs) -> Result<u8, CommandFailure> {
    if args.benchmark == Benchmark::WebArenaVerified {
        return Err(CommandFailure::usage("WebArena-Verified has no rendered tasks")
            .hint("its own code takes the sites' addresses from its configuration"));
    }
    if args.benchmark.is_stored() {
        return Err(CommandFailure::usage(format!(
            "tasks of {} name no sites, so there is nothing to render",
            args.benchmark
        )));
    }
    let named = args.environment.as_deref();
    let urls = places::of(global, named, Some(named.unwrap_or(definition::DEFAULT)), &args.sites).await?;
    let files =
        TaskFiles::open(args.benchmark, &args.tasks).map_err(|error| CommandFailure::new(exit_code::USAGE, error))?;
    if files.lists().is_empty() {
        return Err(CommandFailure::usage(format!(
            "{} contains tasks that are already rendered",
            args.tasks.display()
        ))
        .hint("pass the benchmark's own file, such as test.raw.json"));
    }
    let mut written = Vec::new();
    for list in files.lists() {
        let rendered =
            render::render(&list.text, &urls).with_context(|| format!("read the tasks in {}", list.path.display()))?;
        let file = list.path.file_name().map(|name| name.to_string_lossy().replace(".raw", "")).unwrap_or_default();
        let folder = match args.benchmark {
            Benchmark::VisualWebArena => args.out.join(file.trim_end_matches(".json")),
            _ => args.out.clone(),
        };
        write(&rendered, &args.out.join(&file), &folder)?;
        say(global, &rendered, &file, &folder);
        written.push(json!({
            "file": args.out.join(&file),
            "folder": folder,
            "tasks": rendered.tasks.len(),
            "left_out": rendered.left_out,
            "missing": rendered.missing,
        }));
    }
    if global.json {
        output::print_json(&written)?;
    }
    Ok(exit_code::OK)
}

fn write(rendered: &Rendered, whole: &Path, folder: &Path) -> anyhow::Result<()> {
    let put = |path: &Path, text: &str| std::fs::write(path, text).with_context(|| format!("write {}", path.display()));
    std::fs::create_dir_all(folder).with_context(|| format!("create the folder {}", folder.display()))?;
    put(whole, &rendered.whole)?;
    for (index, text) in &rendered.tasks {
        put(&folder.join(format!("{index}.json")), text)?;
    }
    // Files of tasks that are left out are removed, so that the files of an earlier environment are not mistaken for
    // this one's.
    for index in &rendered.left_out {
        match std::fs::remove_file(folder.join(format!("{index}.json"))) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("remove {}/{index}.json", folder.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn say(global: &Global, rendered: &Rendered, file: &str, folder: &Path) {
    if !global.json {
        outln!("{file}: {} tasks in {}", rendered.tasks.len(), folder.display());
    }
    if !rendered.left_out.is_empty() {
        let missing: Vec<&str> = rendered.missing.iter().map(|name| name.trim_matches('_')).collect();
        errln!(
            "note: {} tasks are left out: the address of {} is unknown; pass --site {}=URL",
            rendered.left_out.len(),
            missing.join(" and "),
            missing.first().unwrap_or(&"NAME"),
        );
    }
}
