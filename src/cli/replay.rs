//! `arenad replay`: makes, lists, shows and removes replays of recorded sites.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use bytes::Bytes;
use futures_util::stream;
use reqwest::Method;
use tokio::sync::mpsc;

use super::args::{Global, ReplayAddArgs, ReplayCommand, ReplayNameArgs, ReplayRmArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{exit_code, output};
use arenad_api::replays::{MissKind, Replay, ReplayCertificate, Replays};

/// The size of one piece of an upload, in bytes.
const PIECE: usize = 256 << 10;

/// The number of pieces that may be queued.
const PIECES_AHEAD: usize = 16;

/// The number of letters in the names of the bodies that Playwright keeps beside a HAR: SHA-1 in hexadecimal digits.
const ATTACHED_NAME: usize = 40;

/// The number of problems and missed requests that are shown.
const SHOWN: usize = 20;

/// Makes, lists, shows or removes replays.
pub async fn run(global: &Global, command: &ReplayCommand) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    match command {
        ReplayCommand::Add(args) => add(&client, global, args).await,
        ReplayCommand::Ls => list(&client, global).await,
        ReplayCommand::Show(args) => show(&client, global, args).await,
        ReplayCommand::Rm(args) => remove(&client, args).await,
    }
}

async fn add(client: &ApiClient, global: &Global, args: &ReplayAddArgs) -> Result<u8, CommandFailure> {
    let files = collected(&args.files)?;
    // Every name of a query that a replay needs is plain, apart from these.
    let moving: String = form_urlencoded_list(&args.moving);
    let path = format!("/v1/replays/{}?moving={moving}&skip_broken={}", args.name, args.skip_broken);
    client.ensure_daemon(&args.engine, None).await?;
    let (sender, received) = mpsc::channel::<io::Result<Bytes>>(PIECES_AHEAD);
    let packing = tokio::task::spawn_blocking(move || pack(&files, Pieces { sender, piece: Vec::new() }));
    let body = stream::unfold(received, |mut received| async move { Some((received.recv().await?, received)) });
    let added = client.put_for::<Replay>(&path, reqwest::Body::wrap_stream(body)).await;
    // A file that cannot be read ends the upload, so its error is the cause of the other.
    if let Ok(Err(error)) = packing.await
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        return Err(anyhow::Error::from(error).context("pack the recordings").into());
    }
    let replay = added?;
    if global.json {
        output::print_json(&replay)?;
        return Ok(exit_code::OK);
    }
    for problem in replay.skipped.iter().chain(replay.problems.iter().take(SHOWN)) {
        let place = if problem.place.is_empty() { String::new() } else { format!(": {}", problem.place) };
        errln!("warning: {}{place}: {}", problem.file, problem.what);
    }
    if replay.problems.len() > SHOWN {
        errln!("warning: further problems are shown by `arenad replay show {} --json`", replay.name);
    }
    outln!(
        "{}: {} exchanges of {} hosts ({})",
        replay.name,
        replay.entries,
        replay.origins.len(),
        output::bytes(replay.size_bytes)
    );
    Ok(exit_code::OK)
}

fn form_urlencoded_list(names: &[String]) -> String {
    url::form_urlencoded::byte_serialize(names.join(",").as_bytes()).collect()
}

/// Returns the files to send with their names in the upload: named files, files in folders, and the bodies that belong to
/// named HAR files.
fn collected(named: &[PathBuf]) -> Result<Vec<(String, PathBuf)>, CommandFailure> {
    let mut files = Vec::new();
    for path in named {
        let metadata = path.metadata().with_context(|| format!("read {}", path.display()))?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if metadata.is_dir() {
            for entry in walkdir::WalkDir::new(path).sort_by_file_name() {
                let entry = entry.with_context(|| format!("read {}", path.display()))?;
                if !entry.file_type().is_file() {
                    continue;
                }
                let inner = entry.path().strip_prefix(path).unwrap_or(entry.path());
                files.push((inner.to_string_lossy().into_owned(), entry.path().to_owned()));
            }
            continue;
        }
        files.push((name.clone(), path.clone()));
        if name.ends_with(".har") {
            files.extend(attached(path)?);
        }
    }
    let mut names: Vec<&String> = files.iter().map(|(name, _)| name).collect();
    names.sort();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1] && !is_attached(pair[0])) {
        return Err(CommandFailure::usage(format!("two recordings have the name {}", pair[0]))
            .hint("rename one of them, or pass the folder that contains both"));
    }
    Ok(files)
}

/// Returns the bodies that Playwright has kept beside a HAR.
fn attached(har: &Path) -> Result<Vec<(String, PathBuf)>, CommandFailure> {
    let folder = har.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = folder.read_dir().with_context(|| format!("read {}", folder.display()))?;
    let names = entries.flatten().map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    Ok(names.filter(|(name, _)| is_attached(name)).collect())
}

fn is_attached(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    stem.len() == ATTACHED_NAME && stem.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn pack(files: &[(String, PathBuf)], pieces: Pieces) -> io::Result<()> {
    let mut archive = tar::Builder::new(pieces);
    for (name, path) in files {
        let told = |error: io::Error| match error.kind() {
            io::ErrorKind::BrokenPipe => error,
            kind => io::Error::new(kind, format!("{}: {error}", path.display())),
        };
        let mut file = File::open(path).map_err(told)?;
        archive.append_file(name, &mut file).map_err(told)?;
    }
    archive.into_inner()?.flush()
}

/// Sends what is written to it in pieces.
struct Pieces {
    sender: mpsc::Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
}

impl Pieces {
    fn send(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.piece);
        // The receiver is gone when the daemon has refused the upload.
        self.sender.blocking_send(Ok(piece.into())).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() { Ok(()) } else { self.send() }
    }
}

async fn list(client: &ApiClient, global: &Global) -> Result<u8, CommandFailure> {
    let found: Replays = client.json(Method::GET, "/v1/replays").await?;
    if global.json {
        output::print_json(&found)?;
        return Ok(exit_code::OK);
    }
    let mut table = output::table(&["NAME", "EXCHANGES", "SIZE", "HITS", "MISSES", "FORBIDDEN", "AGE", "HOSTS"]);
    for replay in &found.replays {
        table.add_row([
            replay.name.clone(),
            replay.entries.to_string(),
            output::bytes(replay.size_bytes),
            replay.counts.hits.to_string(),
            replay.counts.misses.to_string(),
            replay.counts.forbidden.to_string(),
            output::age(&replay.created_at),
            replay.origins.join(", "),
        ]);
    }
    output::print_fitted(&mut table, 7, output::width());
    Ok(exit_code::OK)
}

async fn show(client: &ApiClient, global: &Global, args: &ReplayNameArgs) -> Result<u8, CommandFailure> {
    let replay: Replay = client.json(Method::GET, &format!("/v1/replays/{}", args.name)).await?;
    if global.json {
        output::print_json(&replay)?;
        return Ok(exit_code::OK);
    }
    outln!("{}  {} exchanges ({})", replay.name, replay.entries, output::bytes(replay.size_bytes));
    for origin in &replay.origins {
        outln!("  host        {origin}");
    }
    match &replay.proxy {
        Some(proxy) => outln!("  proxy       {}", proxy.url()),
        None => outln!("  proxy       none: the daemon offers no episode proxy"),
    }
    if let (Some(from), Some(until)) = (&replay.recorded_from, &replay.recorded_until) {
        outln!("  recorded    {from} to {until}");
    }
    let counts = &replay.counts;
    let rules: Vec<String> = counts.rules.iter().map(|rule| format!("{} {}", rule.requests, rule.rule)).collect();
    outln!("  hits        {} ({})", counts.hits, if rules.is_empty() { "none".to_owned() } else { rules.join(", ") });
    outln!("  failures    {} of the hits have a recorded failure", counts.recorded_failures);
    outln!("  misses      {}", counts.misses);
    outln!("  forbidden   {}", counts.forbidden);
    for missed in replay.missed.iter().rev().take(SHOWN) {
        let kind = match missed.kind {
            MissKind::Miss => "miss",
            MissKind::Forbidden => "forbidden",
        };
        outln!("  {kind:11} {} {}", missed.method, missed.url);
    }
    outln!("  left out    {} exchanges", replay.left_out);
    for problem in replay.skipped.iter().chain(replay.problems.iter().take(SHOWN)) {
        outln!("  problem     {} {}: {}", problem.file, problem.place, problem.what);
    }
    Ok(exit_code::OK)
}

async fn remove(client: &ApiClient, args: &ReplayRmArgs) -> Result<u8, CommandFailure> {
    for name in &args.names {
        client.delete(&format!("/v1/replays/{name}")).await?;
    }
    Ok(exit_code::OK)
}

/// Prints the certificate of the authority under which recorded `https` hosts are served.
pub async fn certificate(global: &Global) -> Result<u8, CommandFailure> {
    let found: ReplayCertificate = ApiClient::new(global)?.json(Method::GET, "/v1/certificates/replay").await?;
    match global.json {
        true => output::print_json(&found)?,
        false => outln!("{}", found.certificate.trim_end()),
    }
    Ok(exit_code::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_sent_whole_and_a_har_with_its_bodies() {
        let folder = tempfile::tempdir().expect("a folder");
        let body = format!("{}.html", "a1".repeat(20));
        for name in ["one.har", body.as_str(), "notes.txt"] {
            std::fs::write(folder.path().join(name), "x").expect("written");
        }
        let names = |paths: &[PathBuf]| {
            let files = collected(paths).expect("files");
            files.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[folder.path().to_owned()]), [body.as_str(), "notes.txt", "one.har"]);
        let har = folder.path().join("one.har");
        assert_eq!(names(std::slice::from_ref(&har)), ["one.har", body.as_str()]);
        assert!(collected(&[har.clone(), har]).is_err(), "a name is taken twice");
        assert!(collected(&[folder.path().join("missing.har")]).is_err());
    }
}
