//! Sounds that the server keeps for programs, by name: *samples*.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Weak};

use convert::ProgramFormat;
use pulseaudio::protocol::{ChannelVolume, Props, PulseError, SampleInfo};

use super::{format, properties};
use crate::output::Output;
use crate::playback::{Pace, Playback};
use crate::wire::Seek;

/// Longest sample, bytes: PulseAudio's limit.
pub(super) const MAX_SAMPLE_BYTES: u32 = 16 << 20;
/// All samples, and those that play on after they were removed, bytes. The front end serves one
/// user.
const MAX_BYTES: usize = 64 << 20;
/// Most bytes of the properties of all samples that are kept: a list of all is one packet.
const MAX_PROPERTIES_BYTES: usize = 1 << 20;
/// Most samples.
const MAX_SAMPLES: usize = 1024;
/// Longest name: PulseAudio's limit.
const MAX_NAME_BYTES: usize = 128;

/// One sample.
#[derive(Debug)]
pub(super) struct Sample {
    pub name: CString,
    pub program: ProgramFormat,
    pub props: Props,
    pub bytes: Vec<u8>,
}

impl Sample {
    /// Returns the memory that it takes.
    fn cost(&self) -> usize {
        self.bytes.len() + properties::bytes(&self.props) + self.name.as_bytes().len()
    }

    fn info(&self, index: u32) -> SampleInfo {
        let length = self.bytes.len();
        SampleInfo {
            index,
            name: self.name.clone(),
            cvolume: ChannelVolume::norm(self.program.map.channels() as u8),
            sample_spec: format::spec(&self.program),
            channel_map: format::map(&self.program.map),
            duration: Pace::of(&self.program).us(length as u64),
            length: u32::try_from(length).unwrap_or(u32::MAX),
            lazy: None,
            props: self.props.clone(),
        }
    }
}

/// What became of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is a new sample, of this index.
    New(u32),
    /// The sample of this index was replaced.
    Replaced(u32),
}

/// The samples that are kept.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// By index.
    kept: BTreeMap<u32, Arc<Sample>>,
    next: u32,
    /// Those that are kept and those that only play.
    alive: Vec<Weak<Sample>>,
}

impl Samples {
    /// Keeps a sample; one of the same name is replaced.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn keep(&mut self, sample: Sample) -> Result<Kept, PulseError> {
        let same = self.index_of(&sample.name);
        let is_room = same.is_some() || self.kept.len() < MAX_SAMPLES;
        // MUTATION: keep.without_limit
        let used = self.used_bytes();
        let others = self.kept.iter().filter(|(index, _)| same != Some(**index));
        let props = others.map(|(_, kept)| &kept.props).chain([&sample.props]);
        // MUTATION: keep.properties_without_limit
        let described = props.map(properties::bytes).sum::<usize>();
        if !is_room || used + sample.cost() > MAX_BYTES || described > MAX_PROPERTIES_BYTES {
            return Err(PulseError::TooLarge);
        }
        let sample = Arc::new(sample);
        self.alive.push(Arc::downgrade(&sample));
        if let Some(index) = same {
            self.kept.insert(index, sample);
            return Ok(Kept::Replaced(index));
        }
        let index = self.next;
        self.next = self.next.wrapping_add(1);
        self.kept.insert(index, sample);
        Ok(Kept::New(index))
    }

    /// Forgets a sample; it plays on where it plays. Returns its index.
    pub fn remove(&mut self, name: &CStr) -> Option<u32> {
        let index = self.index_of(name)?;
        self.kept.remove(&index);
        Some(index)
    }

    pub fn find(&self, name: &CStr) -> Option<&Arc<Sample>> {
        self.kept.get(&self.index_of(name)?)
    }

    pub fn info(&self, index: u32) -> Option<SampleInfo> {
        self.kept.get(&index).map(|sample| sample.info(index))
    }

    pub fn info_named(&self, name: &CStr) -> Option<SampleInfo> {
        self.index_of(name).and_then(|index| self.info(index))
    }

    pub fn infos(&self) -> Vec<SampleInfo> {
        self.kept.iter().map(|(index, sample)| sample.info(*index)).collect()
    }

    /// Returns the bytes of all samples that are kept.
    pub fn kept_bytes(&self) -> usize {
        self.kept.values().map(|sample| sample.bytes.len()).sum()
    }

    fn index_of(&self, name: &CStr) -> Option<u32> {
        let found = self.kept.iter().find(|(_, sample)| *sample.name == *name);
        found.map(|(index, _)| *index)
    }

    /// Returns the memory of what is kept and what still plays.
    fn used_bytes(&mut self) -> usize {
        self.alive.retain(|sample| sample.strong_count() > 0);
        self.alive.iter().filter_map(Weak::upgrade).map(|sample| sample.cost()).sum()
    }
}

/// Returns whether samples can have this name: PulseAudio's rule.
pub(super) fn is_name(name: &CStr) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_".contains(byte);
    let bytes = name.to_bytes();
    !bytes.is_empty() && bytes.len() <= MAX_NAME_BYTES && bytes.iter().all(is_letter)
}

/// A sample on its way into a stream.
#[derive(Debug)]
pub(super) struct Feed {
    sample: Arc<Sample>,
    /// The next byte.
    at: usize,
    has_ended: bool,
}

impl Feed {
    pub fn new(sample: Arc<Sample>) -> Self {
        Self { sample, at: 0, has_ended: false }
    }

    /// Gives a stream the next bytes; after the last ones it is to be drained.
    pub fn give<O: Output>(&mut self, to: &mut Playback<O>, bytes: u32, now_ns: u64) {
        let rest = &self.sample.bytes[self.at..];
        let some = &rest[..rest.len().min(bytes as usize)];
        self.at += some.len();
        if !some.is_empty() {
            to.write(Seek::Relative(0), some, now_ns);
        }
        if self.at == self.sample.bytes.len() && !self.has_ended {
            self.has_ended = true;
            to.drain(0, now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(name: &CStr, bytes: usize) -> Sample {
        let map = "mono".parse().expect("a map");
        let format = convert::SampleFormat::U8;
        let program = ProgramFormat { format, rate_hz: 8000, map };
        Sample { name: name.to_owned(), program, props: Props::new(), bytes: vec![0; bytes] }
    }

    #[test]
    fn a_sample_is_replaced_by_one_of_its_name() {
        let mut samples = Samples::default();
        assert_eq!(samples.keep(sample(c"bell", 8)), Ok(Kept::New(0)));
        assert_eq!(samples.keep(sample(c"other", 8)), Ok(Kept::New(1)));
        assert_eq!(samples.keep(sample(c"bell", 16_000)), Ok(Kept::Replaced(0)));
        let info = samples.info(0).expect("a sample");
        assert_eq!((info.length, info.duration), (16_000, 2_000_000));
        assert_eq!((samples.kept_bytes(), samples.infos().len()), (16_008, 2));
        assert_eq!((samples.remove(c"bell"), samples.remove(c"bell")), (Some(0), None));
    }

    #[test]
    fn samples_that_play_after_they_were_removed_are_counted() {
        let mut samples = Samples::default();
        let mut playing = Vec::new();
        for _ in 0..MAX_BYTES / (16 << 20) - 1 {
            samples.keep(sample(c"long", (16 << 20) - 4)).expect("room");
            playing.push(Feed::new(Arc::clone(samples.find(c"long").expect("kept"))));
            samples.remove(c"long");
        }
        assert_eq!(samples.keep(sample(c"last", (16 << 20) - 4)), Ok(Kept::New(3)));
        assert_eq!(samples.keep(sample(c"more", 100)), Err(PulseError::TooLarge));
        playing.pop();
        assert_eq!(samples.keep(sample(c"more", 100)), Ok(Kept::New(4)));
    }

    #[test]
    fn samples_have_no_more_properties_than_a_list_has_room_for() {
        let described = |name: &CStr| {
            let mut sample = sample(name, 1);
            properties::set(&mut sample.props, c"a", &"x".repeat(MAX_PROPERTIES_BYTES / 2));
            sample
        };
        let mut samples = Samples::default();
        assert_eq!(samples.keep(described(c"one")), Ok(Kept::New(0)));
        assert_eq!(samples.keep(described(c"one")), Ok(Kept::Replaced(0)));
        assert_eq!(samples.keep(described(c"two")), Err(PulseError::TooLarge));
        assert_eq!(samples.keep(sample(c"two", 1)), Ok(Kept::New(1)));
    }

    #[test]
    fn there_is_a_limit_to_their_number_and_names() {
        let mut samples = Samples::default();
        for number in 0..MAX_SAMPLES {
            let name = CString::new(format!("sample-{number}")).expect("a name");
            samples.keep(sample(&name, 1)).expect("room");
        }
        assert_eq!(samples.keep(sample(c"more", 1)), Err(PulseError::TooLarge));
        assert_eq!(samples.keep(sample(c"sample-7", 1)), Ok(Kept::Replaced(7)));
        assert!(is_name(c"bell-1_a.B"));
        let long = CString::new("x".repeat(MAX_NAME_BYTES + 1)).expect("a name");
        for no in [c"", c"two words", c"@DEFAULT@", &long] {
            assert!(!is_name(no), "{no:?}");
        }
    }
}
