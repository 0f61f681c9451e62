//! One download from all its mirrors: selects the mirror, counts failures, and decides when the file is complete.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::attempt::attempt;
use super::part::PartialDownload;
use super::{AttemptEnd, FetchError, Fetcher, SpaceCheck};
use crate::load::{ArchiveSelection, proven};
use crate::place::settle;
use crate::shelf::{ArchivePaths, ShelfRecord};
use crate::watch::WorkProgress;
use crate::{ImagesError, file};
use arenad_model::archive::SourceArchive;
use arenad_model::error::describe;

/// Maximum number of times that a mirror's file may change during the download.
const CHANGES_MAX: u32 = 3;

/// Pause after the first failure; it doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(250);

/// Maximum pause, even if a mirror asks for a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The task of a download: the archive, its place, and the watch that reports progress.
#[derive(Clone, Copy)]
pub(super) struct DownloadTask<'a> {
    pub(super) archive: &'a SourceArchive,
    pub(super) place: &'a ArchivePaths,
    pub(super) wanted: ArchiveSelection<'a>,
    pub(super) room: SpaceCheck<'a>,
    pub(super) watch: &'a Arc<WorkProgress>,
}

/// A mirror and its failures so far.
struct TriedMirror<'a> {
    url: &'a str,
    /// Consecutive failures without any new byte.
    failures: u32,
    changes: u32,
    is_lost: bool,
    fault: String,
}

/// A running download, which asks the mirrors in turn.
pub(super) struct Download<'a> {
    fetcher: &'a Fetcher,
    order: DownloadTask<'a>,
    part: &'a mut PartialDownload,
    mirrors: Vec<TriedMirror<'a>>,
    /// Index of the mirror that is asked next.
    current: usize,
    /// Maximum length that the partial download has had since the last restart, in bytes.
    best: u64,
    /// Set once the bytes of several mirrors did not form a valid file. From then on, bytes are not mixed.
    is_unmixed: bool,
    bad_content: Option<ImagesError>,
}

impl<'a> Download<'a> {
    /// Resumes a partial download.
    pub(super) fn new(fetcher: &'a Fetcher, order: DownloadTask<'a>, part: &'a mut PartialDownload) -> Self {
        let fresh = |url| TriedMirror { url, failures: 0, changes: 0, is_lost: false, fault: String::new() };
        let mirrors = order.archive.mirrors.iter().map(|url| fresh(url.as_str())).collect();
        let best = part.length();
        let mut download =
            Self { fetcher, order, part, mirrors, current: 0, best, is_unmixed: false, bad_content: None };
        download.current = download.first().unwrap_or(0);
        download
    }

    /// Asks mirrors until the file is complete or no usable mirror is left.
    pub(super) async fn run(mut self) -> Result<ShelfRecord, ImagesError> {
        loop {
            if self.part.is_complete()
                && let Some(record) = self.finish().await?
            {
                return Ok(record);
            }
            let Some(next) = self.next() else { return Err(self.give_up()) };
            self.current = next;
            let url = self.mirrors[next].url;
            if self.is_unmixed && self.part.origin.as_ref().is_some_and(|origin| origin.mirror != url) {
                self.restart().await?;
            }
            let DownloadTask { archive, place, room, watch, .. } = self.order;
            let total = self.part.origin.as_ref().and_then(|origin| origin.total_bytes);
            watch.begin(format!("fetching {}", place.name), total);
            watch.reach(self.part.length());
            let restarts = self.part.restarts();
            let done = tokio::select! {
                done = attempt(self.fetcher, url, archive, self.part, room, watch) => done,
                () = watch.cancelled() => return Err(ImagesError::Cancelled),
            };
            if self.part.restarts() > restarts {
                let mirror = &mut self.mirrors[next];
                mirror.changes += 1;
                mirror.is_lost |= mirror.changes > CHANGES_MAX;
                self.best = 0;
            }
            match done {
                Ok(()) => {}
                Err(AttemptEnd::Mirror(error)) => self.blame(&error).await?,
                Err(AttemptEnd::Disk(cause)) => return Err(self.disk(cause)),
                Err(AttemptEnd::Fatal(error)) => return Err(error),
            }
        }
    }

    /// Reads the complete file. If its content is wrong, the file is discarded.
    async fn finish(&mut self) -> Result<Option<ShelfRecord>, ImagesError> {
        let synced = self.part.sync().await;
        synced.map_err(|cause| self.disk(cause))?;
        let DownloadTask { archive, place, wanted, watch, .. } = self.order;
        let origin = self.part.origin.clone().unwrap_or_default();
        match proven(place, archive, &place.part(), wanted, &origin.mirror, watch).await {
            Ok(record) => {
                settle(place)?;
                Ok(Some(record))
            }
            Err(error) if error.is_about_content() => {
                let error = about(error, &origin.mirror);
                if let Some(mirror) = self.mirrors.iter_mut().find(|mirror| mirror.url == origin.mirror) {
                    mirror.fault = describe(&error);
                    mirror.is_lost = !origin.is_mixed;
                }
                self.is_unmixed |= origin.is_mixed;
                self.bad_content = Some(error);
                self.restart().await?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Records a mirror's failure and waits before the next attempt.
    async fn blame(&mut self, error: &FetchError) -> Result<(), ImagesError> {
        let first_is_lost = self.first().is_none_or(|first| !self.is_usable(first));
        let has_grown = self.part.length() > self.best;
        self.best = self.best.max(self.part.length());
        let mirror = &mut self.mirrors[self.current];
        tracing::debug!(mirror = mirror.url, error = describe(error), "fetching {} broke off", self.order.place.name);
        mirror.fault = format!("{}: {}", mirror.url, describe(error));
        mirror.is_lost |= error.is_final();
        match error {
            FetchError::Changed => return Ok(()),
            FetchError::Different(_) if first_is_lost => return self.restart().await,
            // The attempt brought new bytes, so the same mirror is asked again.
            _ if has_grown => {
                mirror.failures = 0;
                return Ok(());
            }
            _ => mirror.failures += 1,
        }
        let pause = pause(error, mirror.failures);
        self.current = (self.current + 1) % self.mirrors.len();
        // The next mirror is asked without a pause unless it has failed before.
        if self.next().is_some_and(|next| self.mirrors[next].failures > 0) {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.order.watch.cancelled() => return Err(ImagesError::Cancelled),
            }
        }
        Ok(())
    }

    /// Returns the index of the mirror that delivered the first byte.
    fn first(&self) -> Option<usize> {
        let origin = self.part.origin.as_ref()?;
        self.mirrors.iter().position(|mirror| mirror.url == origin.mirror)
    }

    fn is_usable(&self, index: usize) -> bool {
        let mirror = &self.mirrors[index];
        !mirror.is_lost && mirror.failures < self.fetcher.patience.tries
    }

    /// Returns the index of the current mirror if it is usable, otherwise that of the next usable one.
    fn next(&self) -> Option<usize> {
        let count = self.mirrors.len();
        (0..count).map(|step| (self.current + step) % count).find(|index| self.is_usable(*index))
    }

    async fn restart(&mut self) -> Result<(), ImagesError> {
        self.best = 0;
        let restarted = self.part.restart().await;
        restarted.map_err(|cause| self.disk(cause))
    }

    fn disk(&self, cause: io::Error) -> ImagesError {
        file("write", &self.order.place.part())(cause)
    }

    fn give_up(self) -> ImagesError {
        match self.bad_content {
            Some(bad) if self.mirrors.len() == 1 => bad,
            _ => ImagesError::NoMirror {
                file: self.order.place.name.clone(),
                reasons: self.mirrors.into_iter().map(|mirror| mirror.fault).collect(),
                kept_bytes: self.part.length(),
            },
        }
    }
}

/// Replaces the path in an error by the mirror, because the file is about to be removed.
fn about(mut error: ImagesError, mirror: &str) -> ImagesError {
    if let ImagesError::Unsound { path, .. }
    | ImagesError::OtherContent { path, .. }
    | ImagesError::OtherImage { path, .. } = &mut error
    {
        *path = mirror.into();
    }
    error
}

fn pause(error: &FetchError, failures: u32) -> Duration {
    let asked = match error {
        FetchError::Status { pause, .. } => *pause,
        _ => None,
    };
    let doubled = PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(10));
    asked.unwrap_or(doubled).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let stalled = FetchError::Stalled(Duration::from_secs(1));
        assert_eq!(pause(&stalled, 1), PAUSE);
        assert_eq!(pause(&stalled, 3), PAUSE * 4);
        assert_eq!(pause(&stalled, 60), PAUSE_MAX);
        let asked = FetchError::Status { status: StatusCode::TOO_MANY_REQUESTS, pause: Some(Duration::from_secs(9)) };
        assert_eq!(pause(&asked, 1), Duration::from_secs(9));
    }
}
