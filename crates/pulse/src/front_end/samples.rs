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
/// All samples. The front end serves one user.
const ALL: Room = Room {
    bytes: 64 << 20,
    // A list of all is one packet.
    properties_bytes: 1 << 20,
    samples: 1024,
};
/// Those of all confined programs, which must leave room for the others: the user can remove what
/// these have left.
const CONFINED: Room = ALL.part(4);
/// Those of one confined program.
const CONFINED_OF_ONE: Room = CONFINED.part(4);
/// Longest name: PulseAudio's limit.
const MAX_NAME_BYTES: usize = 128;

/// What samples may take, or do take.
#[derive(Debug, Clone, Copy, Default)]
struct Room {
    /// Memory, also of those that play on after they were removed.
    bytes: usize,
    /// Of the properties of those that are kept.
    properties_bytes: usize,
    /// Those that are kept.
    samples: usize,
}

impl Room {
    const fn part(self, parts: usize) -> Self {
        let Self { bytes, properties_bytes, samples } = self;
        Self {
            bytes: bytes / parts,
            properties_bytes: properties_bytes / parts,
            samples: samples / parts,
        }
    }

    fn holds(self, used: Self) -> bool {
        used.bytes <= self.bytes
            && used.properties_bytes <= self.properties_bytes
            && used.samples <= self.samples
    }
}

/// One sample.
#[derive(Debug)]
pub(super) struct Sample {
    /// The account of the confined program whose own it is, and with which it ends; `None`: it is
    /// for all programs.
    pub owner: Option<u32>,
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
    /// Keeps a sample; one of the same name and owner is replaced.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn keep(&mut self, sample: Sample) -> Result<Kept, PulseError> {
        let same = self.index_of(sample.owner, &sample.name);
        // MUTATION: keep.without_limit
        let has_room = self.has_room(&sample, same);
        if !has_room {
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

    /// Returns whether there is room for another sample, instead of the one of an index.
    fn has_room(&mut self, new: &Sample, instead: Option<u32>) -> bool {
        self.alive.retain(|sample| sample.strong_count() > 0);
        let in_all = self.used_with(new, instead, |_| true);
        if new.owner.is_none() {
            return ALL.holds(in_all);
        }
        // MUTATION: has_room.confined_programs_take_all
        let by_confined = self.used_with(new, instead, |sample| sample.owner.is_some());
        // MUTATION: has_room.one_confined_program_takes_all
        let by_owner = self.used_with(new, instead, |sample| sample.owner == new.owner);
        ALL.holds(in_all) && CONFINED.holds(by_confined) && CONFINED_OF_ONE.holds(by_owner)
    }

    /// Returns what some samples would take together with another one.
    fn used_with(
        &self,
        new: &Sample,
        instead: Option<u32>,
        counts: impl Fn(&Sample) -> bool,
    ) -> Room {
        let alive = self.alive.iter().filter_map(Weak::upgrade).filter(|sample| counts(sample));
        let kept = self.kept.iter().filter(|(index, _)| instead != Some(**index));
        let kept = kept.map(|(_, sample)| &**sample).filter(|sample| counts(sample)).chain([new]);
        // MUTATION: keep.properties_without_limit
        let properties_bytes = kept.clone().map(|sample| properties::bytes(&sample.props)).sum();
        let bytes = alive.map(|sample| sample.cost()).sum::<usize>() + new.cost();
        Room { bytes, properties_bytes, samples: kept.count() }
    }

    /// Forgets a sample; it plays on where it plays. Returns its index.
    pub fn remove(&mut self, owner: Option<u32>, name: &CStr) -> Option<u32> {
        let index = self.index_of(owner, name)?;
        self.kept.remove(&index);
        Some(index)
    }

    /// Forgets the samples of a confined program that has gone. Returns their indices.
    pub fn remove_of(&mut self, owner: u32) -> Vec<u32> {
        let own = self.kept.extract_if(.., |_, sample| sample.owner == Some(owner));
        own.map(|(index, _)| index).collect()
    }

    /// Returns the sample that a program means by a name: a confined one its own, or one that is
    /// for all.
    pub fn find(&self, owner: Option<u32>, name: &CStr) -> Option<&Arc<Sample>> {
        self.kept.get(&self.index_of(owner, name).or_else(|| self.index_of(None, name))?)
    }

    pub fn info(&self, index: u32) -> Option<SampleInfo> {
        self.kept.get(&index).map(|sample| sample.info(index))
    }

    /// Returns what [`find`](Self::find) finds.
    pub fn info_named(&self, owner: Option<u32>, name: &CStr) -> Option<SampleInfo> {
        let index = self.index_of(owner, name).or_else(|| self.index_of(None, name));
        index.and_then(|index| self.info(index))
    }

    pub fn infos(&self) -> Vec<SampleInfo> {
        self.kept.iter().map(|(index, sample)| sample.info(*index)).collect()
    }

    /// Returns the bytes of all samples that are kept.
    pub fn kept_bytes(&self) -> usize {
        self.kept.values().map(|sample| sample.bytes.len()).sum()
    }

    fn index_of(&self, owner: Option<u32>, name: &CStr) -> Option<u32> {
        // MUTATION: index_of.samples_of_other_programs
        let is_it = |sample: &Sample| sample.owner == owner && *sample.name == *name;
        self.kept.iter().find(|(_, sample)| is_it(sample)).map(|(index, _)| *index)
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
        let (owner, name, props) = (None, name.to_owned(), Props::new());
        Sample { owner, name, program, props, bytes: vec![0; bytes] }
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
        assert_eq!((samples.remove(None, c"bell"), samples.remove(None, c"bell")), (Some(0), None));
    }

    #[test]
    fn samples_that_play_after_they_were_removed_are_counted() {
        let mut samples = Samples::default();
        let mut playing = Vec::new();
        for _ in 0..ALL.bytes / (16 << 20) - 1 {
            samples.keep(sample(c"long", (16 << 20) - 4)).expect("room");
            playing.push(Feed::new(Arc::clone(samples.find(None, c"long").expect("kept"))));
            samples.remove(None, c"long");
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
            properties::set(&mut sample.props, c"a", &"x".repeat(ALL.properties_bytes / 2));
            sample
        };
        let mut samples = Samples::default();
        assert_eq!(samples.keep(described(c"one")), Ok(Kept::New(0)));
        assert_eq!(samples.keep(described(c"one")), Ok(Kept::Replaced(0)));
        assert_eq!(samples.keep(described(c"two")), Err(PulseError::TooLarge));
        assert_eq!(samples.keep(sample(c"two", 1)), Ok(Kept::New(1)));
    }

    /// Keeps as many samples of a confined program as there is room for; returns their number.
    fn fill(samples: &mut Samples, owner: u32, bytes: usize) -> usize {
        let add = |number| {
            let name = CString::new(format!("sample-{number}")).expect("a name");
            samples.keep(Sample { owner: Some(owner), ..sample(&name, bytes) })
        };
        (0..2 * ALL.samples).map(add).take_while(Result::is_ok).count()
    }

    #[test]
    fn confined_programs_have_a_part_of_the_room_and_each_a_part_of_that() {
        for bytes in [1, 1 << 20] {
            let mut samples = Samples::default();
            let each: Vec<usize> = (1..10).map(|owner| fill(&mut samples, owner, bytes)).collect();
            let most = if bytes == 1 { CONFINED_OF_ONE.samples } else { 3 };
            assert_eq!(each[0], most, "of {bytes} bytes, and a name");
            assert!((4 * most..=5 * most).contains(&each.iter().sum()), "{each:?}");
            let mut free = |name: &CStr, bytes| samples.keep(sample(name, bytes));
            assert!(free(c"sample-0", bytes).is_ok_and(|kept| matches!(kept, Kept::New(_))));
            assert!(free(c"long", 16 << 20).is_ok() && free(c"other", 16 << 20).is_ok());
            assert_eq!(samples.remove_of(1).len(), most);
            assert_eq!(fill(&mut samples, 1, bytes), most, "it has come again");
        }
    }

    #[test]
    fn there_is_a_limit_to_their_number_and_names() {
        let mut samples = Samples::default();
        for number in 0..ALL.samples {
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
