//! Tests that need a process of their own, because they measure the peak memory of the whole process or count its
//! child processes. Other tests of the program run at the same time on other threads.

use std::process::{Command, Stdio};

/// Returns whether this process runs only this test. In other processes it starts one that does, and waits until the
/// test has passed there.
///
/// `test` is the test's own function.
pub fn is_alone<F: Fn()>(_test: F) -> bool {
    let path = std::any::type_name::<F>();
    let (_program, name) = path.split_once("::").expect("a function in a module");
    let words = [name, "--exact", "--nocapture"];
    if std::env::args().skip(1).eq(words) {
        return true;
    }
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program).args(words).stdin(Stdio::null()).output().expect("this program runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    // `scripts/test.sh` counts the results that begin a line, and this one is reported by the present process.
    for line in printed.lines().chain(String::from_utf8_lossy(&output.stderr).lines()) {
        println!("  {line}");
    }
    assert!(output.status.success() && printed.contains("1 passed"), "{name} fails in a process of its own");
    false
}
