//! Scripts of hostile PostgreSQL servers.

use super::{Move, ServerAttack, attacks as of_every_protocol};

/// The reply that accepts any user.
const SIGNED_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// A row description with one text column.
const COLUMN: &[u8] = b"T\0\0\0\x1a\0\x01c\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";

/// Returns the attacks that a client must survive.
pub fn attacks() -> Vec<ServerAttack> {
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
        ("a chain of 200,000 domains", domains(200_000)),
        ("notices without end", asked(vec![Move::Repeat(b"N\0\0\0\x0cSNOTE\0\0\0".repeat(10_000))])),
    ]);
    attacks
}

/// A statement with a column whose type is a domain over a domain, and so on. One answer describes all of them, each
/// after its base type. A client that nests these types also drops them recursively.
fn domains(count: u32) -> Vec<Move> {
    const FIRST: u32 = 100_000;
    const INTEGER: u32 = 23;
    let ready = message(b'Z', b"I");
    let done = |words: &[u8]| [message(b'C', words), ready.clone()].concat();
    let last = FIRST + count - 1;
    let prepared = [message(b'1', b""), message(b't', &[0, 0]), columns(&[("c", last)]), ready.clone()].concat();
    let kinds = [26, 25, 19, 25, 18, 18, 26, 26, 26, 1009, 2287];
    let names = [
        "oid",
        "pretty_name",
        "catalog_name",
        "original_name",
        "typtype",
        "typcategory",
        "typelem",
        "typbasetype",
        "rngsubtype",
        "enum_labels",
        "record_attributes",
    ];
    let mut types = columns(&names.into_iter().zip(kinds).collect::<Vec<_>>());
    for oid in FIRST..=last {
        let of = if oid == FIRST { INTEGER } else { oid - 1 };
        let (own, of) = (oid.to_string(), of.to_string());
        let values = [
            Some(own.as_str()),
            Some("d"),
            Some("d"),
            None,
            Some("d"),
            Some("U"),
            None,
            Some(of.as_str()),
            None,
            Some("{}"),
            Some("{}"),
        ];
        types.extend(row(&values));
    }
    types.extend(done(b"SELECT 1\0"));
    vec![
        Move::Hear,
        Move::Say(SIGNED_IN.to_vec()),
        Move::Hear,
        Move::Say(done(b"BEGIN\0")),
        Move::Hear,
        Move::Say(prepared),
        Move::Hear,
        Move::Say(types),
        Move::Hear,
    ]
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
    [&[kind][..], &length, body].concat()
}

/// The description of rows: the name and the type of each column, all in text format.
fn columns(columns: &[(&str, u32)]) -> Vec<u8> {
    let mut body = u16::try_from(columns.len()).expect("few").to_be_bytes().to_vec();
    for (name, kind) in columns {
        body.extend(name.as_bytes());
        body.extend([0; 7]);
        body.extend(kind.to_be_bytes());
        body.extend([0xff; 6]);
        body.extend([0; 2]);
    }
    message(b'T', &body)
}

fn row(values: &[Option<&str>]) -> Vec<u8> {
    let mut body = u16::try_from(values.len()).expect("few").to_be_bytes().to_vec();
    for value in values {
        match value {
            Some(text) => {
                body.extend(u32::try_from(text.len()).expect("short").to_be_bytes());
                body.extend(text.as_bytes());
            }
            None => body.extend([0xff; 4]),
        }
    }
    message(b'D', &body)
}

/// A script for a client that has signed in, sent a query, and received the description of one column.
fn asked(then: Vec<Move>) -> Vec<Move> {
    let asked = [Move::Hear, Move::Say(SIGNED_IN.to_vec()), Move::Hear, Move::Say(COLUMN.to_vec())];
    asked.into_iter().chain(then).collect()
}
