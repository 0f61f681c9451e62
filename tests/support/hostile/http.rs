//! Scripts of hostile HTTP servers.

use super::{Move, ServerAttack, attacks as of_every_protocol};

/// Returns the attacks that a client must survive.
pub fn attacks() -> Vec<ServerAttack> {
    let heard = |moves: &[Move]| [&[Move::Hear], moves].concat();
    let say = |text: &str| Move::Say(text.as_bytes().to_vec());
    let lines = |text: &str| Move::Repeat(text.as_bytes().repeat(1 << 14));
    let mut attacks = of_every_protocol();
    attacks.extend([
        ("a head without end", heard(&[say("HTTP/1.1 200 OK\r\n"), lines("X-A: b\r\n")])),
        ("a line without end", heard(&[say("HTTP/1.1 200 OK\r\nX-A: "), Move::Repeat(vec![b'x'; 1 << 20])])),
        ("a head that drips", heard(&[say("HTTP/1.1 200 OK\r\n"), Move::Drip(b"X-A: b\r\n".to_vec())])),
        ("news without end", heard(&[lines("HTTP/1.1 100 Continue\r\n\r\n")])),
        (
            "a body that never comes",
            heard(&[say("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n"), Move::Silence]),
        ),
        ("a body that is cut off", heard(&[say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc")])),
        ("a body that drips", heard(&[say("HTTP/1.1 200 OK\r\n\r\n"), Move::Drip(b"x".to_vec())])),
        (
            "chunks that are none",
            heard(&[say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), Move::Silence]),
        ),
        (
            "a chunk of all memory",
            heard(&[say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"), Move::Silence]),
        ),
        (
            "trailers without end",
            heard(&[say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"), lines("X-A: b\r\n")]),
        ),
        (
            "two lengths",
            heard(&[say("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), Move::Silence]),
        ),
        (
            "another protocol",
            heard(&[
                say("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
                Move::Repeat(vec![b'x'; 1 << 20]),
            ]),
        ),
    ]);
    attacks
}

/// Bodies of finite or infinite length that exceed the client's limits.
pub fn bodies() -> Vec<ServerAttack> {
    vec![
        (
            "a body without end",
            vec![Move::Hear, Move::Say(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), Move::Repeat(b"[".repeat(1 << 20))],
        ),
        ("lists within lists", page("application/json", &"[".repeat(200_000))),
        ("objects within objects", page("application/json", &"{\"a\":".repeat(200_000))),
        ("a number of a million digits", page("application/json", &format!("[{}]", "9".repeat(1_000_000)))),
        ("elements within elements", page("text/html", &"<b><p>".repeat(20_000))),
    ]
}

/// A valid answer with a body.
pub fn page(kind: &str, body: &str) -> Vec<Move> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    vec![Move::Hear, Move::Say([head.as_bytes(), body.as_bytes()].concat())]
}
