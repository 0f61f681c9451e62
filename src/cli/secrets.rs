//! Secrets that the command line takes: as text, or from a file, which neither other users nor the environments of child
//! processes show.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;

use super::args::Global;
use super::failure::CommandFailure;

/// The maximum size of a file with a secret, in bytes. A larger file is a mistake.
const FILE_MAX: u64 = 8192;

/// Returns the token for a daemon on TCP.
pub fn token(global: &Global) -> Result<Option<String>, CommandFailure> {
    given("the token", global.token.as_deref(), global.token_file.as_deref())
}

/// Returns a secret from its option, or else from its file, without the whitespace around it.
///
/// Errors: the file cannot be read, is empty, is not text, or is larger than [`FILE_MAX`].
pub fn given(what: &str, text: Option<&str>, file: Option<&Path>) -> Result<Option<String>, CommandFailure> {
    let Some(path) = file else { return Ok(text.map(str::to_owned)) };
    let shown = path.display();
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| format!("read {what} from {shown}"))?;
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).with_context(|| format!("read {what} from {shown}"))?;
    let too_large = bytes.len() as u64 > FILE_MAX;
    match String::from_utf8(bytes).map(|text| text.trim().to_owned()) {
        _ if too_large => {
            Err(CommandFailure::usage(format!("{shown} is larger than {FILE_MAX} bytes; it cannot be {what}")))
        }
        Err(_) => Err(CommandFailure::usage(format!("{shown} is not text in UTF-8; it cannot be {what}"))),
        Ok(text) if text.is_empty() => Err(CommandFailure::usage(format!("{shown} is empty; write {what} into it"))),
        Ok(text) => Ok(Some(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a file with this content gives.
    fn read(content: &[u8]) -> Result<Option<String>, CommandFailure> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, content).expect("write the file");
        given("the token", None, Some(&path))
    }

    #[test]
    fn a_file_gives_its_text_without_the_line_end() {
        assert_eq!(read(b"s3cret\n").ok().flatten().as_deref(), Some("s3cret"));
        assert_eq!(given("the token", Some("typed"), None).ok().flatten().as_deref(), Some("typed"));
        assert!(given("the token", None, None).ok().flatten().is_none());
    }

    #[test]
    fn files_that_hold_no_secret_are_refused() {
        for content in [&b""[..], b" \n", b"\xff\xfe", &[b'x'; 8193]] {
            assert!(read(content).is_err(), "{} bytes", content.len());
        }
        assert!(given("the token", None, Some(Path::new("/nonexistent/token"))).is_err());
    }
}
