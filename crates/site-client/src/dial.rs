//! Connections to containers. One [`Dialer`] opens all connections of TCP and HTTP probes, log-ins and HTTP locators,
//! and those that test whether a standby answers, so that tests can reach sites without a network.
//!
//! The dialer does not open the connections to SQL servers (`probes::sql`, `locators::sql`) and to Redis
//! (`digest::redis`), which confined processes use; those of browsers (`locators::js`); and those of the gateway, whose
//! sockets a switch must be able to abort.

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
    /// Connects to an address of a container. Cancellation: safe; the connection is dropped.
    async fn dial(&self, address: SocketAddr) -> io::Result<Box<dyn Duplex>>;
}

/// A shared way of connecting to containers; clones share it.
#[derive(Clone)]
pub struct Dialer(Arc<dyn Dial>);

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dialer")
    }
}

impl Dialer {
    /// Creates a dialer that opens connections through `dial`.
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
        // A request must not wait for the acknowledgement of the previous one.
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}
