//! Random bytes for ids and tokens.

use std::fmt;
use std::sync::Arc;

/// Returns random bytes. Simulations replace the generator, so that a seed determines a run.
#[derive(Clone)]
pub struct RandomBytes(Arc<dyn Fn() -> [u8; 32] + Send + Sync>);

impl RandomBytes {
    /// Returns the generator of the system, which is suitable for secrets.
    pub fn system() -> Self {
        Self::new(rand::random)
    }

    /// Returns a generator that calls `next` for each 32 bytes.
    pub fn new(next: impl Fn() -> [u8; 32] + Send + Sync + 'static) -> Self {
        Self(Arc::new(next))
    }

    /// Returns the next bytes.
    pub(crate) fn next<const N: usize>(&self) -> [u8; N] {
        let bytes = (self.0)();
        std::array::from_fn(|index| bytes.get(index).copied().unwrap_or_default())
    }
}

impl fmt::Debug for RandomBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RandomBytes")
    }
}
