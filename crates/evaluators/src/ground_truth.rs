//! Checks of the benchmarks that are wrong in themselves. No rule can correct the requirements of a task, but a report
//! may mention them.

/// A task whose published check is known to be wrong or impossible to satisfy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The number of the task in `test.raw.json`.
    pub task_id: u32,
    /// The defect of the check.
    pub reason: &'static str,
    /// The report of the defect.
    pub source: &'static str,
}

/// WebArena's tasks with defective checks.
pub(crate) const WEBARENA: [Fault; 19] = [
    fault(
        144,
        "the answer `$0.00` is right and is not accepted: `0` has to be a word of its own",
        "web-arena-x/webarena#211",
    ),
    fault(
        155,
        "10 minutes and 5.2 km, or 9 minutes and 5.1 km: it depends on the version of the router",
        "gasse/webarena-setup#4",
    ),
    fault(293, CLONE, "web-arena-x/webarena#185"),
    fault(294, CLONE, "web-arena-x/webarena#185"),
    fault(295, CLONE, "web-arena-x/webarena#185"),
    fault(296, CLONE, "web-arena-x/webarena#185"),
    fault(297, CLONE, "web-arena-x/webarena#185"),
    fault(339, REVISED, "ServiceNow/webarena-verified#46"),
    fault(407, REPORTED, "web-arena-x/webarena#246"),
    fault(408, REPORTED, "web-arena-x/webarena#246"),
    fault(429, "two pages fit what the task asks for, and one is accepted", "ServiceNow/webarena-verified#42"),
    fault(447, REPORTED, "web-arena-x/webarena#174"),
    fault(475, REVISED, "ServiceNow/webarena-verified#46"),
    fault(584, REPORTED, "web-arena-x/webarena#246"),
    fault(600, REVISED, "ServiceNow/webarena-verified#46"),
    fault(625, REVISED, "ServiceNow/webarena-verified#46"),
    fault(676, REVISED, "ServiceNow/webarena-verified#46"),
    fault(699, REVISED, "ServiceNow/webarena-verified#46"),
    fault(700, REVISED, "ServiceNow/webarena-verified#46"),
];

const CLONE: &str = "the address expected is that of its authors' own server, which no other installation shows";
const REPORTED: &str = "the expected value was reported as wrong";
const REVISED: &str = "the check was reported as wrong to those who revised the tasks";

const fn fault(task_id: u32, reason: &'static str, source: &'static str) -> Fault {
    Fault { task_id, reason, source }
}

/// Returns the known defect in the check of one of WebArena's tasks.
#[must_use]
pub fn of_webarena(task_id: u32) -> Option<&'static Fault> {
    WEBARENA.iter().find(|fault| fault.task_id == task_id)
}
