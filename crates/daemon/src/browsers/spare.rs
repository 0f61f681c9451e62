//! Browsers that no episode has yet. One is made before it is needed, because the start of its process takes longer than
//! everything else that is done before a page is requested.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::BrowserError;
use arenad_agent_browser::{BlankBrowser, BrowserPool, BrowserSeat};
use arenad_gateway::ProxyPort;

/// Time for which a spare browser waits. It keeps its process from ending.
const WAIT: Duration = Duration::from_secs(60);

/// A browser without an episode, and the port of its proxy, where no proxy answers before it has one.
pub(crate) struct UnusedBrowser {
    pub(super) blank: BlankBrowser,
    pub(super) port: ProxyPort,
}

impl UnusedBrowser {
    /// Makes a browser. Errors: all but `NotOpen`, `Stopped` and `Full`.
    pub(super) async fn make(pool: &BrowserPool) -> Result<Self, BrowserError> {
        let seat = pool.seat().await.map_err(|fault| BrowserError::NotStarted(fault.to_string()))?;
        Self::make_in(seat).await
    }

    async fn make_in(seat: BrowserSeat) -> Result<Self, BrowserError> {
        let port = ProxyPort::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).map_err(BrowserError::Port)?;
        let proxy = format!("http://{}", port.address());
        let blank = BlankBrowser::make(seat, &proxy).await.map_err(BrowserError::Failed)?;
        Ok(Self { blank, port })
    }
}

/// The browser that the next reset gets, if there is one.
#[derive(Default)]
pub(super) struct SpareBrowser {
    waiting: Mutex<Option<UnusedBrowser>>,
    /// Held while a browser is made.
    maker: tokio::sync::Mutex<()>,
}

impl SpareBrowser {
    // Every change is one assignment, so a panic leaves a valid value.
    fn waiting(&self) -> MutexGuard<'_, Option<UnusedBrowser>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the browser, unless it is lost.
    pub(super) fn take(&self) -> Option<UnusedBrowser> {
        self.waiting().take().filter(|unused| !unused.blank.is_lost())
    }

    /// Makes a browser in a process that has room, and closes it after [`WAIT`] if no one has taken it. Does nothing if there
    /// is one.
    pub(super) async fn keep(&self, pool: &BrowserPool) {
        let Some(address) = self.refill(pool).await else { return };
        tokio::time::sleep(WAIT).await;
        self.waiting().take_if(|unused| unused.port.address() == address);
    }

    /// Makes a browser if there is none, and returns the address of its proxy.
    async fn refill(&self, pool: &BrowserPool) -> Option<SocketAddr> {
        let _maker = self.maker.try_lock().ok()?;
        if self.waiting().is_some() {
            return None;
        }
        // A process of its own would be too much for a browser that may never be used.
        let seat = pool.free_seat().await?;
        match UnusedBrowser::make_in(seat).await {
            Ok(unused) => {
                let address = unused.port.address();
                *self.waiting() = Some(unused);
                Some(address)
            }
            Err(error) => {
                tracing::debug!(%error, "no spare browser was made");
                None
            }
        }
    }

    /// Closes the browser that waits, if there is one.
    pub(super) fn close(&self) {
        self.waiting().take();
    }
}
