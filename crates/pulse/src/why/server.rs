//! What the server says of streams: those of PulseAudio's programs have a volume there as well, and
//! others are known there alone.

use std::fmt::Write as _;

use client::stream::{Direction, FurtherDevice, StreamDevice, StreamStatus, VolumeSource};
use client::{Error, Observer};

/// The name of the device that drives.
const DRIVER: &str = "system";

/// The streams and devices of a server.
#[derive(Debug)]
pub(super) struct OnServer {
    pub streams: Vec<StreamStatus>,
    device: StreamDevice,
    further: Vec<FurtherDevice>,
}

impl OnServer {
    /// Reads them.
    ///
    /// # Errors
    /// No server of this name runs, or it does not answer.
    pub fn read(server: &str) -> Result<Self, Error> {
        // A server that nobody needs is not started only to say that nothing plays there.
        let server = Observer::open_running(Some(server))?;
        let (streams, device) = (server.streams()?, server.stream_device()?);
        Ok(Self { streams, device, further: server.further_devices()? })
    }

    /// Returns the sentences about what the server makes of a stream of PulseAudio's: none if it
    /// changes nothing, and nobody has changed it.
    pub fn besides(&self, stream: &StreamStatus) -> String {
        let mut lines = String::new();
        let StreamStatus { volume, volume_sources, .. } = stream;
        if *volume != Default::default() || *volume_sources != Default::default() {
            let why = sentence(volume_sources.gain, "volume");
            let _ = writeln!(lines, "  on the server at {}: {why}", volume.gain);
            let (muted, why) = (muted(volume.muted), sentence(volume_sources.muted, "mute"));
            let _ = writeln!(lines, "  on the server {muted}: {why}");
        }
        lines + &self.of_device(stream)
    }

    /// Returns the sentences about a stream of which only the server knows.
    pub fn explained(&self, stream: &StreamStatus) -> String {
        let StreamStatus { stream: number, program, name, volume, volume_sources, .. } = stream;
        let device = stream.device.as_deref().unwrap_or(DRIVER);
        let does = match stream.direction {
            Direction::Playback => "plays on",
            Direction::Record => "records on",
            Direction::Monitor => "records what leaves",
        };
        let why = sentence(volume_sources.gain, "volume");
        let why_muted = sentence(volume_sources.muted, "mute");
        let (gain, muted) = (volume.gain, muted(volume.muted));
        let mut lines = format!("stream {number}: {program}, {name}\n  {does} {device}\n");
        let _ = writeln!(lines, "  at {gain}: {why}\n  {muted}: {why_muted}");
        lines + &self.of_device(stream)
    }

    /// Returns a sentence about the volume of the device on which a stream plays, if it changes
    /// anything. What is recorded is not changed by it.
    fn of_device(&self, stream: &StreamStatus) -> String {
        if stream.direction != Direction::Playback {
            return String::new();
        }
        let (name, volume, channels) = match &stream.device {
            None => (DRIVER, self.device.volume, self.device.channels),
            Some(name) => match self.further.iter().find(|device| device.name == *name) {
                Some(device) => (name.as_str(), device.volume, device.channels),
                None => return String::new(),
            },
        };
        if volume.is_unity(channels) {
            return String::new();
        }
        format!("  all of the device '{name}' at {}\n", volume.as_text(channels))
    }
}

fn muted(is_muted: bool) -> &'static str {
    if is_muted { "muted" } else { "not muted" }
}

/// Says who has set something, for which a user has this command.
fn sentence(source: VolumeSource, command: &str) -> String {
    match source {
        VolumeSource::Nobody => "the default".into(),
        VolumeSource::State => "kept for the streams of its name (consort run --state)".into(),
        VolumeSource::Program => {
            "its program has set it, or had it on the server or device before".into()
        }
        VolumeSource::OtherProgram => {
            format!("set by a user or another program (consort {command}, the web page)")
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::process::Command;

    use client::stream::{DeviceState, DeviceVolume, Gain, Volume, VolumeSources};
    use sys::runtime_directory::ControlSockets;
    use sys::socket::Listener;

    use super::*;

    fn server(device_is_muted: bool) -> OnServer {
        let volume = DeviceVolume { muted: device_is_muted, ..DeviceVolume::default() };
        let device = StreamDevice {
            sample_rate_hz: 48_000,
            channels: 2,
            captured: 0,
            captures: false,
            wake_ups: 0,
            wake_up_rate: Default::default(),
            lost_frames: 0,
            state: DeviceState::Deep,
            volume,
        };
        OnServer { streams: Vec::new(), device, further: Vec::new() }
    }

    pub fn stream(factor: f32, sources: VolumeSources) -> StreamStatus {
        StreamStatus {
            stream: 4,
            program: "a player".into(),
            name: "song".into(),
            process: 1,
            device: None,
            wanted: None,
            direction: Direction::Playback,
            plays: true,
            rendered_us: 0,
            depth_frames: 1,
            missed_frames: 0,
            volume: Volume { gain: Gain::new(factor).unwrap(), muted: factor == 0.0 },
            volume_sources: sources,
        }
    }

    #[test]
    fn who_set_the_volume_of_a_stream_is_said() {
        let of = |gain, muted| stream(0.5, VolumeSources { gain, muted });
        let text = server(false).explained(&of(VolumeSource::OtherProgram, VolumeSource::Nobody));
        let expected = "stream 4: a player, song\n  plays on system\n  at 50 % (-6.0 dB): set by a \
                        user or another program (consort volume, the web page)\n  not muted: the \
                        default\n";
        assert_eq!(text, expected);
        for (source, words) in [
            (VolumeSource::State, "at 50 % (-6.0 dB): kept for the streams of its name"),
            (VolumeSource::Program, "at 50 % (-6.0 dB): its program has set it"),
        ] {
            let text = server(false).besides(&of(source, VolumeSource::Nobody));
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn what_the_server_leaves_as_it_is_is_not_mentioned() {
        let nobody = VolumeSources::default();
        assert_eq!(server(false).besides(&stream(1.0, nobody)), "");
        let text = server(true).besides(&stream(1.0, nobody));
        assert_eq!(text, "  all of the device 'system' at 100 % (0.0 dB), muted\n");
        let sources = VolumeSources { muted: VolumeSource::OtherProgram, ..nobody };
        let text = server(false).besides(&stream(1.0, sources));
        assert!(text.contains("  on the server not muted: set by a user"), "{text}");
        let monitor =
            StreamStatus { direction: Direction::Monitor, ..stream(0.0, VolumeSources::default()) };
        let text = server(true).explained(&monitor);
        assert!(
            text.contains("records what leaves system\n  at 0 %: ") && !text.contains("all of")
        );
    }

    /// The test below runs once more, in a process whose run-time directory is this one.
    const AGAIN: &str = "CONSORT_TEST_WHY_AGAIN";

    #[test]
    fn a_server_that_is_started_on_demand_is_not_started_to_be_asked() {
        if std::env::var_os(AGAIN).is_some() {
            let sockets = ControlSockets::of_environment().expect("this user's");
            let path = sockets.of("idle").expect("a path");
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            // As systemd, which starts the server once a program connects.
            let _waits = Listener::bind(&path).expect("listens");
            let refused = OnServer::read("idle").expect_err("no server runs");
            assert!(matches!(refused, Error::NoServer { .. }), "{refused}");
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let name =
            "why::server::tests::a_server_that_is_started_on_demand_is_not_started_to_be_asked";
        let output = Command::new(std::env::current_exe().expect("this test"))
            .args([name, "--exact", "--nocapture"])
            .env("XDG_RUNTIME_DIR", directory.path())
            .env_remove("JACK_PROMISCUOUS_SERVER")
            .env(AGAIN, "1")
            .output()
            .expect("a process");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let ran = String::from_utf8_lossy(&output.stdout).contains("1 passed");
        assert!(ran, "the test has another name");
    }
}
