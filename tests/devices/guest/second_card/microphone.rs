//! A card that only captures, as a device for streams: the loopback card without its playback.

use harness::Server;

use super::*;

/// A server that the dummy card drives, with the microphone as the device `second`.
fn beside_microphone() -> Server {
    let server = server_on("hw:2,0", &[&STEREO[..], &["--suspend", "1"]].concat());
    let named = ["device", "add", "hw:1,0", "--streams", "--name", "second"];
    let added = server.consort(&[&named[..], &["--playback", "0", "--capture", "2"]].concat());
    let added = added.expect_success().stdout;
    assert!(added.contains("captures 2 channels"), "{added}");
    server
}

/// Pulls the loopback card out of its bus, or plugs it in.
fn plug(action: &str) {
    let path = format!("/sys/bus/platform/drivers/snd_aloop/{action}");
    std::fs::write(path, "snd_aloop.0").expect("it is on the platform's bus");
    let is_there = action == "bind";
    awaited("the card has come or gone", || (has_card(1) == is_there).then_some(()));
}

#[test]
#[ignore = "in the virtual machine"]
fn what_it_captures_is_recorded_sample_for_sample_and_it_is_closed_meanwhile() {
    let server = beside_microphone();
    is_recorded_sample_for_sample(&server);
    let listed = server.consort(&["device", "list"]).expect_success().stdout;
    assert!(listed.contains("captures 2 channels: silent"), "{listed}");
    let path = file(&server, &numbers(RATE));
    for refused in [
        &["play", "--device", "second", &path.to_string_lossy()][..],
        &["volume", "device:second", "50%"],
        &["device", "add", "loopback", "--from", "system", "--to", "second"],
    ] {
        let refused = server.consort(refused);
        assert!(refused.code != Some(0) && refused.stderr.contains("'second'"), "{refused:?}");
    }
}

#[test]
#[ignore = "in the virtual machine"]
fn it_is_a_source_and_no_sink_of_pulseaudios_programs() {
    let server = beside_microphone();
    let _front_end = front_end_of(&server);
    assert_eq!(names(&server, "sinks"), ["consort"]);
    assert_eq!(names(&server, "sources"), ["consort.monitor", "consort.capture", "second.capture"]);
    is_recorded_by_parec(&server);
    assert!(!is_open_for(1, "p"), "it is never opened to be played on");
}

#[test]
#[ignore = "in the virtual machine"]
fn a_recording_of_one_that_is_pulled_out_goes_on_and_it_comes_back() {
    let server = beside_microphone();
    let _front_end = front_end_of(&server);
    let take = server.directory().join("pulled.raw");
    let recorder = parec(&server, &take);
    await_state(&server, "cycling");
    await_frames(&take, RATE);
    plug("unbind");
    awaited("the source is gone", || {
        (names(&server, "sources") == ["consort.monitor", "consort.capture"]).then_some(())
    });
    assert_eq!(state(&server), None);
    let recorded = std::fs::metadata(&take).expect("a file").len() as usize / 8;
    await_frames(&take, recorded + RATE);
    recorder.terminate();
    plug("bind");
    awaited("the source is back", || {
        names(&server, "sources").contains(&"second.capture".into()).then_some(())
    });
    is_recorded_by_parec(&server);
}
