//! Connections to servers outside of this installation, such as mirrors and judges: directly or through the proxy that
//! environment variables name, with or without TLS.
//!
//! The trusted certificates are those of the system (or of `SSL_CERT_FILE`), because institutions have certificate
//! authorities of their own. The whole program uses one provider of cryptography: ring.
//!
//! The crate depends on no other crate of arenad. Start reading at [`Connector`].

use std::io;
use std::sync::Arc;

use hyper_util::client::proxy::matcher::Matcher;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::Url;

/// Maximum length of a proxy's response to CONNECT, in bytes.
const TUNNEL_ANSWER_MAX: usize = 8192;

/// A byte stream in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Opens connections, directly or through a proxy.
pub struct Connector {
    proxies: Matcher,
    tls: TlsConnector,
    has_roots: bool,
}

/// An open connection, with the form that requests on it must have.
pub struct Connected {
    /// The open byte stream.
    pub wire: Box<dyn ByteStream>,
    /// Prefix of the request's path: empty, or the whole origin if a proxy forwards the request.
    pub prefix: String,
    /// `Proxy-Authorization`, if a proxy reads the request.
    pub proxy_authorization: Option<http::HeaderValue>,
}

impl Default for Connector {
    /// Takes proxies from `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
    fn default() -> Self {
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring speaks TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { proxies: Matcher::from_env(), tls: TlsConnector::from(Arc::new(config)), has_roots: added > 0 }
    }
}

impl Connector {
    /// Connects to the host of a URL.
    pub async fn connect(&self, url: &Url) -> io::Result<Connected> {
        let is_secure = url.scheme() == "https";
        let host = url.host_str().ok_or_else(|| io::Error::other("the URL has no host"))?;
        let port = url.port_or_known_default().ok_or_else(|| io::Error::other("the URL has no port"))?;
        let uri: http::Uri = url.as_str().parse().map_err(io::Error::other)?;
        let mut connected = match self.proxies.intercept(&uri) {
            None => {
                let wire = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
                Connected { wire: Box::new(wire), prefix: String::new(), proxy_authorization: None }
            }
            Some(proxy) => {
                let mut wire = to_proxy(proxy.uri()).await?;
                let authorization = proxy.basic_auth().cloned();
                if is_secure {
                    tunnel(&mut wire, host, port, authorization.as_ref()).await?;
                    Connected { wire: Box::new(wire), prefix: String::new(), proxy_authorization: None }
                } else {
                    let prefix = url.origin().ascii_serialization();
                    Connected { wire: Box::new(wire), prefix, proxy_authorization: authorization }
                }
            }
        };
        if is_secure {
            if !self.has_roots {
                let message = "the system trusts no certificates; install ca-certificates, or set SSL_CERT_FILE";
                return Err(io::Error::other(message));
            }
            let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(io::Error::other)?;
            connected.wire = Box::new(self.tls.connect(name, connected.wire).await?);
        }
        Ok(connected)
    }
}

async fn to_proxy(proxy: &http::Uri) -> io::Result<TcpStream> {
    if proxy.scheme_str() != Some("http") {
        let scheme = proxy.scheme_str().unwrap_or("no");
        return Err(io::Error::other(format!("the proxy is of the kind `{scheme}`; only http:// is supported")));
    }
    let host = proxy.host().ok_or_else(|| io::Error::other("the proxy has no host"))?;
    let wire = TcpStream::connect((host.trim_matches(['[', ']']), proxy.port_u16().unwrap_or(80))).await;
    wire.map_err(|cause| io::Error::new(cause.kind(), format!("the proxy {host}: {cause}")))
}

/// Asks a proxy for a tunnel to a host.
async fn tunnel(
    wire: &mut TcpStream,
    host: &str,
    port: u16,
    authorization: Option<&http::HeaderValue>,
) -> io::Result<()> {
    let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n").into_bytes();
    if let Some(value) = authorization {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(value.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    wire.write_all(&request).await?;
    let mut answer = Vec::new();
    // The response is read byte by byte, because the bytes after it belong to the tunnelled connection.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() == TUNNEL_ANSWER_MAX {
            return Err(io::Error::other("the proxy's answer has no end"));
        }
        answer.push(wire.read_u8().await?);
    }
    let first = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
    match first.split_whitespace().nth(1) {
        Some(status) if status.starts_with('2') => Ok(()),
        _ => Err(io::Error::other(format!("the proxy refuses to connect to {host}: {first}"))),
    }
}
