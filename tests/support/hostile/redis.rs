//! Hostile Redis and Valkey servers.

use super::{Move, ServerAttack, attacks as of_every_protocol};

/// Returns the attacks that a client must survive.
pub fn attacks() -> Vec<ServerAttack> {
    let mut attacks = of_every_protocol();
    attacks.extend([
        ("a text of a hundred gigabytes", vec![Move::Answer(b"$99999999999\r\n".to_vec())]),
        ("a text of more bytes than a number has", vec![Move::Answer(b"$99999999999999999999999\r\n".to_vec())]),
        ("no text", vec![Move::Answer(b"$-1\r\n".to_vec())]),
        ("a text that never comes", vec![Move::Hear, Move::Say(b"$1000000\r\nok".to_vec()), Move::Silence]),
        ("a text that drips", vec![Move::Hear, Move::Say(b"$1000000\r\n".to_vec()), Move::Drip(b"x".to_vec())]),
        ("lists within lists", vec![Move::Hear, Move::Repeat(b"*1\r\n".repeat(1 << 16))]),
        ("an error without end", vec![Move::Hear, Move::Say(b"-".to_vec()), Move::Repeat(vec![b'E'; 1 << 20])]),
        ("a text that is none", vec![Move::Answer(text(b"ok \xff\xfe 0\n\xff"))]),
        ("a name in half bytes", vec![Move::Answer(text("ok run/1/2 0\n6\u{e9} string a -1".as_bytes()))]),
        ("a cursor that comes back", vec![Move::Answer(text(b"ok run/1/2 17\n61 string a -1"))]),
    ]);
    attacks
}

/// Encodes a text in the protocol's format.
pub fn text(text: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat()
}
