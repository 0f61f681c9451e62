//! The protocols of the servers by which harnesses reset sites, without I/O: BrowserGym's and AgentLab's reset server,
//! env-ctrl of WebArena-Verified, and the reset form of VisualWebArena's classifieds.
//!
//! | Module | Job |
//! |---|---|
//! | [`address`] | the site or environment that a request is about, and its goal |
//! | [`admission`] | whether a request may be answered: names of this host only, and no browser may cause a reset |
//! | [`board`] | which resets run, which have failed, and what `/status` says therefore |
//! | [`reply`] | the exact replies of the reset server |
//! | [`env_ctrl`] | the JSON of env-ctrl |
//!
//! None of these protocols has credentials. The daemon's module `compat` listens, performs the resets, and depends on
//! this crate. Start reading at [`board`].
//!
//! Source: `server.py` of `webarena-setup`, `full_reset` in `browsergym/webarena/instance.py` of BrowserGym 0.14.3, and
//! `env_ctrl_client/http_client.py` of webarena-verified 1.2.3.

pub mod address;
pub mod admission;
pub mod board;
pub mod env_ctrl;
pub mod reply;
