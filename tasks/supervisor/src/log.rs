//! The last few crash records.

use heapless::Deque;
use supervisor_api::CrashRecord;

/// Records that are kept.
const KEPT: usize = 8;

/// The last few crash records.
#[derive(Debug, Default)]
pub struct Log {
    records: Deque<CrashRecord, KEPT>,
}

impl Log {
    /// No record.
    #[must_use]
    pub const fn new() -> Self {
        Self { records: Deque::new() }
    }

    /// Adds the latest; the oldest is forgotten when there are too many.
    pub fn add(&mut self, record: CrashRecord) {
        if self.records.is_full() {
            self.records.pop_back();
        }
        // There is room now.
        let _ = self.records.push_front(record);
    }

    /// A record; 0 is the latest.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&CrashRecord> {
        self.records.iter().nth(index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::fault::{FaultInfo, FaultRecord};

    fn record(task: u8) -> CrashRecord {
        let fault = FaultRecord { info: FaultInfo::Panic, pc: 0, sp: 0, time: 0, generation: 0 };
        CrashRecord { task, fault, backoff: 2, message: "why".try_into().unwrap_or_default() }
    }

    #[test]
    fn the_latest_comes_first_and_the_oldest_is_forgotten() {
        let mut log = Log::new();
        assert!(log.get(0).is_none());
        for task in 0..20 {
            log.add(record(task));
        }
        assert_eq!(log.get(0).map(|record| record.task), Some(19));
        assert_eq!(log.get(7).map(|record| record.task), Some(12));
        assert!(log.get(8).is_none());
        assert!(log.get(u32::MAX).is_none());
    }
}
