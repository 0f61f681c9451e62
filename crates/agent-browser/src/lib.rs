//! The browser of an episode, with the observations and actions of WebArena.
//!
//! ```text
//!   BrowserPool ──► BrowserSeat ──► BlankBrowser: a context of its own, whose only way out is a proxy
//!                                      └─► EpisodeBrowser, with the cookies and settings of an episode
//!                                            │ act      text ─► action::parse ─► mouse, keyboard, navigation
//!                                            └ observe  tabs, then ax_tree, dom_tree or marks ─► text, screenshot
//! ```
//! Several episodes share one process of Chromium, and nothing else: cookies, storage and cache belong to a context. The
//! crate knows nothing of episodes; the daemon decides who may use a browser, and what a failure means.
//!
//! The texts are those of WebArena's own code, quirks included: <https://github.com/web-arena-x/webarena>,
//! `browser_env/processors.py` and `browser_env/actions.py`; marks are those of
//! <https://github.com/web-arena-x/visualwebarena>. [The reference](../../docs/reference/browser.md) lists the differences.
//! Parsing actions and writing observations do no I/O (`action`, `keys`, `ax_tree`, `dom_tree`, `marks`, `python`).
//!
//! Start reading at [`EpisodeBrowser`].

mod acted;
pub mod action;
mod archived;
pub mod ax_tree;
mod blank;
mod bounds;
mod browser;
mod clock;
pub mod dom_tree;
mod elements;
mod error;
mod files;
mod input;
pub mod keys;
mod listed;
pub mod marks;
mod observe;
mod pool;
mod python;
mod recorder;
mod tab;

pub use acted::ActedPage;
pub use action::{Action, ActionParseError, ScrollDirection};
pub use arenad_chromium::{belongs_to, end_shown, start_shown};
pub use blank::BlankBrowser;
pub use browser::{BrowserSettings, EpisodeBrowser, StepOutcome, Viewport};
pub use elements::{Bounds, Element, Elements};
pub use error::{ActionError, BrowserFault};
pub use files::{BadFiles, UploadFiles};
pub use observe::{Observation, ObservationKind, ObservedTab};
pub use pool::{BrowserPool, BrowserSeat, end_remains};
pub use recorder::{RecordedAction, Recorder, RecorderProxy};
