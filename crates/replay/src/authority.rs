//! The certificate authority of an installation, under which recorded `https` hosts are served.
//!
//! The key is made when it is first needed, in a file that only the daemon's user can read. It never leaves the
//! installation: clients get the certificate, and trust it for as long as they use replays. Certificates of hosts are made
//! for each host that a client connects to, with keys that are kept in memory.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData,
};
use sha2::{Digest, Sha256};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};

/// The name of the authority in its certificate, before a part of its key's hash.
const NAME: &str = "arenad replay CA";

/// The number of hosts whose certificates are kept.
const HOSTS_KEPT: usize = 1024;

/// The reason why there is no authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The file could not be read or written.
    #[error("{doing} {path}")]
    File {
        /// The action as a verb.
        doing: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error that the system reported.
        #[source]
        cause: io::Error,
    },
    /// A file contains something else.
    #[error("read the replay authority's {path}: {what}")]
    Invalid {
        /// The path of the file.
        path: PathBuf,
        /// The reason why the content is not valid.
        what: String,
    },
    /// A certificate could not be made.
    #[error("make a certificate: {0}")]
    Make(String),
}

/// The authority, which serves any host.
#[derive(Clone)]
pub struct ReplayAuthority {
    shared: Arc<SharedAuthority>,
    config: Arc<ServerConfig>,
}

struct SharedAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    /// Hash of the public key, as Chromium takes it.
    key_hash: String,
    hosts: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl fmt::Debug for ReplayAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayAuthority").finish_non_exhaustive()
    }
}

impl fmt::Debug for SharedAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedAuthority").finish_non_exhaustive()
    }
}

impl ReplayAuthority {
    /// Reads the authority in a folder, or makes one if there is none. Only one process at a time may call this for a
    /// folder.
    ///
    /// Errors: `AuthorityError::Invalid` for files that contain something else; they are left alone.
    pub fn open(folder: &Path) -> Result<Self, AuthorityError> {
        let (key_path, certificate_path) = (folder.join("ca.key"), folder.join("ca.pem"));
        let invalid = |path: &Path| {
            let path = path.to_owned();
            move |error: &dyn fmt::Display| AuthorityError::Invalid { path, what: error.to_string() }
        };
        let key = match read(&key_path)? {
            Some(text) => KeyPair::from_pem(&text).map_err(|error| invalid(&key_path)(&error))?,
            None => {
                let made = KeyPair::generate().map_err(|error| AuthorityError::Make(error.to_string()))?;
                write(&key_path, &made.serialize_pem(), 0o600)?;
                made
            }
        };
        let hash = Sha256::digest(key.subject_public_key_info());
        let mark: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let params = authority_params(&format!("{NAME} {mark}"))?;
        // The certificate is kept, because a new one would differ from the one that clients trust.
        let pem = match read(&certificate_path)? {
            Some(pem) => pem,
            None => {
                let made = params.self_signed(&key).map_err(|error| AuthorityError::Make(error.to_string()))?;
                write(&certificate_path, &made.pem(), 0o644)?;
                made.pem()
            }
        };
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes());
        let certificate = certificate.map_err(|error| invalid(&certificate_path)(&error))?;
        let shared = Arc::new(SharedAuthority {
            issuer: Issuer::new(params, key),
            certificate,
            pem,
            key_hash: STANDARD.encode(hash),
            hosts: Mutex::default(),
        });
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| AuthorityError::Make(error.to_string()))?;
        // `server` replaces the resolver in a copy, so that all hosts share the rest, such as the cache of sessions.
        let nowhere = HostCertificate { shared: shared.clone(), host: String::new() };
        let mut config = config.with_no_client_auth().with_cert_resolver(Arc::new(nowhere));
        // The gateway speaks HTTP/1.1 only.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { shared, config: Arc::new(config) })
    }

    /// Returns the certificate that clients trust, in the form PEM.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.shared.pem
    }

    /// Returns the SHA-256 of the public key in base64, for Chromium's `--ignore-certificate-errors-spki-list`.
    #[must_use]
    pub fn key_hash(&self) -> &str {
        &self.shared.key_hash
    }

    /// Returns the settings of a TLS server that is the given host: a name, or an address, which may be in brackets.
    ///
    /// It has the certificate of this host whatever the client asks for: one that connects to an address asks for nothing.
    #[must_use]
    pub fn server(&self, host: &str) -> Arc<ServerConfig> {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let mut config = ServerConfig::clone(&self.config);
        config.cert_resolver = Arc::new(HostCertificate { shared: self.shared.clone(), host });
        Arc::new(config)
    }
}

impl SharedAuthority {
    fn key_of(&self, host: &str) -> Result<Arc<CertifiedKey>, AuthorityError> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = hosts.get(host) {
            return Ok(known.clone());
        }
        let failed = |error: rcgen::Error| AuthorityError::Make(error.to_string());
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::new(vec![host.to_owned()]).map_err(failed)?;
        set_validity(&mut params);
        params.distinguished_name.push(DnType::CommonName, host);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let made = params.signed_by(&key, &self.issuer).map_err(failed)?;
        // The authority's certificate is sent too: Chromium finds its key in the chain.
        let chain = vec![made.der().clone(), self.certificate.clone()];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let key = ring::sign::any_supported_type(&key).map_err(|error| AuthorityError::Make(error.to_string()))?;
        let certified = Arc::new(CertifiedKey::new(chain, key));
        if hosts.len() >= HOSTS_KEPT {
            hosts.clear();
        }
        hosts.insert(host.to_owned(), certified.clone());
        Ok(certified)
    }
}

/// The certificate of one host.
#[derive(Debug)]
struct HostCertificate {
    shared: Arc<SharedAuthority>,
    host: String,
}

impl ResolvesServerCert for HostCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        self.shared.key_of(&self.host).ok()
    }
}

/// Sets the time for which a certificate is valid. Clients whose clocks are set to the time of a recording accept it too.
fn set_validity(params: &mut CertificateParams) {
    params.not_before = rcgen::date_time_ymd(2010, 1, 1);
    params.not_after = rcgen::date_time_ymd(2049, 12, 31);
}

fn authority_params(name: &str) -> Result<CertificateParams, AuthorityError> {
    let mut params = CertificateParams::new(Vec::new()).map_err(|error| AuthorityError::Make(error.to_string()))?;
    set_validity(&mut params);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn read(path: &Path) -> Result<Option<String>, AuthorityError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(AuthorityError::File { doing: "read", path: path.to_owned(), cause }),
    }
}

/// Writes a file so that it is complete when it has its name.
fn write(path: &Path, content: &str, mode: u32) -> Result<(), AuthorityError> {
    let written = || -> io::Result<()> {
        let partial = path.with_extension("partial");
        match fs::remove_file(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::options().write(true).create_new(true).mode(mode).open(&partial)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    written().map_err(|cause| AuthorityError::File { doing: "write", path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_authority_is_made_once_and_its_key_is_closed_to_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = ReplayAuthority::open(folder.path()).expect("made");
        let mode = fs::metadata(folder.path().join("ca.key")).expect("a key").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = ReplayAuthority::open(folder.path()).expect("read");
        assert_eq!(first.certificate(), second.certificate());
        assert_eq!(first.key_hash(), second.key_hash());
        let one = second.shared.key_of("shop.test").expect("a certificate");
        let again = second.shared.key_of("shop.test").expect("a certificate");
        assert!(Arc::ptr_eq(&one, &again));
        fs::write(folder.path().join("ca.key"), "nonsense").expect("written");
        assert!(matches!(ReplayAuthority::open(folder.path()), Err(AuthorityError::Invalid { .. })));
    }
}
