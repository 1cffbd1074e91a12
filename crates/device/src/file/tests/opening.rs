//! Options that are refused, and the error messages.

use super::*;
use crate::file::FileDriverError;

/// The refusal of these options.
fn refusal(options: FileOptions) -> FileDriverError {
    FileDriver::open(options).expect_err("a refusal")
}

#[test]
fn invalid_files_and_options_are_refused_with_a_reason() {
    let files = Files::new();
    let options = files.options(&samples(2, 10));
    fs::write(files.path("text.wav"), "no sound").unwrap();
    let mut unsupported = fs::read(files.path("in.wav")).unwrap();
    let encoding = unsupported.windows(4).position(|name| name == b"fmt ").unwrap() + 8;
    unsupported[encoding..][..2].copy_from_slice(&[0x61, 0x01]); // Windows Media Audio in a WAV.
    fs::write(files.path("wma.wav"), unsupported).unwrap();
    fs::hard_link(files.path("in.wav"), files.path("same.wav")).unwrap();

    let input = |name: &str| FileOptions { input: Some(files.path(name)), ..options.clone() };
    let output = |name: &str| FileOptions { output: Some(files.path(name)), ..options.clone() };
    let none = FileOptions { input: None, output: None, ..options.clone() };
    let rate = |hz| FileOptions { sample_rate_hz: Some(hz), ..options.clone() };
    let ports = |playback| FileOptions { playback_channels: Some(playback), ..options.clone() };
    let cases = [
        ("a missing input", input("none.wav"), "there is no sound file"),
        ("an input that is no sound", input("text.wav"), "is not a sound file"),
        ("an input of an unsupported kind", input("wma.wav"), "cannot decode"),
        ("a missing directory of the output", output("none/out.wav"), "cannot write"),
        ("an output that is the input", output("in.wav"), "to another file"),
        ("an output that is the input by another name", output("same.wav"), "to another file"),
        ("no file", none.clone(), "nothing to do"),
        (
            "a rate that is not the input's",
            rate(44_100),
            "has 48000 Hz, but 44100 Hz were requested",
        ),
        ("a rate of 0", FileOptions { input: None, ..rate(0) }, "0 Hz is out of range"),
        ("an output without channels", ports(0), "with 0 channels"),
        ("an output with too many channels", ports(100_000), "1 to 1024 channels"),
    ];
    for (name, options, words) in cases {
        let refusal = refusal(options).to_string();
        assert!(refusal.contains(words), "{name}: {refusal}");
    }
    assert!(read_file(&files.path("in.wav")) == samples(2, 10), "no refusal has cost the input");
}

#[test]
fn an_output_of_before_survives_the_refusal_of_the_input() {
    let files = Files::new();
    let options = files.options(&samples(1, 10));
    write_file(&files.path("out.wav"), &samples(1, 77));
    refusal(FileOptions { input: Some(files.path("none.wav")), ..options.clone() });
    refusal(FileOptions { sample_rate_hz: Some(8_000), ..options });
    assert!(files.recorded() == samples(1, 77));
}

#[test]
fn the_input_determines_rate_and_channels_by_default() {
    let files = Files::new();
    let both = files.options(&samples(3, 10));
    let only_output = FileOptions { input: None, ..both.clone() };
    let given = FileOptions {
        sample_rate_hz: Some(96_000),
        playback_channels: Some(5),
        ..only_output.clone()
    };
    let confirmed =
        FileOptions { sample_rate_hz: Some(48_000), playback_channels: Some(1), ..both.clone() };
    let only_input = FileOptions { output: None, ..both.clone() };
    let cases = [
        ("the input's", both, (48_000, 3, 3)),
        ("the input's rate given again", confirmed, (48_000, 3, 1)),
        ("only an input", only_input, (48_000, 3, 3)),
        ("only an output", only_output, (48_000, 0, 2)),
        ("only an output, with rate and channels", given, (96_000, 0, 5)),
    ];
    for (name, options, expected) in cases {
        let driver = FileDriver::open(options).unwrap();
        let channels = driver.channels();
        assert_eq!(
            (driver.sample_rate_hz(), channels.capture, channels.playback),
            expected,
            "{name}"
        );
    }
}

#[test]
fn the_description_names_the_files_that_there_are() {
    let files = Files::new();
    let both = files.options(&samples(1, 10));
    let (input, output) = (files.path("in.wav"), files.path("out.wav"));
    let (input, output) = (input.display(), output.display());
    let describe = |options| FileDriver::open(options).unwrap().description();
    assert_eq!(describe(both.clone()), format!("file {input} → {output}"));
    assert_eq!(describe(FileOptions { input: None, ..both.clone() }), format!("file → {output}"));
    assert_eq!(describe(FileOptions { output: None, ..both }), format!("file {input}"));
}

#[test]
fn a_quantum_that_no_port_can_hold_is_refused() {
    let files = Files::new();
    let mut driver = open(files.options(&samples(1, 10)));
    for quantum in [0, 8193] {
        assert!(driver.start(quantum).unwrap_err().contains("out of range"), "{quantum}");
    }
    driver.start(8192).unwrap();
}
