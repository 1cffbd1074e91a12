//! Servers that are killed while programs play and record, and what programs make of the next one.

use std::time::{Duration, Instant};

use client::stream::{
    AwaitedServer, Gains, PlaybackOptions, PlaybackStream, RecordOptions, RecordStream,
    RingSamples, Samples, SamplesMut, StreamConnection,
};
use harness::{Program, Server, Sound, Stretch, eventually, in_three_attempts, noise, wake_ups};
use sys::clock::{now_ns, sleep_until};

use crate::programs::FADE;
use crate::{
    RATE_HZ, await_no_stream, await_playing, end_recorder, file, play, ramps, streams, to_end,
};

const SECOND: usize = RATE_HZ as usize;
const TIMER: [&str; 4] = ["--driver", "timer", "--quantum", "256"];
const LEFT: &str = "consort play:output_FL";

/// Two channels that never repeat.
fn noises(frames: usize) -> Sound {
    Sound::of(RATE_HZ, &[noise(1, frames), noise(2, frames)])
}

/// Kills a server; returns when that began.
fn kill(server: &mut Server) -> u64 {
    let begun_ns = now_ns();
    server.kill();
    begun_ns
}

/// Starts the next server, which records what its device plays from the first stream on.
fn start_recorded(server: &mut Server) {
    let recorded = server.directory().join("recorded.wav");
    server.start_another_with(&TIMER, |command| {
        command.env("CONSORT_RECORD_NULL_DEVICE", recorded);
    });
}

/// What leaves the device, as soon as it is heard.
fn monitor(connection: &StreamConnection) -> RecordStream {
    let stream = connection.record(RecordOptions {
        program: "by hand".into(),
        name: "monitor".into(),
        device: None,
        monitor: true,
        channels: vec![0, 1],
        // Room for more than one look of `eventually`.
        interval_frames: SECOND as u32 / 10,
        lets_sleep: false,
    });
    let mut stream = stream.expect("a stream");
    stream.run().expect("runs");
    stream
}

/// Reads what is there of the left channel.
fn read(stream: &mut RecordStream, into: &mut Vec<f32>) {
    let (mut left, mut right) = (vec![0.0; 4096], vec![0.0; 4096]);
    loop {
        let planes = SamplesMut::Planar(&mut [&mut left, &mut right]);
        let frames = stream.reader_mut().read(planes);
        if frames == 0 {
            return;
        }
        into.extend_from_slice(&left[..frames]);
    }
}

/// Looks for the next server until it has taken back what `take_back` returns.
fn returned(
    mut awaited: AwaitedServer,
    mut take_back: impl FnMut(&StreamConnection) -> Result<(), client::Error>,
) -> StreamConnection {
    eventually("the next server takes it back", || {
        sleep_until(awaited.due_ns());
        awaited.attempt(&mut take_back).expect("a server follows")
    })
}

/// A program with a stream that has written all of a sound, on a server that is not recorded.
fn playing(server: &Server, sound: &Sound) -> (StreamConnection, PlaybackStream) {
    let connection = server.stream_connection();
    let stream = connection.play(PlaybackOptions {
        program: "consort play".into(),
        name: "sound".into(),
        device: None,
        channels: vec![0, 1],
        depth_frames: 2 * RATE_HZ,
        samples: RingSamples::Planes,
    });
    let mut stream = stream.expect("a stream");
    let planes: Vec<&[f32]> = sound.channels.iter().map(Vec::as_slice).collect();
    let written = stream.writer_mut().write(Samples::Planar(&planes));
    assert_eq!(written, sound.channels[0].len(), "there is room");
    stream.run().expect("runs");
    (connection, stream)
}

/// Waits until this position is heard.
fn await_heard(stream: &mut PlaybackStream, position: usize) {
    eventually("it is heard", || (stream.heard(now_ns()) >= position as u64).then_some(()));
}

/// The position in what was `played` with which a recording begins, in a fade; everything from
/// there to the end is heard, and nothing else.
fn begins_at(recorded: &[f32], played: &[f32], gain: f32) -> usize {
    let played: Vec<f32> = played.iter().map(|sample| sample * gain).collect();
    let same = Stretch::longest(&played, recorded);
    assert_eq!(same.sent_at + same.frames, played.len(), "to the end: {same:?}");
    let begin = recorded.iter().position(|sample| *sample != 0.0).expect("sound");
    let fade = same.recorded_at - begin;
    assert!(fade <= FADE, "a fade of {fade} frames");
    let position = same.sent_at - fade;
    let softer = recorded[begin..].iter().zip(&played[position..]).take(fade);
    assert!(softer.clone().all(|(heard, played)| heard.abs() < played.abs()), "in a fade");
    assert!(recorded[same.recorded_at + same.frames..].iter().all(|sample| *sample == 0.0));
    position
}

#[test]
fn a_player_goes_on_with_the_frame_that_was_heard_last() {
    let sound = noises(8 * SECOND);
    in_three_attempts(|| {
        let mut server = Server::start(&TIMER);
        let path = file(&server, "song.wav", &sound);
        let connection = server.stream_connection();
        let mut monitored = monitor(&connection);
        let player = play(&server, &path, &[]);
        let mut heard = Vec::new();
        eventually("two seconds are heard", || {
            read(&mut monitored, &mut heard);
            let begin = heard.iter().position(|sample| *sample != 0.0)?;
            (heard.len() > begin + 2 * SECOND).then_some(())
        });
        let begun_ns = kill(&mut server);
        let killed_ms = (now_ns() - begun_ns) / 1_000_000;
        read(&mut monitored, &mut heard);
        drop((monitored, connection));
        start_recorded(&mut server);
        let finished = to_end(player)?;
        let lines: Vec<&str> = finished.stderr.lines().collect();
        assert!(
            matches!(lines[..], [line] if line.starts_with("consort: the server was gone for ")),
            "{lines:?}"
        );
        server.check_rendered()?;
        await_no_stream(&server);
        let recorded = server.recorded();
        let before = Stretch::longest(&sound.channels[0], &heard);
        if before.recorded_at + before.frames != heard.len() {
            return Err(format!("the machine kept the device from playing: {before:?}"));
        }
        let last = before.sent_at + before.frames;
        let next = begins_at(&recorded.channels[0], &sound.channels[0], 1.0);
        assert_eq!(begins_at(&recorded.channels[1], &sound.channels[1], 1.0), next);
        assert!(next >= last, "frames {next} to {last} are heard twice");
        // The monitor gets what was heard 5 ms later at most; the server plays until its end, and
        // the player notices that end when it wakes. On a busy machine, each takes longer.
        if next - last > SECOND / 20 {
            return Err(format!("{} frames are not heard; killed in {killed_ms} ms", next - last));
        }
        Ok(())
    });
}

#[test]
fn a_stream_has_its_position_gains_volume_and_connections_on_the_next_server() {
    in_three_attempts(|| {
        let mut server = Server::start(&TIMER);
        let sound = noises(4 * SECOND);
        let (connection, mut stream) = playing(&server, &sound);
        let of_program = Gains::all(0.5).expect("a gain");
        stream.set_gains(of_program, 480).expect("set");
        stream.drain().expect("drained");
        server.consort(&["volume", "consort play", "50%"]).expect_success();
        server.run("jack_disconnect", &[LEFT, "system:playback_1"]).expect_success();
        server.run("jack_connect", &[LEFT, "system:playback_2"]).expect_success();
        server.run("jack_disconnect", &["consort play:output_FR", "system:playback_2"]);
        await_heard(&mut stream, SECOND);
        kill(&mut server);
        let awaited = connection.await_next(now_ns()).expect("another one");
        let heard = stream.heard(awaited.gone_ns());
        stream.leave(awaited.gone_ns());
        assert_eq!(stream.heard(now_ns() + 1_000_000_000), heard, "nothing is heard any more");
        start_recorded(&mut server);
        let connection = returned(awaited, |connection| stream.return_to(connection));
        let mut last = stream.heard(now_ns());
        assert!(last >= heard, "positions go on");
        eventually("it has drained", || {
            let now = stream.heard(now_ns());
            assert!(now >= last, "{now} is heard after {last}");
            last = now;
            (now == 4 * SECOND as u64).then_some(())
        });
        let [shown] = &streams(&server)[..] else { panic!("one stream") };
        assert_eq!((&shown["volume"], &shown["muted"]), (&0.5.into(), &false.into()));
        server.check_rendered()?;
        let missed = stream.writer().control().missed_frames();
        drop((stream, connection));
        await_no_stream(&server);
        let recorded = server.recorded();
        assert_eq!(missed, 0);
        assert!(
            recorded.channels[0].iter().all(|sample| *sample == 0.0),
            "connected to the other one"
        );
        assert_eq!(begins_at(&recorded.channels[1], &sound.channels[0], 0.25) as u64, heard);
        Ok(())
    });
}

#[test]
fn a_muted_stream_is_not_heard_for_a_moment() {
    let mut server = Server::start(&TIMER);
    let (connection, mut stream) = playing(&server, &noises(4 * SECOND));
    await_heard(&mut stream, SECOND / 2);
    server.consort(&["mute", "consort play"]).expect_success();
    kill(&mut server);
    let awaited = connection.await_next(now_ns()).expect("another one");
    start_recorded(&mut server);
    let connection = returned(awaited, |connection| stream.return_to(connection));
    await_heard(&mut stream, 2 * SECOND);
    drop((stream, connection));
    await_no_stream(&server);
    assert!(server.recorded().channels.concat().iter().all(|sample| *sample == 0.0));
}

#[test]
fn what_a_program_writes_and_wishes_without_a_server_is_for_the_next_one() {
    in_three_attempts(|| {
        let mut server = Server::start(&TIMER);
        let sound = noises(2 * SECOND);
        let (connection, mut stream) = playing(&server, &sound);
        await_heard(&mut stream, SECOND / 2);
        kill(&mut server);
        let awaited = connection.await_next(now_ns()).expect("another one");
        stream.leave(awaited.gone_ns());
        // It seeks, pauses, and writes what is to be heard when it goes on.
        assert!(stream.flush().is_err() && stream.hold().is_err(), "there is no server");
        let new = noises(SECOND / 2);
        let planes: Vec<&[f32]> = new.channels.iter().map(Vec::as_slice).collect();
        assert_eq!(stream.writer_mut().write(Samples::Planar(&planes)), SECOND / 2);
        start_recorded(&mut server);
        let connection = returned(awaited, |connection| stream.return_to(connection));
        assert_eq!(stream.heard(now_ns()), 2 * SECOND as u64, "where it was sent to");
        assert!(!streams(&server)[0]["plays"].as_bool().expect("a flag"), "it holds");
        stream.run().expect("runs");
        stream.drain().expect("drained");
        eventually("it has drained", || stream.has_drained(now_ns()).then_some(()));
        server.check_rendered()?;
        drop((stream, connection));
        await_no_stream(&server);
        let recorded = server.recorded();
        assert_eq!(begins_at(&recorded.channels[0], &new.channels[0], 1.0), 0);
        Ok(())
    });
}

#[test]
fn a_stream_that_was_moved_waits_for_its_device() {
    let mut server = Server::start(&TIMER);
    let add = |server: &Server| {
        server.consort(&["device", "add", "null", "--name", "other"]).expect_success();
    };
    add(&server);
    let (connection, mut stream) = playing(&server, &noises(4 * SECOND));
    await_heard(&mut stream, SECOND / 4);
    server.consort(&["move", "consort play", "other"]).expect_success();
    let is_there = |server: &Server| {
        streams(server).iter().any(|stream| stream["device"] == "other" && stream["plays"] == true)
    };
    eventually("it has moved", || is_there(&server).then_some(()));
    kill(&mut server);
    let mut awaited = connection.await_next(now_ns()).expect("another one");
    server.start_another(&TIMER);
    let early = awaited.attempt(|connection| stream.return_to(connection));
    assert!(matches!(early, Ok(None)), "not to another device: {early:?}");
    add(&server);
    let _connection = returned(awaited, |connection| stream.return_to(connection));
    eventually("it plays there", || is_there(&server).then_some(()));
}

/// A player of a long file, on a server with these options that is killed then.
fn orphan(options: &[&str], environment: &[(&str, &str)]) -> (Server, Program) {
    let mut server = Server::start(&[&TIMER[..], options].concat());
    let path = file(&server, "song.wav", &ramps(60 * SECOND));
    let mut command = server.command(&harness::binary("consort").to_string_lossy());
    command.arg("play").arg(path).envs(environment.iter().copied());
    let player = Program::start(command);
    await_playing(&server);
    server.kill();
    (server, player)
}

/// How long a process has run on a CPU.
fn used_cpu_ms(process: u32) -> u64 {
    const TICK_MS: u64 = 10;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
    // After the name, from the state on (proc_pid_stat(5)): utime and stime are fields 14 and 15.
    let fields = stat.rsplit(") ").next().expect("a name").split(' ').skip(11).take(2);
    TICK_MS * fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>()
}

#[test]
fn a_server_that_cannot_go_on_with_a_stream_ends_it_in_words() {
    for (options, words) in [
        (["--rate", "44100"], "its device has 44100 Hz, and the stream 48000 Hz"),
        (["--playback", "1"], "its device has 1 of the 2 channels that the stream needs"),
    ] {
        let (mut server, player) = orphan(&[], &[]);
        server.start_another(&[&TIMER[..], &options].concat());
        let finished = player.finish();
        assert_eq!(finished.code, Some(1));
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
        await_no_stream(&server);
    }
}

#[test]
fn a_player_that_no_server_takes_back_ends_after_the_grace_period() {
    const GRACE_MS: u64 = 1500;
    let grace = GRACE_MS.to_string();
    for (options, environment) in
        [(vec!["--grace", &grace], vec![]), (vec![], vec![("CONSORT_GRACE_MS", grace.as_str())])]
    {
        let before = Instant::now();
        let (_server, player) = orphan(&options, &environment);
        let begun = Instant::now();
        let (wakes, used_ms) = (wake_ups(player.id()), used_cpu_ms(player.id()));
        std::thread::sleep(Duration::from_millis(GRACE_MS / 2));
        let wakes = wake_ups(player.id()) - wakes;
        let used_ms = used_cpu_ms(player.id()) - used_ms;
        let ms = u64::try_from(begun.elapsed().as_millis()).expect("not long");
        // It looks twenty times a second, and sleeps in between.
        assert!(wakes <= ms / 50 + 2, "{wakes} wake-ups in {ms} ms");
        assert!(used_ms <= ms / 10, "{used_ms} ms of a CPU in {ms} ms");
        let finished = player.finish();
        assert!(before.elapsed() >= Duration::from_millis(GRACE_MS));
        assert_eq!(finished.code, Some(1));
        let words = "the server is gone, and no other replaced it within 1.5 s";
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
    }
}

#[test]
fn a_player_ends_with_a_server_that_stops_in_order_and_on_a_signal_without_one() {
    // Much longer than a test waits for anything.
    let long = ["--grace", "3600000"];
    let server = Server::start(&[&TIMER[..], &long].concat());
    let path = file(&server, "song.wav", &ramps(60 * SECOND));
    let player = play(&server, &path, &[]);
    await_playing(&server);
    server.consort(&["stop"]).expect_success();
    let finished = player.finish();
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("the server has ended"), "{}", finished.stderr);

    let (_server, player) = orphan(&long, &[]);
    player.signal(rustix::process::Signal::INT);
    assert_eq!(player.finish().code, Some(130));
}

#[test]
fn a_recorder_goes_on_and_knows_how_much_time_is_missing() {
    in_three_attempts(|| {
        let mut server = Server::start(&TIMER);
        let connection = server.stream_connection();
        let mut stream = monitor(&connection);
        let mut heard = Vec::new();
        eventually("it records", || {
            read(&mut stream, &mut heard);
            (heard.len() > SECOND / 2).then_some(())
        });
        let control = stream.reader_mut().control_mut();
        let timing = control.timing();
        kill(&mut server);
        let awaited = connection.await_next(now_ns()).expect("another one");
        stream.leave(awaited.gone_ns());
        assert_eq!(stream.reader_mut().unrecorded_frames(), None, "not known yet");
        server.start_another(&TIMER);
        let _connection = returned(awaited, |connection| stream.return_to(connection));
        eventually("it records on", || {
            read(&mut stream, &mut heard);
            (heard.len() > SECOND).then_some(())
        });
        let missing = stream.reader_mut().unrecorded_frames().expect("known by now");
        if stream.reader().lost() > 0 {
            return Err(format!(
                "{} frames came while this thread had no CPU",
                stream.reader().lost()
            ));
        }
        assert_eq!(stream.reader().position(), heard.len() as u64, "positions go on");
        // Both devices have the clock of the machine, so recorded and missing frames are the time.
        let now = stream.reader_mut().control_mut().timing();
        let passed_ns = u128::from(now.at_ns - timing.at_ns);
        let passed = passed_ns * u128::from(RATE_HZ) / 1_000_000_000;
        let counted = u128::from(now.position - timing.position + missing);
        assert!(counted.abs_diff(passed) <= 2, "{counted} of {passed} frames");
        assert!(missing > 0);
        Ok(())
    });
}

#[test]
fn consort_record_writes_what_is_heard_of_two_servers_into_one_file() {
    let sound = noises(6 * SECOND);
    in_three_attempts(|| {
        let mut server = Server::start(&TIMER);
        let path = file(&server, "song.wav", &sound);
        let into = server.directory().join("heard.wav");
        let recorder = server.spawn_consort(&["record", "--monitor", &into.to_string_lossy()]);
        let player = play(&server, &path, &[]);
        let both = |server: &Server| {
            streams(server).iter().filter(|stream| stream["plays"] == true).count() == 2
        };
        eventually("both are there", || both(&server).then_some(()));
        std::thread::sleep(Duration::from_secs(2));
        server.kill();
        server.start_another(&TIMER);
        to_end(player)?;
        std::thread::sleep(Duration::from_millis(500));
        let finished = end_recorder(&server, recorder)?;
        let [line] = &finished.stderr.lines().collect::<Vec<_>>()[..] else {
            panic!("{}", finished.stderr)
        };
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [gone_ms, missing] = numbers[..] else { panic!("{line}") };
        let recorded = Sound::read(&into);
        let first = recorded.channels[0].iter().position(|sample| *sample != 0.0);
        let first = first.ok_or("nothing was recorded")?;
        let begin = recorded.channels[0][first..].iter().zip(&sound.channels[0]);
        let same = begin.take_while(|(recorded, played)| recorded == played).count();
        if same < SECOND {
            return Err(format!("{same} frames of the first server"));
        }
        let end = &recorded.channels[0][first + same..];
        let rest = Stretch::longest(&sound.channels[0], end);
        assert_eq!(rest.sent_at + rest.frames, sound.channels[0].len(), "{rest:?}");
        // The first server has passed on what was heard up to a quarter of a second before.
        let least = gone_ms * u64::from(RATE_HZ) / 1000;
        if !(least..least + u64::from(RATE_HZ) / 2).contains(&missing) {
            return Err(format!("{missing} frames are missing, of {gone_ms} ms"));
        }
        Ok(())
    });
}

#[test]
fn a_program_that_may_record_on_the_next_server_no_longer_is_refused() {
    let mut server = Server::start(&TIMER);
    let rules = server.directory().join("rules");
    std::fs::write(&rules, "connect\n").expect("a file");
    let connection = server.stream_connection();
    let mut stream = monitor(&connection);
    kill(&mut server);
    let mut awaited = connection.await_next(now_ns()).expect("another one");
    server.start_another(&[&TIMER[..], &["--policy", &rules.to_string_lossy()]].concat());
    let refused = eventually("it is refused", || {
        sleep_until(awaited.due_ns());
        awaited.attempt(|connection| stream.return_to(connection)).err()
    });
    assert!(refused.to_string().contains("record what other programs play"), "{refused}");
    assert!(streams(&server).is_empty());
}
