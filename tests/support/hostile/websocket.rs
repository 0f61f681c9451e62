//! Scripts of hostile WebSocket servers.

use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::{Move, ServerAttack};

/// Returns the attacks after the handshake that a client must survive.
pub fn attacks() -> Vec<ServerAttack> {
    vec![
        ("it hangs up", vec![]),
        ("silence", vec![Move::Silence]),
        (
            "a message of eight exabytes",
            vec![Move::Say(b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff".to_vec()), Move::Repeat(vec![b'x'; 1 << 20])],
        ),
        (
            "a message without end, in parts",
            vec![
                Move::Say(b"\x01\x01x".to_vec()),
                Move::Repeat(b"\0\x7d".iter().copied().chain([b'x'; 125]).collect::<Vec<u8>>().repeat(1 << 12)),
            ],
        ),
        ("a message within a message", vec![Move::Say(b"\x01\x01x\x01\x01x".to_vec()), Move::Silence]),
        ("bits that are reserved", vec![Move::Say(b"\xf1\x01x".to_vec()), Move::Silence]),
        ("a kind of frame that is none", vec![Move::Say(b"\x8f\x01x".to_vec()), Move::Silence]),
        ("a text that is none", vec![Move::Say(b"\x81\x02\xff\xfe".to_vec()), Move::Silence]),
        ("a ping that is too long", vec![Move::Say([&b"\x89\x7e\x04\x00"[..], &[b'x'; 1024]].concat()), Move::Silence]),
        ("pings without end", vec![Move::Repeat(b"\x89\x01x".repeat(1 << 14))]),
        ("messages without end", vec![Move::Repeat(b"\x81\x02{}".repeat(1 << 14))]),
        ("a frame that drips", vec![Move::Say(b"\x81\x7e\xff\xff".to_vec()), Move::Drip(b"x".to_vec())]),
    ]
}

/// Returns the server's reply to a handshake, or `None` if the request is not a handshake.
pub fn taken(request: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(request);
    let key = text
        .lines()
        .find_map(|line| line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key")))?;
    let accept = derive_accept_key(key.1.trim().as_bytes());
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    Some(head.into_bytes())
}

/// Encodes a text as one frame.
pub fn text(text: &[u8]) -> Vec<u8> {
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes();
    [&[0x81, 0x7f], &length[..], text].concat()
}
