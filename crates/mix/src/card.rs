//! The hardware as a device's loop sees it.

use crate::planes::Planes;

/// Where the hardware was at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CardPosition {
    /// The frame that the hardware reads next; those before cannot be changed.
    pub played: u64,
    /// When that was, `CLOCK_MONOTONIC` ns.
    pub at_ns: u64,
    /// How long a frame lasts, as measured, ps.
    pub frame_ps: u64,
}

/// A cycle of the graph on a card that starts the cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CardCycle {
    /// The frame that the hardware reads when the cycle is due.
    pub first: u64,
    /// How many frames later the cycle's output is heard without streams, if it comes when the
    /// next cycle is due: what the device's ports report.
    pub latency_frames: u64,
}

/// A card that plays. Frames count from the first start on; the count stops while the card is
/// stopped, and while the hardware is not there. Where nothing was written, it plays silence.
///
/// All methods are called by the device's thread. Thread: cycle.
pub trait Card {
    /// Returns how many frames its buffer holds. It changes only while the card is not open.
    fn buffer_frames(&self) -> u32;

    /// Returns how many frames before it is played a frame is to be written, so that a thread that
    /// is a little late still writes it in time. It changes only while the card is not open, and
    /// when the graph's cycles begin or end.
    fn safety_frames(&self) -> u32;

    /// Returns how many frames after its position the hardware may have read already, at most the
    /// safety: these stay as they are when later ones are taken back.
    fn fetched_frames(&self) -> u32 {
        self.safety_frames()
    }

    /// Returns whether the hardware is there. A card that has closed is stopped.
    fn is_open(&self) -> bool {
        true
    }

    /// Has the hardware opened, and returns whether it is there. If it is not, the loop is called
    /// when it is.
    fn open(&mut self) -> bool {
        self.is_open()
    }

    /// Returns where the hardware is. Never goes back.
    fn position(&mut self, now_ns: u64) -> CardPosition;

    /// Returns the cycle that was due last; `None`: the card starts none.
    fn cycle(&self) -> Option<CardCycle> {
        None
    }

    /// Returns the frame after the last one that the card has. It is smaller than what was written
    /// if the card has lost that, and larger if it has played before.
    fn written(&self) -> u64;

    /// Takes back the last `frames` frames; returns how many it really took back.
    fn rewind(&mut self, frames: u64) -> u64;

    /// Returns whether anything comes of what is written. If not, that need not be mixed.
    fn is_heard(&self) -> bool {
        true
    }

    /// Takes the frames from device frame `first` on, which is not before [`Self::written`].
    fn write(&mut self, first: u64, planes: &Planes);

    /// Starts playing what was written.
    fn start(&mut self, now_ns: u64);

    /// Nothing follows what was written: what the hardware reads after that is to be silent until
    /// the card is stopped.
    fn end_in_silence(&mut self) {}

    /// Stops after everything that was written has been played.
    fn stop(&mut self);

    /// Returns whether it can hold more once it is opened again: it was opened for the graph's
    /// cycles, and runs none.
    fn is_makeshift(&self) -> bool {
        false
    }

    /// Stops at once, and has the hardware opened again, as the loop alone needs it. What it has
    /// not played is lost. The loop is called when it is there.
    fn reopen(&mut self) {}

    /// The loop ends. Stops at once, unless the graph's cycles play on without the loop: then what
    /// was written is played, and they follow it.
    fn leave(&mut self) {
        self.stop();
    }
}
