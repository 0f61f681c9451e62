//! The key with which this installation signs certificates of verdicts.
//!
//! The key is made when the daemon first starts, in a file of the state directory that only its user can read. A file
//! without a key in it is an error: a new key would not verify the earlier certificates.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arenad_certificate::canonical::NotCanonical;
use arenad_certificate::{Certificate, CertifiedStatement, InstallationKey, InvalidKey, PublicKey};

/// The reason why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum CertifierError {
    /// The file could not be read or written.
    #[error("{doing} the key of certificates {path}")]
    File {
        /// The action as a verb.
        doing: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The underlying I/O error.
        #[source]
        cause: io::Error,
    },
    /// The file contains something else.
    #[error("read the key of certificates {path}")]
    Key {
        /// The path of the file.
        path: PathBuf,
        /// The reason why the content is not a key.
        #[source]
        cause: InvalidKey,
    },
    /// No key can be made.
    #[error("make a key of certificates")]
    Make(#[source] InvalidKey),
}

/// Signs certificates with the key of the installation.
#[derive(Debug, Clone)]
pub struct Certifier(Arc<InstallationKey>);

impl Certifier {
    /// Reads the key, or makes one if there is none. Only one daemon at a time may call this for a file.
    pub fn open(path: &Path) -> Result<Self, CertifierError> {
        let failed = |doing| move |cause| CertifierError::File { doing, path: path.to_owned(), cause };
        let content = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = InstallationKey::generate().map_err(CertifierError::Make)?;
                write(path, &made).map_err(failed("write"))?;
                made
            }
            read => read.map_err(failed("read"))?,
        };
        let key = InstallationKey::read(&content);
        let key = key.map_err(|cause| CertifierError::Key { path: path.to_owned(), cause })?;
        Ok(Self(Arc::new(key)))
    }

    /// Makes a key that is not kept, for a daemon that no certificate outlives.
    pub fn unkept() -> Result<Self, CertifierError> {
        let made = InstallationKey::generate().map_err(CertifierError::Make)?;
        Ok(Self(Arc::new(InstallationKey::read(&made).map_err(CertifierError::Make)?)))
    }

    /// Returns the key by which certificates are verified.
    pub(crate) fn public(&self) -> PublicKey {
        self.0.public()
    }

    pub(crate) fn sign(&self, statement: CertifiedStatement) -> Result<Certificate, NotCanonical> {
        statement.sign(&self.0)
    }
}

/// Writes the file so that it is complete when it has its name, and never open to other users.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let partial = path.with_extension("partial");
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&partial, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_closed_to_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("certificate.key");
        // The file of a daemon that was killed while it wrote.
        fs::write(path.with_extension("partial"), "half").expect("written");
        let first = Certifier::open(&path).expect("made").public();
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
        assert_eq!(Certifier::open(&path).expect("read").public(), first);
        assert_ne!(Certifier::unkept().expect("made").public(), first);
    }

    #[test]
    fn a_file_that_is_no_key_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("certificate.key");
        fs::write(&path, "").expect("written");
        assert!(matches!(Certifier::open(&path), Err(CertifierError::Key { .. })));
        assert_eq!(fs::read(&path).expect("a file"), b"");
    }
}
