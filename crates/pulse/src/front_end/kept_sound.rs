//! How much is kept of the sound of one program: what it has written and is not heard yet, and what
//! was recorded for it and it has not taken. PulseAudio grants each stream 4 MiB, and a program may
//! have 64 of them.

use super::FrontEnd;
use crate::output::Devices;

/// Most bytes of all streams of one program.
const MAX_BYTES_OF_ONE: usize = 64 << 20;
/// Bytes of each stream for which there is room in any case: more than the two seconds that
/// programs ask for mostly.
pub(super) const BYTES_OF_A_STREAM: usize = 1 << 20;

impl<D: Devices> FrontEnd<D> {
    /// Returns the most bytes that may be kept of a stream, of which `own` are kept now.
    pub(super) fn most_kept(&self, account: u32, own: usize) -> usize {
        let inputs = self.inputs.values().filter(|input| input.account == account);
        let outputs = self.outputs.values().filter(|output| output.account == account);
        let played = inputs.map(|input| input.playback.kept_bytes()).sum::<usize>();
        let recorded = outputs.map(|output| output.recording.kept_bytes()).sum::<usize>();
        // MUTATION: most_kept.without_limit
        let all = played + recorded;
        (own + MAX_BYTES_OF_ONE.saturating_sub(all)).max(BYTES_OF_A_STREAM)
    }
}
