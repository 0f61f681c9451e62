//! Settings of benchmarks, quantiles, and the processor time of a process and of the machine.

use procfs::{CurrentSI, KernelStats};

/// Reads a number from a variable of the process's environment, or returns `usual`.
pub fn setting(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Returns the smallest value that at least this part of the values does not exceed; NaN if there are no values.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (part * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

/// Returns the processor time that a process has used, in milliseconds.
pub fn processor_time(pid: u64) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
    let (_, after_name) = stat.rsplit_once(')').expect("a name");
    let times = after_name.split_whitespace().skip(11).take(2);
    let ticks: f64 = times.map(|text| text.parse::<f64>().expect("a number")).sum();
    // The kernel counts in hundredths of a second.
    ticks * 10.0
}

/// Returns the time for which the machine's processors have been busy since boot, in seconds. Processes of a lower
/// priority do not count, so that others may use what the benchmark leaves.
pub fn busy_seconds() -> f64 {
    let total = KernelStats::current().expect("the kernel's statistics").total;
    let busy = total.user + total.system + total.irq.unwrap_or(0) + total.softirq.unwrap_or(0);
    busy as f64 / procfs::ticks_per_second() as f64
}
