//! Streams, and what keeps their device from sleeping.

use observe::awake_reason;
use proto::status::Status;
use proto::stream::{
    DeviceState, DeviceVolume, Direction, FurtherDevice, StreamStatus, Volume, WakeUpRate,
};
use serde_json::{Value, json};

/// The streams of all programs, and what their devices do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Streams {
    /// What the device that drives does.
    pub(crate) state: DeviceState,
    /// How often its thread wakes.
    pub(crate) wake_up_rate: WakeUpRate,
    /// Frames that it did not render in time.
    pub(crate) lost_frames: u64,
    /// Channels that it plays.
    pub(crate) channels: u32,
    /// Volume of all that leaves it.
    pub(crate) volume: DeviceVolume,
    /// The other devices, by name.
    pub(crate) further: Vec<FurtherDevice>,
    /// All streams, ordered by number.
    pub(crate) streams: Vec<StreamStatus>,
}

fn word(state: DeviceState) -> &'static str {
    match state {
        DeviceState::Cycling => "cycling",
        DeviceState::Deep => "deep",
        DeviceState::Parked => "parked",
    }
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Playback => "playback",
        Direction::Record => "record",
        Direction::Monitor => "monitor",
    }
}

/// A volume that is heard, as the end of a line.
fn loudness(volume: Volume) -> String {
    if volume == Volume::default() {
        return String::new();
    }
    format!(", volume {volume}")
}

/// The same of a device.
fn loudness_of_device(volume: DeviceVolume, channels: u32) -> String {
    if volume.is_unity(channels) {
        return String::new();
    }
    format!(", volume {}", volume.as_text(channels))
}

fn loudest(volume: DeviceVolume, channels: u32) -> f32 {
    volume.gains.greatest(channels as usize).factor()
}

fn factors(volume: DeviceVolume, channels: u32) -> Vec<f32> {
    volume.gains.first(channels as usize).iter().map(|gain| gain.factor()).collect()
}

fn ms(frames: u32, rate_hz: u32) -> u64 {
    u64::from(frames) * 1000 / u64::from(rate_hz.max(1))
}

/// What a device did not render in time.
fn lost(frames: u64) -> String {
    if frames == 0 {
        return String::new();
    }
    format!(", {frames} frames not rendered in time")
}

/// The channels that a device plays, or if it plays nothing, that it captures.
fn channels_of(device: &FurtherDevice) -> String {
    match device.channels {
        0 => format!("captures {} channels", device.captured),
        channels => format!("{channels} channels"),
    }
}

/// What a device plays on, if it has hardware.
fn hardware(device: &FurtherDevice) -> String {
    let card = device.card.as_ref().map_or_else(String::new, |card| format!(", {card}"));
    let why = device.why_away.as_ref().map_or_else(String::new, |why| format!(", closed: {why}"));
    card + &why
}

impl Streams {
    /// Returns lines about the device and its streams.
    pub(super) fn as_text(&self, status: &Status) -> String {
        let mut text = format!(
            "\ndevice   {}{}, {:.1} wake-ups a second{}{}\n",
            word(self.state),
            self.reason(status, None),
            self.wake_up_rate.per_second(),
            lost(self.lost_frames),
            loudness_of_device(self.volume, self.channels)
        );
        for device in &self.further {
            let FurtherDevice { name, sample_rate_hz, channels, state, volume, .. } = device;
            text += &format!(
                "device   '{name}': {}{}, {:.1} wake-ups a second{}, {sample_rate_hz} Hz, {}{}{}\n",
                word(*state),
                self.reason(status, Some(device)),
                device.wake_up_rate.per_second(),
                lost(device.lost_frames),
                channels_of(device),
                loudness_of_device(*volume, *channels),
                hardware(device)
            );
        }
        for stream in &self.streams {
            let StreamStatus { stream: number, program, name, process, missed_frames, .. } = stream;
            let state = match (stream.plays, stream.direction) {
                (false, _) => "holds".into(),
                (true, Direction::Playback) => {
                    format!("plays, rendered {} ms ahead", stream.rendered_us / 1000)
                }
                (true, Direction::Record) => "records".into(),
                (true, Direction::Monitor) => "records what is played".into(),
            };
            let further =
                self.further.iter().find(|device| stream.device.as_ref() == Some(&device.name));
            let rate_hz = further.map_or(status.sample_rate_hz, |device| device.sample_rate_hz);
            let at_most_ms = ms(stream.depth_frames, rate_hz);
            let on =
                stream.device.as_ref().map_or_else(String::new, |name| format!(" on '{name}'"));
            let missed = match missed_frames {
                0 => String::new(),
                missed => format!(", {missed} frames came too late"),
            };
            text += &format!(
                "stream   {number}: {program} (pid {process}): {name}: {state}{on}, at most \
                 {at_most_ms} ms{}{missed}\n",
                loudness(stream.volume)
            );
        }
        text
    }

    /// What keeps a device from sleeping longer; `None`: the one that drives.
    fn reason(&self, status: &Status, device: Option<&FurtherDevice>) -> String {
        let (state, rate_hz) = match device {
            Some(device) => (device.state, device.sample_rate_hz),
            None => (self.state, status.sample_rate_hz),
        };
        let name = device.map(|device| device.name.as_str());
        let reason = awake_reason((name, state, rate_hz), &status.clients, &self.streams);
        reason.map_or_else(String::new, |reason| format!(", {reason}"))
    }

    /// Returns the same as JSON.
    pub(super) fn as_json(&self) -> Value {
        let stream = |stream: &StreamStatus| {
            json!({
                "number": stream.stream,
                "program": stream.program,
                "name": stream.name,
                "pid": stream.process,
                "device": stream.device,
                "direction": direction(stream.direction),
                "plays": stream.plays,
                "rendered_us": stream.rendered_us,
                "depth_frames": stream.depth_frames,
                "missed_frames": stream.missed_frames,
                "volume": stream.volume.gain.factor(),
                "muted": stream.volume.muted,
            })
        };
        let device = |device: &FurtherDevice| {
            json!({
                "name": device.name,
                "state": word(device.state),
                "sample_rate_hz": device.sample_rate_hz,
                "channels": device.channels,
                "captured": device.captured,
                "card": device.card,
                "why_away": device.why_away,
                "wake_ups": device.wake_ups,
                "wake_ups_per_second": device.wake_up_rate.per_second(),
                "lost_frames": device.lost_frames,
                "volume": loudest(device.volume, device.channels),
                "volumes": factors(device.volume, device.channels),
                "muted": device.volume.muted,
            })
        };
        json!({
            "device": word(self.state),
            "wake_ups_per_second": self.wake_up_rate.per_second(),
            "device_lost_frames": self.lost_frames,
            "device_volume": loudest(self.volume, self.channels),
            "device_volumes": factors(self.volume, self.channels),
            "device_muted": self.volume.muted,
            "further_devices": self.further.iter().map(device).collect::<Value>(),
            "streams": self.streams.iter().map(stream).collect::<Value>(),
        })
    }
}
