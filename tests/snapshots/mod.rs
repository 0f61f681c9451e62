//! Exported and imported snapshots, and the place of the stores: on a file system of arenad's own, on one that copies,
//! and in installations without root privileges.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod clock;
mod damaged;
mod deep;
mod home;
mod own_disk;
mod travel;
mod unprivileged;
