//! Modules that send to a group in the network, and play what is sent there. All are in a network
//! of their own, in which nothing but the loopback interface is.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use harness::{PATIENCE, Program, Sound, eventually_within, in_three_attempts, tone};

use crate::conformance::PulseAudio;
use crate::modules::{has_levels, recorded};
use crate::networks::Network;
use crate::tunnels::{distortion_db, record_there};
use crate::{RATE_HZ, Scene, is_installed, path};

/// The distortion of a tone while a receiver learns the sender's clock, as measured within pieces
/// of ten milliseconds: it is up to a four-thousandth too high or too low, which alone is -41 dB at
/// 2 kHz.
const STEERED_DB: f64 = -41.0;
/// The same of PulseAudio, which plays up to a few thousandths too fast or too slow.
const PULSEAUDIO_DB: f64 = -15.0;
/// Of all that are sent here, so that no other machine could hear them.
const GROUP: &str = "239.255.7.7";

/// Sooner than a session ends of which nothing more is announced: fifteen seconds or more.
const ANNOUNCED_END: Duration = Duration::from_secs(12);

/// Sends datagrams to a port of the group.
fn send(network: &Network, port: u16, datagrams: &[Vec<u8>]) {
    let script = "import socket, sys\n\
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
        for line in sys.stdin:\n    \
            s.sendto(bytes.fromhex(line), (sys.argv[1], int(sys.argv[2])))\n";
    let mut command = Command::new("python3");
    command.args(["-c", script, GROUP, &port.to_string()]).stdin(Stdio::piped());
    let mut command = network.inside(&command);
    let mut sender = command.stdin(Stdio::piped()).spawn().expect("python3");
    let mut lines = sender.stdin.take().expect("its input");
    for datagram in datagrams {
        let digits: String = datagram.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(lines, "{digits}").expect("sent");
    }
    drop(lines);
    assert!(sender.wait().expect("its end").success());
}

/// How often a tone passes zero upwards, Hz: of the middle of what sounds.
fn frequency_hz(samples: &[f32]) -> f64 {
    let third = samples.len() / 3;
    let samples = &samples[third..2 * third];
    let passes = samples.windows(2).filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0).count();
    passes as f64 * f64::from(RATE_HZ) / samples.len() as f64
}

/// A tone on each of two channels.
fn tones(frames: usize) -> Sound {
    Sound::of(RATE_HZ, &[1_000.0, 2_000.0].map(|hz| tone(hz, RATE_HZ, frames)))
}

/// Checks that each channel of a recording has its tone.
fn has_tones(sound: &Sound, most_db: f64) -> Result<(), String> {
    for (channel, hz) in [(0, 1_000.0), (1, 2_000.0)] {
        let sounding = &sound.sounding(channel).channels[0];
        let distortion = distortion_db(sounding, hz);
        let heard_hz = frequency_hz(sounding);
        let is_long = sounding.len() > 2 * RATE_HZ as usize;
        if !is_long || (heard_hz - hz).abs() > hz / 200.0 || distortion > most_db {
            let frames = sounding.len();
            return Err(format!("{hz} Hz: {heard_hz} Hz, {distortion} dB in {frames} frames"));
        }
    }
    Ok(())
}

impl Scene {
    fn send_rtp(&self, further: &[&str]) -> String {
        let to = format!("destination_ip={GROUP}");
        let module = ["module-rtp-send", "source=consort.monitor", "loop=yes", &*to];
        self.load(&[&module[..], further].concat())
    }

    fn receive_rtp(&self, latency: &str) -> String {
        self.load(&["module-rtp-recv", &format!("sap_address={GROUP}"), latency])
    }

    fn await_sessions(&self, count: usize) {
        self.await_sessions_within(PATIENCE, count);
    }

    fn await_sessions_within(&self, time: Duration, count: usize) {
        eventually_within(time, &format!("{count} sessions play"), || {
            let inputs = self.pactl(&["list", "sink-inputs"]);
            (inputs.matches("media.name = \"RTP Stream").count() == count).then_some(())
        });
    }
}

#[test]
fn what_is_sent_by_rtp_is_heard_at_another_consort() {
    let Some(network) = Network::new() else { return };
    in_three_attempts(|| {
        let (here, there) = (network.scene(), network.scene());
        there.receive_rtp("latency_msec=200");
        let sender = here.send_rtp(&["stream_name=music"]);
        there.await_sessions(1);
        let inputs = there.pactl(&["list", "sink-inputs"]);
        assert!(inputs.contains("media.name = \"RTP Stream (music)\""), "{inputs}");
        let heard = there.record_all("consort.monitor", 2);
        let file = here.file("tones.wav", &tones(4 * RATE_HZ as usize));
        here.run("paplay", &[path(&file)]).expect_success();
        let sound = recorded(heard);
        here.pactl(&["unload-module", &sender]);
        there.await_sessions_within(ANNOUNCED_END, 0);
        has_tones(&sound, STEERED_DB)
    });
}

#[test]
fn what_is_sent_by_rtp_is_heard_again_after_silence() {
    let Some(network) = Network::new() else { return };
    in_three_attempts(|| {
        let (here, there) = (network.scene(), network.scene());
        there.receive_rtp("latency_msec=200");
        here.send_rtp(&["rate=44100", "ttl=2"]);
        there.await_sessions(1);
        for _ in 0..2 {
            there.await_asleep("sinks", "consort");
            let heard = there.record_all("consort.monitor", 2);
            here.play_levels("consort", &[0.5, -0.25]);
            has_levels(&recorded(heard), &[0.5, -0.25])?;
        }
        Ok(())
    });
}

#[test]
fn debians_pulseaudio_hears_what_is_sent_by_rtp() {
    if !is_installed("pulseaudio") {
        return;
    }
    let Some(network) = Network::new() else { return };
    in_three_attempts(|| {
        let group = format!("module-rtp-recv sap_address={GROUP} latency_msec=200");
        let there = PulseAudio::start_with(&["-L", &group], |command| network.inside(&command));
        let here = network.scene();
        // Before the session: PulseAudio 16.1 may end itself with the first packets of one.
        let heard = record_there(&there, "consort.monitor");
        here.send_rtp(&[]);
        let plays = || {
            let list = there.command("pactl", &["list", "short", "sink-inputs"]);
            Program::start(list).finish().stdout.lines().count() == 1
        };
        let deadline = Instant::now() + PATIENCE;
        while !plays() {
            if Instant::now() > deadline {
                return Err("PulseAudio does not play the session".into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let file = here.file("tones.wav", &tones(6 * RATE_HZ as usize));
        here.run("paplay", &[path(&file)]).expect_success();
        let sound = recorded(heard);
        there.stop();
        has_tones(&sound, PULSEAUDIO_DB)
    });
}

#[test]
fn what_debians_pulseaudio_sends_by_rtp_is_heard() {
    if !is_installed("pulseaudio") {
        return;
    }
    let Some(network) = Network::new() else { return };
    in_three_attempts(|| {
        let here = network.scene();
        here.receive_rtp("latency_msec=500");
        let sends =
            format!("module-rtp-send source=consort.monitor destination_ip={GROUP} loop=yes");
        let there = PulseAudio::start_with(&["-L", &sends], |command| network.inside(&command));
        here.await_sessions(1);
        let heard = here.record_all("consort.monitor", 2);
        std::thread::sleep(Duration::from_secs(1));
        let file = here.file("tones.wav", &tones(6 * RATE_HZ as usize));
        Program::start(there.command("paplay", &[path(&file)])).finish().expect_success();
        let sound = recorded(heard);
        there.stop();
        has_tones(&sound, STEERED_DB)
    });
}

#[test]
fn datagrams_that_nobody_should_send_neither_end_nor_fill_a_receiver() {
    let Some(network) = Network::new() else { return };
    let scene = network.scene();
    scene.receive_rtp("latency_msec=200");
    let announcement = |number: u32, flags: u8| {
        let description = format!(
            "v=0\no=- {number} 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 {GROUP}\nt=0 0\n\
             m=audio {} RTP/AVP 10\n",
            40_000 + 2 * (number % 100)
        );
        let header = [flags, 0, 0, 1, 127, 0, 0, 1];
        [&header[..], b"application/sdp\0", description.as_bytes()].concat()
    };
    let mut datagrams: Vec<Vec<u8>> = vec![vec![0xff; 60_000], vec![], vec![0x20; 7]];
    datagrams.extend((0..60).map(|number| announcement(number, 0x20)));
    send(&network, 9875, &datagrams);
    scene.await_sessions(16);
    let ends: Vec<Vec<u8>> = (0..60).map(|number| announcement(number, 0x24)).collect();
    send(&network, 9875, &[ends, datagrams].concat());
    scene.await_sessions_within(ANNOUNCED_END, 0);
    let packet = |length: usize| {
        let header = [0x80, 10, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
        [&header[..], &vec![7; length]].concat()
    };
    send(&network, 40_000, &[packet(0), packet(5), packet(60_000), vec![0x9f; 13]]);
    assert!(scene.pactl(&["list", "short", "modules"]).contains("module-rtp-recv"));
}
