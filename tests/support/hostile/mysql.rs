//! Hostile MySQL and MariaDB servers.

use super::{Move, ServerAttack, attacks as of_every_protocol};

/// Returns the attacks that a client must survive.
pub fn attacks() -> Vec<ServerAttack> {
    let mut attacks = of_every_protocol();
    let whole = vec![b'x'; 0x00ff_ffff];
    attacks.extend([
        (
            "packets that belong together without end",
            greeted(vec![Move::Say(packet(2, &whole)), Move::Repeat(packet(3, &whole))]),
        ),
        (
            "more columns than there is memory for",
            signed_in(vec![Move::Answer(packet(1, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"))]),
        ),
        ("a length that is not a number", signed_in(vec![Move::Answer(packet(1, b"\xff"))])),
        ("an empty packet", signed_in(vec![Move::Answer(packet(1, b""))])),
        ("a packet out of turn", greeted(vec![Move::Say(packet(200, b"\0\0\0\x02\0\0\0")), Move::Silence])),
        (
            "another way to sign in again and again",
            greeted(vec![Move::Answer(packet(2, b"\xfemysql_native_password\x0012345678901234567890\0"))]),
        ),
    ]);
    attacks
}

/// A script for a client that has been greeted and has authenticated.
fn greeted(then: Vec<Move>) -> Vec<Move> {
    [Move::Say(greeting()), Move::Hear].into_iter().chain(then).collect()
}

fn signed_in(then: Vec<Move>) -> Vec<Move> {
    greeted([Move::Say(packet(2, b"\0\0\0\x02\0\0\0"))].into_iter().chain(then).collect())
}

/// A greeting that requests native password authentication.
fn greeting() -> Vec<u8> {
    let mut body = vec![10];
    body.extend(b"8.0.0\0");
    body.extend([1, 0, 0, 0]);
    body.extend(b"12345678\0");
    // Protocol 4.1, plugins, secure connection, transactions, and the rest of the greeting.
    body.extend([0x08, 0xa2, 33, 2, 0, 0x08, 0x00, 21]);
    body.extend([0; 10]);
    body.extend(b"123456789012\0mysql_native_password\0");
    packet(0, &body)
}

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("short").to_le_bytes();
    [&length[..3], &[number], body].concat()
}
