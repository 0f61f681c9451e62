//! Attempts at a task: the oracle solves it, and the near misses almost do.

use std::future::Future;
use std::pin::Pin;

use crate::stage::Stage;

/// The outcome of an agent's work that is not stored on the sites.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// The agent's final answer.
    pub answer: String,
    /// The URL of the agent's page; an empty string stands for the page on which the task began.
    pub url: String,
}

type Script = Box<dyn FnOnce(Stage) -> Pin<Box<dyn Future<Output = Done> + Send>> + Send>;

pub struct Attempt {
    /// The attempt's name in reports.
    pub name: &'static str,
    pub is_oracle: bool,
    script: Script,
}

impl Attempt {
    /// The attempt that solves the task.
    pub fn oracle<F, R>(script: F) -> Self
    where
        F: FnOnce(Stage) -> R + Send + 'static,
        R: Future + Send + 'static,
        R::Output: Into<Done>,
    {
        Self { name: "the oracle", is_oracle: true, script: boxed(script) }
    }

    /// An attempt that does not solve the task.
    pub fn miss<F, R>(name: &'static str, script: F) -> Self
    where
        F: FnOnce(Stage) -> R + Send + 'static,
        R: Future + Send + 'static,
        R::Output: Into<Done>,
    {
        Self { name, is_oracle: false, script: boxed(script) }
    }

    /// A near miss that answers without touching a site.
    pub fn answers(name: &'static str, answer: impl Into<String>) -> Self {
        let answer = answer.into();
        Self::miss(name, async move |_| Done { answer, ..Done::default() })
    }

    /// Runs the scripted agent.
    pub fn run(self, stage: Stage) -> Pin<Box<dyn Future<Output = Done> + Send>> {
        (self.script)(stage)
    }
}

fn boxed<F, R>(script: F) -> Script
where
    F: FnOnce(Stage) -> R + Send + 'static,
    R: Future + Send + 'static,
    R::Output: Into<Done>,
{
    Box::new(move |stage| {
        let work = script(stage);
        Box::pin(async move { work.await.into() })
    })
}

/// A script that changes a site may return nothing.
impl From<()> for Done {
    fn from((): ()) -> Self {
        Self::default()
    }
}

/// A script may return its answer alone.
impl From<String> for Done {
    fn from(answer: String) -> Self {
        Self { answer, url: String::new() }
    }
}

/// A script may return the page on which it ends.
impl From<crate::visitor::Page> for Done {
    fn from(page: crate::visitor::Page) -> Self {
        Self { answer: String::new(), url: page.url.to_string() }
    }
}
