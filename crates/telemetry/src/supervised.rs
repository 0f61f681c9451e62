//! Supervision that turns a panic into an error, and the hook that writes panics to the log.

use std::any::Any;
use std::backtrace::Backtrace;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

/// The work panicked, which is a bug in arenad.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("arenad made a mistake (a panic: {0}); its log has the place, please report it")]
pub struct Panicked(String);

/// Runs work and returns its panic as an error. The panic may leave borrowed values inconsistent, so the caller
/// restores them to a known state.
pub async fn supervised<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|payload| Panicked(words(payload.as_ref())))
}

/// Writes every panic into the log from now on, with its place and backtrace.
pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let said = words(panic.payload());
        let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
        tracing::error!(%place, %thread, backtrace = %Backtrace::force_capture(), "panic: {said}");
    }));
}

fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without words".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_with_its_words() {
        assert_eq!(supervised(async { 7 }).await, Ok(7));
        let number = 7;
        let panicked = supervised(async move { assert_eq!(number, 8, "seven is not eight") }).await;
        assert!(panicked.expect_err("it panicked").to_string().contains("seven is not eight"));
    }
}
