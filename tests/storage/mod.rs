//! The state root on real file systems: XFS, which clones, and ext4, which copies. Needs root and loop devices.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod archive;
mod cloning;
mod disk;
mod exchange;
mod full;
mod hostile;
mod look;
mod own_disk;
mod quota;
mod rested;
mod sample;
mod space;
mod touched;
mod trees;
