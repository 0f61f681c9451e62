//! `arenad exec` and `arenad shell`: run a command in a site's container, with this terminal.
//!
//! The daemon is notified first, because a reset must not rely on a state that a person may have changed. Then the
//! command runs through the engine, directly from this process.

use std::io::{IsTerminal, Read, Write};
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use futures_util::StreamExt;
use reqwest::Method;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::io::AsyncWriteExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::args::{ContainerArgs, ExecArgs, Global, ShellArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{exit_code, find, say};
use arenad_api::{ContainerEntry, EntryRequest};
use arenad_engine::EngineHandle;
use arenad_engine::docker::DockerEngine;
use arenad_engine::docker::attach::{Attached, Attachment};

/// The command that starts a shell in a container: bash if it is installed, else sh.
const SHELL: [&str; 3] = ["/bin/sh", "-c", "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi"];

/// The maximum size of one piece of standard input, in bytes.
const PIECE: usize = 16 << 10;

/// The number of pieces of standard input that may be queued.
const PIECES_AHEAD: usize = 8;

/// The time limit for the remaining output after the command has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Runs a command, and exits with its exit code.
pub async fn exec(global: &Global, args: &ExecArgs) -> Result<u8, CommandFailure> {
    run(global, &args.container, &args.command).await
}

/// Opens a shell, and exits with its exit code.
pub async fn shell(global: &Global, args: &ShellArgs) -> Result<u8, CommandFailure> {
    run(global, &args.container, &SHELL.map(str::to_owned)).await
}

async fn run(global: &Global, args: &ContainerArgs, command: &[String]) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    if client.is_remote() {
        let failure = CommandFailure::usage("commands in containers run through the engine of the daemon's machine");
        return Err(failure.hint("run it on that machine, without --host and ARENAD_HOST"));
    }
    let status = client.status().await?;
    let site = find::site(&status, args.environment.as_deref(), &args.site)?;
    let path = format!("/v1/environments/{}/sites/{}/entries", site.environment, site.name);
    let entry: ContainerEntry =
        client.send(Method::POST, &path, &EntryRequest { service: args.service.clone() }).await?;
    say(global.json, &notice(&entry));
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let term: Vec<String> =
        std::env::var("TERM").ok().filter(|_| is_terminal).map(|term| format!("TERM={term}")).into_iter().collect();
    let engine = DockerEngine::new(&entry.engine);
    let attachment = Attachment { command, user: args.user.as_deref(), environment: &term, is_terminal };
    let attached = engine.attach(&EngineHandle(entry.container.clone()), attachment).await?;
    let raw = is_terminal.then(Raw::set).transpose().context("prepare the terminal")?;
    let ended = exchange(&engine, attached, is_terminal).await;
    drop(raw);
    Ok(u8::try_from(ended?).unwrap_or(exit_code::FAILED))
}

/// Returns the notice that is printed before the command runs.
fn notice(entry: &ContainerEntry) -> String {
    let ContainerEntry { environment, site, service, .. } = entry;
    match entry.generation {
        Some(_) => format!(
            "note: changes in {service} of {environment}/{site} are not verified; the next reset creates new containers"
        ),
        None => format!(
            "note: this is {service} of {environment}/{site}, kept after its baseline failed; `arenad prune` or the next `arenad up` removes it"
        ),
    }
}

/// Transfers the streams until the command ends; returns its exit code.
async fn exchange(engine: &DockerEngine, attached: Attached, is_terminal: bool) -> Result<i64, CommandFailure> {
    let id = attached.id().to_owned();
    let Attached { mut output, mut input, .. } = attached;
    let mut typed = read_input();
    // Input is written concurrently with reading the output: a command whose output is not read stops reading its
    // input.
    let feed = async move {
        while let Some(piece) = typed.recv().await {
            // A command that no longer reads its input has ended, or is about to.
            if input.write_all(&piece).await.is_err() || input.flush().await.is_err() {
                return;
            }
        }
        let _ = input.shutdown().await;
    };
    let mut feed = std::pin::pin!(feed);
    let mut is_fed = false;
    let mut resized = signal(SignalKind::window_change()).context("listen for the terminal's size")?;
    if is_terminal {
        fit(engine, &id).await;
    }
    loop {
        tokio::select! {
            chunk = output.next() => {
                let Some(chunk) = chunk else { break };
                let chunk = chunk?;
                let written = match chunk.is_stderr {
                    true => std::io::stderr().lock().write_all(&chunk.bytes),
                    false => {
                        let mut out = std::io::stdout().lock();
                        out.write_all(&chunk.bytes).and_then(|()| out.flush())
                    }
                };
                written?;
            }
            () = &mut feed, if !is_fed => is_fed = true,
            _ = resized.recv(), if is_terminal => fit(engine, &id).await,
        }
    }
    // The streams end shortly before the engine knows the exit code.
    let code = async {
        loop {
            match engine.exit_code(&id).await {
                Ok(-1) => tokio::time::sleep(Duration::from_millis(20)).await,
                code => return code,
            }
        }
    };
    Ok(tokio::time::timeout(LAST_WORDS, code).await.context("wait for the command's exit code")??)
}

/// Reads standard input piece by piece. The thread lives until the process ends, because a blocked read cannot be
/// interrupted.
fn read_input() -> mpsc::Receiver<Bytes> {
    let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
    std::thread::spawn(move || {
        let mut piece = vec![0; PIECE];
        loop {
            match std::io::stdin().lock().read(&mut piece) {
                Ok(0) | Err(_) => return,
                Ok(length) => {
                    if sender.blocking_send(Bytes::copy_from_slice(&piece[..length])).is_err() {
                        return;
                    }
                }
            }
        }
    });
    receiver
}

/// Gives the command's terminal the size of this terminal.
async fn fit(engine: &DockerEngine, id: &str) {
    if let Ok(size) = tcgetwinsize(std::io::stdout()) {
        // The terminal no longer exists if the command has just ended.
        let _ = engine.resize(id, size.ws_row, size.ws_col).await;
    }
}

/// Switches off this terminal's line editing and signals, which the command's terminal provides; dropping it restores
/// the settings.
struct Raw(Termios);

impl Raw {
    fn set() -> rustix::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}
