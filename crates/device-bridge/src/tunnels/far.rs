//! The connection of a stream at another server: what is said there, and what is heard when.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;

use anyhow::{bail, ensure};
use pulse::{RemoteEvent, RemoteFormat, RemoteReader, RemoteTiming, RemoteWriter};
use sys::clock::now_ns;

use super::far_clock::{Answer, FarClock};

/// Things that were said and not looked at, at most: each is a packet, or a read's samples.
pub(super) const MOST_WAITING: usize = 1024;
/// How often the other server is asked for the time, ns; at first, and later.
const ASK_FIRST_NS: u64 = 10_000_000;
const ASK_NS: u64 = 100_000_000;
/// Answers until it is asked less often.
const FIRST_ANSWERS: u32 = 10;
/// A server that has not answered within this time is gone, ns.
const ANSWERS_WITHIN_NS: u64 = 10_000_000_000;

/// Reads what is said, on a thread of its own, until nobody looks at it or the connection ends. At
/// most `most` things wait.
pub(crate) fn listen(
    mut reader: RemoteReader,
    most: usize,
) -> anyhow::Result<Receiver<RemoteEvent>> {
    let (say, said) = sync_channel(most);
    let read = move || {
        loop {
            let event = reader.listen();
            let is_last = matches!(event, RemoteEvent::Ended(_));
            if say.send(event).is_err() || is_last {
                break;
            }
        }
    };
    thread::Builder::new().name("consort-far".into()).spawn(read)?;
    Ok(said)
}

/// A connection, whose reader has a thread of its own: it waits for whatever is said.
pub(super) struct Connection {
    pub(super) writer: RemoteWriter,
    pub(super) said: Receiver<RemoteEvent>,
    pub(super) format: RemoteFormat,
    pub(super) clock: FarClock,
    /// When a question was sent that is not answered.
    pub(super) asked_ns: Option<u64>,
    /// When the last question was sent.
    last_ask_ns: u64,
    answers: u32,
    pub(super) ended: Option<String>,
}

impl Connection {
    pub(super) fn new(
        (writer, reader): (RemoteWriter, RemoteReader),
        format: RemoteFormat,
    ) -> anyhow::Result<Self> {
        let said = listen(reader, MOST_WAITING)?;
        Ok(Self {
            writer,
            said,
            clock: FarClock::new(format.rate_hz),
            format,
            asked_ns: None,
            last_ask_ns: 0,
            answers: 0,
            ended: None,
        })
    }

    /// Returns what has been said next, if something has.
    pub(super) fn next(&mut self) -> Option<RemoteEvent> {
        match self.said.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.ended.get_or_insert_with(|| "the connection has ended".into());
                None
            }
        }
    }

    /// # Errors
    /// Why it has ended.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if let Some(reason) = &self.ended {
            bail!("{reason}");
        }
        let asked = self.asked_ns;
        let waits_ns = asked.map_or(0, |asked_ns| now_ns().saturating_sub(asked_ns));
        ensure!(waits_ns < ANSWERS_WITHIN_NS, "the other server does not answer");
        Ok(())
    }

    /// Asks for the time if it is due.
    pub(super) fn ask(&mut self) {
        let now_ns = now_ns();
        let interval_ns = if self.answers < FIRST_ANSWERS { ASK_FIRST_NS } else { ASK_NS };
        if self.asked_ns.is_none() && now_ns >= self.last_ask_ns + interval_ns {
            self.writer.ask_timing();
            (self.asked_ns, self.last_ask_ns) = (Some(now_ns), now_ns);
            // At once: its answer is as exact as it is quick.
            if let Err(error) = self.writer.send() {
                self.ended = Some(format!("{error:#}"));
            }
        }
    }

    /// Takes an answer about a stream that runs; `index` is heard as it says.
    pub(super) fn answered(&mut self, timing: RemoteTiming) {
        let Some(asked_ns) = self.asked_ns.take() else { return };
        if !timing.runs {
            return;
        }
        self.answers = self.answers.saturating_add(1);
        let frames = timing.index as f64 / self.format.frame_bytes() as f64;
        let later = timing.heard_in_us as f64 * f64::from(self.format.rate_hz) / 1e6;
        let answered_ns = timing.answered_ns;
        self.clock.answered(Answer { asked_ns, answered_ns, position: frames - later });
    }

    /// The stream stands: when its next frame is heard is not known.
    pub(super) fn stands(&mut self) {
        self.clock.reset();
        self.answers = 0;
    }
}
