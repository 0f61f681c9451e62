//! Connections to containers: every TCP connection to a probe's target, a log-in's site or an HTTP locator's goes through
//! one [`Dialer`], so that a site can be reached without a network.
//!
//! Not dialed here: SQL servers (`probes::sql`, `locators::sql`), because sqlx takes no stream that its caller has opened;
//! Redis, whose connection a confined process gets (`digest::redis`); browsers' requests (`locators::js`); and the gateway's
//! targets, whose sockets a switch must be able to abort.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A byte stream in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Opens connections to containers.
#[async_trait::async_trait]
pub trait Dial: Send + Sync + 'static {
    /// Connects to an address of a container. Cancellation: safe; the connection is given up.
    async fn dial(&self, address: SocketAddr) -> io::Result<Box<dyn Duplex>>;
}

/// The dialer that all code which connects to containers shares.
#[derive(Clone)]
pub struct Dialer(Arc<dyn Dial>);

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dialer")
    }
}

impl Dialer {
    /// Creates a dialer with its own kind of connection.
    pub fn new(dial: impl Dial) -> Self {
        Self(Arc::new(dial))
    }

    /// Creates a dialer that connects by TCP.
    pub fn tcp() -> Self {
        Self::new(Tcp)
    }

    /// Connects to an address of a container.
    pub async fn dial(&self, address: SocketAddr) -> io::Result<Box<dyn Duplex>> {
        self.0.dial(address).await
    }
}

struct Tcp;

#[async_trait::async_trait]
impl Dial for Tcp {
    async fn dial(&self, address: SocketAddr) -> io::Result<Box<dyn Duplex>> {
        let stream = TcpStream::connect(address).await?;
        // Requests and commands must not wait for the acknowledgement of the last one.
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}
