//! The file into which clients write the times of their cycles: the layout is
//! `clients/timestamps.h`.
//!
//! The clients map it; the benchmark only reads it, with plain reads, so a client cannot make it
//! fault.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};

use crate::workplace::Workplace;

const HEADER_BYTES: usize = 64;
const RECORD_BYTES: usize = 24;
/// The oldest records of a full lane are left out, as its owner may be writing over them.
const MARGIN_RECORDS: u64 = 64;

/// One run of one client's process callback.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Record {
    /// When the callback began, CLOCK_MONOTONIC.
    pub entry_ns: u64,
    /// When it ended.
    pub exit_ns: u64,
    /// The cycle's first frame.
    pub frame: u32,
    /// Bit i: input i carried the tone in every frame.
    pub heard: u32,
}

/// Lanes for a number of clients.
pub struct Recording {
    file: File,
    capacity: usize,
}

impl Recording {
    /// A recording of `lanes` clients and `capacity` cycles each. It is a file without a name in
    /// shared memory, so that nothing is left of it, whatever ends this process.
    pub fn new(workplace: &Workplace, lanes: usize, capacity: usize) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("consort-bench-{}-{number}", std::process::id());
        let memory = std::path::Path::new("/dev/shm");
        let path = if memory.is_dir() { memory.join(name) } else { workplace.file(&name) };
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        std::fs::remove_file(&path)?;
        file.set_len((lanes * lane_bytes(capacity)) as u64)?;
        Ok(Self { file, capacity })
    }

    /// The arguments for the program that writes lane `lane`: path, lane, capacity.
    pub fn arguments(&self, lane: usize) -> [String; 3] {
        [self.path(), lane.to_string(), self.capacity.to_string()]
    }

    /// The path by which other processes open it, while this process has it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Records that fit a lane.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many records the lane's client has written in all.
    pub fn count(&self, lane: usize) -> Result<u64> {
        let mut count = [0; 8];
        self.file.read_exact_at(&mut count, (lane * lane_bytes(self.capacity)) as u64)?;
        Ok(u64::from_ne_bytes(count))
    }

    /// The lane's records from number `first` on, oldest first; only those that are still there.
    pub fn records(&self, lane: usize, first: u64) -> Result<Vec<Record>> {
        let mut bytes = vec![0; lane_bytes(self.capacity)];
        let count = self.count(lane)?;
        self.file.read_exact_at(&mut bytes, (lane * lane_bytes(self.capacity)) as u64)?;
        let capacity = self.capacity as u64;
        let oldest = if count < capacity { 0 } else { count - capacity + MARGIN_RECORDS };
        ensure!(
            oldest <= first,
            "the recording was too short: {} records are lost",
            oldest - first
        );
        Ok((first..count).map(|number| record_at(&bytes, (number % capacity) as usize)).collect())
    }
}

fn lane_bytes(capacity: usize) -> usize {
    HEADER_BYTES + capacity * RECORD_BYTES
}

fn record_at(lane: &[u8], index: usize) -> Record {
    let start = HEADER_BYTES + index * RECORD_BYTES;
    let long =
        |offset: usize| u64::from_ne_bytes(std::array::from_fn(|i| lane[start + offset + i]));
    let word =
        |offset: usize| u32::from_ne_bytes(std::array::from_fn(|i| lane[start + offset + i]));
    Record { entry_ns: long(0), exit_ns: long(8), frame: word(16), heard: word(20) }
}

/// The cycles that every lane has recorded exactly once, in order, each with its records in the
/// order of the lanes.
pub fn complete_cycles(lanes: &[Vec<Record>]) -> Vec<Vec<Record>> {
    let Some(first) = lanes.first() else { return Vec::new() };
    let once: Vec<HashMap<u32, Option<Record>>> = lanes.iter().map(|lane| by_frame(lane)).collect();
    first
        .iter()
        .filter_map(|record| {
            once.iter().map(|lane| lane.get(&record.frame).copied().flatten()).collect()
        })
        .collect()
}

/// `None` for a frame that begins more than one record.
fn by_frame(lane: &[Record]) -> HashMap<u32, Option<Record>> {
    let mut frames = HashMap::with_capacity(lane.len());
    for record in lane {
        frames.entry(record.frame).and_modify(|known| *known = None).or_insert(Some(*record));
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(frame: u32, entry_ns: u64) -> Record {
        Record { entry_ns, exit_ns: entry_ns + 1, frame, heard: 0 }
    }

    #[test]
    fn a_cycle_counts_only_if_every_client_ran_it_exactly_once() {
        let first = vec![record(64, 10), record(128, 20), record(192, 30), record(256, 40)];
        let missed_one = vec![record(64, 11), record(192, 31), record(256, 41)];
        let ran_one_twice = vec![
            record(64, 12),
            record(128, 22),
            record(192, 32),
            record(256, 42),
            record(256, 43),
        ];
        let cycles = complete_cycles(&[first, missed_one, ran_one_twice]);
        let entries: Vec<Vec<u64>> = cycles
            .iter()
            .map(|cycle| cycle.iter().map(|record| record.entry_ns).collect())
            .collect();
        assert_eq!(entries, [[10, 11, 12], [30, 31, 32]]);
    }

    #[test]
    fn records_are_read_as_a_client_wrote_them() {
        let workplace = Workplace::new().unwrap();
        let recording = Recording::new(&workplace, 2, 100).unwrap();
        let writer = File::options().write(true).open(recording.path()).unwrap();
        let mut bytes = Vec::new();
        bytes.extend(7u64.to_ne_bytes());
        bytes.extend(9u64.to_ne_bytes());
        bytes.extend(64u32.to_ne_bytes());
        bytes.extend(3u32.to_ne_bytes());
        writer.write_all_at(&1u64.to_ne_bytes(), lane_bytes(100) as u64).unwrap();
        writer.write_all_at(&bytes, (lane_bytes(100) + HEADER_BYTES) as u64).unwrap();
        assert_eq!(recording.count(0).unwrap(), 0);
        let expected = Record { entry_ns: 7, exit_ns: 9, frame: 64, heard: 3 };
        assert_eq!(recording.records(1, 0).unwrap(), [expected]);
    }

    #[test]
    fn overwritten_records_are_an_error() {
        let workplace = Workplace::new().unwrap();
        let recording = Recording::new(&workplace, 1, 100).unwrap();
        let writer = File::options().write(true).open(recording.path()).unwrap();
        writer.write_all_at(&150u64.to_ne_bytes(), 0).unwrap();
        assert!(recording.records(0, 113).is_err());
        assert_eq!(recording.records(0, 114).unwrap().len(), 36);
    }
}
