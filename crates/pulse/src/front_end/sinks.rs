//! The devices of the server, as programs see them: *sinks*, each with an index and a name that
//! stay as long as the device does.

mod description;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};

use convert::{ChannelMap, ProgramFormat, StreamFormat};
use pulseaudio::protocol::Props;

use super::format;
use crate::output::{Card, DeviceFormat, DeviceStatus, HeardVolume};

/// The index of the device that drives, and of its monitor.
pub(super) const DRIVER: u32 = 0;
/// The name of the sink that is the device that drives.
const DRIVER_NAME: &str = "consort";
/// Longest name: PulseAudio's limit, less the ending of the monitor's.
const MAX_NAME_BYTES: usize = 119;

/// What a module says about the device that it made.
#[derive(Debug, Clone)]
pub(super) struct Described {
    /// The module.
    pub module: u32,
    pub shown: Shown,
}

/// What programs see of a device that a module made.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub props: Props,
    pub map: ChannelMap,
    pub face: Face,
    /// What a link adds to the latency of the device: until what is played there is heard, or since
    /// what is recorded there was.
    pub later_us: u64,
}

/// As what programs see a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Face {
    /// As a sink and its monitor.
    Sink,
    /// As a source alone, which has what is played on it.
    Source,
    /// As a source alone, which has what it captures: it plays nothing.
    Capture,
}

/// One sink.
#[derive(Debug)]
pub(super) struct Sink {
    /// The server's name of the device; `None`: the one that drives.
    pub device: Option<String>,
    number: u32,
    pub name: CString,
    pub format: DeviceFormat,
    /// All channels that it plays, or if it plays nothing, that it captures.
    pub map: ChannelMap,
    pub volume: HeardVolume,
    /// Nobody has changed its volume at the server since that began.
    pub is_untouched: bool,
    /// A mixer of its card has a part in the volume.
    pub has_mixer: bool,
    /// The sound card that it is, if it is one.
    pub card: Option<Card>,
    /// What the module says that made it.
    pub described: Option<Described>,
    /// The server has gone, and the next one does not have the device yet.
    pub is_away: bool,
    /// A user has suspended it.
    pub is_suspended: bool,
    /// A user has suspended what the device captures.
    pub is_capture_suspended: bool,
}

impl Sink {
    /// Returns the samples of it.
    pub fn samples(&self) -> ProgramFormat {
        format::floating(self.format.rate_hz, self.map)
    }

    /// Returns what streams on it are converted to.
    pub fn stream(&self) -> StreamFormat {
        StreamFormat { rate_hz: self.format.rate_hz, map: self.map }
    }

    /// Returns the name of the source that has what is played on it.
    pub fn monitor_name(&self) -> CString {
        match self.face() {
            Face::Sink | Face::Capture => monitor_of(&self.name),
            Face::Source => self.name.clone(),
        }
    }

    /// Returns the name of the source that has what the device captures.
    pub fn capture_name(&self) -> CString {
        capture_of(&self.name)
    }

    /// Returns what a link adds to the latency of the device.
    pub fn later_us(&self) -> u64 {
        self.described.as_ref().map_or(0, |described| described.shown.later_us)
    }

    pub fn face(&self) -> Face {
        if self.format.channels == 0 {
            return Face::Capture;
        }
        self.described.as_ref().map_or(Face::Sink, |described| described.shown.face)
    }

    /// The next server numbers its devices again: there, only the name is known.
    fn is(&self, device: &DeviceStatus) -> bool {
        self.device == device.name && (self.is_away || self.number == device.number)
    }
}

/// What has become of a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    New(u32),
    Changed(u32),
    /// Its device has gone. It is still listed.
    Gone(u32),
}

/// All sinks, by index.
#[derive(Debug)]
pub(super) struct Sinks {
    all: BTreeMap<u32, Sink>,
    /// The next index that no sink has had.
    next: u32,
}

impl Default for Sinks {
    fn default() -> Self {
        Self { all: BTreeMap::new(), next: DRIVER + 1 }
    }
}

impl Sinks {
    /// Takes the server's devices as they are; `described` says what is known of a new one by its
    /// name.
    pub fn update(
        &mut self,
        devices: Vec<DeviceStatus>,
        described: impl Fn(&str) -> Option<Described>,
    ) -> Vec<Change> {
        let has_gone = |sink: &Sink| !sink.is_away && !devices.iter().any(|device| sink.is(device));
        let gone = self.all.iter().filter(|(_, sink)| has_gone(sink));
        let mut changes: Vec<Change> = gone.map(|(index, _)| Change::Gone(*index)).collect();
        for device in devices {
            match self.all.iter_mut().find(|(_, sink)| sink.is(&device)) {
                Some((index, sink)) => {
                    if changed(sink, &device) {
                        changes.push(Change::Changed(*index));
                    }
                }
                None => changes.extend(self.add(device, &described).map(Change::New)),
            }
        }
        changes
    }

    fn add(
        &mut self,
        device: DeviceStatus,
        described: impl Fn(&str) -> Option<Described>,
    ) -> Option<u32> {
        let DeviceStatus { name, number, format, volume, is_untouched, has_mixer, card } = device;
        // A module has one device of a name: a later one is none of its.
        let described = name.as_deref().and_then(described);
        let described =
            described.filter(|described| !self.has_device_of(described.module, name.as_deref()));
        let stated = described.as_ref().map(|described| described.shown.map);
        let stated = stated.filter(|map| map.channels() == format.channels as usize);
        let channels = if format.channels > 0 { format.channels } else { format.captured };
        let map = stated.or_else(|| format::device_map(channels))?;
        let index = match name {
            None => DRIVER,
            Some(_) => {
                let index = self.next;
                // The source after its monitor has what it captures.
                self.next = index.wrapping_add(if format.captured > 0 { 2 } else { 1 });
                index
            }
        };
        let sink_name = self.free_name(name.as_deref().unwrap_or(DRIVER_NAME));
        let device = name;
        let name = sink_name;
        let (is_away, is_suspended, is_capture_suspended) = (false, false, false);
        let sink = Sink {
            device,
            number,
            name,
            format,
            map,
            volume,
            is_untouched,
            has_mixer,
            card,
            described,
            is_away,
            is_suspended,
            is_capture_suspended,
        };
        self.all.insert(index, sink);
        Some(index)
    }

    /// The server has gone, and all devices with it.
    pub fn server_gone(&mut self) {
        self.all.values_mut().for_each(|sink| sink.is_away = true);
    }

    /// Returns those whose device is not there.
    pub fn away(&self) -> Vec<u32> {
        let away = self.all.iter().filter(|(_, sink)| sink.is_away);
        away.map(|(index, _)| *index).collect()
    }

    fn has_device_of(&self, module: u32, device: Option<&str>) -> bool {
        let of = |sink: &Sink| sink.described.as_ref().map(|described| described.module);
        self.all.values().any(|sink| of(sink) == Some(module) && sink.device.as_deref() == device)
    }

    /// Forgets a sink.
    pub fn remove(&mut self, index: u32) -> Option<Sink> {
        self.all.remove(&index)
    }

    pub fn get(&self, index: u32) -> Option<&Sink> {
        self.all.get(&index)
    }

    pub fn get_mut(&mut self, index: u32) -> Option<&mut Sink> {
        self.all.get_mut(&index)
    }

    /// Returns the indices of those that programs see as sinks.
    pub fn indices(&self) -> Vec<u32> {
        self.all.keys().copied().filter(|index| self.is_sink(*index)).collect()
    }

    /// Returns those that are sound cards, by index.
    pub fn cards(&self) -> BTreeMap<u32, Card> {
        let card = |(index, sink): (&u32, &Sink)| Some((*index, sink.card.clone()?));
        self.all.iter().filter_map(card).collect()
    }

    /// Returns the indices of all.
    pub fn devices(&self) -> Vec<u32> {
        self.all.keys().copied().collect()
    }

    /// Returns the indices of those that have a monitor.
    pub fn monitored(&self) -> Vec<u32> {
        let plays = self.all.iter().filter(|(_, sink)| sink.face() != Face::Capture);
        plays.map(|(index, _)| *index).collect()
    }

    /// Returns whether programs see a sink of this index.
    pub fn is_sink(&self, index: u32) -> bool {
        self.all.get(&index).is_some_and(|sink| sink.face() == Face::Sink)
    }

    /// Returns the index of the sink of this name; a number is a name as well.
    pub fn find(&self, name: &CStr) -> Option<u32> {
        let of_name = self.all.iter().find(|(_, sink)| *sink.name == *name);
        let found = of_name.map(|(index, _)| *index);
        let found = found.or_else(|| name.to_str().ok()?.parse().ok());
        found.filter(|index| self.is_sink(*index))
    }

    /// Returns the index of a device's sink.
    /// Programs may see it as a source alone.
    pub fn of_device(&self, device: Option<&str>) -> Option<u32> {
        let found = self.all.iter().find(|(_, sink)| sink.device.as_deref() == device);
        found.map(|(index, _)| *index)
    }

    /// Returns this name as PulseAudio would have it, with a number if sinks or sources have it
    /// already.
    pub fn free_name(&self, wanted: &str) -> CString {
        let valid = name_like(wanted).to_string_lossy().into_owned();
        let numbered = (2..).map(|number| format!("{valid}.{number}"));
        let mut names = std::iter::once(valid.clone()).chain(numbered);
        let names = names.by_ref().filter_map(|name| CString::new(name).ok());
        let own = |name: &CStr| [name.to_owned(), monitor_of(name), capture_of(name)];
        let mut free = names.filter(|name| own(name).iter().all(|name| !self.has(name)));
        free.next().unwrap_or_default()
    }

    /// Returns whether a sink or a source has this name.
    fn has(&self, name: &CStr) -> bool {
        let mut all = self.all.values();
        all.any(|sink| {
            let own = [&sink.name, &sink.monitor_name(), &sink.capture_name()];
            own.iter().any(|own| ***own == *name)
        })
    }
}

/// Takes what may change of a device; returns whether it has.
fn changed(sink: &mut Sink, device: &DeviceStatus) -> bool {
    let DeviceStatus { mut format, volume, number, is_untouched, has_mixer, .. } = *device;
    if sink.device.is_some() && sink.format.captured == 0 {
        // Another sink may have the index of the source: see `Sinks::add`.
        format.captured = 0;
    }
    sink.number = number;
    (sink.is_untouched, sink.has_mixer) = (is_untouched, has_mixer);
    let was_away = std::mem::replace(&mut sink.is_away, false);
    if (sink.format, sink.volume, &sink.card) == (format, volume, &device.card) {
        return was_away;
    }
    sink.card.clone_from(&device.card);
    if sink.format.channels != format.channels
        && format.channels > 0
        && let Some(map) = format::device_map(format.channels)
    {
        sink.map = map;
    }
    (sink.format, sink.volume) = (format, volume);
    true
}

/// Returns a text as PulseAudio has names of sinks, sources and cards.
pub(super) fn name_like(wanted: &str) -> CString {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let valid = wanted.bytes().map(|byte| if is_letter(byte) { byte } else { b'_' });
    CString::new(valid.take(MAX_NAME_BYTES).collect::<Vec<u8>>()).unwrap_or_default()
}

fn capture_of(name: &CStr) -> CString {
    CString::new([name.to_bytes(), b".capture"].concat()).unwrap_or_default()
}

fn monitor_of(name: &CStr) -> CString {
    CString::new([name.to_bytes(), b".monitor"].concat()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn device(name: Option<&str>, number: u32) -> DeviceStatus {
        let format = DeviceFormat { rate_hz: 48_000, channels: 2, captured: 0 };
        let (volume, is_untouched) = (HeardVolume::default(), true);
        let (name, has_mixer, card) = (name.map(Into::into), false, None);
        DeviceStatus { name, number, format, volume, is_untouched, has_mixer, card }
    }

    pub(super) fn update(sinks: &mut Sinks, devices: Vec<DeviceStatus>) -> Vec<Change> {
        sinks.update(devices, |_| None)
    }

    #[test]
    fn an_index_is_never_that_of_an_earlier_device() {
        let mut sinks = Sinks::default();
        let both = || vec![device(None, 0), device(Some("a"), 1)];
        assert_eq!(update(&mut sinks, both()), [Change::New(0), Change::New(1)]);
        assert_eq!(update(&mut sinks, both()), []);
        // Removed and added again, of the same name.
        let changes = update(&mut sinks, vec![device(None, 0), device(Some("a"), 2)]);
        assert_eq!(changes, [Change::Gone(1), Change::New(2)]);
        assert_eq!(sinks.remove(1).map(|sink| sink.name), Some(c"a".into()));
        assert_eq!(sinks.find(c"2"), Some(2));
    }

    #[test]
    fn a_source_has_an_index_of_its_own_or_is_not_there() {
        let mut sinks = Sinks::default();
        let capturing = |name, number| {
            let mut device = device(Some(name), number);
            device.format.captured = 1;
            device
        };
        update(&mut sinks, vec![device(None, 0), capturing("a", 1), device(Some("b"), 2)]);
        assert_eq!(sinks.monitored(), [0, 1, 3], "3 is what a captures, and 4 what leaves b");
        update(&mut sinks, vec![device(None, 0), capturing("a", 1), capturing("b", 2)]);
        let captured = |index| sinks.get(index).map(|sink| sink.format.captured);
        assert_eq!([1, 3].map(captured), [Some(1), Some(0)], "the next sink would have its index");
    }

    #[test]
    fn a_device_that_only_captures_is_no_sink_and_has_no_monitor() {
        let mut sinks = Sinks::default();
        let mut microphone = device(Some("mic"), 1);
        (microphone.format.channels, microphone.format.captured) = (0, 1);
        update(&mut sinks, vec![device(None, 0), microphone, device(Some("b"), 2)]);
        assert_eq!((sinks.devices(), sinks.monitored()), (vec![0, 1, 3], vec![0, 3]));
        assert_eq!((sinks.indices(), sinks.find(c"mic")), (vec![0, 3], None));
        assert_eq!(sinks.get(1).map(|sink| sink.map.channels()), Some(1));
    }

    #[test]
    fn another_volume_or_format_is_a_change_once() {
        let mut sinks = Sinks::default();
        update(&mut sinks, vec![device(None, 0)]);
        let mut other = device(None, 0);
        other.volume.muted = true;
        assert_eq!(update(&mut sinks, vec![other.clone()]), [Change::Changed(0)]);
        other.format.channels = 6;
        assert_eq!(update(&mut sinks, vec![other.clone()]), [Change::Changed(0)]);
        assert_eq!(sinks.get(0).map(|sink| sink.map.channels()), Some(6));
        assert_eq!(update(&mut sinks, vec![other]), []);
    }

    #[test]
    fn names_are_pulseaudios_and_no_two_sinks_or_sources_share_one() {
        let mut sinks = Sinks::default();
        let names = ["a b", "é", "consort", "consort.monitor", "a.b", "a b"];
        let further = (1..).zip(names).map(|(number, name)| device(Some(name), number));
        let devices: Vec<_> = std::iter::once(device(None, 0)).chain(further).collect();
        update(&mut sinks, devices);
        let names = sinks.all.values().map(|sink| sink.name.to_str().expect("text").to_owned());
        assert_eq!(
            names.collect::<Vec<_>>(),
            ["consort", "a_b", "__", "consort.2", "consort.monitor.2", "a.b", "a_b.2"]
        );
        let long = sinks.free_name(&"x".repeat(300));
        assert!(long.to_bytes().len() <= MAX_NAME_BYTES);
    }
}
