//! The engine's events, and those who listen to them.

use std::collections::VecDeque;

use arenad_engine::{EVENT_ACTIONS, EngineError, EngineEvent};

/// How many events wait for a listener; older ones are lost, as Docker's are.
const QUEUE_MAX: usize = 256;

/// One open stream of events.
pub(super) struct Subscriber {
    label: String,
    value: String,
    queue: VecDeque<Result<EngineEvent, EngineError>>,
    /// Whether nothing comes any more.
    pub(super) is_ended: bool,
}

impl Subscriber {
    pub(super) fn new(label: &str, value: &str) -> Self {
        Self { label: label.to_owned(), value: value.to_owned(), queue: VecDeque::new(), is_ended: false }
    }

    pub(super) fn tell(&mut self, event: &EngineEvent) {
        let is_meant = event.labels.get(&self.label).is_some_and(|value| *value == self.value);
        let is_told = EVENT_ACTIONS.contains(&event.action.as_str());
        if is_told && is_meant && !self.is_ended {
            if self.queue.len() == QUEUE_MAX {
                self.queue.pop_front();
            }
            self.queue.push_back(Ok(event.clone()));
        }
    }

    /// Ends the stream, after what has been told.
    pub(super) fn end(&mut self, error: Option<EngineError>) {
        if !self.is_ended {
            self.queue.extend(error.map(Err));
            self.is_ended = true;
        }
    }

    pub(super) fn next(&mut self) -> Option<Result<EngineEvent, EngineError>> {
        self.queue.pop_front()
    }
}
