//! What programs play is what leaves the device.

use convert::{
    ChannelMap, Filter, Options, PlaybackConverter, ProgramFormat, SampleFormat, Standard,
    StreamFormat,
};
use harness::{Sound, in_three_attempts, tone};

use crate::tunnels::distortion_db;
use crate::{RATE_HZ, Scene, compare, path, ramps, same_frames};

/// Plays a sound with a program to its end; returns what was heard. `FILE` among the arguments
/// stands for the sound's file.
fn heard(program: &str, arguments: &[&str], sound: &Sound) -> Sound {
    let scene = Scene::new();
    let file = scene.file("played.wav", sound);
    let arguments: Vec<&str> = arguments
        .iter()
        .map(|argument| if *argument == "FILE" { path(&file) } else { argument })
        .collect();
    scene.run(program, &arguments).expect_success();
    scene.recorded()
}

#[test]
fn paplay_plays_a_file_sample_for_sample() {
    // More than is queued at once.
    let sound = ramps(7 * RATE_HZ as usize);
    in_three_attempts(|| compare(&heard("paplay", &["FILE"], &sound), &sound.channels));
}

#[test]
fn a_short_latency_changes_no_sample() {
    let sound = ramps(2 * RATE_HZ as usize);
    let arguments = ["--latency-msec=80", "FILE"];
    in_three_attempts(|| compare(&heard("paplay", &arguments, &sound), &sound.channels));
}

#[test]
fn a_sound_shorter_than_the_prebuffer_is_heard_whole() {
    let sound = ramps(100);
    in_three_attempts(|| compare(&heard("paplay", &["FILE"], &sound), &sound.channels));
}

#[test]
fn a_mono_file_is_heard_on_both_sides() {
    let sound = ramps(RATE_HZ as usize);
    let mono = Sound::of(RATE_HZ, &sound.channels[..1]);
    let both = [&mono.channels[0], &mono.channels[0]].map(Clone::clone);
    in_three_attempts(|| compare(&heard("paplay", &["--channel-map=mono", "FILE"], &mono), &both));
}

#[test]
fn every_sample_format_is_decoded() {
    for format in ["u8", "s16be", "s24le", "s24-32be", "s32le", "float32be"] {
        let raw = |scene: &Scene, sound: &Sound| {
            let file = scene.file("played.wav", sound);
            let raw = scene.server.directory().join("played.raw");
            let (encoding, bits, order) = match format {
                "u8" => ("unsigned-integer", "8", "-L"),
                "s16be" => ("signed-integer", "16", "-B"),
                "s24le" => ("signed-integer", "24", "-L"),
                "s32le" => ("signed-integer", "32", "-L"),
                // In the low three bytes of four.
                "s24-32be" => ("signed-integer", "24", "-B"),
                _ => ("floating-point", "32", "-B"),
            };
            let arguments =
                ["-D", path(&file), "-t", "raw", "-e", encoding, "-b", bits, order, path(&raw)];
            scene.run("sox", &arguments).expect_success();
            if format == "s24-32be" {
                let bytes = std::fs::read(&raw).expect("read");
                let words = bytes.chunks_exact(3).flat_map(|low| [0, low[0], low[1], low[2]]);
                std::fs::write(&raw, words.collect::<Vec<u8>>()).expect("written");
            }
            raw
        };
        // Exact in 8 bits.
        let channel = |factor: usize| {
            (0..20_000).map(move |at| (1 + at * factor % 120) as f32 / 128.0).collect::<Vec<_>>()
        };
        let sound = Sound::of(RATE_HZ, &[channel(7), channel(11)]);
        in_three_attempts(|| {
            let scene = Scene::new();
            let raw = raw(&scene, &sound);
            let format = format!("--format={format}");
            let arguments = ["--raw", "--rate=48000", "--channels=2", &format, path(&raw)];
            scene.run("paplay", &arguments).expect_success();
            compare(&scene.recorded(), &sound.channels)
        });
    }
}

#[test]
fn a_file_of_another_rate_is_heard_as_the_converter_makes_it() {
    let sound = Sound { sample_rate_hz: 44_100, ..ramps(3 * 44_100) };
    let map = ChannelMap::standard(Standard::Alsa, 2).expect("stereo");
    let format = SampleFormat::Linear(dsp::Format::FloatLe);
    let program = ProgramFormat { format, rate_hz: 44_100, map };
    let options = Options { filter: Filter::Medium, ..Options::default() };
    let stream = StreamFormat { rate_hz: RATE_HZ, map };
    let mut converter = PlaybackConverter::new(&program, &stream, options).expect("possible");
    let mut expected = vec![Vec::new(); 2];
    let frames = sound.channels[0].iter().zip(&sound.channels[1]);
    let bytes: Vec<u8> = frames
        .flat_map(|(left, right)| [left.to_le_bytes(), right.to_le_bytes()].concat())
        .collect();
    let mut keep = |planes: &[&[f32]]| {
        expected.iter_mut().zip(planes).for_each(|(all, plane)| all.extend_from_slice(plane));
    };
    converter.push(&bytes, &mut keep);
    converter.flush(&mut keep);
    in_three_attempts(|| compare(&heard("paplay", &["FILE"], &sound), &expected));
}

/// Compares with what should be heard but for the end: some programs leave by their own clock,
/// shortly before it is heard.
pub(crate) fn compare_beginning(recorded: &Sound, expected: &[Vec<f32>]) -> Result<(), String> {
    let same = same_frames(recorded, expected)?;
    let least = expected[0].len() - RATE_HZ as usize / 20;
    if same < least { Err(format!("it differs after {same} frames")) } else { Ok(()) }
}

#[test]
fn mpv_plays_a_file_sample_for_sample() {
    let sound = ramps(3 * RATE_HZ as usize);
    let arguments =
        ["--no-config", "--ao=pulse", "--no-video", "--no-terminal", "--volume=100", "FILE"];
    in_three_attempts(|| compare_beginning(&heard("mpv", &arguments, &sound), &sound.channels));
}

#[test]
fn sox_plays_a_file_sample_for_sample() {
    let sound = ramps(3 * RATE_HZ as usize);
    let arguments = ["-q", "-D", "FILE", "-b", "16", "-t", "pulseaudio", "default"];
    in_three_attempts(|| compare(&heard("sox", &arguments, &sound), &sound.channels));
}

#[test]
fn gstreamer_plays_a_file_sample_for_sample() {
    let sound = ramps(3 * RATE_HZ as usize);
    let arguments = ["-q", "playbin", "uri=file://FILE", "audio-sink=pulsesink"];
    in_three_attempts(|| {
        let scene = Scene::new();
        let file = scene.file("played.wav", &sound);
        let uri = format!("uri=file://{}", path(&file));
        let arguments = arguments.map(|argument| match argument {
            "uri=file://FILE" => uri.as_str(),
            other => other,
        });
        scene.run("gst-launch-1.0", &arguments).expect_success();
        compare_beginning(&scene.recorded(), &sound.channels)
    });
}

#[test]
fn ffmpeg_plays_sample_for_sample_until_it_leaves() {
    let sound = ramps(4 * RATE_HZ as usize);
    let arguments = [
        "-loglevel",
        "error",
        "-nostdin",
        "-re",
        "-i",
        "FILE",
        "-f",
        "pulse",
        "-buffer_duration",
        "500",
        "a test",
    ];
    in_three_attempts(|| {
        // It does not wait for its end to be heard, here as with PulseAudio.
        let same = same_frames(&heard("ffmpeg", &arguments, &sound), &sound.channels)?;
        if same > 2 * RATE_HZ as usize { Ok(()) } else { Err(format!("{same} frames")) }
    });
}

#[test]
fn many_programs_play_at_once() {
    const PLAYERS: usize = 20;
    in_three_attempts(|| {
        let scene = Scene::new();
        // Their sum is exact, too.
        let level = Sound::of(RATE_HZ, &[vec![1.0 / 64.0; 96_000], vec![-1.0 / 64.0; 96_000]]);
        let file = scene.file("level.wav", &level);
        let players: Vec<_> = (0..PLAYERS).map(|_| scene.spawn("paplay", &[path(&file)])).collect();
        for player in players {
            player.finish().expect_success();
        }
        let recorded = scene.recorded();
        let sum: f64 = recorded.channels[0].iter().map(|sample| f64::from(*sample)).sum();
        let expected = PLAYERS as f64 * 96_000.0 / 64.0;
        if sum == expected { Ok(()) } else { Err(format!("{sum} instead of {expected}")) }
    });
}

#[test]
fn tones_of_other_rates_are_heard_with_little_else() {
    // A sample of 20 bits has no less.
    const MOST_DB: f64 = -120.0;
    for (rate_hz, tone_hz) in
        [(44_100, 1_000.0), (44_100, 10_000.0), (96_000, 18_000.0), (8_000, 3_000.0)]
    {
        in_three_attempts(|| {
            let channel = tone(tone_hz, rate_hz, 2 * rate_hz as usize);
            let played = Sound::of(rate_hz, &[channel.clone(), channel]);
            let heard = heard("paplay", &["FILE"], &played).sounding(0);
            let frames = heard.channels[0].len();
            // The ends are those of a tone that is cut.
            let middle = &heard.channels[0][frames / 4..frames * 3 / 4];
            let rest_db = distortion_db(middle, tone_hz);
            if frames < RATE_HZ as usize || rest_db > MOST_DB {
                return Err(format!("{tone_hz} Hz at {rate_hz} Hz: {rest_db} dB, {frames} frames"));
            }
            Ok(())
        });
    }
}
