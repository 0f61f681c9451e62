//! The processes that a process has started.

/// Returns processes and all their descendants, by their ids.
pub fn family(ancestors: Vec<i32>) -> Vec<i32> {
    let all = procfs::process::all_processes().expect("processes").flatten();
    // A process may have ended meanwhile.
    let parents: Vec<(i32, i32)> = all.filter_map(|process| Some((process.pid, process.stat().ok()?.ppid))).collect();
    let mut found = ancestors;
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        let children = parents.iter().filter(|(pid, of)| *of == parent && !found.contains(pid)).map(|(pid, _)| *pid);
        found.extend(children.collect::<Vec<_>>());
        next += 1;
    }
    found
}
