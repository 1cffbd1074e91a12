//! Durations of clients over three windows of time.

use serde::{Deserialize, Serialize};

/// Quantiles of measured durations, ns. All 0 if nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Quantiles {
    /// Number of measured durations.
    pub count: u64,
    /// Median. Like the next two, at most 3 % too high.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// The same duration over three windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Windows {
    /// Over the last second.
    pub second: Quantiles,
    /// Over the last minute.
    pub minute: Quantiles,
    /// Since the client opened.
    pub start: Quantiles,
}

/// A client's durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClientTiming {
    /// From signaled to awake.
    pub scheduling: Windows,
    /// From awake to finished.
    pub duration: Windows,
}
