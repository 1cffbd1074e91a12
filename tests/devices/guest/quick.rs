//! The short form, part of every test run.

use harness::Sound;

use super::{awaited, driver, elements, far, pull, server_on, xruns_and_cycles};
use crate::guest::monitor;

const LOOPBACK: [&str; 8] =
    ["--capture", "2", "--playback", "2", "--quantum", "256", "--periods", "3"];

#[test]
#[ignore = "in the virtual machine"]
fn the_card_plays_a_client_sample_for_sample() {
    let server = server_on("hw:1,0", &LOOPBACK);
    let _source = server.probe(&["source", "numbers"]);
    server.run("jack_connect", &["numbers:out", "system:playback_1"]).expect_success();
    let heard = far::recorded(&server, "FLOAT_LE", "48000", 2);
    far::demand_consecutive(&heard, 90_000, 0);
    assert_eq!(xruns_and_cycles(&server).0, 0);
}

#[test]
#[ignore = "in the virtual machine"]
fn the_card_loops_every_sample_through_the_graph() {
    let server = server_on("hw:1,0", &LOOPBACK);
    let _thru = server.probe(&["thru", "thru", "--from", "system:capture_1"]);
    server.run("jack_connect", &["thru:out", "system:playback_1"]).expect_success();
    let _player = far::play_numbers(&server, 4 * 48_000);
    let heard = far::recorded(&server, "FLOAT_LE", "48000", 2);
    far::demand_consecutive(&heard, 80_000, 0);
}

#[test]
#[ignore = "in the virtual machine"]
fn a_tone_leaves_the_hda_chip_at_its_level_and_frequency() {
    let server = server_on("hw:0", &["--capture", "0", "--quantum", "256", "--periods", "3"]);
    let _client = server.spawn("jack_simple_client", &["simple"]);
    server.await_connection("simple:output2", "system:playback_2");
    // Recorded by the machine while the server runs: from here on, and only what is whole.
    let recording =
        std::path::PathBuf::from(std::env::var_os("OUT").expect("the machine's folder"))
            .join("hda.wav");
    let length = || std::fs::metadata(&recording).map_or(0, |file| file.len());
    let begin = length() + 96_000;
    awaited("a second is recorded", || (length() > begin + 192_000).then_some(()));
    let bytes = std::fs::read(&recording).expect("a recording");
    let from = usize::try_from(begin).expect("small") / 4 * 4;
    let frames = bytes[from..].chunks_exact(4).take(48_000);
    let channel = |index: usize| -> Vec<f32> {
        let sample = |frame: &[u8]| i16::from_le_bytes([frame[2 * index], frame[2 * index + 1]]);
        frames.clone().map(|frame| f32::from(sample(frame)) / 32_768.0).collect()
    };
    let sound = Sound::of(48_000, &[channel(0), channel(1)]);
    for (index, expected_hz) in [(0, 240.0), (1, 720.0)] {
        let (hz, peak) = (sound.frequency_hz(index), sound.peak(index));
        assert!((hz - expected_hz).abs() < 1.0, "channel {index}: {hz} Hz");
        assert!((peak - 0.2).abs() < 0.001, "channel {index}: {peak}");
    }
}

#[test]
#[ignore = "in the virtual machine"]
fn a_usb_card_that_is_pulled_out_is_taken_back() {
    let server = server_on("hw:9", &["--quantum", "256", "--periods", "3"]);
    let _source = server.probe(&["source", "numbers"]);
    server.run("jack_connect", &["numbers:out", "system:playback_1"]).expect_success();
    server.await_cycles(20);
    pull("usbsnd", 9);
    awaited("the status says so", || driver(&server).contains("not there").then_some(()));
    assert!(xruns_and_cycles(&server).0 > 0, "it is an xrun");
    server.await_cycles(100);
    monitor(&["device_add", "usb-audio,id=usbsnd,bus=xhci.0,audiodev=usb"]);
    awaited("it is back", || (!driver(&server).contains("not there")).then_some(()));
    let (before, _) = xruns_and_cycles(&server);
    server.await_cycles(100);
    assert_eq!(xruns_and_cycles(&server).0, before, "it runs without xruns again");
    server.await_connection("numbers:out", "system:playback_1");
}

#[test]
#[ignore = "in the virtual machine"]
fn a_monitor_request_opens_the_cards_own_path_until_it_ends() {
    const SWITCHES: &str = "iface=MIXER,name='Channels Thru'";
    elements::add(elements::THRU);
    let options =
        ["--capture", "2", "--playback", "2", "--quantum", "8192", "--hardware-monitoring"];
    let server = server_on("hw:2", &options);
    assert!(driver(&server).contains("hardware monitoring of 2 inputs"));
    // Debian's program takes its request back after half a minute.
    let request = || server.spawn("jack_monitor_client", &["system:capture_1"]);
    let first = request();
    elements::await_values(SWITCHES, "on,on,off,off");
    first.finish().expect_success();
    elements::await_values(SWITCHES, "off,on,off,off");
    let second = request();
    elements::await_values(SWITCHES, "on,on,off,off");
    server.stop();
    assert_eq!(elements::values(SWITCHES), "off,on,off,off");
    drop(second);
}
