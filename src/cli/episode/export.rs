//! `arenad episode export`: writes the record of an episode as a HAR, or as a folder that webarena-verified scores.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::path;
use crate::cli::args::{EpisodeExportArgs, ExportFormat, Global};
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::{exit_code, output};
use arenad_api::episodes::{ReportedEpisode, TASK_LABEL};

/// The sites that webarena-verified knows, as the variables of their URLs.
///
/// Source: `WebArenaSite` in webarena-verified 1.2.3.
const VERIFIED_SITES: [&str; 7] = ["GITLAB", "MAP", "REDDIT", "SHOPPING_ADMIN", "SHOPPING", "WIKIPEDIA", "HOMEPAGE"];

/// The part of a HAR that tells how complete it is, and where its sites were.
#[derive(Debug, Deserialize)]
struct ExportedHar {
    log: ExportedLog,
}

#[derive(Debug, Deserialize)]
struct ExportedLog {
    #[serde(rename = "_arenad")]
    own: ExportedRecord,
}

#[derive(Debug, Deserialize)]
struct ExportedRecord {
    sites: Vec<ExportedSite>,
}

#[derive(Debug, Deserialize)]
struct ExportedSite {
    site: String,
    variable: Option<String>,
    records: String,
    lacks: Option<String>,
    /// Empty for the traffic of sites, which no record belongs to.
    #[serde(default)]
    urls: Vec<String>,
}

/// Writes the record of an episode.
pub async fn run(global: &Global, client: &ApiClient, args: &EpisodeExportArgs) -> Result<u8, CommandFailure> {
    let har = fetch(client, &args.episode).await?;
    let sites = sites(&har)?;
    match args.format {
        ExportFormat::Har => match &args.output {
            None => {
                std::io::stdout().lock().write_all(&har).context("write the HAR")?;
                Ok(exit_code::OK)
            }
            Some(folder) => {
                warn_of_gaps(&sites);
                let file = write(folder, &format!("{}.har", args.episode), &har)?;
                done(global, &args.episode, &[file])
            }
        },
        ExportFormat::WebarenaVerified => {
            warn_of_gaps(&sites);
            let task = task(client, args).await?;
            let folder = args.output.as_deref().unwrap_or(Path::new(".")).join(task.to_string());
            let files = verified(&folder, args, &har, &sites)?;
            done(global, &args.episode, &files)
        }
    }
}

/// Writes the HAR of an episode to a folder, under the name of the episode.
pub async fn write_har(client: &ApiClient, episode: &str, folder: &Path) -> Result<(), CommandFailure> {
    let har = fetch(client, episode).await?;
    warn_of_gaps(&sites(&har)?);
    let file = write(folder, &format!("{episode}.har"), &har)?;
    errln!("the requests of {episode} are in {}", file.display());
    Ok(())
}

/// Returns the HAR of an episode.
pub async fn fetch(client: &ApiClient, episode: &str) -> Result<Vec<u8>, CommandFailure> {
    let answer = client.stream(&format!("{}/har", path(episode)?)).await?;
    let bytes = answer.bytes().await.context("read the record of the episode")?;
    Ok(bytes.to_vec())
}

fn sites(har: &[u8]) -> Result<Vec<ExportedSite>, CommandFailure> {
    let har: ExportedHar = serde_json::from_slice(har).context("parse the daemon's answer")?;
    Ok(har.log.own.sites)
}

fn warn_of_gaps(sites: &[ExportedSite]) {
    // The sites of a record have the same gaps.
    let mut lacks: Vec<&str> = sites.iter().filter_map(|site| site.lacks.as_deref()).collect();
    lacks.dedup();
    for lacks in lacks {
        errln!("warning: {lacks}");
    }
    let silent: Vec<&str> = sites.iter().filter(|site| site.records == "none").map(|site| site.site.as_str()).collect();
    if !silent.is_empty() {
        errln!("warning: not recorded: {}", silent.join(", "));
    }
}

/// Returns the number of the task: the given one, or that of the label.
async fn task(client: &ApiClient, args: &EpisodeExportArgs) -> Result<u32, CommandFailure> {
    if let Some(task) = args.task {
        return Ok(task);
    }
    let hint = "pass the number of the task with --task, or start the episode with `--label task=NUMBER`";
    let episode: ReportedEpisode = client.json(reqwest::Method::GET, &path(&args.episode)?).await?;
    let label = episode.labels.get(TASK_LABEL);
    label.and_then(|label| label.parse().ok()).ok_or_else(|| {
        CommandFailure::usage(format!("episode {} does not name a task of webarena-verified", args.episode)).hint(hint)
    })
}

/// Writes the files that `webarena-verified eval-tasks` reads.
fn verified(
    folder: &Path,
    args: &EpisodeExportArgs,
    har: &[u8],
    sites: &[ExportedSite],
) -> Result<Vec<PathBuf>, CommandFailure> {
    let config = run_config(sites).ok_or_else(|| {
        CommandFailure::usage(format!("episode {} is not recorded", args.episode))
            .hint("start episodes with `--record all`")
    })?;
    let mut files = Vec::new();
    match &args.response {
        Some(file) => {
            let response = std::fs::read(file).with_context(|| format!("read {}", file.display()))?;
            files.push(write(folder, "agent_response.json", &response)?);
        }
        // The harness may have written it.
        None if folder.join("agent_response.json").exists() => {}
        None => {
            return Err(CommandFailure::usage("webarena-verified scores no task without the agent's response").hint(
                "pass the file with --response: {\"task_type\", \"status\", \"retrieved_data\", \"error_details\"}",
            ));
        }
    }
    files.push(write(folder, "network.har", har)?);
    files.push(write(folder, "run_config.json", format!("{config:#}\n").as_bytes())?);
    Ok(files)
}

/// Returns the configuration with all addresses of the sites, so that the URLs of any slot are compared alike. `None` if
/// the addresses are not known.
fn run_config(sites: &[ExportedSite]) -> Option<Value> {
    let mut environments = Map::new();
    for site in sites {
        let known = site.variable.as_deref().filter(|variable| VERIFIED_SITES.contains(variable));
        let Some(variable) = known else { continue };
        if site.urls.is_empty() {
            return None;
        }
        environments.insert(format!("__{variable}__"), json!({ "urls": site.urls, "active_url_idx": 0 }));
    }
    Some(json!({ "environments": environments }))
}

fn write(folder: &Path, name: &str, content: &[u8]) -> Result<PathBuf, CommandFailure> {
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let file = folder.join(name);
    std::fs::write(&file, content).with_context(|| format!("write {}", file.display()))?;
    Ok(file)
}

fn done(global: &Global, episode: &str, files: &[PathBuf]) -> Result<u8, CommandFailure> {
    if global.json {
        output::print_json(&json!({ "episode": episode, "files": files }))?;
        return Ok(exit_code::OK);
    }
    for file in files {
        outln!("{}", file.display());
    }
    Ok(exit_code::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(name: &str, variable: Option<&str>, urls: &[&str]) -> ExportedSite {
        ExportedSite {
            site: name.to_owned(),
            variable: variable.map(str::to_owned),
            records: "all".to_owned(),
            lacks: None,
            urls: urls.iter().map(|url| (*url).to_owned()).collect(),
        }
    }

    #[test]
    fn a_configuration_has_the_sites_that_the_benchmark_knows_with_all_their_addresses() {
        let urls = ["http://shopping.arena.test", "http://localhost:7770"];
        let sites = [site("shop", Some("SHOPPING"), &urls), site("crowd", None, &[]), site("own", Some("OWN"), &[])];
        let expected = json!({ "environments": { "__SHOPPING__": { "urls": urls, "active_url_idx": 0 } } });
        assert_eq!(run_config(&sites), Some(expected));
        assert_eq!(run_config(&[site("shop", Some("SHOPPING"), &[])]), None);
    }
}
