//! Attempts at a task: the oracle, which solves it, and near misses, which almost do.

use std::future::Future;
use std::pin::Pin;

use crate::stage::Stage;

/// What an agent leaves behind, besides what it did to the sites.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// Its final answer.
    pub answer: String,
    /// Where its page is; empty: where the task began.
    pub url: String,
}

type Script = Box<dyn FnOnce(Stage) -> Pin<Box<dyn Future<Output = Done> + Send>> + Send>;

/// A scripted agent.
pub struct Attempt {
    /// What it does, as reports name it.
    pub name: &'static str,
    /// Whether it solves the task.
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

    /// One that does not.
    pub fn miss<F, R>(name: &'static str, script: F) -> Self
    where
        F: FnOnce(Stage) -> R + Send + 'static,
        R: Future + Send + 'static,
        R::Output: Into<Done>,
    {
        Self { name, is_oracle: false, script: boxed(script) }
    }

    /// One that does nothing but answer.
    pub fn answers(name: &'static str, answer: impl Into<String>) -> Self {
        let answer = answer.into();
        Self::miss(name, async move |_| Done { answer, ..Done::default() })
    }

    /// Lets the scripted agent work.
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

/// Who changes a site need not say anything.
impl From<()> for Done {
    fn from((): ()) -> Self {
        Self::default()
    }
}

/// An answer.
impl From<String> for Done {
    fn from(answer: String) -> Self {
        Self { answer, url: String::new() }
    }
}

/// The page that the agent is on.
impl From<crate::visitor::Page> for Done {
    fn from(page: crate::visitor::Page) -> Self {
        Self { answer: String::new(), url: page.url.to_string() }
    }
}
