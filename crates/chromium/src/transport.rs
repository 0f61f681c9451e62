//! Transports for the messages of the Chrome DevTools Protocol: the pipe of a browser that was started here, or the
//! WebSocket of a browser that was started elsewhere. The size of a browser's message is limited.

use std::io;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::{Message, protocol::WebSocketConfig};
use tokio_util::codec::{AnyDelimiterCodec, FramedRead, FramedWrite};

/// Usual limit for the size of a message, in bytes: a value of 4 MiB, each of its characters written as `\u0000`.
pub const MESSAGE_MAX: usize = 32 << 20;

/// Incoming messages; an error ends the stream.
pub type IncomingMessages = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;
/// Outgoing messages, one JSON text each.
pub type OutgoingMessages = Pin<Box<dyn Sink<String, Error = io::Error> + Send>>;

/// Connects the two directions of a pipe. Source: Chromium's `devtools_pipe_handler.cc`, messages that end with a NUL.
///
/// Messages have at most `message_max` bytes.
pub fn pipe(
    from: impl AsyncRead + Send + 'static,
    to: impl AsyncWrite + Send + 'static,
    message_max: usize,
) -> (IncomingMessages, OutgoingMessages) {
    let codec = || AnyDelimiterCodec::new_with_max_length(b"\0".to_vec(), b"\0".to_vec(), message_max);
    let incoming = FramedRead::new(from, codec()).map(|message| message.map_err(io::Error::other));
    let outgoing = SinkExt::<String>::sink_map_err(FramedWrite::new(to, codec()), io::Error::other);
    (Box::pin(incoming), Box::pin(outgoing))
}

/// Connects to a WebSocket address.
pub(crate) async fn websocket(address: &str, message_max: usize) -> io::Result<(IncomingMessages, OutgoingMessages)> {
    let config = WebSocketConfig::default().max_message_size(Some(message_max)).max_frame_size(Some(message_max));
    let connected = tokio_tungstenite::connect_async_with_config(address, Some(config), true).await;
    let (outgoing, incoming) = connected.map_err(io::Error::other)?.0.split();
    let incoming = incoming.filter_map(|message| async {
        match message {
            Ok(Message::Text(text)) => Some(Ok(Bytes::from(text))),
            Ok(_) => None,
            Err(error) => Some(Err(io::Error::other(error))),
        }
    });
    let outgoing = outgoing.with(|text: String| async { Ok(Message::text(text)) });
    let outgoing = outgoing.sink_map_err(|error: tokio_tungstenite::tungstenite::Error| io::Error::other(error));
    Ok((Box::pin(incoming), Box::pin(outgoing)))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn messages_end_with_a_nul_in_both_directions() {
        let (ours, theirs) = tokio::io::duplex(64);
        let (from, to) = tokio::io::split(ours);
        let (mut incoming, mut outgoing) = pipe(from, to, MESSAGE_MAX);
        let (mut read, mut write) = tokio::io::split(theirs);
        write.write_all(b"{\"id\":1}\0{\"id\"").await.expect("written");
        assert_eq!(incoming.next().await.expect("a message").expect("whole"), "{\"id\":1}");
        write.write_all(b":2}\0").await.expect("written");
        assert_eq!(incoming.next().await.expect("a message").expect("whole"), "{\"id\":2}");
        outgoing.send("a".to_owned()).await.expect("sent");
        let mut told = [0; 2];
        tokio::io::AsyncReadExt::read_exact(&mut read, &mut told).await.expect("read");
        assert_eq!(&told, b"a\0");
    }

    #[tokio::test]
    async fn a_message_without_an_end_is_refused_at_its_limit() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let (from, to) = tokio::io::split(ours);
        let (mut incoming, _outgoing) = pipe(from, to, MESSAGE_MAX);
        let flood = tokio::spawn(async move {
            let much = vec![b'x'; 1 << 20];
            let mut sent = 0;
            while theirs.write_all(&much).await.is_ok() {
                sent += much.len();
            }
            sent
        });
        incoming.next().await.expect("an item").expect_err("too long");
        drop((incoming, _outgoing));
        let sent = flood.await.expect("it ends");
        assert!(sent <= MESSAGE_MAX + (4 << 20), "{sent} bytes were taken");
    }
}
