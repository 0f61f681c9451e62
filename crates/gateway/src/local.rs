//! A route as one worker sees it: the current state without a lock, the worker's own pool, and access to the counters.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::link::Epoch;
use super::phase::RouteState;
use super::pool::Pool;
use super::route::SharedRoute;

/// One route on one worker.
pub(super) struct LocalRoute {
    pub(super) shared: Arc<SharedRoute>,
    pub(super) pool: Pool,
    view: RefCell<(Epoch, Rc<RouteState>)>,
}

impl LocalRoute {
    pub(super) fn new(shared: Arc<SharedRoute>) -> Rc<Self> {
        let (epoch, state) = shared.state();
        Rc::new(Self { shared, pool: Pool::default(), view: RefCell::new((epoch, Rc::new(state))) })
    }

    /// Returns the state and its epoch. Both may be outdated a moment later; `forward` handles that.
    pub(super) fn current(&self) -> (Epoch, Rc<RouteState>) {
        let mut view = self.view.borrow_mut();
        if view.0 != self.shared.epoch() {
            let (epoch, state) = self.shared.state();
            *view = (epoch, Rc::new(state));
            drop(view);
            self.pool.clear();
            view = self.view.borrow_mut();
        }
        (view.0, Rc::clone(&view.1))
    }

    pub(super) fn count_to_site(&self, bytes: usize) {
        self.shared.counters.bytes_to_site.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn count_from_site(&self, bytes: usize) {
        self.shared.counters.bytes_from_site.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A request between the arrival of its head and the end of its response.
pub(super) struct InFlight {
    route: Rc<LocalRoute>,
}

impl InFlight {
    pub(super) fn begin(route: Rc<LocalRoute>) -> Self {
        route.shared.counters.requests.fetch_add(1, Ordering::Relaxed);
        route.shared.counters.in_flight.fetch_add(1, Ordering::Relaxed);
        Self { route }
    }

    pub(super) fn route(&self) -> &Rc<LocalRoute> {
        &self.route
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.route.shared.counters.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
