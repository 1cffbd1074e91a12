//! Devices and streams: what each device does and what keeps it from sleeping longer, who plays
//! where, and how loud.

use std::time::{Duration, Instant};

use client::stream::{
    DeviceState, Direction, FurtherDevice, ServerWatch, StreamDevice, StreamStatus, Watched,
};
use client::{Error, Observer};
use proto::status::ClientStatus;

/// How often devices and streams are read while a device is awake: how often it wakes, and what is
/// heard to its end, are no changes that the server notes.
const WHILE_AWAKE: Duration = Duration::from_secs(1);

/// What devices and streams do at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamsView {
    /// The device that drives.
    pub driver: StreamDevice,
    /// The other devices, by name.
    pub further: Vec<FurtherDevice>,
    /// The streams of all programs, by number.
    pub streams: Vec<StreamStatus>,
}

impl StreamsView {
    /// Reads them from a server.
    ///
    /// # Errors
    /// See [`Requester`](client::Requester).
    pub fn read(observer: &Observer) -> Result<Self, Error> {
        Ok(Self {
            driver: observer.stream_device()?,
            further: observer.further_devices()?,
            streams: observer.streams()?,
        })
    }

    /// Returns whether a device wakes from time to time.
    fn is_awake(&self) -> bool {
        let further = self.further.iter().map(|device| device.state);
        further.chain([self.driver.state]).any(|state| state != DeviceState::Parked)
    }
}

/// Reads devices and streams when something about them has changed, and once a second while a
/// device is awake. It asks a server nothing while all devices sleep.
#[derive(Debug, Default)]
pub struct StreamsFollower {
    watch: Option<ServerWatch>,
    /// When they were last read, and whether a device was awake.
    last: Option<(Instant, bool)>,
}

impl StreamsFollower {
    /// Returns devices and streams if they are to be read at `now`, and at the first call. All
    /// calls are for the server of `observer`.
    ///
    /// # Errors
    /// Those of [`ServerWatch`] and of [`StreamsView::read`].
    pub fn poll(
        &mut self,
        observer: &Observer,
        now: Instant,
    ) -> Result<Option<StreamsView>, Error> {
        let changed = match &mut self.watch {
            Some(watch) => watch.has_changed()?,
            None => {
                self.watch =
                    Some(ServerWatch::open(Some(observer.server_name()), Watched::Streams)?);
                true
            }
        };
        if !changed && !is_due(self.last, now) {
            return Ok(None);
        }
        let view = StreamsView::read(observer)?;
        self.last = Some((now, view.is_awake()));
        Ok(Some(view))
    }
}

/// Returns whether to read although no change was noted.
fn is_due(last: Option<(Instant, bool)>, now: Instant) -> bool {
    last.is_some_and(|(at, is_awake)| is_awake && now.duration_since(at) >= WHILE_AWAKE)
}

/// Returns what keeps a device from sleeping longer: the clients that need its cycles, a program
/// that records what it captures, or the program whose stream allows the least depth. `None` if it
/// is parked, or nothing is known.
///
/// A device is its name, which is `None` for the one that drives, what it does, and its rate in Hz.
#[must_use]
pub fn awake_reason(
    (device, state, sample_rate_hz): (Option<&str>, DeviceState, u32),
    clients: &[ClientStatus],
    streams: &[StreamStatus],
) -> Option<String> {
    match state {
        DeviceState::Parked => None,
        DeviceState::Cycling if device.is_some() => {
            let records = |stream: &&StreamStatus| {
                stream.device.as_deref() == device && stream.direction == Direction::Record
            };
            let recorder = streams.iter().filter(records).find(|stream| stream.plays)?;
            Some(format!("recorded by {}", recorder.program))
        }
        DeviceState::Cycling => {
            let active = clients.iter().filter(|client| client.active);
            let names: Vec<&str> = active.map(|client| client.name.as_str()).collect();
            (!names.is_empty()).then(|| format!("for {}", names.join(", ")))
        }
        DeviceState::Deep => {
            let own = streams.iter().filter(|stream| stream.device.as_deref() == device);
            let playing = own.filter(|stream| stream.plays);
            let least = playing.min_by_key(|stream| stream.depth_frames)?;
            let ms = u64::from(least.depth_frames) * 1000 / u64::from(sample_rate_hz.max(1));
            Some(format!("as far ahead as {} allows ({ms} ms)", least.program))
        }
    }
}

#[cfg(test)]
mod tests {
    use client::stream::Volume;

    use super::*;

    fn stream(program: &str, device: Option<&str>, depth_frames: u32, plays: bool) -> StreamStatus {
        StreamStatus {
            stream: depth_frames,
            program: program.into(),
            name: "song".into(),
            process: 1,
            device: device.map(Into::into),
            wanted: None,
            direction: Direction::Playback,
            plays,
            rendered_us: 0,
            depth_frames,
            missed_frames: 0,
            volume: Volume::default(),
            volume_sources: Default::default(),
        }
    }

    fn client(name: &str, active: bool) -> ClientStatus {
        ClientStatus {
            id: 1,
            name: name.into(),
            process: 1,
            active,
            bypassed: false,
            bypasses: 0,
            late_cycles: 0,
            cpu: None,
            place: None,
            timing: None,
        }
    }

    #[test]
    fn what_keeps_a_device_awake_are_active_clients_or_its_shallowest_playing_stream() {
        let clients = [client("synth", true), client("idle", false), client("reverb", true)];
        let streams = [
            stream("mpv", None, 96_000, true),
            stream("game", None, 4_800, true),
            stream("paused", None, 480, false),
            stream("call", Some("headset"), 960, true),
            StreamStatus {
                direction: Direction::Record,
                ..stream("recorder", Some("headset"), 96_000, true)
            },
        ];
        let reason = |device, state| awake_reason((device, state, 48_000), &clients, &streams);
        for (device, state, expected) in [
            (None, DeviceState::Cycling, Some("for synth, reverb")),
            (None, DeviceState::Deep, Some("as far ahead as game allows (100 ms)")),
            (Some("headset"), DeviceState::Deep, Some("as far ahead as call allows (20 ms)")),
            (Some("headset"), DeviceState::Cycling, Some("recorded by recorder")),
            (Some("other"), DeviceState::Deep, None),
            (None, DeviceState::Parked, None),
        ] {
            assert_eq!(reason(device, state).as_deref(), expected, "{device:?} {state:?}");
        }
    }

    #[test]
    fn without_a_change_they_are_read_only_while_a_device_is_awake() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        assert!(!is_due(Some((begin, true)), at(999)));
        assert!(is_due(Some((begin, true)), at(1000)));
        assert!(!is_due(Some((begin, false)), at(1_000_000)));
    }
}
