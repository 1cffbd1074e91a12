//! What other programs can change about a stream. Its program finds it here when the server has
//! gone, and asks the next one for the same.

use super::ring::MAX_STREAM_CHANNELS;

/// Longest name of a device, bytes.
pub const STREAM_DEVICE_NAME_BYTES: usize = 64;

const CHANNELS: usize = MAX_STREAM_CHANNELS as usize;
const NAME_WORDS: usize = STREAM_DEVICE_NAME_BYTES / 8;

/// Where a stream is, and what the server makes of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamState {
    /// Rate of its device, Hz.
    pub sample_rate_hz: u32,
    /// The server's volume of it while it is not muted, a factor.
    pub gain: f32,
    /// Nothing of it is heard.
    pub muted: bool,
    /// The device that it is on.
    pub device: StreamDeviceName,
    /// Ids of its ports in the registry, by channel; 0: it has none.
    pub ports: [u32; CHANNELS],
}

/// The name of a further device, or the device that drives, which is the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamDeviceName {
    bytes: [u8; STREAM_DEVICE_NAME_BYTES],
    length: usize,
}

impl Default for StreamDeviceName {
    fn default() -> Self {
        Self { bytes: [0; STREAM_DEVICE_NAME_BYTES], length: 0 }
    }
}

impl StreamDeviceName {
    /// Returns the name of a further device; `None` if no device can have it.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let mut bytes = [0; STREAM_DEVICE_NAME_BYTES];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        (!name.is_empty()).then_some(Self { bytes, length: name.len() })
    }

    /// Returns the name of a further device; `None`: the one that drives.
    #[must_use]
    pub fn further(&self) -> Option<&str> {
        let name = self.bytes.get(..self.length)?;
        core::str::from_utf8(name).ok().filter(|name| !name.is_empty())
    }
}

impl StreamState {
    pub(super) const WORDS: usize = 2 + NAME_WORDS + CHANNELS / 2;

    pub(super) fn to_words(self) -> [u64; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        words[0] = u64::from(self.sample_rate_hz) | u64::from(self.gain.to_bits()) << 32;
        words[1] = u64::from(self.muted) | (self.device.length as u64) << 1;
        let (name, ports) = words[2..].split_at_mut(NAME_WORDS);
        for (word, bytes) in name.iter_mut().zip(self.device.bytes.chunks_exact(8)) {
            bytes.iter().rev().for_each(|byte| *word = *word << 8 | u64::from(*byte));
        }
        for (word, pair) in ports.iter_mut().zip(self.ports.chunks_exact(2)) {
            *word = u64::from(pair[0]) | u64::from(pair[1]) << 32;
        }
        words
    }

    #[expect(clippy::cast_possible_truncation, reason = "each part of a word has one value")]
    pub(super) fn from_words(words: &[u64; Self::WORDS]) -> Self {
        let (name, ports) = words[2..].split_at(NAME_WORDS);
        let bytes = core::array::from_fn(|at| (name[at / 8] >> (at % 8 * 8)) as u8);
        Self {
            sample_rate_hz: words[0] as u32,
            gain: f32::from_bits((words[0] >> 32) as u32),
            muted: words[1] & 1 != 0,
            device: StreamDeviceName { bytes, length: (words[1] >> 1) as usize },
            ports: core::array::from_fn(|port| (ports[port / 2] >> (port % 2 * 32)) as u32),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let named = StreamDeviceName::new("Kopfhörer").unwrap();
        let longest = [b'x'; STREAM_DEVICE_NAME_BYTES];
        let longest = StreamDeviceName::new(core::str::from_utf8(&longest).unwrap()).unwrap();
        for device in [StreamDeviceName::default(), named, longest] {
            let state = StreamState {
                sample_rate_hz: 192_000,
                gain: 0.3,
                muted: device == named,
                device,
                ports: core::array::from_fn(|port| u32::MAX - port as u32),
            };
            assert_eq!(StreamState::from_words(&state.to_words()), state);
        }
        assert_eq!(
            (named.further(), StreamDeviceName::default().further()),
            (Some("Kopfhörer"), None)
        );
        assert_eq!(
            (StreamDeviceName::new(""), StreamDeviceName::new(&"y".repeat(65))),
            (None, None)
        );
    }

    #[test]
    fn a_name_that_is_none_is_the_device_that_drives() {
        let words = [u64::MAX; StreamState::WORDS];
        assert_eq!(StreamState::from_words(&words).device.further(), None);
    }
}
