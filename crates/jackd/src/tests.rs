//! Start lines as programs, distributions and people write them.

use engine::{Config, SelfConnect};
use jack_parameters::{ALSA, Constraint, DUMMY, FILE, Kind};
use proto::driver::DriverChoice;
use proto::driver::DriverSwitch;
use proto::driver::{AlsaOptions, AlsaSide, Dither};

use crate::slave::Slave;
use crate::{DeviceOptions, Request, StartupLoad, alsa, driver, parse};

fn ask(line: &str) -> Request {
    let words: Vec<String> = line.split_whitespace().skip(1).map(String::from).collect();
    parse(&words, None).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn refusal(line: &str) -> String {
    let words: Vec<String> = line.split_whitespace().skip(1).map(String::from).collect();
    parse(&words, None).expect_err(line).to_string()
}

fn timer(capture: u32, playback: u32, sample_rate_hz: impl Into<Option<u32>>) -> DriverChoice {
    let sample_rate_hz = sample_rate_hz.into();
    DriverChoice::Timer { capture, playback, sample_rate_hz, looped: false, monitors: false }
}

#[test]
fn start_lines_from_the_wild_mean_what_they_mean_to_jackd() {
    for (what, line, expected) in [
        ("nothing at all", "jackd", Config::default()),
        ("the driver alone", "/usr/bin/jackd -d dummy", Config::default()),
        (
            "QjackCtl, dummy driver",
            "/usr/bin/jackd -ddummy -r48000 -p1024",
            Config { driver: timer(2, 2, 48_000), ..Config::default() },
        ),
        (
            "QjackCtl, all boxes ticked",
            "jackd -v -m -s -T -ndefault -R -P70 -t500 -p512 -ddummy -r44100 -p256 -w5804",
            Config {
                driver: timer(2, 2, 44_100),
                quantum: 256,
                realtime_priority: Some(70),
                client_timeout_ms: Some(500),
                port_max: 512,
                temporary: true,
                verbose: true,
                ..Config::default()
            },
        ),
        (
            "with monitor ports",
            "jackd -d dummy -m",
            Config {
                driver: DriverChoice::Timer {
                    capture: 2,
                    playback: 2,
                    sample_rate_hz: None,
                    looped: false,
                    monitors: true,
                },
                ..Config::default()
            },
        ),
        (
            "without real time",
            "jackd -r -d dummy -C 0 -P 8 -r 96000 -p 64",
            Config {
                driver: timer(0, 8, 96_000),
                quantum: 64,
                realtime_priority: None,
                ..Config::default()
            },
        ),
        (
            "a library that starts its server: the options go after the program's name",
            "/usr/bin/jackd -T -nstudio -R -P10 -d dummy",
            Config { name: "studio".into(), temporary: true, ..Config::default() },
        ),
        (
            "continuous integration",
            "jackd --no-realtime --silent --no-mlock --port-max 128 -d dummy --rate=48000 --period 512",
            Config {
                driver: timer(2, 2, 48_000),
                port_max: 128,
                quantum: 512,
                realtime_priority: None,
                ..Config::default()
            },
        ),
        (
            "long names throughout",
            "jackdmp --realtime --realtime-priority=89 --name=x --timeout 2000 --sync --temporary --verbose \
             --clocksource s --autoconnect E --replace-registry -d timer --capture 16 --playback=16",
            Config {
                name: "x".into(),
                driver: timer(16, 16, None),
                realtime_priority: Some(89),
                client_timeout_ms: Some(2000),
                sync: true,
                temporary: true,
                verbose: true,
                self_connect: SelfConnect::FailExternal,
                ..Config::default()
            },
        ),
        (
            "letters in one word",
            "jackd -RSTd dummy -p128",
            Config { sync: true, temporary: true, quantum: 128, ..Config::default() },
        ),
        (
            "the last of two counts",
            "jackd -r -R -n a -n b -d dummy",
            Config { name: "b".into(), ..Config::default() },
        ),
        (
            "a slave driver and internal clients",
            "jackd -X alsarawmidi -I netmanager -C session.txt -u -c h -L 2 -Z -d dummy",
            Config::default(),
        ),
        ("a timeout of 0 is the default", "jackd -t0 -d dummy", Config::default()),
        (
            "a priority above the highest",
            "jackd -P99 -d dummy",
            Config { realtime_priority: Some(98), ..Config::default() },
        ),
        (
            "sound files",
            "jackd -d file -i in.wav -o out.wav -P 2 -f -p 32",
            Config {
                driver: DriverChoice::File {
                    input: Some("in.wav".into()),
                    output: Some("out.wav".into()),
                    sample_rate_hz: None,
                    playback: Some(2),
                    fast: true,
                    monitors: false,
                },
                quantum: 32,
                ..Config::default()
            },
        ),
    ] {
        match ask(line) {
            Request::Run { config, .. } => assert_eq!(*config, expected, "{what}"),
            other => panic!("{what}: {other:?}"),
        }
    }
}

fn side(device: &str) -> AlsaSide {
    AlsaSide { device: Some(device.into()), ..AlsaSide::default() }
}

fn both(device: &str) -> AlsaOptions {
    AlsaOptions {
        capture: Some(side(device)),
        playback: Some(side(device)),
        ..AlsaOptions::default()
    }
}

#[test]
fn start_lines_for_sound_cards_ask_for_the_devices_they_name() {
    let rate = Some(48_000);
    let required = |device: &str| AlsaSide { required: true, ..side(device) };
    for (what, line, quantum, expected) in [
        ("Debian's .jackdrc", "/usr/bin/jackd -T -d alsa", 1024, AlsaOptions::default()),
        (
            "QjackCtl's default",
            "/usr/bin/jackd -dalsa -dhw:0 -r48000 -p1024 -n2",
            1024,
            AlsaOptions { sample_rate_hz: rate, ..both("hw:0") },
        ),
        (
            "QjackCtl with everything",
            "jackd -R -P70 -t500 -dalsa -dhw:PCH,0 -r48000 -p256 -n3 -Xseq -D -Chw:PCH -Phw:USB -zs -H -M -m -s -S \
             -i2 -o4 -I10 -O20",
            256,
            AlsaOptions {
                capture: Some(AlsaSide {
                    channels: Some(2),
                    extra_latency_frames: 10,
                    ..required("hw:PCH")
                }),
                playback: Some(AlsaSide {
                    channels: Some(4),
                    extra_latency_frames: 20,
                    ..required("hw:USB")
                }),
                sample_rate_hz: rate,
                periods: 3,
                prefer_16_bits: true,
                dither: Dither::Shaped,
                soft: true,
                monitors: true,
                hardware_monitoring: true,
                ..AlsaOptions::default()
            },
        ),
        (
            "Ardour",
            "/usr/bin/jackd -t 200 -p 2048 -R -T -d alsa -n 2 -r 48000 -p 1024 -d hw:USB,0 -X raw",
            1024,
            AlsaOptions { sample_rate_hz: rate, ..both("hw:USB,0") },
        ),
        (
            "duplex without devices",
            "jackd -d alsa -C -P -p 128",
            128,
            AlsaOptions {
                capture: Some(AlsaSide { required: true, ..AlsaSide::default() }),
                playback: Some(AlsaSide { required: true, ..AlsaSide::default() }),
                ..AlsaOptions::default()
            },
        ),
        (
            "devices as separate words",
            "jackd -d alsa -C hw:1 -P hw:2 --softmode",
            1024,
            AlsaOptions {
                capture: Some(required("hw:1")),
                playback: Some(required("hw:2")),
                soft: true,
                ..AlsaOptions::default()
            },
        ),
        (
            "playback only",
            "jackd -d alsa -d hw:1 -P -o 0",
            1024,
            AlsaOptions {
                capture: None,
                playback: Some(required("hw:1")),
                ..AlsaOptions::default()
            },
        ),
        (
            "capture only",
            "jackd -d alsa -C hw:1",
            1024,
            AlsaOptions {
                capture: Some(required("hw:1")),
                playback: None,
                ..AlsaOptions::default()
            },
        ),
        (
            "jack_control's names",
            "jackd -d alsa --device hw:0 --rate 48000 --period 512 --nperiods 2 --duplex --dither none",
            512,
            AlsaOptions { sample_rate_hz: rate, ..both("hw:0") },
        ),
    ] {
        let Request::Run { config, .. } = ask(line) else { panic!("{what}") };
        assert_eq!(config.driver, DriverChoice::Alsa(Box::new(expected)), "{what}");
        assert_eq!(config.quantum, quantum, "{what}");
    }
}

#[test]
fn the_refusal_of_a_driver_says_what_to_use_instead() {
    for (what, line, used) in [
        ("FireWire", "jackd -R -d firewire -p128 -n3 -r48000", "-d alsa"),
        ("network", "jackd -d net -a 192.168.1.2 -C -1 -P -1 -l 5", "zita-njbridge"),
        ("netjack 1", "jackd -d netone -p 64", "jacktrip"),
    ] {
        let Request::NotBuilt { instead, .. } = ask(line) else { panic!("{what}") };
        assert!(instead.contains(used), "{what}: {instead}");
    }
}

#[test]
fn each_option_without_effect_is_mentioned_once() {
    let Request::Run { notices, .. } = ask("jackd -m -c s -L 2 -P99 -d dummy -w 10") else {
        panic!("it runs");
    };
    let options: Vec<&str> = notices.iter().filter_map(|notice| notice.split(' ').next()).collect();
    assert_eq!(options, ["-m", "-c", "-L", "-P", "-w"]);
    assert!(notices.iter().all(|notice| !notice.contains('\n')));
    let Request::Run { notices, .. } = ask("jackd -d alsa -H -M") else { panic!("it runs") };
    assert_eq!(notices, ["-M has no effect: JACK has no function that reads meters in the card"]);
    assert!(
        matches!(ask("jackd -R -d dummy -p64"), Request::Run { notices, .. } if notices.is_empty())
    );
}

#[test]
fn a_refusal_names_the_wrong_word() {
    for (line, part) in [
        ("jackd -Q", "-Q"),
        ("jackd --realtme -d dummy", "--realtme"),
        ("jackd alsa", "alsa"),
        ("jackd -P high -d dummy", "-P high"),
        ("jackd -P 0 -d dummy", "-P 0"),
        ("jackd -t -5 -d dummy", "-t -5"),
        ("jackd -p 0 -d dummy", "-p 0"),
        ("jackd -n ../x -d dummy", "../x"),
        ("jackd -n", "-n"),
        ("jackd -a x -d dummy", "-a x"),
        ("jackd -d", "-d"),
        ("jackd -d nosuch", "nosuch"),
        ("jackd -d dummy -p 8193", "-p 8193"),
        ("jackd -d dummy -p 0", "-p 0"),
        ("jackd -d dummy -r 12", "-r 12"),
        ("jackd -d dummy -C -1", "-C -1"),
        ("jackd -d dummy -n 2", "-n"),
        ("jackd -d dummy hw:0", "hw:0"),
        ("jackd -d alsa -p many", "-p many"),
        ("jackd -d alsa -n 1", "-n 1"),
        ("jackd -d alsa -z loud", "-z loud"),
        ("jackd -d alsa -Q", "-Q"),
        ("jackd -d file -f", "-i FILE"),
    ] {
        let refusal = refusal(line);
        assert!(refusal.contains(part) && !refusal.contains('\n'), "{line}: {refusal}");
    }
}

#[test]
fn a_space_as_self_connect_mode_can_be_written_in_both_ways() {
    for words in [vec!["-a", " "], vec!["-a "], vec!["--autoconnect= "]] {
        let words: Vec<String> = words.into_iter().map(String::from).collect();
        assert_eq!(parse(&words, None), Ok(run_with(false)));
    }
}

#[test]
fn help_is_printed_before_or_after_the_driver() {
    for (line, part) in [
        ("jackd --help", "Usage: jackd"),
        ("jackd -h -d dummy", "Usage: jackd"),
        ("jackd -d dummy --help", &driver::timer_help()),
        ("jackd -d file -h", &driver::file_help()),
        ("jackd -d alsa -h", &alsa::help()),
        ("jackd -V", "jackdmp version 1.9."),
    ] {
        match ask(line) {
            Request::Text(text) => assert!(text.contains(part), "{line}: {text}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn the_environment_names_the_server_unless_the_line_does() {
    let name = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).into()).collect();
        match parse(&words, Some("studio".into())) {
            Ok(Request::Run { config, .. }) => config.name.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(name(&["-d", "dummy"]), "studio");
    assert_eq!(name(&["-n", "live", "-d", "dummy"]), "live");
}

#[test]
fn a_server_starts_with_the_plug_ins_and_the_session_file_of_its_line() {
    let Request::Run { startup, .. } =
        ask("jackd -I in:inprocess -C a -I profiler/-c -C b -d dummy")
    else {
        panic!("it runs");
    };
    let plug_ins = ["in:inprocess", "profiler/-c"].map(|word| word.parse().expect("a plug-in"));
    assert_eq!(startup, StartupLoad { plug_ins: plug_ins.into(), session: Some("b".into()) });
    assert!(refusal("jackd -I /x -d dummy").contains("-I: '/x' is not a plug-in"));
}

#[test]
fn slave_drivers_are_devices_in_addition_to_the_drivers_own() {
    let devices = |line: &str| match ask(line) {
        Request::Run { devices, .. } => devices,
        other => panic!("{line}: {other:?}"),
    };
    let (sequencer, raw) = (DeviceOptions::sequencer, DeviceOptions::raw_midi);
    let card = DeviceOptions { quantum: 1024, periods: 2, ..DeviceOptions::of("hw:0") };
    assert_eq!(devices("jackd -X alsarawmidi -d dummy"), [raw()]);
    assert_eq!(devices("jackd --slave-driver seq -X alsa -d dummy"), [sequencer(), card.clone()]);
    assert_eq!(
        devices("jackd -X alsa -d alsa -X raw"),
        [card, raw()],
        "the driver's own come last"
    );
    assert_eq!(devices("jackd -d alsa -X seq"), [sequencer()]);
    assert_eq!(devices("jackd -X none -d dummy"), []);
    assert!(refusal("jackd -X dummy -d dummy").contains("adds no device"));
}

#[test]
fn a_line_that_adds_a_slave_driver_describes_the_device() {
    let device = DeviceOptions { quantum: 64, periods: 3, ..DeviceOptions::of("hw:USB") };
    let slave = Box::new(Slave { device, notices: vec![] });
    let expected = Request::AddSlave { server: "studio".into(), slave };
    assert_eq!(ask("jackd --add-slave -n studio -d alsa -d hw:USB -p 64 -n 3"), expected);
    assert!(refusal("jackd --add-slave").contains("-d NAME"));
    assert!(refusal("jackd --add-slave -d file").contains("adds no device"));
}

fn run_with(while_stdin_is_open: bool) -> Request {
    Request::Run {
        config: Box::new(Config::default()),
        while_stdin_is_open,
        notices: vec![],
        devices: vec![],
        startup: StartupLoad::default(),
    }
}

#[test]
fn a_server_that_another_program_controls_ends_with_its_standard_input() {
    let words = ["--while-stdin-is-open", "-d", "dummy"].map(String::from);
    assert_eq!(parse(&words, None), Ok(run_with(true)));
}

#[test]
fn only_driver_options_of_a_line_that_switches_count() {
    for (line, driver, quantum) in [
        ("jackd --switch -n studio -R -P70 -d dummy -P4", timer(2, 4, None), None),
        ("jackd -n studio --switch -S -d dummy -r 44100 -p 64", timer(2, 2, 44_100), Some(64)),
    ] {
        let expected =
            Request::Switch { server: "studio".into(), switch: DriverSwitch { driver, quantum } };
        assert_eq!(ask(line), expected, "{line}");
    }
    assert!(refusal("jackd --switch").contains("-d NAME"));
    assert!(refusal("jackd --switch -d dummy -p 0").contains("-p 0"));
    assert_eq!(
        ask("jackd --switch -d oss"),
        Request::NotBuilt { driver: "oss".into(), instead: "use -d alsa" }
    );
}

#[test]
fn every_parameter_of_a_driver_with_an_effect_changes_what_is_run() {
    for (driver, table) in [("dummy", DUMMY), ("alsa", ALSA), ("file", FILE)] {
        // A file driver needs a file; the device makes both directions of a card visible.
        let line = |option: &str| {
            let always = if driver == "file" { "-i in.wav" } else { "" };
            ask(&format!("jackd -d {driver} {always} {option}"))
        };
        for parameter in table.iter().filter(|parameter| parameter.has_effect()) {
            let letter = parameter.letter.expect("a letter");
            let value = match &parameter.constraint {
                _ if parameter.default.kind() == Kind::Bool => String::new(),
                Constraint::OneOf(values) => values[1].0.to_string(),
                Constraint::Range(min, _) if driver == "dummy" => (min + 1).to_string(),
                Constraint::Range(_, max) => max.to_string(),
                Constraint::Any => "name".into(),
            };
            // Both directions are the default of a card.
            if parameter.name != "duplex" {
                let changed = line(&format!("-{letter} {value}"));
                assert_ne!(changed, line(""), "{driver}: -{letter} {value}");
            }
        }
    }
}

#[test]
fn limits_of_numbers_are_those_of_the_table() {
    for line in [
        "jackd -p 15 -d dummy",
        "jackd -d dummy -C 524289",
        "jackd -d alsa -i 524289",
        "jackd -d alsa -n 1025",
        "jackd -d alsa -I 1048577",
    ] {
        assert!(refusal(line).contains("is not a number from"), "{line}");
    }
}
