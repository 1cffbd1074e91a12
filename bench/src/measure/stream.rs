//! A stream that runs during a measurement and notices every interruption.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::client::{Counts, Node, Patcher};
use crate::measure::words;
use crate::report::{Report, Subject};
use crate::server::Server;

/// A source, and a checker that knows every sample in advance.
pub struct Stream {
    source: Node,
    checker: Node,
}

/// What the stream was at the beginning of a span of time.
pub struct Span {
    begun: Instant,
    counts: Counts,
}

impl Stream {
    /// Starts both clients, connects them, and waits until the stream is right.
    pub fn start(server: &Server, patcher: &mut Patcher) -> Result<Self> {
        let source = server.node("source", &words("source 0 1"))?;
        let checker = server.node("checker", &words("checker 1 0"))?;
        source.ready()?;
        checker.ready()?;
        patcher.connect("source:out_0", "checker:in_0")?;
        let mut stream = Self { source, checker };
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let before = stream.checker.counts()?;
            std::thread::sleep(Duration::from_millis(100));
            let added = stream.checker.counts()?.since(before);
            if added.cycles > 0 && added.wrong < added.cycles {
                return Ok(stream);
            }
            ensure!(Instant::now() < deadline, "the checker never heard the source: {added:?}");
        }
    }

    /// The process ids of both clients.
    pub fn checker(&self) -> &Node {
        &self.checker
    }

    /// Begins a span of time.
    pub fn begin(&mut self) -> Result<Span> {
        Ok(Span { begun: Instant::now(), counts: self.checker.counts()? })
    }

    /// Ends the span, and takes another one of the same length in which nothing is done: what the
    /// machine loses by itself has to be known to judge what the measured action lost.
    pub fn end(
        &mut self,
        span: &Span,
        action: &str,
        subject: &Subject,
        report: &mut Report,
    ) -> Result<()> {
        let length = span.begun.elapsed();
        let during = self.checker.counts()?.since(span.counts);
        let quiet_start = self.checker.counts()?;
        std::thread::sleep(length);
        let quiet = self.checker.counts()?.since(quiet_start);
        for (counts, when) in [(during, action), (quiet, &format!("no {action}, as long"))] {
            report.total(subject, &format!("stream, {when}: cycles"), "cycles", counts.cycles);
            report.total(subject, &format!("stream, {when}: lost"), "cycles", counts.lost);
            report.total(subject, &format!("stream, {when}: wrong"), "cycles", counts.wrong);
            report.total(subject, &format!("stream, {when}: xruns"), "xruns", counts.xruns);
        }
        Ok(())
    }

    /// Ends both clients.
    pub fn stop(self) -> Result<()> {
        self.checker.close()?;
        self.source.close()?;
        Ok(())
    }
}
