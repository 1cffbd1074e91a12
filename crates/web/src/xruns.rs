//! The list of xruns.

use client::{Error, Observer};
use proto::xrun::{Verdict, Xrun};
use serde_json::{Value, json};

/// Number of xruns that are kept.
const SHOWN: usize = 100;

/// The newest xruns. One without a diagnosis is requested again, with all after it.
#[derive(Debug, Default)]
pub(crate) struct Xruns {
    list: Vec<Xrun>,
    /// The last one that was counted.
    counted: u64,
}

impl Xruns {
    /// Requests what is new. Returns true if there was anything.
    pub(crate) fn poll(
        &mut self,
        observer: &Observer,
        mut count: impl FnMut(&Verdict),
    ) -> Result<bool, Error> {
        let before = self.list.clone();
        let judged = self.list.iter().take_while(|xrun| xrun.verdict.is_some()).count();
        self.list.truncate(judged);
        // Bounded: new ones may arrive meanwhile.
        for _ in 0..SHOWN {
            let new = observer.xruns(self.list.last().map_or(self.counted, |xrun| xrun.number))?;
            if new.is_empty() {
                break;
            }
            self.list.extend(new);
        }
        for xrun in &self.list {
            if xrun.number <= self.counted {
                continue;
            }
            let Some(verdict) = &xrun.verdict else { break };
            count(verdict);
            self.counted = xrun.number;
        }
        self.list.drain(..self.list.len().saturating_sub(SHOWN));
        Ok(self.list != before)
    }

    /// Returns the list, newest first.
    pub(crate) fn value(&self) -> Value {
        self.list.iter().rev().map(value).collect()
    }
}

fn value(xrun: &Xrun) -> Value {
    let chain: Vec<&str> = xrun.chain.iter().map(|link| link.name.as_str()).collect();
    json!({
        "number": xrun.number,
        "unix_ms": xrun.unix_ms,
        "client": xrun.client.as_ref().map(|(_, name)| name),
        "cycles": xrun.cycles,
        "verdict": xrun.verdict.as_ref().map(Verdict::word),
        "text": xrun.verdict.as_ref().map(Verdict::describe),
        "driver_late_ns": xrun.driver_late_ns,
        "period_ns": xrun.period_ns,
        "timestamps": xrun.timestamps,
        "usual": xrun.usual,
        "evidence": xrun.evidence,
        "had_cpu": xrun.had_cpu,
        "chain": chain,
    })
}
