//! Attempts at a task: the oracle solves it, and the near misses almost do.

use std::future::Future;
use std::pin::Pin;

use super::stage::AgentStage;

/// The outcome of an agent's work that is not stored on the sites.
#[derive(Debug, Clone, Default)]
pub struct AttemptOutcome {
    /// The agent's final answer.
    pub answer: String,
    /// The URL of the agent's page; an empty string stands for the page on which the task began.
    pub url: String,
}

type AgentScript = Box<dyn FnOnce(AgentStage) -> Pin<Box<dyn Future<Output = AttemptOutcome> + Send>> + Send>;

pub struct AgentAttempt {
    /// The attempt's name in reports.
    pub name: &'static str,
    pub is_oracle: bool,
    script: AgentScript,
}

impl AgentAttempt {
    /// The attempt that solves the task.
    pub fn oracle<F, R>(script: F) -> Self
    where
        F: FnOnce(AgentStage) -> R + Send + 'static,
        R: Future + Send + 'static,
        R::Output: Into<AttemptOutcome>,
    {
        Self { name: "the oracle", is_oracle: true, script: boxed(script) }
    }

    /// An attempt that does not solve the task.
    pub fn miss<F, R>(name: &'static str, script: F) -> Self
    where
        F: FnOnce(AgentStage) -> R + Send + 'static,
        R: Future + Send + 'static,
        R::Output: Into<AttemptOutcome>,
    {
        Self { name, is_oracle: false, script: boxed(script) }
    }

    /// A near miss that answers without touching a site.
    pub fn answers(name: &'static str, answer: impl Into<String>) -> Self {
        let answer = answer.into();
        Self::miss(name, async move |_| AttemptOutcome { answer, ..AttemptOutcome::default() })
    }

    /// Runs the scripted agent.
    pub fn run(self, stage: AgentStage) -> Pin<Box<dyn Future<Output = AttemptOutcome> + Send>> {
        (self.script)(stage)
    }
}

fn boxed<F, R>(script: F) -> AgentScript
where
    F: FnOnce(AgentStage) -> R + Send + 'static,
    R: Future + Send + 'static,
    R::Output: Into<AttemptOutcome>,
{
    Box::new(move |stage| {
        let work = script(stage);
        Box::pin(async move { work.await.into() })
    })
}

/// A script that changes a site may return nothing.
impl From<()> for AttemptOutcome {
    fn from((): ()) -> Self {
        Self::default()
    }
}

/// A script may return its answer alone.
impl From<String> for AttemptOutcome {
    fn from(answer: String) -> Self {
        Self { answer, url: String::new() }
    }
}

/// A script may return the page on which it ends.
impl From<super::visitor::VisitedPage> for AttemptOutcome {
    fn from(page: super::visitor::VisitedPage) -> Self {
        Self { answer: String::new(), url: page.url.to_string() }
    }
}
