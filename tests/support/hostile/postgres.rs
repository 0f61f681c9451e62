//! PostgreSQL.

use super::{Attack, Move, attacks as of_every_protocol};

/// Signs anybody in.
const SIGNED_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// One column of texts.
const COLUMN: &[u8] = b"T\0\0\0\x1a\0\x01c\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";

/// What is to be survived.
pub fn attacks() -> Vec<Attack> {
    let mut attacks = of_every_protocol();
    attacks.extend([
        ("rows without end", asked(vec![Move::Repeat(b"D\0\0\0\x0b\0\x01\0\0\0\x01x".repeat(10_000))])),
        (
            "a row of two gigabytes",
            asked(vec![
                Move::Say(b"D\x7f\xff\xff\xff\0\x01\x7f\xff\xff\xf5".to_vec()),
                Move::Repeat(vec![b'x'; 1 << 20]),
            ]),
        ),
        (
            "a row of more columns than there are",
            asked(vec![Move::Say(b"D\0\0\0\x0b\x7f\xff\0\0\0\x01x".to_vec()), Move::Silence]),
        ),
        (
            "a value of negative length",
            asked(vec![Move::Say(b"D\0\0\0\x0b\0\x01\xff\xff\xff\xf0x".to_vec()), Move::Silence]),
        ),
        ("a message that is shorter than its length", asked(vec![Move::Say(b"D\0\0\0\x03".to_vec()), Move::Silence])),
        ("notices without end", asked(vec![Move::Repeat(b"N\0\0\0\x0cSNOTE\0\0\0".repeat(10_000))])),
    ]);
    attacks
}

/// After a client has signed in and asked, and been told of one column.
fn asked(then: Vec<Move>) -> Vec<Move> {
    let asked = [Move::Hear, Move::Say(SIGNED_IN.to_vec()), Move::Hear, Move::Say(COLUMN.to_vec())];
    asked.into_iter().chain(then).collect()
}
