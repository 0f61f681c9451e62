//! Fetches an archive from its mirrors in turn, however long it takes, and rejects any other content.
//!
//! Faults of mirrors, and the reactions to them:
//! ```text
//!   connection breaks, stalls, or 5xx status   resume, from this mirror or the next one
//!   ranges are ignored                         compare the known bytes and continue after them
//!   the file has changed                       start again (detected by ETag, Last-Modified, length, 64 KiB of overlap)
//!   another file than at the first mirror      ignore the mirror; start again if the first mirror is lost
//!   wrong length or damaged content            detected when the whole file is read: ignore the mirror
//! ```

mod attempt;
mod download;
mod exchange;
mod part;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use self::download::{Download, DownloadTask};
use self::part::PartialDownload;
use super::load::{ArchiveSelection, proven};
use super::shelf::{ArchivePaths, ShelfRecord};
use super::watch::WorkProgress;
use super::{ImagesError, file};
use arenad_model::archive::SourceArchive;
use arenad_model::error::describe;
use arenad_outbound::Connector;

/// Limits on waiting for mirrors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Maximum time without any new byte.
    pub stall: Duration,
    /// Number of consecutive failures without a new byte after which a mirror is not asked again.
    pub tries: u32,
}

/// Checks whether there is room for a download. Its arguments are the total size and the size that is already present,
/// in bytes.
pub type SpaceCheck<'a> = &'a (dyn Fn(u64, u64) -> Result<(), ImagesError> + Send + Sync);

/// Fetches archives from their mirrors.
pub struct Fetcher {
    connector: Connector,
    patience: Patience,
}

/// The reason why an attempt at a mirror failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The mirror cannot be connected to.
    #[error("it cannot be reached")]
    Unreachable(#[source] io::Error),
    /// The connection broke during the exchange.
    #[error("the connection broke off")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No data arrived for the given time.
    #[error("nothing arrived for {0:?}")]
    Stalled(Duration),
    /// The response has a status other than success.
    #[error("it answered {status}")]
    Status {
        /// Status code of the response.
        status: StatusCode,
        /// Time to wait before the next request, as the mirror asks.
        pause: Option<Duration>,
    },
    /// The response cannot be used; the text is the reason.
    #[error("{0}")]
    Refused(String),
    /// The file has changed since the previous attempt.
    #[error("the file changed while it was being fetched")]
    Changed,
    /// The file differs from that of the mirror where the download began.
    #[error("it has another file of that name than {0}")]
    Different(String),
    /// The body ended before its declared length.
    #[error("it sent less than it said")]
    Short,
}

impl FetchError {
    /// Returns whether further attempts are useless.
    fn is_final(&self) -> bool {
        match self {
            Self::Status { status, .. } => status.is_client_error() && *status != StatusCode::TOO_MANY_REQUESTS,
            Self::Refused(_) => true,
            _ => false,
        }
    }
}

/// The reason why an attempt ended.
enum AttemptEnd {
    /// The mirror caused the failure.
    Mirror(FetchError),
    /// Writing to the disk failed.
    Disk(io::Error),
    /// Further attempts at any mirror are useless.
    Fatal(ImagesError),
}

impl From<FetchError> for AttemptEnd {
    fn from(error: FetchError) -> Self {
        Self::Mirror(error)
    }
}

impl Fetcher {
    /// Creates a fetcher that uses the proxies and certificates of this process.
    pub fn new(patience: Patience) -> Self {
        Self { connector: Connector::default(), patience }
    }

    /// Fetches an archive to its place, unless it is already there. The caller holds the turn.
    pub async fn fetch(
        &self,
        archive: &SourceArchive,
        place: &ArchivePaths,
        wanted: ArchiveSelection<'_>,
        room: SpaceCheck<'_>,
        watch: &Arc<WorkProgress>,
    ) -> Result<ShelfRecord, ImagesError> {
        if place.file.is_file() {
            let source = place.file.display().to_string();
            match proven(place, archive, &place.file, wanted, &source, watch).await {
                // A file that was fetched and has been damaged since is fetched again. A file outside the shelf may
                // belong to the user, so it is not replaced.
                Err(error) if error.is_about_content() && place.is_on_shelf() && !archive.mirrors.is_empty() => {
                    tracing::debug!(error = describe(&error), "{} is fetched anew", place.name);
                    std::fs::remove_file(&place.file).map_err(file("remove", &place.file))?;
                }
                known => return known,
            }
        }
        let mut part = PartialDownload::open(place).await.map_err(file("open", &place.part()))?;
        let order = DownloadTask { archive, place, wanted, room, watch };
        let fetched = Download::new(self, order, &mut part).run().await;
        if fetched.is_err() {
            // In any case, the content that has arrived is kept.
            let _ = match part.length() {
                0 => std::fs::remove_file(place.part()),
                _ => part.sync().await,
            };
        }
        fetched
    }
}
