//! Untrusted pickles: a machine that tracks only sizes measures them before they are read as data.
//!
//! A pickle is a program for a stack machine. A few bytes can stand for gigabytes, through references to earlier
//! values, or for data nested so deep that a recursive reader overflows the stack. The measuring machine runs the same
//! program on sizes and depths, and bounds everything that the reader would keep, copy and visit.

mod machine;

use std::io::Read;

use serde::de::DeserializeOwned;
use serde_pickle::DeOptions;

use self::machine::measure;

/// Maximum size of a pickle, uncompressed, in bytes: more than any step has, including screenshots.
const BYTES_MAX: u64 = 64 << 20;

/// Maximum number of bytes that a reader may keep and copy for a pickle.
const KEPT_MAX: u64 = 512 << 20;

/// Maximum size of the data with each reference replaced by its target, in bytes.
const EXPANDED_MAX: u64 = 256 << 20;

/// Maximum nesting depth of the data.
const DEPTH_MAX: u32 = 100;

/// Maximum length of a number, in digits or bytes: Python converts no more digits.
const NUMBER_MAX: usize = 4300;

/// Maximum length of the reader's error in a message, in characters, because the error may quote the data.
const SHOWN_MAX: usize = 200;

/// The reason why a pickle is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PickleError {
    /// The input or the pickle could not be read; the text is the reader's error.
    #[error("{0}")]
    Unreadable(String),
    /// The pickle has more than [`BYTES_MAX`] bytes.
    #[error("it has more than {} MiB, uncompressed", BYTES_MAX >> 20)]
    Long,
    /// The data would take more than [`KEPT_MAX`] or [`EXPANDED_MAX`] bytes.
    #[error("its data would take more memory than any result has")]
    Large,
    /// The data is nested more than [`DEPTH_MAX`] deep.
    #[error("its data is nested more than {DEPTH_MAX} deep")]
    Deep,
    /// A number has more than [`NUMBER_MAX`] digits or bytes.
    #[error("a number in it has more than {NUMBER_MAX} digits")]
    Number,
    /// The data contains itself.
    #[error("its data contains itself")]
    Recursive,
    /// The input is not a pickle, or not one that a pickler writes.
    #[error("it is not a pickle of data: {0}")]
    Malformed(&'static str),
}

/// Reads a pickle as data.
pub(super) fn read<T: DeserializeOwned>(input: impl Read) -> Result<T, PickleError> {
    let mut bytes = Vec::new();
    let read = input.take(BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| PickleError::Unreadable(error.to_string()))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(PickleError::Long);
    }
    measure(&bytes)?;
    // Unknown classes, arrays and functions are irrelevant here, so they become `None`.
    let options = DeOptions::new().replace_unresolved_globals();
    serde_pickle::from_slice(&bytes, options).map_err(|error| {
        let text = error.to_string();
        let shown: String = text.chars().take(SHOWN_MAX).collect();
        PickleError::Unreadable(if shown.len() < text.len() { format!("{shown}…") } else { shown })
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    fn read_value(pickle: &[u8]) -> Result<Vec<Option<i64>>, PickleError> {
        read(pickle)
    }

    fn fails(pickle: &[u8]) -> PickleError {
        // The stack has the size of those of the daemon's threads.
        let pickle = pickle.to_vec();
        let work = move || read::<serde::de::IgnoredAny>(pickle.as_slice()).map(drop).expect_err("it is refused");
        std::thread::Builder::new().stack_size(2 << 20).spawn(work).expect("a thread").join().expect("no panic")
    }

    #[test]
    fn data_is_read() {
        // pickle.dumps([None, 1, 70000, -3], protocol) with protocols 0, 2 and 4.
        let protocols: [&[u8]; 3] = [
            b"(lp0\nNaI1\naI70000\naI-3\na.",
            b"\x80\x02]q\x00(NK\x01Jp\x11\x01\x00J\xfd\xff\xff\xffe.",
            b"\x80\x04\x95\x13\x00\x00\x00\x00\x00\x00\x00]\x94(NK\x01Jp\x11\x01\x00J\xfd\xff\xff\xffe.",
        ];
        for pickle in protocols {
            assert_eq!(read_value(pickle), Ok(vec![None, Some(1), Some(70000), Some(-3)]));
        }
    }

    #[test]
    fn attributes_of_objects_are_read_and_shared_parts_too() {
        #[derive(Deserialize)]
        struct Object {
            name: String,
            again: String,
            ints: (i64, i64),
        }
        // An object of an unknown class, with a text that is memoized and used twice.
        let pickle = b"\x80\x04\x8c\x01m\x94\x8c\x01C\x94\x93\x94)\x81\x94}\x94(\x8c\x04name\x94\x8c\x03abc\x94\x8c\x05again\x94h\x06\
            \x8c\x04ints\x94K\x01K\x02\x86\x94ub.";
        let object: Object = read(pickle.as_slice()).expect("an object");
        assert_eq!((object.name.as_str(), object.again.as_str(), object.ints), ("abc", "abc", (1, 2)));
    }

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        for nested in [b"]".repeat(100_000), b"(".repeat(100_000), [b")".to_vec(), b"\x85".repeat(100_000)].concat()] {
            let closing = if nested[0] == b']' { b"a".repeat(99_999) } else { Vec::new() };
            assert_eq!(fails(&[nested, closing, b".".to_vec()].concat()), PickleError::Deep);
        }
        // Nesting through references: each list contains the previous one, which is memoized.
        let mut by_reference = b"]q\x00".to_vec();
        for _ in 0..100_000 {
            by_reference.extend_from_slice(b"]h\x00aq\x00");
        }
        by_reference.push(b'.');
        assert_eq!(fails(&by_reference), PickleError::Deep);
        // Nesting after the reference: each list is put into the previous one, which already exists.
        let mut late = Vec::new();
        for id in 0..1000_u32 {
            late.extend_from_slice(b"]r");
            late.extend_from_slice(&id.to_le_bytes());
            late.push(b'0');
        }
        for id in 0..999_u32 {
            late.push(b'j');
            late.extend_from_slice(&id.to_le_bytes());
            late.push(b'j');
            late.extend_from_slice(&(id + 1).to_le_bytes());
            late.extend_from_slice(b"a0");
        }
        late.extend_from_slice(b"j\0\0\0\0.");
        assert_eq!(fails(&late), PickleError::Deep);
    }

    #[test]
    fn what_would_take_gigabytes_is_refused() {
        let nones = [b"(".to_vec(), b"N".repeat(30 << 20), b"l.".to_vec()].concat();
        assert_eq!(fails(&nones), PickleError::Large);
        // Each list is ten times as large as the previous one.
        let mut laughs = b"]N.".to_vec();
        laughs.pop();
        laughs.extend_from_slice(b"aq\x00");
        for _ in 0..20 {
            laughs.extend_from_slice(b"](h\0h\0h\0h\0h\0h\0h\0h\0h\0h\0eq\0");
        }
        laughs.push(b'.');
        assert_eq!(fails(&laughs), PickleError::Large);
        // A tuple that is taken off the stack at a mark has spare capacity.
        let tuples = [b"(".to_vec(), b"(t".repeat(1 << 20), b"l.".to_vec()].concat();
        assert_eq!(fails(&tuples), PickleError::Large);
        // A function is called with the same arguments many times.
        let mut calls = b"cm\nf\nq\x01(".to_vec();
        calls.extend_from_slice(&b"N".repeat(1 << 20));
        calls.extend_from_slice(b"tq\x00");
        calls.extend_from_slice(&b"h\x01h\x00R0".repeat(1 << 16));
        calls.push(b'.');
        assert_eq!(fails(&calls), PickleError::Large);
        assert_eq!(fails(b"]2a2a2a2a."), PickleError::Malformed("it has an operation that no data needs"));
        assert_eq!(fails(&vec![b'N'; (64 << 20) + 1]), PickleError::Long);
    }

    #[test]
    fn numbers_that_take_long_are_refused() {
        assert_eq!(fails(&[b"L".to_vec(), b"9".repeat(3 << 20), b"L\n.".to_vec()].concat()), PickleError::Number);
        let long = [&b"\x8b"[..], &(3_u32 << 20).to_le_bytes(), &vec![1; 3 << 20], b"."].concat();
        assert_eq!(fails(&long), PickleError::Number);
        assert_eq!(read::<i64>(b"L123L\n.".as_slice()), Ok(123));
    }

    #[test]
    fn what_contains_itself_is_refused() {
        assert_eq!(fails(b"]q\x00h\x00a."), PickleError::Recursive);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_overwhelm_the_reader(
            operations in proptest::collection::vec(
                proptest::sample::select(&b"(.012NK\x01aelduts])}h\x00q\x00\x85\x86\x87\x94RbocX\x8c\x93\x81\x90\x91\n"[..]), 0..200),
        ) {
            let _ = read::<serde::de::IgnoredAny>(operations.as_slice());
        }
    }
}
