//! On a machine whose chip and USB card play, and do not record.

use std::process::Command;

use harness::{Guard, Program, Server, binary, command_in};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::guest::{
    awaited, driver, far, has_card, monitor, pull, run, server_on, xruns_and_cycles,
};

fn is_away(server: &Server) -> bool {
    driver(server).contains("not there")
}

/// What a client sees of the driver's ports.
fn ports(server: &Server) -> String {
    server.lsp(&["-l", "-c", "-p"])
}

/// Pulls a card out and puts it back, ten times, while a client plays on it.
fn demand_ten_returns(device: &str, number: u32, pull_out: impl Fn(), put_back: impl Fn()) {
    let server = server_on(device, &["--capture", "0", "--quantum", "256", "--periods", "3"]);
    let _source = server.probe(&["source", "numbers"]);
    server.run("jack_connect", &["numbers:out", "system:playback_1"]).expect_success();
    server.await_cycles(20);
    let before = ports(&server);
    for time in 1..=10 {
        let (xruns, _) = xruns_and_cycles(&server);
        pull_out();
        awaited("the status says that it is gone", || is_away(&server).then_some(()));
        assert!(xruns_and_cycles(&server).0 > xruns, "time {time}: it is an xrun");
        server.await_cycles(50);
        put_back();
        awaited("the kernel has it again", || has_card(number).then_some(()));
        awaited("it is taken back", || (!is_away(&server)).then_some(()));
        let (xruns, _) = xruns_and_cycles(&server);
        server.await_cycles(50);
        assert_eq!(xruns_and_cycles(&server).0, xruns, "time {time}: it runs as before");
        assert_eq!(
            ports(&server),
            before,
            "time {time}: ports, connections and latencies are as before"
        );
    }
}

#[test]
#[ignore = "in the virtual machine"]
fn a_usb_card_comes_back_ten_times() {
    let put_back = || monitor(&["device_add", "usb-audio,id=usbsnd,bus=xhci.0,audiodev=usb"]);
    demand_ten_returns("hw:9", 9, || pull("usbsnd", 9), put_back);
}

#[test]
#[ignore = "in the virtual machine"]
fn the_hda_chip_comes_back_ten_times() {
    // Through the bus: the machine's monitor could add the chip again only before its converters.
    let write = |path: &str| std::fs::write(path, "1").expect("a bus that takes orders");
    let pull_out = || {
        let card = std::fs::canonicalize("/sys/class/sound/card0/device").expect("a chip");
        write(&card.join("remove").to_string_lossy());
        awaited("the chip is gone", || (!has_card(0)).then_some(()));
    };
    demand_ten_returns("hw:0", 0, pull_out, || write("/sys/bus/pci/rescan"));
}

/// Plays numbered frames into the loopback card with these options; returns what the far side
/// hears.
fn heard(format: &str, rate: &str, options: &[&str]) -> Vec<f64> {
    let playing = ["--capture", "0", "--playback", "2", "--periods", "3", "--rate", rate];
    let server = server_on("hw:1,0", &[&playing[..], options].concat());
    let _source = server.probe(&["source", "numbers"]);
    server.run("jack_connect", &["numbers:out", "system:playback_1"]).expect_success();
    far::recorded(&server, format, rate, 1)
}

#[test]
#[ignore = "in the virtual machine"]
fn every_format_carries_what_it_can_hold() {
    for format in [
        "S16_LE", "S16_BE", "S24_LE", "S24_BE", "S24_3LE", "S24_3BE", "S32_LE", "S32_BE",
        "FLOAT_LE", "FLOAT_BE",
    ] {
        let samples = heard(format, "48000", &["--quantum", "512", "--format", format]);
        // A number is 1/2^21, a step of 16 bits 1/2^15.
        let step = if format.starts_with("S16") { 64 } else { 0 };
        far::demand_consecutive(&samples, 20_000, step);
    }
}

#[test]
#[ignore = "in the virtual machine"]
fn every_rate_runs() {
    for (rate, quantum) in
        [("8000", "256"), ("22050", "512"), ("44100", "512"), ("96000", "1024"), ("192000", "2048")]
    {
        let samples = heard("S32_LE", rate, &["--quantum", quantum, "--format", "S32"]);
        far::demand_consecutive(&samples, rate.parse::<usize>().expect("a rate") / 3, 0);
    }
}

#[test]
#[ignore = "in the virtual machine"]
fn a_stopped_server_loses_no_frame_after_it_recovers() {
    let mut server = server_on(
        "hw:1,0",
        &["--capture", "0", "--playback", "2", "--quantum", "256", "--periods", "3"],
    );
    let _source = server.probe(&["source", "numbers"]);
    server.run("jack_connect", &["numbers:out", "system:playback_1"]).expect_success();
    server.await_cycles(50);
    assert_eq!(xruns_and_cycles(&server).0, 0);
    server.program().signal(Signal::STOP);
    std::thread::sleep(std::time::Duration::from_millis(200));
    server.program().signal(Signal::CONT);
    awaited("the xrun is counted", || (xruns_and_cycles(&server).0 > 0).then_some(()));
    assert!(!is_away(&server));
    server.await_cycles(50);
    far::demand_consecutive(&far::recorded(&server, "FLOAT_LE", "48000", 1), 40_000, 0);
}

/// The card plays its memory in a loop, whether anything is written there or not.
#[test]
#[ignore = "in the virtual machine"]
fn a_channel_that_loses_its_source_falls_silent() {
    let server = server_on(
        "hw:1,0",
        &["--capture", "0", "--playback", "2", "--quantum", "256", "--periods", "3"],
    );
    let _source = server.probe(&["source", "numbers"]);
    for _ in 0..2 {
        server.run("jack_connect", &["numbers:out", "system:playback_1"]).expect_success();
        far::demand_consecutive(&far::recorded(&server, "FLOAT_LE", "48000", 1), 40_000, 0);
        server.run("jack_disconnect", &["numbers:out", "system:playback_1"]).expect_success();
        server.await_cycles(20);
        let rest = far::recorded(&server, "FLOAT_LE", "48000", 1);
        assert!(rest.len() >= 40_000 && rest.iter().all(|sample| *sample == 0.0));
    }
}

#[test]
#[ignore = "in the virtual machine"]
fn cycles_on_a_card_neither_allocate_nor_lock_nor_log() {
    for device in
        [&["hw:1,0", "--playback", "2", "--capture", "2"][..], &["hw:2"], &["plughw:2"], &["null"]]
    {
        let options = ["--driver", "alsa", "--quantum", "512", "--periods", "3", "--device"];
        let (mut server, guard) = Guard::server(&[&options[..], device].concat());
        let _source = guard.probe(&server, &["source", "numbers"]);
        server.run("jack_connect", &["numbers:out", "system:playback_1"]).expect_success();
        server.await_cycles(50);
        server.run("jack_bufsize", &["256"]).expect_success();
        server.await_cycles(50);
        awaited("the device is back with the new quantum", || (!is_away(&server)).then_some(()));
        server.await_cycles(50);
        server.program().signal(Signal::STOP);
        std::thread::sleep(std::time::Duration::from_millis(200));
        server.program().signal(Signal::CONT);
        server.await_cycles(50);
        assert!(server.program().is_running(), "{device:?}");
        assert_eq!(guard.guarded_processes(), 2, "{device:?}");
    }
}

/// Starts `jackd` with these arguments; returns what it prints once it runs.
fn jackd(words: &str) -> (Program, TempDir) {
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let name = directory.path().join("jackd");
    std::os::unix::fs::symlink(binary("consort"), &name).expect("a link");
    let mut command = command_in(directory.path(), &name);
    command.args(words.split_whitespace());
    (Program::start(command), directory)
}

#[test]
#[ignore = "in the virtual machine"]
fn start_lines_of_jackd_run_the_card_that_they_name() {
    for (words, card) in [
        ("-d alsa", "CARD=Audio,DEV=0 (playback 2"),
        ("-R -P70 -dalsa -dhw:0 -r48000 -p1024 -n2 -P", "CARD=Intel,DEV=0 (playback 2"),
        (
            "-T -ndefault -p 512 -d alsa -d hw:Loopback,0 -r 44100 -p 512 -n 3 -i 2 -o 4",
            "(capture 2 FLOAT_LE, playback 4 FLOAT_LE",
        ),
        (
            "-d alsa -d hw:2 -S -p 256 -Xseq -H -M -m -zt",
            "CARD=Dummy,DEV=0 (capture 2 S16_LE, playback 2 S16_LE",
        ),
        (
            "-d alsa -C hw:1,1 -P hw:1,0 -i 1 -o 1 -p 512 -s",
            "CARD=Loopback,DEV=1 → hw:CARD=Loopback,DEV=0",
        ),
        ("-d alsa -d plughw:2 -r 22050 -p 256", "plughw:2"),
    ] {
        let (mut server, _directory) = jackd(words);
        awaited(words, || {
            let said = server.stderr();
            assert!(!said.contains("cannot"), "{words}: {said}");
            said.contains("runs: alsa").then_some(())
        });
        assert!(server.stderr().contains(card), "{words}: {}", server.stderr());
        server.terminate().expect_success();
    }
}

#[test]
#[ignore = "in the virtual machine"]
fn a_refusal_of_a_card_names_what_it_can_do() {
    let mut player = Command::new("aplay");
    player.args(["-q", "-D", "hw:9", "-f", "S16_LE", "-r", "48000", "-c", "2", "/dev/zero"]);
    let player = Program::start(player);
    awaited("aplay has the card", || {
        let status =
            std::fs::read_to_string("/proc/asound/card9/pcm0p/sub0/status").unwrap_or_default();
        status.contains("RUNNING").then_some(())
    });
    for (words, parts) in [
        ("-d alsa -d hw:9", &["in use by aplay (process ", &player.id().to_string()][..]),
        ("-d alsa -d hw:0 -P -r 12345", &["not at 12345 Hz; it supports ", "44100, 48000"]),
        ("-d alsa -d hw:0 -P -o 7", &["it has 2 channels, not 7"]),
        ("-d alsa -d hw:7", &["there is no such device; there is hw:Intel,0, hw:Loopback,0"]),
        ("-d alsa -d hw:0 -P -p 8192 -n 64", &["do not fit its memory of "]),
    ] {
        let (server, _directory) = jackd(words);
        let finished = server.finish();
        assert_eq!(finished.code, Some(1), "{words}: {}", finished.stderr);
        for part in parts {
            assert!(finished.stderr.contains(part), "{words}: {}", finished.stderr);
        }
    }
    player.terminate();
}

#[test]
#[ignore = "in the virtual machine"]
fn a_refused_user_learns_which_group_to_join() {
    let runner = ["-u", "nobody", "--"];
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    run("chmod", &["0777", &directory.path().to_string_lossy()]).expect_success();
    let consort = binary("consort");
    for device in [&["--device", "hw:2"][..], &[]] {
        let mut command = command_in(directory.path(), std::path::Path::new("runuser"));
        command
            .args(runner)
            .arg(&consort)
            .args(["run", "--driver", "alsa", "--no-realtime"])
            .args(device);
        let finished = Program::start(command).finish();
        assert!(finished.stderr.contains("usermod --append --groups audio"), "{}", finished.stderr);
    }
}

#[test]
#[ignore = "in the virtual machine"]
fn a_running_server_switches_to_a_card_and_back() {
    let server = Server::timer(256);
    let _source = server.probe(&["source", "numbers"]);
    server.run("jack_connect", &["numbers:out", "system:playback_1"]).expect_success();
    let card =
        ["driver", "alsa", "--device", "hw:1,0", "--capture", "2", "--playback", "2", "--periods"];
    let switch = |more: &[&str]| server.consort(&[&card[..], more].concat());
    let is_heard =
        || far::demand_consecutive(&far::recorded(&server, "FLOAT_LE", "48000", 2), 90_000, 0);
    switch(&["3"]).expect_success();
    is_heard();
    switch(&["4", "--quantum", "512"]).expect_success();
    is_heard();
    let before = server.consort(&["driver"]).expect_success().stdout;
    assert!(before.contains("hw:CARD=Loopback") && before.contains("512 frames"), "{before}");
    // It is closed, refused, and reopened as it was.
    let refused = switch(&["64", "--quantum", "8192"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("'hw:1,0' cannot") && !refused.stderr.contains("again"),
        "{refused:?}"
    );
    assert_eq!(server.consort(&["driver"]).expect_success().stdout, before);
    is_heard();
    server.consort(&["driver", "timer"]).expect_success();
    let other = server_on(
        "hw:1,0",
        &["--capture", "2", "--playback", "2", "--quantum", "256", "--periods", "3"],
    );
    assert!(driver(&other).contains("hw:"));
}
