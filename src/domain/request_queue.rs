//! What may be asked of an instance while it is busy. Pure: the driver owns one and obeys it.
//!
//! At most one request is being worked on and at most one waits. A second reset joins the first, because the gateway
//! holds all traffic from the first one's start: nothing that the second caller saw or wrote can survive it.

/// What can be asked of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Be ready.
    Up,
    /// Be as the snapshot is.
    Reset,
    /// The same, unless it still is as the snapshot.
    ResetIfDirty,
    /// Be gone.
    Down,
    /// Be stopped, stored as a snapshot, and started again.
    Take,
}

/// What the driver must do with a request that has just come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Nothing is being done: start.
    Start,
    /// What is being done ends in what is asked for: tell the caller when it ends.
    JoinCurrent,
    /// What waits ends in what is asked for: tell the caller when that ends.
    JoinNext,
    /// Wait for the current one to end.
    Wait,
    /// Cancel the current one, then start.
    Supersede,
    /// Something else is going on: refuse.
    Busy,
}

/// The requests at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestQueue {
    current: Option<Request>,
    next: Option<Request>,
    is_open: bool,
}

impl RequestQueue {
    /// Takes a request in and says what to do with it.
    pub fn admit(&mut self, request: Request) -> Admission {
        use Request::{Down, Reset, ResetIfDirty, Take, Up};
        let Some(current) = self.current else {
            self.current = Some(request);
            return Admission::Start;
        };
        match (current, self.next, request) {
            (_, _, Take) => Admission::Busy,
            // A waiting request already covers it. `Down` replaces whatever waits.
            (_, Some(Down), Down) | (_, Some(Up | Reset), Up) | (_, Some(Reset), Reset) => Admission::JoinNext,
            (_, Some(Up), Reset | ResetIfDirty) | (_, Some(Reset | ResetIfDirty), ResetIfDirty) => Admission::JoinNext,
            // A reset is also all that whoever waits for less has asked for.
            (_, Some(ResetIfDirty), Up | Reset) => {
                self.next = Some(Reset);
                Admission::JoinNext
            }
            // A snapshot never waits (it is started or refused), but a total function needs no proof of that.
            (_, Some(Take), _) => Admission::Busy,
            (_, Some(_), Down) => {
                self.next = Some(Down);
                Admission::Wait
            }
            (_, Some(Down), Up | Reset | ResetIfDirty) => {
                self.next = Some(request);
                Admission::Wait
            }
            // What was written since traffic was let in is not undone by what let it in.
            (Up | Reset | ResetIfDirty, None, Reset | ResetIfDirty) if self.is_open => {
                self.next = Some(request);
                Admission::Wait
            }
            // It may have looked already, and find that there is nothing to do.
            (ResetIfDirty, None, Reset | ResetIfDirty) => {
                self.next = Some(request);
                Admission::Wait
            }
            // Both end with a fresh instance, and no traffic passes before they do.
            (Up | Reset, None, Up | Reset | ResetIfDirty) | (ResetIfDirty, None, Up) | (Down, None, Down) => {
                Admission::JoinCurrent
            }
            (Up | Reset | ResetIfDirty | Take, None, Down) => {
                self.next = Some(Down);
                Admission::Supersede
            }
            (Down | Take, None, Up | Reset | ResetIfDirty) => {
                self.next = Some(request);
                Admission::Wait
            }
        }
    }

    /// The current request has ended; says what to start now.
    pub fn finish(&mut self) -> Option<Request> {
        self.current = self.next.take();
        self.is_open = false;
        self.current
    }

    /// The current request has let traffic in; what is left of it is noting that.
    pub fn open(&mut self) {
        self.is_open = true;
    }

    /// What is being worked on.
    pub fn current(&self) -> Option<Request> {
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_second_reset_joins_the_first() {
        let mut queue = RequestQueue::default();
        assert_eq!(queue.admit(Request::Reset), Admission::Start);
        assert_eq!(queue.admit(Request::Reset), Admission::JoinCurrent);
        assert_eq!(queue.finish(), None);
    }

    #[test]
    fn a_reset_that_comes_after_traffic_was_let_in_is_one_of_its_own() {
        let mut queue = RequestQueue::default();
        queue.admit(Request::Reset);
        queue.open();
        assert_eq!(queue.admit(Request::Up), Admission::JoinCurrent);
        assert_eq!(queue.admit(Request::Reset), Admission::Wait);
        assert_eq!(queue.admit(Request::Reset), Admission::JoinNext);
        assert_eq!(queue.finish(), Some(Request::Reset));
        assert_eq!(queue.admit(Request::Reset), Admission::JoinCurrent);
    }

    #[test]
    fn down_supersedes_up_and_a_later_up_waits() {
        let mut queue = RequestQueue::default();
        assert_eq!(queue.admit(Request::Up), Admission::Start);
        assert_eq!(queue.admit(Request::Down), Admission::Supersede);
        assert_eq!(queue.admit(Request::Down), Admission::JoinNext);
        assert_eq!(queue.admit(Request::Up), Admission::Wait);
        assert_eq!(queue.finish(), Some(Request::Up));
    }

    #[test]
    fn up_after_down_waits_for_it() {
        let mut queue = RequestQueue::default();
        queue.admit(Request::Down);
        assert_eq!(queue.admit(Request::Up), Admission::Wait);
        assert_eq!(queue.admit(Request::Reset), Admission::JoinNext);
        assert_eq!(queue.finish(), Some(Request::Up));
        assert_eq!(queue.finish(), None);
    }

    proptest! {
        /// Whatever comes, the last word wins: after all is done, the last request worked on agrees with the last asked.
        #[test]
        fn the_last_request_decides_the_end(requests in proptest::collection::vec(0..4usize, 1..40), ends in proptest::collection::vec(any::<bool>(), 40)) {
            let kinds = [Request::Up, Request::Reset, Request::Down, Request::ResetIfDirty];
            let mut queue = RequestQueue::default();
            let mut last_done = None;
            for (index, end) in requests.iter().zip(ends) {
                queue.admit(kinds[*index]);
                if end {
                    last_done = queue.current();
                    queue.finish();
                }
            }
            while let Some(current) = queue.current() {
                last_done = Some(current);
                queue.finish();
            }
            let asked_down = kinds[*requests.last().expect("one at least")] == Request::Down;
            prop_assert_eq!(last_done == Some(Request::Down), asked_down);
        }
    }
}
