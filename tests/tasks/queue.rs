//! The tasks that wait for an agent. Two tasks that need the same site are never tried at the same time.

use std::collections::BTreeSet;
use std::sync::Mutex;

use tokio::sync::Notify;

use super::files::TemplateTask;

/// The waiting tasks and the sites in use.
pub struct Queue {
    state: Mutex<(Vec<&'static TemplateTask>, BTreeSet<&'static str>)>,
    released: Notify,
}

impl Queue {
    pub fn new(tasks: Vec<&'static TemplateTask>) -> Self {
        Self { state: Mutex::new((tasks, BTreeSet::new())), released: Notify::new() }
    }

    /// Returns the first task whose sites are all free and takes these sites, or returns `None` if no task is left.
    pub async fn next(&self) -> Option<&'static TemplateTask> {
        loop {
            let released = self.released.notified();
            tokio::pin!(released);
            // From here on a release wakes this waiter, even a release between the check and the wait.
            released.as_mut().enable();
            {
                let mut state = self.state.lock().expect("no lane panics here");
                let (tasks, taken) = &mut *state;
                if tasks.is_empty() {
                    return None;
                }
                let free = |task: &&'static TemplateTask| !task.sites.iter().any(|site| taken.contains(site.as_str()));
                if let Some(place) = tasks.iter().position(free) {
                    let task = tasks.remove(place);
                    taken.extend(task.sites.iter().map(String::as_str));
                    return Some(task);
                }
            }
            released.await;
        }
    }

    /// Frees the sites of a task.
    pub fn done(&self, task: &'static TemplateTask) {
        let mut state = self.state.lock().expect("no lane panics here");
        for site in &task.sites {
            state.1.remove(site.as_str());
        }
        drop(state);
        self.released.notify_waiters();
    }
}
