//! Runs commands in containers. For people, a command has its streams and, on request, a terminal, which is not part of
//! [`Engine`](crate::Engine). For the daemon, it runs to its end.

use std::pin::Pin;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::query_parameters::ResizeExecOptions;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::{CALL_TIMEOUT, DockerEngine, EXEC_OUTPUT_MAX, short};
use crate::{EngineError, EngineHandle, EngineStream, ExecOutput, LogChunk};

/// The command to run, with its user, variables and terminal.
#[derive(Debug, Clone, Copy)]
pub struct Attachment<'a> {
    /// The program and its arguments.
    pub command: &'a [String],
    /// The user in the container; `None` means the image's user.
    pub user: Option<&'a str>,
    /// The environment variables, as `NAME=value`.
    pub environment: &'a [String],
    /// Whether the command gets a terminal; standard error is then merged into standard output.
    pub is_terminal: bool,
}

/// An image's entry point, command and ports.
pub type ImageCommand = (Vec<String>, Vec<String>, Vec<u16>);

/// A command that is running in a container.
pub struct Attached {
    id: String,
    /// The output of the command, as a stream of chunks.
    pub output: EngineStream<LogChunk>,
    /// The command's standard input; closing it signals its end.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
}

impl DockerEngine {
    /// Starts a command in a running container.
    pub async fn attach(&self, handle: &EngineHandle, attachment: Attachment<'_>) -> Result<Attached, EngineError> {
        let doing = format!("run `{}` in container {}", attachment.command.join(" "), short(&handle.0));
        let options = CreateExecOptions {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(attachment.is_terminal),
            cmd: Some(attachment.command.to_vec()),
            user: attachment.user.map(str::to_owned),
            env: Some(attachment.environment.to_vec()),
            ..Default::default()
        };
        let docker = self.docker()?;
        let start = StartExecOptions { tty: attachment.is_terminal, ..Default::default() };
        let (id, started) = self
            .call(doing.clone(), CALL_TIMEOUT, async {
                let id = docker.create_exec(&handle.0, options).await?.id;
                let started = docker.start_exec(&id, Some(start)).await?;
                Ok((id, started))
            })
            .await?;
        let StartExecResults::Attached { output, input } = started else {
            return Err(EngineError::Broken { doing, cause: "the engine did not attach its streams".into() });
        };
        let engine = self.clone();
        let output = output.map(move |chunk| match chunk {
            Ok(LogOutput::StdErr { message }) => Ok(LogChunk { is_stderr: true, bytes: message }),
            Ok(LogOutput::StdOut { message } | LogOutput::Console { message } | LogOutput::StdIn { message }) => {
                Ok(LogChunk { is_stderr: false, bytes: message })
            }
            Err(cause) => Err(engine.error(doing.clone(), cause)),
        });
        Ok(Attached { id, output: Box::pin(output), input })
    }

    /// Returns the entry point, the command and the ports of an image; `None` if the engine does not have the image.
    pub async fn image_command(&self, reference: &str) -> Result<Option<ImageCommand>, EngineError> {
        let doing = format!("look up what image {reference} runs");
        let found = match self.call(doing, CALL_TIMEOUT, self.docker()?.inspect_image(reference)).await {
            Err(error) if error.is_not_found() => return Ok(None),
            found => found?,
        };
        let Some(config) = found.config else { return Ok(None) };
        let ports = config.exposed_ports.unwrap_or_default();
        let port = |port: &String| port.split('/').next().and_then(|number| number.parse().ok());
        let ports = ports.iter().filter_map(port).collect();
        Ok(Some((config.entrypoint.unwrap_or_default(), config.cmd.unwrap_or_default(), ports)))
    }

    /// Sets the size of a command's terminal, in character cells.
    pub async fn resize(&self, attached: &str, rows: u16, columns: u16) -> Result<(), EngineError> {
        let options = ResizeExecOptions { h: i32::from(rows), w: i32::from(columns) };
        self.call("resize the terminal", CALL_TIMEOUT, self.docker()?.resize_exec(attached, options)).await
    }

    /// Returns the exit code of a command that has ended.
    pub async fn exit_code(&self, attached: &str) -> Result<i64, EngineError> {
        let ended =
            self.call("look up how the command ended", CALL_TIMEOUT, self.docker()?.inspect_exec(attached)).await?;
        Ok(ended.exit_code.unwrap_or(-1))
    }
}

impl DockerEngine {
    /// Runs a command, writes its standard input, and returns its output when it has ended.
    pub(super) async fn exec_to_end(
        &self,
        handle: &EngineHandle,
        command: &[String],
        user: Option<&str>,
        input: Option<Bytes>,
        timeout: Duration,
    ) -> Result<ExecOutput, EngineError> {
        let doing = format!("run `{}` in container {}", command.join(" "), short(&handle.0));
        let options = CreateExecOptions {
            attach_stdin: Some(input.is_some()),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(command.to_vec()),
            user: user.map(str::to_owned),
            ..Default::default()
        };
        let docker = self.docker()?;
        self.call(doing, timeout, async {
            let exec = docker.create_exec(&handle.0, options).await?;
            let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
            if let StartExecResults::Attached { output, input: pipe } = docker.start_exec(&exec.id, None).await? {
                // A command whose output is not read stops reading its input, so both happen at the same time.
                let read = read(output, &mut stdout, &mut stderr);
                match input {
                    Some(input) => tokio::join!(write(pipe, &input), read).1?,
                    None => read.await?,
                }
            }
            let ended = docker.inspect_exec(&exec.id).await?;
            Ok(ExecOutput {
                code: ended.exit_code.unwrap_or(-1),
                stdout: String::from_utf8_lossy(&stdout).into_owned(),
                stderr: String::from_utf8_lossy(&stderr).into_owned(),
            })
        })
        .await
    }
}

/// Writes the standard input of a command. A command that ends before it has read everything says so by its exit code.
async fn write(mut pipe: Pin<Box<dyn AsyncWrite + Send>>, input: &[u8]) {
    if pipe.write_all(input).await.is_ok() && pipe.flush().await.is_ok() {
        let _ = pipe.shutdown().await;
    }
}

/// Reads both streams of a command to their ends, and keeps [`EXEC_OUTPUT_MAX`] bytes of each.
async fn read(
    mut output: impl Stream<Item = Result<LogOutput, Error>> + Unpin,
    stdout: &mut Vec<u8>,
    stderr: &mut Vec<u8>,
) -> Result<(), Error> {
    while let Some(chunk) = output.try_next().await? {
        let (kept, message) = match chunk {
            LogOutput::StdErr { message } => (&mut *stderr, message),
            LogOutput::StdOut { message } | LogOutput::Console { message } | LogOutput::StdIn { message } => {
                (&mut *stdout, message)
            }
        };
        let room = EXEC_OUTPUT_MAX.saturating_sub(kept.len());
        kept.extend_from_slice(&message[..message.len().min(room)]);
    }
    Ok(())
}

impl Attached {
    /// Returns the id that [`DockerEngine::resize`] and [`DockerEngine::exit_code`] take.
    pub fn id(&self) -> &str {
        &self.id
    }
}
