//! What `consort driver` promises: another driver for a running server, and programs that
//! continue.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use harness::{Counts, Guard, Program, Server, Sound, eventually, in_three_attempts, noise};

/// Long enough that no client is late on a busy machine: 170 ms.
const LONG: u32 = 8192;

fn switch(server: &Server, driver: &[&str]) {
    server.consort(&[&["driver"], driver].concat()).expect_success();
}

/// Why a driver was refused.
fn refusal(server: &Server, driver: &[&str]) -> String {
    let finished = server.consort(&[&["driver"], driver].concat());
    assert_eq!(finished.code, Some(1), "{driver:?} was not refused: {finished:?}");
    finished.stderr
}

fn shown(server: &Server) -> String {
    server.consort(&["driver"]).expect_success().stdout
}

/// The ports of `system`.
fn ports(server: &Server) -> BTreeSet<String> {
    server.lsp(&["system:"]).lines().map(str::to_owned).collect()
}

/// The ports of a driver with this many channels.
fn channels(capture: u32, playback: u32) -> BTreeSet<String> {
    let named = |name: &'static str, count| {
        (1..=count).map(move |channel| format!("system:{name}_{channel}"))
    };
    named("capture", capture).chain(named("playback", playback)).collect()
}

/// Every connection of the graph, as `jack_lsp -c` prints it.
fn connections(server: &Server) -> String {
    server.lsp(&["-c"])
}

#[test]
fn no_sample_between_programs_is_lost_over_twenty_switches() {
    in_three_attempts(|| {
        let server = Server::timer(LONG);
        let _source = server.probe(&["source", "source"]);
        let _thru = server.probe(&["thru", "thru", "--from", "source:out"]);
        let clock = server.probe(&["clock", "clock"]);
        let check = server.probe(&["check", "check", "--from", "thru:out"]);
        server.await_cycles(4);
        for number in 0..20 {
            match number % 4 {
                0 => switch(&server, &["timer", "--capture", "1", "--playback", "4"]),
                1 => switch(&server, &["file", "--output", "take.wav"]),
                2 => switch(&server, &["alsa", "--device", "null"]),
                _ => switch(&server, &["timer", "--capture", "40", "--loop"]),
            }
            let expected = [channels(1, 4), channels(0, 2), channels(2, 2), channels(40, 2)];
            assert_eq!(ports(&server), expected[number % 4]);
            server.await_connection("thru:in", "source:out");
            server.await_connection("check:in", "thru:out");
        }
        server.await_cycles(4);
        let Counts { cycles, good, silent, wrong, missed } = Counts::of(check);
        let asked = clock.terminate().expect_success().stdout;
        let back: u32 =
            asked.trim().rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a number");
        assert_eq!(wrong, 0, "no sample is another's");
        // An estimate, which a loop steers: less than a hundredth of a cycle.
        if (good, silent, missed) == (cycles, 0, 0) && cycles >= 24 && back < LONG / 100 {
            return Ok(());
        }
        Err(format!(
            "{cycles} cycles, {good} good, {silent} silent, {missed} missed, {back} frames back"
        ))
    });
}

#[test]
fn ports_that_both_drivers_have_keep_their_connections() {
    let server = Server::timer(1024);
    let _thru = server.probe(&["thru", "thru", "--from", "system:capture_1"]);
    for (source, destination) in [
        ("thru:out", "system:playback_1"),
        ("thru:out", "system:playback_2"),
        ("system:capture_2", "system:playback_1"),
    ] {
        server.consort(&["connect", source, destination]).expect_success();
    }
    let mut monitor = server.spawn("jack_evmon", &[]);
    server.await_active("event-monitor");

    switch(&server, &["timer", "--capture", "1", "--playback", "3"]);
    assert_eq!(ports(&server), channels(1, 3));
    server.await_connection("thru:in", "system:capture_1");
    server.await_connection("system:playback_1", "thru:out");
    server.await_connection("system:playback_2", "thru:out");
    // capture_2 is the second port of all, playback_1 the third, playback_3 comes after those of
    // the program.
    let expected = ["Ports 2 and 3 disconnected", "Port 2 unregistered", "Port 7 registered"];
    let mut heard = Vec::new();
    eventually("the monitor is notified", || {
        let lines = monitor.stdout().lines().map(str::to_owned);
        heard = lines.filter(|line| line.starts_with("Port")).collect::<Vec<String>>();
        (heard.len() >= expected.len()).then_some(())
    });
    assert_eq!(heard, expected);

    switch(&server, &["timer", "--capture", "0", "--playback", "0"]);
    assert_eq!((ports(&server), connections(&server).contains("system")), (channels(0, 0), false));
    switch(&server, &["timer"]);
    assert_eq!(ports(&server), channels(2, 2));
    assert!(
        !connections(&server).lines().any(|line| line.starts_with("   ")),
        "what went is not connected again"
    );
}

#[test]
fn a_channel_that_comes_back_is_connected_by_the_state_file() {
    let server = Server::start(&["--quantum", "1024", "--state", "state.json"]);
    let _source = server.probe(&["source", "source"]);
    server.consort(&["connect", "source:out", "system:playback_2"]).expect_success();
    switch(&server, &["timer", "--playback", "1"]);
    assert_eq!(ports(&server), channels(2, 1));
    switch(&server, &["timer"]);
    server.await_connection("system:playback_2", "source:out");
}

#[test]
fn a_driver_that_cannot_be_opened_changes_nothing() {
    let server = Server::timer(LONG);
    let _source = server.probe(&["source", "source"]);
    server.consort(&["connect", "source:out", "system:playback_2"]).expect_success();
    let check = server.probe(&["check", "check", "--from", "source:out"]);
    server.await_cycles(2);
    switch(&server, &["file", "--output", "take.wav"]);
    let before = (shown(&server), connections(&server));
    Sound::of(44_100, &[vec![0.5; 100]]).write(&server.directory().join("slow.wav"));
    for (driver, reason) in [
        (&["alsa", "--device", "hw:CARD=nobodys"][..], "cannot open 'hw:CARD=nobodys'"),
        (&["alsa", "--device", "nonsense"], "'nonsense' neither plays nor records: "),
        (&["timer", "--rate", "44100"], "the server runs at 48000 Hz"),
        (&["file", "--input", "slow.wav"], "44100"),
        (&["file", "--input", "nothing.wav"], "nothing.wav"),
        (&["file", "--output", "no/where.wav"], "where.wav"),
        (&["file", "--output", "take.wav"], "the driver that runs has this file open"),
        (&["file", "--input", "take.wav"], "the driver that runs has this file open"),
        (&["timer", "--playback", "5000"], "out of range"),
    ] {
        let said = refusal(&server, driver);
        assert!(said.contains(reason), "{driver:?}: {said}");
        assert_eq!((shown(&server), connections(&server)), before, "{driver:?}");
    }
    for nonsense in
        [&["file"][..], &["timer", "--fast"], &["--capture", "2"], &["timer", "--quantum", "0"]]
    {
        assert_eq!(server.consort(&[&["driver"], nonsense].concat()).code, Some(2), "{nonsense:?}");
    }
    assert_eq!(Counts::of(check).wrong, 0);
}

#[test]
fn the_driver_cannot_be_switched_in_freewheel() {
    let server = Server::timer(1024);
    server.run("jack_freewheel", &["y"]).expect_success();
    assert!(refusal(&server, &["timer"]).contains("freewheel"));
    server.run("jack_freewheel", &["n"]).expect_success();
    // Whichever comes first, each is answered, and the server has one or the other.
    let switches: Vec<Program> = ["3", "4", "5", "6"]
        .map(|playback| server.spawn_consort(&["driver", "timer", "--playback", playback]))
        .into_iter()
        .collect();
    let mut done = 0;
    for finished in switches.into_iter().map(Program::finish) {
        match finished.code {
            Some(0) => done += 1,
            _ => assert!(finished.stderr.contains("another change"), "{}", finished.stderr),
        }
    }
    assert!(done >= 1 && (3..=6).any(|playback| ports(&server) == channels(2, playback)));
}

#[test]
fn a_driver_comes_even_if_a_plan_without_it_has_not_been_taken_yet() {
    // A plan waits up to 170 ms for a cycle, so the change before the switch is still pending.
    let server = Server::timer(LONG);
    let ends = ["system:capture_1", "system:playback_1"];
    for driver in [&["alsa", "--device", "null"][..], &["timer", "--playback", "3"], &["timer"]] {
        for change in ["connect", "disconnect"] {
            server.consort(&[&[change][..], &ends].concat()).expect_success();
            switch(&server, driver);
        }
        assert!(shown(&server).starts_with(driver[0]), "{driver:?}");
    }
}

#[test]
fn a_driver_with_another_buffer_size_notifies_every_client() {
    let server = Server::timer(LONG);
    let _source = server.probe(&["source", "source"]);
    let check = server.probe(&["check", "check", "--from", "source:out"]);
    server.await_cycles(2);
    switch(&server, &["timer", "--playback", "1", "--quantum", "4096"]);
    assert!(server.run("jack_bufsize", &[]).expect_success().stdout.trim().ends_with("4096"));
    assert_eq!(shown(&server), "timer, 48000 Hz, 4096 frames, 2 capture ports, 1 playback port\n");
    switch(&server, &["alsa", "--device", "null", "--quantum", "2048"]);
    // The same device with other parameters: it is closed before it is opened again.
    switch(&server, &["alsa", "--device", "null", "--quantum", "8192", "--capture", "1"]);
    assert_eq!(ports(&server), channels(1, 2));
    server.await_cycles(4);
    let counts = Counts::of(check);
    assert_eq!(counts.wrong, 0, "{counts:?}");
    assert!(counts.good > 4, "{counts:?}");
}

#[test]
fn a_device_that_cannot_be_reconfigured_is_reopened_as_it_was() {
    let server = Server::start(&["--driver", "alsa", "--device", "null", "--quantum", "1024"]);
    let before = shown(&server);
    assert!(before.starts_with("alsa null"), "{before}");
    let said = refusal(&server, &["alsa", "--device", "null", "--wake", "interrupt"]);
    assert!(said.contains("--wake") && !said.contains("again"), "{said}");
    assert_eq!(shown(&server), before);
    server.await_cycles(10);
}

#[test]
fn a_driver_without_hardware_monitoring_runs_with_a_warning() {
    let monitoring = ["alsa", "--device", "null", "--hardware-monitoring"];
    let mut server = Server::timer(1024);
    switch(&server, &monitoring);
    let await_said = |server: &mut Server, expected: &str| {
        eventually(expected, || server.program().stderr().contains(expected).then_some(()));
    };
    await_said(
        &mut server,
        "no hardware monitoring, requests are only counted: the capture device is not a sound card",
    );
    assert!(shown(&server).starts_with("alsa null") && !shown(&server).contains("monitoring"));
    switch(&server, &[&monitoring[..], &["--capture", "0"]].concat());
    await_said(&mut server, "requests are only counted: nothing is captured");
    server.await_cycles(4);
}

#[test]
fn a_switch_to_files_loses_no_frame() {
    for pace in [&[][..], &["--fast"]] {
        let server = Server::timer(256);
        let _thru = server.probe(&["thru", "thru", "--from", "system:capture_1"]);
        server.consort(&["connect", "thru:out", "system:playback_1"]).expect_success();
        let sent = Sound::of(48_000, &[noise(1, 24_000)]);
        sent.write(&server.directory().join("sent.wav"));
        let heard = server.directory().join("recorded.wav");
        let files = ["file", "--input", "sent.wav", "--output", "recorded.wav"];
        switch(&server, &[&files[..], pace].concat());
        // The server ends with the file, and its directory with the server.
        let mut server = server;
        eventually("the file is over", || (!server.program().is_running()).then_some(()));
        let recorded = Sound::read(&heard);
        if !pace.is_empty() {
            assert_eq!(recorded, sent);
        }
        assert_eq!(recorded.channels.len(), 1);
        assert_eq!(recorded.channels[0].len(), 24_000, "{}", server.program().stderr());
    }
}

#[test]
fn a_recording_has_every_frame_between_two_switches() {
    in_three_attempts(|| {
        let mut server = Server::timer(LONG);
        let _source = server.probe(&["source", "source"]);
        server.consort(&["connect", "source:out", "system:playback_1"]).expect_success();
        server.await_cycles(2);
        switch(&server, &["file", "--output", "take.wav"]);
        server.await_cycles(6);
        switch(&server, &["timer"]);
        eventually("the recording is closed", || {
            server.program().stderr().contains("recorded ").then_some(())
        });
        let take = Sound::read(&server.directory().join("take.wav"));
        let frames: Vec<i64> = take.channels[0]
            .iter()
            .map(|sample| (f64::from(*sample) * 2_097_152.0) as i64 - 1)
            .collect();
        assert_eq!(frames.len() % LONG as usize, 0, "whole cycles");
        let breaks = frames.windows(2).filter(|pair| pair[1] != (pair[0] + 1) & 0xf_ffff).count();
        if breaks == 0 && frames.len() >= 4 * LONG as usize {
            return Ok(());
        }
        Err(format!("{breaks} breaks in {} frames", frames.len()))
    });
}

#[test]
fn the_cycles_in_which_drivers_change_neither_allocate_nor_lock_nor_log() {
    let (mut server, guard) = Guard::server(&["--quantum", "1024"]);
    let _source = guard.probe(&server, &["source", "source"]);
    server.consort(&["connect", "source:out", "system:playback_1"]).expect_success();
    server.await_cycles(5);
    for driver in [
        &["timer", "--capture", "70", "--playback", "9"][..],
        &["file", "--output", "take.wav"],
        &["timer", "--loop", "--quantum", "512", "--monitors"],
        &["alsa", "--device", "null"],
        &["alsa", "--device", "null", "--quantum", "256"],
        &["timer"],
    ] {
        switch(&server, driver);
        server.await_cycles(5);
        assert!(server.program().is_running(), "{driver:?}: {}", server.program().stderr());
    }
    assert_eq!(guard.guarded_processes(), 2);
}
