//! Stops and starts writers through a control socket in their container. A connection to the socket replaces a command
//! of the engine, which runs three programs on the host.
//!
//! The server belongs to the site and is trusted no more than a command in its container: after it reports that the
//! writers have stopped, `covered.rs` checks that they have, as it does after a command. The path of the socket is
//! resolved as the container would resolve it, and at most [`ANSWER_MAX`] bytes are read from it.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use arenad_digest::container_socket;
use arenad_launch::InspectedContainers;
use arenad_model::store::Control;

/// The longest answer that is read, in bytes.
const ANSWER_MAX: u64 = 4 << 10;

/// The reason why the writers were not stopped or started through their socket.
#[derive(Debug, thiserror::Error)]
pub(super) enum ControlError {
    /// The engine or this host does not know the process of the container.
    #[error("its container is out of reach")]
    OutOfReach,
    /// The connection to the socket failed.
    #[error("talk to it")]
    Socket(#[source] io::Error),
    /// The server answered something other than `0`.
    #[error("it answered: {0:?}")]
    Refused(String),
    /// The server did not answer in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
}

/// Sends one word to the server and waits until the server reports that it has done the work.
pub(super) async fn tell(
    inside: &InspectedContainers,
    control: &Control,
    word: &str,
    within: Duration,
) -> Result<(), ControlError> {
    let pid = inside.pid(&control.service).ok_or(ControlError::OutOfReach)?;
    let answer = tokio::time::timeout(within, ask(pid, &control.socket, word)).await;
    let answer = answer.map_err(|_| ControlError::TimedOut(within))?.map_err(ControlError::Socket)?;
    if answer.trim_end() == "0" { Ok(()) } else { Err(ControlError::Refused(answer)) }
}

async fn ask(pid: u32, path: &str, word: &str) -> io::Result<String> {
    let mut stream = container_socket::connect(pid, path).await?;
    stream.write_all(format!("{word}\n").as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, BufReader};
    use tokio::net::UnixListener;

    use super::*;

    /// Runs one exchange with a server that gives `answer`; returns the line that the server read and the answer that
    /// the client read.
    async fn exchange(answer: &'static [u8]) -> (String, io::Result<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control");
        let listener = UnixListener::bind(&path).expect("a socket");
        let server = async {
            let (stream, _) = listener.accept().await.expect("a client");
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            stream.read_line(&mut line).await.expect("a line");
            // The client closes the connection once it has read enough, so this write may fail.
            let _ = stream.write_all(answer).await;
            line
        };
        let path = path.display().to_string();
        tokio::join!(server, ask(std::process::id(), &path, "stop"))
    }

    #[tokio::test]
    async fn a_word_is_a_line_and_the_answer_is_bounded() {
        let (line, answer) = exchange(b"0\n").await;
        assert_eq!((line.as_str(), answer.expect("an answer").as_str()), ("stop\n", "0\n"));
        let (_, answer) = exchange(&[b'x'; 1 << 20]).await;
        assert_eq!(answer.map_or(0, |answer| answer.len()), 4 << 10);
    }

    #[tokio::test]
    async fn who_does_not_answer_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control");
        let _listener = UnixListener::bind(&path).expect("a socket");
        let path = path.display().to_string();
        let asked = ask(std::process::id(), &path, "stop");
        tokio::time::timeout(Duration::from_millis(50), asked).await.expect_err("nobody answers");
    }
}
