//! Pickles that BrowserGym writes. Any bytes are read or refused within bounds; the limit on the process's memory
//! enforces them.

use std::io::Write;

use arenad_evaluation::results::{RecordedResult, ResultLayout, Stored};

use crate::target::{FuzzTarget, InputCheck, scratch};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "\u{1}(",
        "(",
        ".",
        "0",
        "1",
        "2",
        "N",
        "K\u{1}",
        "I1\n",
        "L9L\n",
        "F1e999\n",
        "S'a'\n",
        "Va\n",
        "]",
        "}",
        ")",
        "l",
        "d",
        "t",
        "a",
        "e",
        "s",
        "u",
        "R",
        "b",
        "o",
        "c",
        "cm\nf\n",
        "im\nf\n",
        "p0\n",
        "g0\n",
        "q\0",
        "h\0",
        "j\0\0\0\0",
        "r\0\0\0\0",
        "X\u{3}\0\0\0url",
        "\u{8}",
        "](h\0h\0h\0h\0eq\0",
        "]h\0aq\0",
        "h\u{1}h\0R0",
    ],
    // The memory of the reader and of the pickle itself.
    memory: 1 << 30,
    made,
    ..FuzzTarget::new("pickles", open)
};

fn open() -> InputCheck {
    let folder = scratch();
    let (named, other) = (folder.join("a_on_webarena.3_7"), folder.join("b"));
    for folder in [&named, &other] {
        std::fs::create_dir(folder).expect("a folder");
    }
    Box::new(move |input| {
        // The input is read as a compressed last step, and as uncompressed arguments.
        let step = std::fs::File::create(named.join("step_0.pkl.gz")).expect("a file");
        let mut packed = flate2::write::GzEncoder::new(step, flate2::Compression::fast());
        packed.write_all(input).and_then(|()| packed.finish().map(drop)).expect("written");
        std::fs::write(other.join("exp_args.pkl"), input).expect("a file");
        let read = |path: &std::path::Path| match (Stored { path: path.to_owned(), layout: ResultLayout::BrowserGym })
            .read()
        {
            Ok(RecordedResult::Left(left)) => format!("{:?}", left.benchmark),
            Ok(RecordedResult::Evidence(_)) => "evidence".to_owned(),
            Err(error) => error.to_string().rsplit_once(": ").map_or_else(String::new, |(_, why)| why.to_owned()),
        };
        format!("{} / {}", read(&named), read(&other))
    })
}

/// Pickles that are expensive to read, each for another reason.
fn made() -> Vec<Vec<u8>> {
    let repeated = |before: &[u8], middle: &[u8], count: usize, after: &[u8]| {
        let mut pickle = before.to_vec();
        pickle.extend(middle.repeat(count));
        pickle.extend_from_slice(after);
        pickle
    };
    vec![
        repeated(b"", b"]", 100_000, b"."),
        repeated(b"(", b"N", 4 << 20, b"l."),
        repeated(b"]Naq\0", b"](h\0h\0h\0h\0h\0h\0h\0h\0h\0h\0eq\0", 20, b"."),
        repeated(b"L", b"9", 1 << 20, b"L\n."),
        repeated(&[b"cm\nf\nq\x01(".as_slice(), &b"N".repeat(1 << 20), b"tq\0"].concat(), b"h\x01h\0R0", 1 << 16, b"."),
    ]
}
