//! Requests to one instance, which are refused, joined to an operation, or queued. The queue is pure: the instance's
//! driver owns one and follows its decisions.
//!
//! ```text
//!   admit ──► refused            the state, a pending `down` or a full queue rules the request out
//!         ├─► joined             the last operation in the queue has exactly the requested result
//!         └─► queued ──► current ──► finished
//!                 └─► superseded by `down`, or refused when its turn comes
//! ```
//!
//! A request joins only the *last* operation in the queue, because a later operation could change the result of an
//! earlier one before the caller sees it. A reset joins the current operation only after that operation has committed
//! to a new generation ([`Cover::Fresh`]) and before clients reach it ([`Cover::Open`]). In this period, all writes
//! that were acknowledged before the request went to the generation that is being replaced.
//!
//! While a `down` is pending, only `up` is admitted, so after a successful `down` only an explicit `up` can start
//! containers.

use std::collections::VecDeque;

use super::episode::ids::EpisodeId;
use super::instance::InstanceState;
use super::snapshot::SnapshotId;

/// The maximum number of operations that wait for one instance.
pub(crate) const MOST_WAITING: usize = 16;

/// The goal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// The instance is ready, from its current baseline.
    Up,
    /// The instance equals a snapshot.
    Reset {
        /// The id of the snapshot. `None` means the baseline.
        to: Option<String>,
    },
    /// The instance equals the baseline. Nothing is done if a comparison proves that it already does.
    ResetIfDirty,
    /// The instance no longer exists.
    Down,
    /// The instance is stopped, stored as a snapshot, and started again.
    Take {
        /// The name of the new snapshot.
        name: String,
    },
    /// The state of the instance is stored as a snapshot for the forks of an episode. The generation goes on.
    Copy(CopyOrder),
}

/// An order to copy the state of an instance for the forks of an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOrder {
    /// The id of the new snapshot.
    pub copy: SnapshotId,
    /// The episode whose state is copied.
    pub episode: EpisodeId,
    /// The generation that the episode has. No other one is copied.
    pub generation: u64,
}

impl Want {
    /// A reset to the baseline.
    pub const RESET: Self = Self::Reset { to: None };

    /// Returns the work as a phrase that follows "is".
    pub(crate) fn doing(&self) -> &'static str {
        match self {
            Self::Up => "coming up",
            Self::Reset { .. } | Self::ResetIfDirty => "resetting",
            Self::Down => "going down",
            Self::Take { .. } => "taking a snapshot",
            Self::Copy(_) => "being copied",
        }
    }

    /// Whether the request is possible in a state in which no operation runs.
    pub(crate) fn is_possible_in(&self, state: &InstanceState) -> bool {
        match self {
            Self::Up | Self::Down => true,
            Self::Reset { .. } | Self::ResetIfDirty => {
                matches!(state, InstanceState::Ready | InstanceState::Unhealthy(_) | InstanceState::Failed(_))
            }
            Self::Take { .. } | Self::Copy(_) => *state == InstanceState::Ready,
        }
    }
}

/// The originator of a request. Requests with different purposes never join each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A client made the request.
    Client,
    /// A new daemon restores the instances of an earlier one.
    Restore,
    /// The driver reverts writes to a site that is only read.
    Upkeep,
    /// The slot of the instance is prepared for an episode, or recycled after one.
    Episode,
}

/// A request to an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceRequest {
    /// The goal of the request.
    pub want: Want,
    /// The originator of the request.
    pub purpose: Purpose,
}

impl InstanceRequest {
    /// Creates a request of a client.
    pub fn of_client(want: Want) -> Self {
        Self { want, purpose: Purpose::Client }
    }
}

/// The progress of the current operation, which determines whether it covers a reset that is requested meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cover {
    /// The operation may still decide to leave the instance unchanged.
    Undecided,
    /// The operation ends with a new generation or fails. No client has reached the new generation.
    Fresh,
    /// Clients reach the new generation.
    Open,
}

/// The reason why a request is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestRefusal {
    /// The instance is in a state that rules the request out.
    NotUp {
        /// The name of the state.
        state: &'static str,
    },
    /// The request cannot wait for the operation that is running.
    Busy {
        /// The work that the instance is doing, as a phrase that follows "is".
        doing: &'static str,
    },
    /// The maximum number of operations is waiting already.
    Full,
}

/// The answer to a request that is admitted.
#[derive(Debug, PartialEq, Eq)]
pub struct Admitted<O> {
    /// The operation that answers the request.
    pub operation: O,
    /// Whether the operation already existed because of another request.
    pub is_joined: bool,
    /// The waiting operations that the request replaces. They end without having begun.
    pub superseded: Vec<O>,
    /// Whether the current operation must be cancelled.
    pub cancels_current: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct QueueEntry<O> {
    request: InstanceRequest,
    operation: O,
}

/// The operations of one instance: the current one and those that wait. `O` is the driver's handle of an operation.
#[derive(Debug, Clone)]
pub struct RequestQueue<O> {
    current: Option<QueueEntry<O>>,
    cover: Cover,
    waiting: VecDeque<QueueEntry<O>>,
}

impl<O> Default for RequestQueue<O> {
    fn default() -> Self {
        Self { current: None, cover: Cover::Undecided, waiting: VecDeque::new() }
    }
}

impl<O: Clone> RequestQueue<O> {
    /// Admits or refuses a request. `state` is the current state of the instance, and `make` creates an operation for a
    /// request that does not join one.
    pub fn admit(
        &mut self,
        request: InstanceRequest,
        state: &InstanceState,
        make: impl FnOnce() -> O,
    ) -> Result<Admitted<O>, RequestRefusal> {
        if request.want == Want::Down {
            return Ok(self.admit_down(request, make));
        }
        if self.is_going_down() {
            if request.want != Want::Up {
                return Err(RequestRefusal::NotUp { state: InstanceState::Stopping.name() });
            }
        } else if let Some(current) = &self.current {
            if matches!(request.want, Want::Take { .. }) {
                return Err(RequestRefusal::Busy { doing: current.request.want.doing() });
            }
        } else if !request.want.is_possible_in(state) {
            return Err(RequestRefusal::NotUp { state: state.name() });
        }
        if let Some(operation) = self.joinable(&request) {
            return Ok(Admitted { operation, is_joined: true, superseded: Vec::new(), cancels_current: false });
        }
        if self.waiting.len() >= MOST_WAITING {
            return Err(RequestRefusal::Full);
        }
        let operation = self.enqueue(request, make());
        Ok(Admitted { operation, is_joined: false, superseded: Vec::new(), cancels_current: false })
    }

    /// Admits a `down`, which is always possible. It replaces all waiting operations and cancels the current one.
    fn admit_down(&mut self, request: InstanceRequest, make: impl FnOnce() -> O) -> Admitted<O> {
        let superseded = |waiting: VecDeque<QueueEntry<O>>| waiting.into_iter().map(|entry| entry.operation).collect();
        let is_down = |entry: &QueueEntry<O>| entry.request.want == Want::Down;
        if let Some(current) = self.current.as_ref().filter(|current| is_down(current)) {
            let operation = current.operation.clone();
            let superseded = superseded(std::mem::take(&mut self.waiting));
            return Admitted { operation, is_joined: true, superseded, cancels_current: false };
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        // A waiting `down` is always the first in the queue, because it replaced all others.
        if waiting.front().is_some_and(is_down)
            && let Some(down) = waiting.pop_front()
        {
            let operation = down.operation.clone();
            self.waiting.push_back(down);
            return Admitted { operation, is_joined: true, superseded: superseded(waiting), cancels_current: false };
        }
        let cancels_current = self.current.is_some();
        let operation = self.enqueue(request, make());
        Admitted { operation, is_joined: false, superseded: superseded(waiting), cancels_current }
    }

    fn enqueue(&mut self, request: InstanceRequest, operation: O) -> O {
        let entry = QueueEntry { request, operation: operation.clone() };
        match &self.current {
            None => {
                self.current = Some(entry);
                self.cover = Cover::Undecided;
            }
            Some(_) => self.waiting.push_back(entry),
        }
        operation
    }

    fn is_going_down(&self) -> bool {
        self.current.iter().chain(&self.waiting).any(|entry| entry.request.want == Want::Down)
    }

    /// Returns the last operation in the queue if it has exactly the requested result.
    fn joinable(&self, request: &InstanceRequest) -> Option<O> {
        if let Some(last) = self.waiting.back() {
            let is_same = last.request == *request && !matches!(request.want, Want::Take { .. });
            return is_same.then(|| last.operation.clone());
        }
        let current = self.current.as_ref().filter(|current| current.request.purpose == request.purpose)?;
        let is_covered = match (&current.request.want, &request.want) {
            (Want::Reset { to }, Want::Reset { to: wanted }) => to == wanted && self.cover == Cover::Fresh,
            (Want::Reset { to: None } | Want::ResetIfDirty, Want::ResetIfDirty) => self.cover == Cover::Fresh,
            _ => false,
        };
        is_covered.then(|| current.operation.clone())
    }

    /// Records the progress of the current operation, which never goes back.
    pub fn note_cover(&mut self, cover: Cover) {
        self.cover = self.cover.max(cover);
    }

    /// Returns the current request and its operation.
    pub fn current(&self) -> Option<(&InstanceRequest, &O)> {
        self.current.as_ref().map(|current| (&current.request, &current.operation))
    }

    /// Ends the current operation, and begins the next one that is possible in the resulting `state`. Returns the
    /// operations that were not possible, each with the reason.
    pub fn finish(&mut self, state: &InstanceState) -> Vec<(O, RequestRefusal)> {
        self.current = None;
        self.cover = Cover::Undecided;
        let mut refused = Vec::new();
        while let Some(next) = self.waiting.pop_front() {
            if next.request.want.is_possible_in(state) {
                self.current = Some(next);
                break;
            }
            refused.push((next.operation, RequestRefusal::NotUp { state: state.name() }));
        }
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::InstanceFailure;
    use proptest::prelude::*;

    fn queue() -> RequestQueue<u32> {
        RequestQueue::default()
    }

    fn ask(queue: &mut RequestQueue<u32>, want: Want, number: u32) -> Result<(u32, bool), RequestRefusal> {
        let admitted = queue.admit(InstanceRequest::of_client(want), &InstanceState::Ready, || number)?;
        Ok((admitted.operation, admitted.is_joined))
    }

    fn to(snapshot: &str) -> Want {
        Want::Reset { to: Some(snapshot.to_owned()) }
    }

    #[test]
    fn a_reset_never_joins_an_up() {
        let mut queue = queue();
        assert_eq!(ask(&mut queue, Want::Up, 1), Ok((1, false)));
        assert_eq!(ask(&mut queue, Want::RESET, 2), Ok((2, false)));
        assert_eq!(ask(&mut queue, Want::RESET, 3), Ok((2, true)), "one that has not begun covers it");
    }

    #[test]
    fn a_reset_does_not_join_an_up_that_waits_behind_a_snapshot() {
        let mut queue = queue();
        let _ = ask(&mut queue, Want::Take { name: "a".to_owned() }, 1);
        let _ = ask(&mut queue, Want::Up, 2);
        assert_eq!(ask(&mut queue, Want::RESET, 3), Ok((3, false)));
    }

    #[test]
    fn resets_join_between_the_commitment_to_a_new_generation_and_its_first_client() {
        for (cover, joins) in [(Cover::Undecided, false), (Cover::Fresh, true), (Cover::Open, false)] {
            let mut queue = queue();
            let _ = ask(&mut queue, Want::RESET, 1);
            queue.note_cover(cover);
            assert_eq!(ask(&mut queue, Want::RESET, 2).map(|(_, joined)| joined), Ok(joins), "{cover:?}");
        }
    }

    #[test]
    fn resets_to_different_snapshots_do_not_join() {
        for (first, second) in
            [(Want::RESET, to("a")), (to("a"), Want::RESET), (to("a"), to("b")), (to("a"), Want::ResetIfDirty)]
        {
            let mut queue = queue();
            let _ = ask(&mut queue, first.clone(), 1);
            queue.note_cover(Cover::Fresh);
            assert_eq!(ask(&mut queue, second.clone(), 2), Ok((2, false)), "{first:?}, then {second:?}");
        }
    }

    #[test]
    fn requests_join_only_the_last_in_line() {
        let mut queue = queue();
        for (number, want) in [(1, Want::Up), (2, Want::RESET), (3, to("a"))] {
            assert_eq!(ask(&mut queue, want, number), Ok((number, false)));
        }
        assert_eq!(ask(&mut queue, Want::RESET, 4), Ok((4, false)), "joining 2 would leave the caller with snapshot a");
    }

    #[test]
    fn copies_wait_for_their_turn_and_join_nothing() {
        let mut queue = queue();
        let copy = |text: &str| {
            let (copy, episode) = (SnapshotId::from(text.to_owned()), EpisodeId::from_random([1; 10]));
            Want::Copy(CopyOrder { copy, episode, generation: 3 })
        };
        assert_eq!(ask(&mut queue, copy("a"), 1), Ok((1, false)));
        assert_eq!(ask(&mut queue, copy("b"), 2), Ok((2, false)), "another fork of the same episode");
        assert_eq!(ask(&mut queue, Want::RESET, 3), Ok((3, false)), "the episode has ended");
        assert_eq!(queue.finish(&InstanceState::Ready), []);
        assert_eq!(queue.current().map(|(request, _)| request.want.clone()), Some(copy("b")));
        assert!(!copy("a").is_possible_in(&InstanceState::Resetting));
    }

    #[test]
    fn resets_of_different_purposes_do_not_join() {
        let mut queue = queue();
        let upkeep = InstanceRequest { want: Want::RESET, purpose: Purpose::Upkeep };
        let _ = queue.admit(upkeep, &InstanceState::Ready, || 1);
        queue.note_cover(Cover::Fresh);
        assert_eq!(ask(&mut queue, Want::RESET, 2), Ok((2, false)));
    }

    #[test]
    fn only_up_is_admitted_behind_a_down() {
        for is_current in [true, false] {
            let mut queue = queue();
            if !is_current {
                let _ = ask(&mut queue, Want::RESET, 1);
            }
            let _ = ask(&mut queue, Want::Down, 2);
            let stopping = Err(RequestRefusal::NotUp { state: "stopping" });
            for want in [Want::RESET, Want::ResetIfDirty, to("a"), Want::Take { name: "a".to_owned() }] {
                assert_eq!(ask(&mut queue, want, 3), stopping);
            }
            assert_eq!(ask(&mut queue, Want::Up, 4), Ok((4, false)));
            assert_eq!(ask(&mut queue, Want::RESET, 5), stopping, "also behind an up that waits for the down");
        }
    }

    #[test]
    fn down_cancels_the_current_operation_and_supersedes_the_others() {
        let mut queue = queue();
        for (number, want) in [(1, Want::Up), (2, Want::RESET)] {
            let _ = ask(&mut queue, want, number);
        }
        let down = queue
            .admit(InstanceRequest::of_client(Want::Down), &InstanceState::Starting, || 3)
            .expect("always admitted");
        assert_eq!(down, Admitted { operation: 3, is_joined: false, superseded: vec![2], cancels_current: true });
        let _ = ask(&mut queue, Want::Up, 4);
        let again = queue
            .admit(InstanceRequest::of_client(Want::Down), &InstanceState::Starting, || 5)
            .expect("always admitted");
        assert_eq!(again, Admitted { operation: 3, is_joined: true, superseded: vec![4], cancels_current: false });
    }

    #[test]
    fn requests_are_checked_again_when_their_turn_comes() {
        let mut queue = queue();
        let _ = ask(&mut queue, Want::Up, 1);
        let _ = ask(&mut queue, Want::RESET, 2);
        let _ = ask(&mut queue, Want::Up, 3);
        assert_eq!(queue.finish(&InstanceState::Down), [(2, RequestRefusal::NotUp { state: "down" })]);
        assert_eq!(queue.current().map(|(request, _)| request.want.clone()), Some(Want::Up));
    }

    #[test]
    fn the_line_is_bounded() {
        let mut queue = queue();
        let _ = ask(&mut queue, Want::Up, 0);
        for number in 0..MOST_WAITING as u32 {
            assert!(ask(&mut queue, to(&number.to_string()), number).is_ok());
        }
        assert_eq!(ask(&mut queue, to("one more"), 99), Err(RequestRefusal::Full));
        assert!(ask(&mut queue, Want::Down, 100).is_ok(), "a down is admitted even then");
    }

    /// A step of the property test: a request, progress of the current operation, or the end of that operation, which
    /// may fail.
    #[derive(Debug, Clone, Copy)]
    enum QueueStep {
        Ask(usize),
        Cover(Cover),
        Finish(bool),
    }

    fn step() -> impl Strategy<Value = QueueStep> {
        prop_oneof![
            4 => (0..7usize).prop_map(QueueStep::Ask),
            2 => prop_oneof![Just(QueueStep::Cover(Cover::Fresh)), Just(QueueStep::Cover(Cover::Open))],
            3 => any::<bool>().prop_map(QueueStep::Finish),
        ]
    }

    proptest! {
        /// The operation of a reset has the requested target and admits clients only after the request. An `up` that is
        /// older than the last `down` request ends only if the `down` still waits. Each operation ends once.
        #[test]
        fn an_operation_gives_each_of_its_callers_what_they_asked_for(steps in proptest::collection::vec(step(), 1..80)) {
            let kinds = [Want::Up, Want::RESET, to("a"), to("b"), Want::ResetIfDirty, Want::Down, Want::Take { name: "n".to_owned() }];
            let mut queue = queue();
            let mut state = InstanceState::Ready;
            let mut made: Vec<Want> = Vec::new();
            // The step at which each operation first admitted clients. The callers have the operation, the goal and the
            // step of their request.
            let mut opened: Vec<Option<usize>> = Vec::new();
            let mut callers: Vec<(u32, Want, usize)> = Vec::new();
            let mut ended: Vec<u32> = Vec::new();
            let mut was_down_asked = false;
            for (now, step) in steps.into_iter().enumerate() {
                match step {
                    QueueStep::Ask(kind) => {
                        let want = kinds[kind].clone();
                        let number = made.len() as u32;
                        let request = InstanceRequest::of_client(want.clone());
                        let Ok(admitted) = queue.admit(request, &state, || number) else { continue };
                        if !admitted.is_joined {
                            made.push(want.clone());
                            opened.push(None);
                        }
                        ended.extend(&admitted.superseded);
                        callers.retain(|(operation, ..)| !admitted.superseded.contains(operation));
                        was_down_asked = want == Want::Down || (was_down_asked && want != Want::Up);
                        callers.push((admitted.operation, want, now));
                    }
                    QueueStep::Cover(cover) => {
                        queue.note_cover(cover);
                        if let (Cover::Open, Some((_, operation))) = (cover, queue.current()) {
                            opened[*operation as usize].get_or_insert(now);
                        }
                    }
                    QueueStep::Finish(is_good) => {
                        let Some((request, operation)) = queue.current().map(|(r, o)| (r.clone(), *o)) else { continue };
                        prop_assert!(!was_down_asked || request.want != Want::Up || queue.waiting.iter().any(|w| w.request.want == Want::Down));
                        prop_assert!(!ended.contains(&operation));
                        ended.push(operation);
                        for (_, want, since) in callers.iter().filter(|(of, ..)| *of == operation) {
                            let covers = match (&request.want, want) {
                                (Want::Reset { to: None }, Want::ResetIfDirty) => true,
                                (done, wanted) => done == wanted,
                            };
                            prop_assert!(covers, "{want:?} was answered by {:?}", request.want);
                            if matches!(want, Want::Reset { .. } | Want::ResetIfDirty) && let Some(opened) = opened[operation as usize] {
                                prop_assert!(opened > *since, "clients were in before the request");
                            }
                        }
                        callers.retain(|(of, ..)| *of != operation);
                        state = match (&request.want, is_good) {
                            (Want::Down, true) => InstanceState::Down,
                            (_, true) => InstanceState::Ready,
                            (_, false) => InstanceState::Failed(InstanceFailure { reason: String::new(), hint: String::new() }),
                        };
                        for (refused, _) in queue.finish(&state) {
                            ended.push(refused);
                            callers.retain(|(of, ..)| *of != refused);
                        }
                    }
                }
                prop_assert!(queue.waiting.len() <= MOST_WAITING);
                let downs = queue.waiting.iter().filter(|entry| entry.request.want == Want::Down).count();
                prop_assert!(downs <= 1, "at most one down waits");
            }
        }
    }
}
