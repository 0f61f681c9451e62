//! Reads streams of server-sent events, of which the daemon has several.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::Response;

use super::failure::CommandFailure;

/// The maximum size of one event, in bytes; larger than the events that the daemon keeps.
const EVENT_MAX: usize = 4 << 20;

/// One server-sent event that has data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEvent {
    /// The name of the event; empty if it has none.
    pub name: String,
    /// The data of the event.
    pub data: String,
}

/// A stream of server-sent events.
pub struct ServerEvents {
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
    text: Vec<u8>,
}

impl ServerEvents {
    /// Reads the events of an answer.
    pub fn of(answer: Response) -> Self {
        Self { chunks: answer.bytes_stream().boxed(), text: Vec::new() }
    }

    /// Waits for the next event; `None` at the end of the stream.
    ///
    /// Cancellation: no event is lost.
    pub async fn next(&mut self) -> Result<Option<ServerEvent>, CommandFailure> {
        loop {
            // An event ends with an empty line; the comments that keep the connection alive have no data.
            while let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
                let message: Vec<u8> = self.text.drain(..end + 2).collect();
                if let Some(event) = parsed(&String::from_utf8_lossy(&message)) {
                    return Ok(Some(event));
                }
            }
            if self.text.len() > EVENT_MAX {
                return Err(anyhow::anyhow!("the daemon sent an event of more than {} MiB", EVENT_MAX >> 20).into());
            }
            match self.chunks.next().await {
                Some(chunk) => self.text.extend_from_slice(&chunk?),
                None => return Ok(None),
            }
        }
    }
}

fn parsed(message: &str) -> Option<ServerEvent> {
    let field = |name: &str| {
        let values = message.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        values.map(|value| value.strip_prefix(' ').unwrap_or(value)).collect::<Vec<_>>()
    };
    let data = field("data");
    let name = field("event").last().copied().unwrap_or_default().to_owned();
    (!data.is_empty()).then(|| ServerEvent { name, data: data.join("\n") })
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn events_are_put_together_and_comments_left_out() {
        let chunks = [": hello\n\nevent: epi", "sode\ndata: {\"a\":", "1}\n\n:\n\ndata:two\ndata: lines\n\nevent: cut"];
        let chunks = stream::iter(chunks).map(|chunk| Ok(Bytes::from_static(chunk.as_bytes())));
        let mut events = ServerEvents { chunks: chunks.boxed(), text: Vec::new() };
        let mut seen = Vec::new();
        while let Some(event) = events.next().await.expect("events") {
            seen.push((event.name, event.data));
        }
        let expected = [("episode", "{\"a\":1}"), ("", "two\nlines")];
        assert_eq!(seen, expected.map(|(name, data)| (name.to_owned(), data.to_owned())));
    }
}
