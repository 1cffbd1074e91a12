//! How long clients take, over three windows of time.

use serde::{Deserialize, Serialize};

/// Of counted durations, ns. All 0 if nothing was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Quantiles {
    /// How many were counted.
    pub count: u64,
    /// Half of them are at most this; at most 3 % too high, as the next two.
    pub p50_ns: u64,
    /// 99 % of them are at most this.
    pub p99_ns: u64,
    /// 99.9 % of them are at most this.
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
