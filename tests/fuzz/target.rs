//! A fuzz target: a parser, its initial inputs, and the properties that must hold for every input.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder in which [`scratch`] creates others.
pub const FOLDER: &str = "ARENAD_FUZZ_FOLDER";

/// Examines one input. Panics if a property is broken, otherwise returns the outcome in words.
///
/// An input with a new answer, apart from numbers, is kept and mutated further: the answers replace the coverage that
/// other fuzzers measure.
pub type InputCheck = Box<dyn FnMut(&[u8]) -> String>;

/// A parser of untrusted bytes.
pub struct FuzzTarget {
    /// Its name, which is that of its folder in `corpus/`.
    pub name: &'static str,
    /// Words of its language, which mutations insert.
    pub words: &'static [&'static str],
    /// Prepares the resources that all inputs share.
    pub open: fn() -> InputCheck,
    /// Inputs that are too large to be files; they are examined like the corpus.
    pub made: fn() -> Vec<Vec<u8>>,
    /// Makes a mutated input pass the checksums that would otherwise refuse nearly all of them.
    pub mend: fn(&mut Vec<u8>),
    /// The time limit for one input in an unoptimized build on a busy machine. It catches work that grows faster than
    /// the input.
    pub slowest: Duration,
    /// The limit on the memory of the whole process, in bytes.
    pub memory: u64,
    /// Starts the resources that all processes of the target share, before the first of them.
    pub around: fn() -> Around,
}

/// Resources that the processes of a target share, such as servers; they are released after the last input.
pub struct Around {
    /// Variables that tell the processes where the resources are.
    pub variables: Vec<(&'static str, String)>,
    /// The guard that releases the resources when it is dropped.
    #[expect(dead_code, reason = "it ends when it is dropped")]
    pub kept: Option<Box<dyn std::any::Any + Send>>,
}

impl FuzzTarget {
    /// Creates a target with the usual limits, without words and without a function that mends inputs.
    pub const fn new(name: &'static str, open: fn() -> InputCheck) -> Self {
        Self {
            name,
            words: &[],
            open,
            made: Vec::new,
            mend: |_| {},
            slowest: Duration::from_secs(10),
            memory: 512 << 20,
            around: || Around { variables: Vec::new(), kept: None },
        }
    }

    /// Returns the initial inputs in the order of their names; the generated ones come last.
    pub fn corpus(&self) -> Vec<Vec<u8>> {
        let folder = folder(self.name);
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        let files = paths.iter().map(|path| std::fs::read(path).expect("a file of the corpus"));
        let corpus: Vec<Vec<u8>> = files.chain((self.made)()).collect();
        assert!(!corpus.is_empty(), "{} has no inputs", folder.display());
        corpus
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(name)
}

/// Creates an empty folder for this process; it is removed with that of the supervising process.
pub fn scratch() -> PathBuf {
    let made = match std::env::var_os(FOLDER) {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    made.expect("a folder").keep()
}

/// The separator between the parts of an input: a line of eight equals signs.
pub const DIVIDER: &str = "\n========\n";

/// Divides an input into texts; missing parts are empty.
pub fn parts<const N: usize>(input: &[u8]) -> [String; N] {
    let text = String::from_utf8_lossy(input);
    let mut parts = text.splitn(N, DIVIDER).map(str::to_owned);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// Divides an input into pieces of bytes; there is at least one.
pub fn pieces(input: &[u8]) -> Vec<Vec<u8>> {
    let divider = DIVIDER.as_bytes();
    let mut pieces = Vec::new();
    let mut rest = input;
    while let Some(at) = rest.windows(divider.len()).position(|window| window == divider) {
        pieces.push(rest[..at].to_vec());
        rest = &rest[at + divider.len()..];
    }
    pieces.push(rest.to_vec());
    pieces
}
