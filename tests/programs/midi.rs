//! MIDI from program to program: what arrives is what was sent, at its frame.

use std::path::Path;

use harness::{Program, Server, Sound, eventually, example, python};

/// A server whose cycles wait for its clients, so that none is ever late and no event is lost. It
/// plays silence of this length as fast as it can once a program hears it; until then its cycles
/// follow the clock.
fn patient(seconds: usize) -> Server {
    let silence = Sound::of(48_000, &[vec![0.0; seconds * 48_000]]);
    Server::playing(&silence, &["--quantum", "256", "--playback", "1", "--fast"])
}

/// Connects two ports, once their programs are active: ports exist before that.
fn connect(server: &Server, source: &str, destination: &str) {
    for client in [source, destination].map(|port| port.split(':').next().unwrap_or(port)) {
        if client != "system" {
            server.await_active(client);
        }
    }
    server.run("jack_connect", &[source, destination]).expect_success();
}

/// Starts, and waits for the end; returns what was recorded.
fn played(server: Server) -> Vec<f32> {
    let _listener = server.probe(&["check", "listener", "--from", "system:capture_1"]);
    server.played().channels.remove(0)
}

/// The first `count` events: (frame, message) as `jack_midi_dump -a` prints them.
fn dumped(monitor: &mut Program, count: usize) -> Vec<(u64, String)> {
    let event = |line: &str| {
        let (frame, rest) = line.split_once(':')?;
        let is_byte = |word: &&str| word.len() == 2 && u8::from_str_radix(word, 16).is_ok();
        let message: Vec<&str> = rest.split_whitespace().take_while(is_byte).collect();
        Some((frame.trim().parse().ok()?, message.join(" ")))
    };
    eventually("the events", || {
        let printed = monitor.stdout();
        // A line may have come in part.
        let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
        let events: Vec<_> = whole.lines().filter_map(event).take(count).collect();
        (events.len() == count).then_some(events)
    })
}

/// A loop of 12000 frames in which C sounds for 6000.
const SEQUENCE: [&str; 5] = ["sequence", "12000", "0", "60", "6000"];

#[test]
fn jack_midisine_plays_each_note_of_jack_midiseq_at_its_frame() {
    let server = patient(4);
    let _sequencer = server.spawn("jack_midiseq", &SEQUENCE);
    let _synth = server.spawn("jack_midisine", &[]);
    server.await_port("sequence:out");
    server.await_port("midisine:audio_out");
    connect(&server, "sequence:out", "midisine:midi_in");
    connect(&server, "midisine:audio_out", "system:playback_1");
    let recorded = played(server);
    // A sine is 0 for single frames only, but for 6000 frames between notes.
    let sounds = |frame: usize| {
        recorded[frame.saturating_sub(10)..=frame].iter().any(|sample| *sample != 0.0)
    };
    let changes: Vec<usize> =
        (1..recorded.len()).filter(|frame| sounds(*frame) != sounds(frame - 1)).collect();
    assert!(changes.len() >= 30, "two in each of 16 rounds: {changes:?}");
    for pair in changes[1..].windows(3) {
        assert_eq!(pair[2] - pair[0], 12_000, "each round to the frame: {changes:?}");
    }
    let begin = changes[if sounds(changes[1]) { 1 } else { 2 }];
    let note = Sound::of(48_000, &[recorded[begin..begin + 5900].to_vec()]);
    // It plays an octave higher than the notes that it receives.
    assert!((note.frequency_hz(0) - 523.25).abs() < 1.0, "C: {}", note.frequency_hz(0));
}

#[test]
fn jack_midi_dump_hears_two_sequencers_at_one_port_to_the_frame() {
    let server = patient(1);
    let mut monitor = server.spawn("jack_midi_dump", &["-a", "monitor"]);
    let _first = server.spawn("jack_midiseq", &["first", "12000", "0", "60", "6000"]);
    let _second = server.spawn("jack_midiseq", &["second", "9000", "10", "72", "100"]);
    server.await_port("monitor:input");
    for output in ["first:out", "second:out"] {
        server.await_port(output);
        connect(&server, output, "monitor:input");
    }
    let events = dumped(&mut monitor, 40);
    assert!(events.is_sorted_by_key(|(frame, _)| *frame), "{events:?}");
    for (message, round) in
        [("90 3c 40", 12_000), ("80 3c 40", 12_000), ("90 48 40", 9000), ("80 48 40", 9000)]
    {
        let of_message = events.iter().filter(|(_, found)| found == message);
        let frames: Vec<u64> = of_message.map(|(frame, _)| *frame).collect();
        let in_time = frames.windows(2).all(|pair| pair[1] - pair[0] == round);
        assert!(in_time && frames.len() >= 5, "{message}: {frames:?}");
    }
}

#[test]
fn jack_midi_latency_test_gets_back_every_message_one_cycle_later() {
    let server = patient(1);
    let _through = server
        .spawn(&example("transpose").to_string_lossy(), &["--semitones", "0", "--seconds", "600"]);
    server.await_port("transpose:out");
    for size in ["3", "1000"] {
        let arguments = ["-s", "64", "-m", size, "-t", "30", "transpose:in", "transpose:out"];
        let printed = server.run("jack_midi_latency_test", &arguments).expect_success().stdout;
        for line in [
            "Messages sent: 64",
            "Messages received: 64",
            "Average latency: 5.33 ms (256.00 frames)",
        ] {
            assert!(printed.contains(line), "{size} bytes, {line}: {printed}");
        }
        assert!(!printed.contains("Unexpected") && !printed.contains("Xruns"), "{printed}");
    }
}

#[test]
fn jack_midi_clock_beats_to_the_frame_while_the_transport_rolls() {
    let server = patient(1);
    let mut monitor = server.spawn("jack_midi_dump", &["-a", "monitor"]);
    let _clock = server.spawn("jack_midi_clock", &["-b", "120"]);
    server.await_port("jack_midi_clock:mclk_out");
    server.await_port("monitor:input");
    connect(&server, "jack_midi_clock:mclk_out", "monitor:input");
    server.consort(&["transport", "start"]).expect_success();
    let events = dumped(&mut monitor, 50);
    assert_eq!(events[0].1, "fa", "start");
    // 24 for each of two quarter notes in a second of 48000 frames.
    for pair in events[1..].windows(2) {
        assert_eq!((pair[1].0 - pair[0].0, pair[0].1.as_str()), (1000, "f8"), "{events:?}");
    }
    server.consort(&["transport", "stop"]).expect_success();
    eventually("stop", || {
        monitor.stdout().lines().any(|line| line.ends_with(": fc")).then_some(())
    });
}

#[test]
fn the_example_of_the_client_library_plays_an_octave_higher() {
    let server = patient(1);
    let mut monitor = server.spawn("jack_midi_dump", &["-a", "monitor"]);
    let _sequencer = server.spawn("jack_midiseq", &SEQUENCE);
    server.await_port("sequence:out");
    server.await_port("monitor:input");
    let _transpose = server.spawn(
        &example("transpose").to_string_lossy(),
        &["--seconds", "600", "--from", "sequence:out", "--to", "monitor:input"],
    );
    let events = dumped(&mut monitor, 12);
    for pair in events.windows(2) {
        let [(at, message), (next, other)] = pair else { continue };
        let expected = if message == "90 48 40" { "80 48 40" } else { "90 48 40" };
        assert_eq!((next - at, other.as_str()), (6000, expected), "{events:?}");
    }
}

/// A Standard MIDI File (RP-001) of format 0 for the ocarina, at 480 ticks to a half second: A4,
/// E5, A5, half a second of each and as much silence.
fn three_notes() -> Vec<u8> {
    let mut track = vec![0, 0xc0, 79];
    for (index, key) in [69, 76, 81].into_iter().enumerate() {
        // 0x83 0x60 is 480.
        track.extend(if index == 0 { &[0][..] } else { &[0x83, 0x60] });
        track.extend([0x90, key, 100, 0x83, 0x60, 0x80, key, 0]);
    }
    track.extend([0x83, 0x60, 0xff, 0x2f, 0]);
    let header = [&b"MThd"[..], &6_u32.to_be_bytes(), &[0, 0, 0, 1, 1, 0xe0]].concat();
    let length = u32::try_from(track.len()).expect("short").to_be_bytes();
    [&header[..], b"MTrk", &length, &track].concat()
}

/// Starts the Python player of the file, which takes three seconds for each repetition.
fn start_player(server: &Server, file: &Path) -> Program {
    let player = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/clients/midi_file.py");
    let mut command = server.command(&python().to_string_lossy());
    command.arg(player).arg(file).arg("3");
    let mut player = Program::start(command);
    eventually("the player is active", || {
        assert!(player.is_running(), "{}", player.stderr());
        player.stdout().contains("ready").then_some(())
    });
    player
}

#[test]
fn a_midi_file_sent_by_python_arrives_to_the_frame() {
    let server = patient(1);
    let file = server.directory().join("notes.mid");
    std::fs::write(&file, three_notes()).expect("written");
    let mut monitor = server.spawn("jack_midi_dump", &["-a", "monitor"]);
    server.await_port("monitor:input");
    let _player = start_player(&server, &file);
    connect(&server, "player:out", "monitor:input");
    // A repetition may be under way: a whole one is among these events.
    let events = dumped(&mut monitor, 14);
    let begin = events.iter().position(|(_, message)| message == "c0 4f").expect("a round's begin");
    let round = &events[begin..begin + 7];
    let since = |(frame, message): &(u64, String)| (frame - round[0].0, message.clone());
    let expected = [
        (0, "c0 4f"),
        (0, "90 45 64"),
        (24_000, "80 45 00"),
        (48_000, "90 4c 64"),
        (72_000, "80 4c 00"),
        (96_000, "90 51 64"),
        (120_000, "80 51 00"),
    ];
    let expected = expected.map(|(frame, message)| (frame, message.to_owned()));
    assert_eq!(round.iter().map(since).collect::<Vec<_>>(), expected);
}

#[test]
fn fluidsynth_plays_the_midi_file_that_it_is_sent() {
    let server = patient(8);
    let file = server.directory().join("notes.mid");
    std::fs::write(&file, three_notes()).expect("written");
    // Its shell ends with its input, which this one never does.
    let script = "mkfifo shell && exec fluidsynth -q -R 0 -C 0 -g 1 -a jack -m jack -r 48000 -o audio.jack.id=fluid \
                  -o midi.jack.id=fluid -o audio.jack.server=under-test -o midi.jack.server=under-test \
                  /usr/share/sounds/sf2/TimGM6mb.sf2 <>shell";
    let mut command = server.command("sh");
    command.args(["-c", script]);
    let _synth = Program::start(command);
    server.await_port("fluid:midi_00");
    server.await_port("fluid:left");
    let _player = start_player(&server, &file);
    connect(&server, "player:out", "fluid:midi_00");
    connect(&server, "fluid:left", "system:playback_1");
    let recorded = played(server);
    let loud = |frames: &[f32]| frames.iter().any(|sample| sample.abs() > 0.005);
    // Blocks of 10 ms; a note may have a soft frame in it.
    let blocks: Vec<bool> = recorded.chunks(480).map(loud).collect();
    let begins: Vec<usize> = (1..blocks.len())
        .filter(|at| blocks[*at] && !blocks[at.saturating_sub(20)..*at].contains(&true))
        .collect();
    let notes: Vec<(usize, f64)> = begins
        .iter()
        .filter_map(|block| {
            recorded.get(block * 480 + 4800..block * 480 + 19_200).map(|note| (*block, note))
        })
        .map(|(block, note)| (block, Sound::of(48_000, &[note.to_vec()]).frequency_hz(0)))
        .collect();
    let first = notes.iter().position(|(_, hz)| (hz - 440.0).abs() < 8.0).expect("an A4");
    let round: Vec<f64> = notes[first..].iter().take(3).map(|(_, hz)| *hz).collect();
    for (found, expected) in round.iter().zip([440.0, 659.26, 880.0]) {
        assert!((found - expected).abs() < expected / 50.0, "{notes:?}");
    }
    assert_eq!(round.len(), 3, "{notes:?}");
    for pair in notes[first..].windows(2) {
        let distance_ms = (pair[1].0 - pair[0].0) * 10;
        assert!((980..=1020).contains(&distance_ms), "a note each second: {notes:?}");
    }
}
