//! The signals that `arenad run` receives, for any number of runs.

use std::convert::Infallible;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// A signal that ends `arenad run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrapperSignal {
    /// SIGINT, which a terminal sends on Ctrl-C.
    Interrupt,
    /// SIGTERM, as `kill` and service managers send it.
    Terminate,
    /// SIGHUP, which is sent when the terminal is closed.
    HangUp,
}

/// Listens for the signals from its creation on.
pub struct Interruptions {
    last: watch::Sender<Option<WrapperSignal>>,
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// The signals as one run sees them.
pub struct Interruption(watch::Receiver<Option<WrapperSignal>>);

impl Interruptions {
    /// Begins to listen. From then on the signals do not end this process.
    pub fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("listen for signals");
        Ok(Self {
            last: watch::Sender::new(None),
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Returns the signals for one run.
    pub fn subscribe(&self) -> Interruption {
        Interruption(self.last.subscribe())
    }

    /// Passes signals on to all runs.
    pub async fn forward(mut self) -> Infallible {
        loop {
            let received = tokio::select! {
                _ = self.interrupt.recv() => WrapperSignal::Interrupt,
                _ = self.terminate.recv() => WrapperSignal::Terminate,
                _ = self.hang_up.recv() => WrapperSignal::HangUp,
            };
            self.last.send_replace(Some(received));
        }
    }
}

impl Interruption {
    /// Waits for the next signal.
    ///
    /// Cancellation: no signal is lost, but of several only the last one is seen.
    pub async fn next(&mut self) -> WrapperSignal {
        loop {
            if self.0.changed().await.is_err() {
                // The sender lives as long as the runs.
                std::future::pending::<()>().await;
            }
            if let Some(signal) = *self.0.borrow_and_update() {
                return signal;
            }
        }
    }
}
