//! The engine's events and their subscribers.

use std::collections::VecDeque;

use arenad_engine::{EVENT_ACTIONS, EngineError, EngineEvent};

/// Maximum number of queued events for a subscriber; older ones are lost, as in Docker.
const QUEUE_MAX: usize = 256;

/// An open stream of events.
pub(super) struct Subscriber {
    label: String,
    value: String,
    queue: VecDeque<Result<EngineEvent, EngineError>>,
    /// Whether the stream has ended; queued events are still delivered.
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

    /// Ends the stream after its queued events.
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
