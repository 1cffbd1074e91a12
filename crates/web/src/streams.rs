//! Devices and streams for the page, in the words of `consort status`.

use client::stream::{
    DeviceState, DeviceVolume, Direction, FurtherDevice, StreamStatus, WakeUpRate,
};
use observe::{StreamsView, awake_reason};
use proto::status::Status;
use serde_json::{Value, json};

/// The name of the device that drives, as commands and the graph have it.
pub(crate) const DRIVER_NAME: &str = "system";

/// A device as the page shows it.
struct Device<'a> {
    /// `None`: it drives.
    name: Option<&'a str>,
    about: &'a str,
    sample_rate_hz: u32,
    channels: u32,
    state: DeviceState,
    wake_up_rate: WakeUpRate,
    lost_frames: u64,
    volume: DeviceVolume,
}

/// Returns all devices, the one that drives first, and all streams, as JSON.
pub(crate) fn value(view: &StreamsView, status: &Status) -> Value {
    let driver = Device {
        name: None,
        about: &status.driver,
        sample_rate_hz: view.driver.sample_rate_hz,
        channels: view.driver.channels,
        state: view.driver.state,
        wake_up_rate: view.driver.wake_up_rate,
        lost_frames: view.driver.lost_frames,
        volume: view.driver.volume,
    };
    let further = |device| Device::further(device);
    let devices = std::iter::once(driver).chain(view.further.iter().map(further));
    let device = |device: Device<'_>| {
        let Device { name, state, sample_rate_hz, .. } = device;
        let known = (name, state, sample_rate_hz);
        device.value(awake_reason(known, &status.clients, &view.streams))
    };
    json!({
        "devices": devices.map(device).collect::<Value>(),
        "streams": view.streams.iter().map(stream_value).collect::<Value>(),
    })
}

impl<'a> Device<'a> {
    fn further(device: &'a FurtherDevice) -> Self {
        Self {
            name: Some(&device.name),
            about: device.card.as_deref().unwrap_or("without hardware"),
            sample_rate_hz: device.sample_rate_hz,
            channels: device.channels,
            state: device.state,
            wake_up_rate: device.wake_up_rate,
            lost_frames: device.lost_frames,
            volume: device.volume,
        }
    }

    fn value(&self, reason: Option<String>) -> Value {
        json!({
            "name": self.name.unwrap_or(DRIVER_NAME),
            "about": self.about,
            "drives": self.name.is_none(),
            "sample_rate_hz": self.sample_rate_hz,
            "channels": self.channels,
            "state": match self.state {
                DeviceState::Cycling => "cycling",
                DeviceState::Deep => "deep",
                DeviceState::Parked => "parked",
            },
            "awake_reason": reason,
            "wake_ups_per_second": self.wake_up_rate.per_second(),
            "lost_frames": self.lost_frames,
            "volume": self.volume.gains.greatest(self.channels as usize).factor(),
            "muted": self.volume.muted,
        })
    }
}

fn stream_value(stream: &StreamStatus) -> Value {
    json!({
        "number": stream.stream,
        "program": stream.program,
        "name": stream.name,
        "process": stream.process,
        "device": stream.device.as_deref().unwrap_or(DRIVER_NAME),
        "wanted": stream.wanted,
        "direction": match stream.direction {
            Direction::Playback => "playback",
            Direction::Record => "record",
            Direction::Monitor => "monitor",
        },
        "plays": stream.plays,
        "missed_frames": stream.missed_frames,
        "volume": stream.volume.gain.factor(),
        "muted": stream.volume.muted,
    })
}

#[cfg(test)]
mod tests {
    use client::stream::{ChannelGains, Gain, StreamDevice, Volume};

    use super::*;

    fn status() -> Status {
        Status {
            name: "default".into(),
            version: "1".into(),
            process: 1,
            driver: "timer".into(),
            sample_rate_hz: 48_000,
            quantum: 48,
            sync: true,
            freewheel: false,
            realtime_priority: None,
            cycles: 0,
            xruns: 0,
            load: 0.0,
            placement: None,
            clients: vec![],
            ports: (4, 2048),
            connections: 0,
        }
    }

    fn view() -> StreamsView {
        let half = Volume { gain: Gain::new(0.5).unwrap(), muted: true };
        StreamsView {
            driver: StreamDevice {
                sample_rate_hz: 48_000,
                channels: 2,
                captured: 2,
                captures: true,
                wake_ups: 7,
                wake_up_rate: WakeUpRate { wake_ups: 5, over_ns: 10_000_000_000 },
                lost_frames: 48,
                state: DeviceState::Deep,
                volume: DeviceVolume::default(),
            },
            further: vec![FurtherDevice {
                name: "headset".into(),
                number: 1,
                sample_rate_hz: 44_100,
                channels: 1,
                captured: 0,
                card: None,
                why_away: None,
                wake_ups: 0,
                wake_up_rate: WakeUpRate::default(),
                lost_frames: 0,
                state: DeviceState::Parked,
                volume: DeviceVolume { gains: ChannelGains::all(half.gain), muted: true },
            }],
            streams: vec![StreamStatus {
                stream: 3,
                program: "<mpv>".into(),
                name: "song".into(),
                process: 12,
                device: None,
                wanted: None,
                direction: Direction::Playback,
                plays: true,
                rendered_us: 0,
                depth_frames: 96_000,
                missed_frames: 0,
                volume: half,
                volume_sources: Default::default(),
            }],
        }
    }

    #[test]
    fn each_device_shows_what_it_does_why_and_how_loud() {
        let shown = value(&view(), &status());
        assert_eq!(
            shown["devices"],
            json!([
                {
                    "name": "system", "about": "timer", "drives": true,
                    "sample_rate_hz": 48_000, "channels": 2, "state": "deep",
                    "awake_reason": "as far ahead as <mpv> allows (2000 ms)",
                    "wake_ups_per_second": 0.5, "lost_frames": 48, "volume": 1.0, "muted": false,
                },
                {
                    "name": "headset", "about": "without hardware", "drives": false,
                    "sample_rate_hz": 44_100, "channels": 1, "state": "parked",
                    "awake_reason": null,
                    "wake_ups_per_second": 0.0, "lost_frames": 0, "volume": 0.5, "muted": true,
                },
            ])
        );
    }

    #[test]
    fn a_stream_names_its_device_also_if_that_drives() {
        let mut view = view();
        let device = |view: &StreamsView| value(view, &status())["streams"][0]["device"].clone();
        assert_eq!(device(&view), "system");
        view.streams[0].device = Some("headset".into());
        assert_eq!(device(&view), "headset");
        let shown = value(&view, &status())["streams"][0].clone();
        assert_eq!((&shown["volume"], &shown["muted"]), (&json!(0.5), &json!(true)));
        assert_eq!((&shown["number"], &shown["direction"]), (&json!(3), &json!("playback")));
    }
}
