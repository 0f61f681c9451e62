//! `arenad snapshot export` and `arenad snapshot import`: carry snapshots between hosts.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use reqwest::Method;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::args::{ExportArgs, Global, ImportArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::images::board;
use super::{exit_code, output};
use arenad_api::{Exported, ImportBegun, ImportRequest, SIZE_HEADER, StoredSnapshot};
use arenad_export::{self as export, Manifest, Next, ReadError, SnapshotReader};
use arenad_images::watch::WorkProgress;

/// The size of one piece of a request, in bytes.
const PIECE: usize = 256 << 10;

/// The number of pieces that may be queued.
const PIECES_AHEAD: usize = 16;

/// Writes a snapshot into a file, which is called `FILE.part` until it is complete.
pub async fn export(global: &Global, args: &ExportArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let was_running = client.is_running().await?;
    client.ensure_daemon(&args.engine, None).await?;
    let written = receive(&client, global, args).await;
    client.leave(was_running).await?;
    let exported = written?;
    match global.json {
        true => output::print_json(&exported)?,
        false => outln!("{} ({})", exported.file, output::bytes(exported.size_bytes)),
    }
    Ok(exit_code::OK)
}

async fn receive(client: &ApiClient, global: &Global, args: &ExportArgs) -> Result<Exported, CommandFailure> {
    if let Some(out) = &args.out {
        refuse_taken(out)?;
    }
    let answer = client.stream(&format!("/v1/snapshots/{}/export", args.snapshot)).await?;
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok().map(str::to_owned));
    let total = header(SIZE_HEADER).and_then(|size| size.parse().ok());
    let out = match &args.out {
        Some(out) => out.clone(),
        None => PathBuf::from(file_name(&header("content-disposition").unwrap_or_default())?),
    };
    refuse_taken(&out)?;
    let partial = Partial::make(&out)?;
    let watch = Arc::new(WorkProgress::new(CancellationToken::new()));
    // The compressed size is unknown, so the bar shows the number of bytes received.
    watch.begin(format!("exporting (about {} before compression)", output::bytes(total.unwrap_or_default())), None);
    let mut content = answer.bytes_stream();
    let work = async {
        while let Some(piece) = content.next().await {
            let piece =
                piece.context("read the snapshot: the daemon ended the stream early; its log states the reason")?;
            (&partial.file).write_all(&piece).with_context(|| format!("write {}", partial.path.display()))?;
            watch.advance(piece.len());
        }
        Ok::<_, anyhow::Error>(())
    };
    tokio::select! {
        done = board::follow(&args.snapshot, global.json, &watch, work) => done?,
        _ = tokio::signal::ctrl_c() => {
            return Err(CommandFailure::interrupted().hint("the partial file was removed"));
        }
    }
    let size_bytes = partial.finish(&out)?;
    Ok(Exported { file: out.display().to_string(), size_bytes })
}

/// Returns the file name that the daemon proposes.
fn file_name(disposition: &str) -> Result<String, CommandFailure> {
    let name = disposition.split_once("filename=\"").and_then(|(_, rest)| rest.strip_suffix('"')).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain) {
        true => Ok(name.to_owned()),
        false => Err(CommandFailure::usage("the daemon proposes no name for the file").hint("pass one with --out")),
    }
}

fn refuse_taken(out: &Path) -> Result<(), CommandFailure> {
    match out.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => Err(CommandFailure::new(exit_code::FAILED, anyhow::anyhow!("{} already exists", out.display()))
            .hint("name another file with --out, or move it away")),
        Err(error) => Err(CommandFailure::new(
            exit_code::FAILED,
            anyhow::Error::from(error).context(format!("inspect {}", out.display())),
        )),
    }
}

/// A file that is removed unless it is completed. Only this user may read it, because it holds passwords and sessions.
struct Partial {
    file: File,
    path: PathBuf,
}

impl Partial {
    fn make(out: &Path) -> anyhow::Result<Self> {
        let mut name = out.as_os_str().to_owned();
        name.push(".part");
        let path = PathBuf::from(name);
        let file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&path);
        Ok(Self { file: file.with_context(|| format!("create {}", path.display()))?, path })
    }

    /// Syncs the file to disk and renames it to its final name; returns its length.
    fn finish(self, out: &Path) -> anyhow::Result<u64> {
        let finished = || {
            self.file.sync_all()?;
            std::fs::rename(&self.path, out)?;
            self.file.metadata().map(|found| found.len())
        };
        finished().with_context(|| format!("write {}", out.display()))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After the renaming the partial file no longer exists; if the removal fails, the next export overwrites the
        // file.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Imports a snapshot from a file, which is first read to its end and verified.
pub async fn import(global: &Global, args: &ImportArgs) -> Result<u8, CommandFailure> {
    let name = args.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let manifest = scan(&name, global.json, &args.file).await?;
    let client = ApiClient::new(global)?;
    let was_running = client.is_running().await?;
    client.ensure_daemon(&args.engine, None).await?;
    let imported = send(&client, global.json, &name, args, manifest).await;
    client.leave(was_running).await?;
    let (snapshot, was_present) = imported?;
    match global.json {
        true => output::print_json(&snapshot)?,
        false => {
            if was_present {
                errln!("the snapshot is already present");
            }
            outln!("{}", snapshot.id);
        }
    }
    Ok(exit_code::OK)
}

async fn scan(name: &str, is_silent: bool, path: &Path) -> Result<Manifest, CommandFailure> {
    let (watch, file) = open(path, "checking")?;
    let (meter, shown) = (Meter { file, watch: watch.clone() }, path.display().to_string());
    let work = async { tokio::task::spawn_blocking(move || export::scan(meter)).await };
    let scanned = tokio::select! {
        scanned = board::follow(name, is_silent, &watch, work) => scanned?,
        _ = tokio::signal::ctrl_c() => {
            return Err(CommandFailure::interrupted());
        }
    };
    scanned.map_err(|error| unsound(&shown, error))
}

fn open(path: &Path, doing: &str) -> anyhow::Result<(Arc<WorkProgress>, File)> {
    let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    let size = file.metadata().with_context(|| format!("inspect {}", path.display()))?.len();
    let watch = Arc::new(WorkProgress::new(CancellationToken::new()));
    watch.begin(doing, Some(size));
    Ok((watch, file))
}

fn unsound(path: &str, error: ReadError) -> CommandFailure {
    let hint = match &error {
        ReadError::Version { .. } => "use the version of arenad that wrote it, or a newer one",
        ReadError::Other(_) => {
            "pass a file that `snapshot export` wrote; `arenad images load` takes archives of images"
        }
        ReadError::Truncated { .. } | ReadError::Damaged(_) | ReadError::Manifest(_) => {
            "get the file again: this copy was truncated, damaged or changed in transit; nothing was imported"
        }
        ReadError::Unreadable(_) => "check the disk or the network on which the file is stored",
    };
    CommandFailure::new(exit_code::FAILED, anyhow::Error::from(error).context(format!("import {path}"))).hint(hint)
}

/// Sends the missing parts. Returns the snapshot, and whether it was present before.
async fn send(
    client: &ApiClient,
    is_silent: bool,
    name: &str,
    args: &ImportArgs,
    manifest: Manifest,
) -> Result<(StoredSnapshot, bool), CommandFailure> {
    let request = ImportRequest { manifest, name: args.name.clone() };
    let begun: ImportBegun = client.send(Method::POST, "/v1/imports", &request).await?;
    if begun.is_present {
        let found = client.json(Method::GET, &format!("/v1/snapshots/{}", begun.snapshot)).await?;
        return Ok((found, true));
    }
    if !begun.missing.is_empty() {
        let (watch, file) = open(&args.file, "importing")?;
        let work = send_parts(client, &begun, Meter { file, watch: watch.clone() });
        tokio::select! {
            sent = board::follow(name, is_silent, &watch, work) => sent?,
            _ = tokio::signal::ctrl_c() => {
                return Err(CommandFailure::interrupted()
                    .hint("run the same command again to resume; the received parts are kept for a day"));
            }
        }
    }
    let path = format!("/v1/imports/{}/finish", begun.snapshot);
    Ok((client.send(Method::POST, &path, &serde_json::json!({})).await?, false))
}

/// A part that is being sent: its index, and its content.
type OutgoingPart = (usize, mpsc::Receiver<io::Result<Bytes>>);

async fn send_parts(
    client: &ApiClient,
    begun: &ImportBegun,
    file: impl Read + Send + 'static,
) -> Result<(), CommandFailure> {
    let (sender, mut parts) = mpsc::channel::<OutgoingPart>(1);
    let missing = begun.missing.clone();
    let reading = tokio::task::spawn_blocking(move || read_parts(file, &missing, &sender));
    while let Some((index, content)) = parts.recv().await {
        let path = format!("/v1/imports/{}/parts/{index}", begun.snapshot);
        let pieces = stream::unfold(content, |mut content| async move {
            let piece = content.recv().await?;
            Some((piece, content))
        });
        client.put(&path, reqwest::Body::wrap_stream(pieces)).await?;
    }
    reading.await?.map_err(|error| unsound("the file", error))
}

/// Reads the file again and sends the missing parts. It ends early if the receiver is dropped.
fn read_parts(file: impl Read, missing: &[usize], sender: &mpsc::Sender<OutgoingPart>) -> Result<(), ReadError> {
    let mut reader = SnapshotReader::new(file)?;
    for index in 0.. {
        let Next::Part(_, mut part) = reader.advance()? else { break };
        if !missing.contains(&index) {
            continue;
        }
        let (pieces, content) = mpsc::channel(PIECES_AHEAD);
        if sender.blocking_send((index, content)).is_err() {
            break;
        }
        let mut buffer = vec![0; PIECE];
        loop {
            let piece = match part.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => Ok(Bytes::copy_from_slice(&buffer[..read])),
                Err(error) => Err(error),
            };
            let has_failed = piece.is_err();
            // The daemon may answer before the end: with an error, or because it needs no more.
            if pieces.blocking_send(piece).is_err() || has_failed {
                break;
            }
        }
        if let Some(failure) = part.failure() {
            return Err(failure);
        }
    }
    Ok(())
}

/// A reader that counts the bytes it passes on.
struct Meter {
    file: File,
    watch: Arc<WorkProgress>,
}

impl Read for Meter {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.watch.advance(read);
        Ok(read)
    }
}
