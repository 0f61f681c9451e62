//! Choice of the records of ended episodes that are removed, by age and by the space that all records occupy.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The limits for the records of episodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRetention {
    /// The time after which a record is removed, from its last change.
    pub age: Duration,
    /// The maximum size of all records together, in bytes. The oldest are removed until the others fit.
    pub total_bytes: u64,
}

impl Default for RecordRetention {
    fn default() -> Self {
        Self { age: 7 * DAY, total_bytes: 5 << 30 }
    }
}

/// A record on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSize {
    /// The space that the record occupies, in bytes.
    pub bytes: u64,
    /// The time of its last change.
    pub changed_at: Timestamp,
    /// Whether its episode runs. Such a record is never removed.
    pub is_live: bool,
}

impl RecordRetention {
    /// Chooses the records to remove: their positions in `records`, from the oldest.
    pub fn choose(&self, records: &[RecordSize], now: Timestamp) -> Vec<usize> {
        let mut by_age: Vec<usize> = (0..records.len()).filter(|index| !records[*index].is_live).collect();
        by_age.sort_by_key(|index| records[*index].changed_at);
        let most = SignedDuration::try_from(self.age).unwrap_or(SignedDuration::MAX);
        let mut total: u64 = records.iter().map(|record| record.bytes).sum();
        let mut chosen = Vec::new();
        for index in by_age {
            let record = &records[index];
            if now.duration_since(record.changed_at) <= most && total <= self.total_bytes {
                break;
            }
            total -= record.bytes;
            chosen.push(index);
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 2_000_000_000;

    fn record(days: i64, bytes: u64, is_live: bool) -> RecordSize {
        let changed_at = Timestamp::from_second(NOW - days * 24 * 3600).expect("a time");
        RecordSize { bytes, changed_at, is_live }
    }

    fn chosen(records: &[RecordSize], total_bytes: u64) -> Vec<usize> {
        let retention = RecordRetention { age: 7 * DAY, total_bytes };
        retention.choose(records, Timestamp::from_second(NOW).expect("a time"))
    }

    #[test]
    fn old_records_go_and_those_of_running_episodes_stay() {
        let records = [record(1, 10, false), record(8, 10, false), record(30, 10, true), record(9, 10, false)];
        assert_eq!(chosen(&records, 100), [3, 1]);
        assert_eq!(chosen(&[record(7, 10, false)], 100), [0_usize; 0], "at the limit");
        assert_eq!(chosen(&[record(-3, 10, false)], 100), [0_usize; 0], "the clock was set back");
    }

    #[test]
    fn the_oldest_make_room() {
        let records = [record(1, 40, false), record(3, 40, false), record(2, 40, false), record(5, 30, true)];
        assert_eq!(chosen(&records, 150), [0_usize; 0]);
        assert_eq!(chosen(&records, 149), [1]);
        assert_eq!(chosen(&records, 100), [1, 2]);
        assert_eq!(chosen(&records, 0), [1, 2, 0], "a running episode keeps its record whatever the limit");
    }
}
