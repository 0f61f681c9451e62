//! Evaluators that judge what an agent did. They perform no I/O: they turn values into verdicts.
//!
//! The caller asks an evaluator for its questions ([`arenad_verdict::question::Question`]) and answers them
//! ([`arenad_verdict::question::KnownAnswers`]) until none is left. It then asks for the report
//! ([`arenad_verdict::Report`]). `docs/reference/evaluators.md` lists the differences of the strict profile.
//!
//! The crate depends on `verdict`, `model` and `har`. Start reading at `native/mod.rs`, then the folder of a benchmark.
//!
//! ```no_run
//! use arenad_verdict::question::{Answer, KnownAnswers};
//! use arenad_verdict::{Profile, SideBySide};
//! use arenad_evaluators::visualwebarena::{EpisodeContext, evaluate, questions, read};
//!
//! # fn look(_: &arenad_verdict::question::Question) -> Answer { unimplemented!() }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let urls = [("__SHOPPING__".to_owned(), "http://localhost:7770".to_owned())].into();
//! let tasks = read(&std::fs::read_to_string("test_shopping.raw.json")?, &urls)?;
//! let task = &tasks[35];
//! let (answer, url) = ("gold".to_owned(), "http://localhost:7770/".to_owned());
//! let context = EpisodeContext { intent: task.intent.clone(), answer, url };
//! let mut told = KnownAnswers::default();
//! for profile in [Profile::Compat, Profile::Strict] {
//!     loop {
//!         let asked = questions(&context, &task.eval, &told, profile)?;
//!         if asked.is_empty() {
//!             break;
//!         }
//!         for question in asked {
//!             let answer = look(&question);
//!             told.tell(question, answer);
//!         }
//!     }
//! }
//! let both = SideBySide::of(|profile| evaluate(&context, &task.eval, &told, profile))?;
//! println!("compat {:?}, strict {:?}", both.compat.verdict, both.strict.verdict);
//! # Ok(()) }
//! ```

pub mod ground_truth;
pub mod mind2web;
pub mod native;
mod strict;
pub mod text;
pub mod turkingbench;
pub mod visualwebarena;
pub mod webarena;
pub mod webarena_verified;
pub mod webcanvas;

/// The version of the evaluators, which certificates name.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
