//! A server that is set up, started and stopped over the bus.

use harness::{OtherRelease, eventually};
use serde_json::Value;

use crate::bus::Bus;

fn status(bus: &Bus) -> Option<Value> {
    let consort = harness::binary("consort");
    let shown = bus.run(&consort.to_string_lossy(), &["status", "--json"]);
    (shown.code == Some(0)).then(|| serde_json::from_str(&shown.stdout).expect("JSON"))
}

#[test]
fn jack_control_sets_a_server_up_starts_it_and_stops_it() {
    let bus = Bus::start();
    let control = |words: &str| bus.run("jack_control", &words.split(' ').collect::<Vec<_>>());
    assert_eq!(control("status").code, Some(1));
    assert_eq!(control("dl").expect_success().stdout, "--- drivers list\ndummy\nalsa\n");
    let parameters = control(
        "ds dummy dps rate 44100 dps period 128 eps client-timeout 700 eps sync true dp ep",
    );
    let parameters = parameters.expect_success().stdout;
    for line in [
        "rate: Sample rate in Hz (uint:set:48000:44100)",
        "period: Frames per cycle (uint:set:1024:128)",
        "capture: Capture ports (uint:notset:2:2)",
        "client-timeout: How long a client may be late before it is left out, in ms; 0: 3 quanta, at least 20 ms (sint:set:0:700)",
        "name: Name of the server; without one, $JACK_DEFAULT_SERVER or 'default' (str:notset:under-test:under-test)",
    ] {
        assert!(parameters.contains(line), "{line}: {parameters}");
    }
    let described = control("epd self-connect-mode").expect_success().stdout;
    assert!(
        described.contains(
            "allowed values:\n ' ' - Allow a client to connect its own ports\n 'E' - Refuse"
        ),
        "{described}"
    );
    control("start").expect_success();
    let running = control("status");
    assert!(running.code == Some(0) && running.stdout.contains("started"), "{running:?}");
    let status = status(&bus).expect("a server");
    let facts = ["name", "sample_rate_hz", "quantum", "sync"].map(|fact| status[fact].clone());
    let expected: [Value; 4] = ["under-test".into(), 44_100.into(), 128.into(), true.into()];
    assert_eq!(facts, expected);
    control("stop").expect_success();
    assert_eq!(control("status").code, Some(1));
    let reset = control("dpr rate dp").expect_success().stdout;
    assert!(reset.contains("(uint:notset:48000:48000)"), "{reset}");
    control("exit").expect_success();
    assert_eq!(bus.ended().code, Some(0));
}

#[test]
fn the_control_interface_follows_the_server() {
    let bus = Bus::start();
    let control = |method: &str| bus.answer(&format!("org.jackaudio.JackControl.{method}"), &[]);
    let mut monitor = bus.monitor();
    let mut await_signal = |what: &str, signal: &str| {
        eventually(what, || monitor.stdout().contains(signal).then_some(()));
    };
    control("StartServer");
    await_signal("the start is signaled", "org.jackaudio.JackControl.ServerStarted ()");
    control("StartServer");
    assert_eq!(control("IsStarted"), "(true,)");
    assert_eq!(control("GetSampleRate"), "(uint32 48000,)");
    assert_eq!(control("GetBufferSize"), "(uint32 1024,)");
    assert_eq!(control("GetLatency"), "(21.333333333333332,)");
    assert_eq!(
        control("IsRealtime"),
        format!("({},)", status(&bus).expect("a server")["realtime_priority"] != Value::Null)
    );
    assert!(control("GetLoad").ends_with(",)"));
    control("ResetXruns");
    bus.answer("org.jackaudio.JackControl.SetBufferSize", &["256"]);
    assert_eq!(control("GetBufferSize"), "(uint32 256,)");
    assert_eq!(status(&bus).expect("a server")["quantum"], 256);
    control("StopServer");
    await_signal("the end is signaled", "org.jackaudio.JackControl.ServerStopped ()");
    assert_eq!(control("IsStarted"), "(false,)");
    control("StopServer");
}

#[test]
fn the_service_ends_only_a_server_that_it_has_started() {
    let mut bus = Bus::start();
    let consort = harness::binary("consort").to_string_lossy().into_owned();
    let mut own = bus.command(&consort);
    own.args(["run", "--quantum", "512"]);
    let mut own = harness::Program::start(own);
    eventually("it is seen", || {
        (bus.answer("org.jackaudio.JackControl.IsStarted", &[]) == "(true,)").then_some(())
    });
    assert_eq!(bus.answer("org.jackaudio.JackControl.GetBufferSize", &[]), "(uint32 512,)");
    own.signal(rustix::process::Signal::KILL);
    eventually("it has ended", || (!own.is_running()).then_some(()));
    eventually("that is seen", || {
        (bus.answer("org.jackaudio.JackControl.IsStarted", &[]) == "(false,)").then_some(())
    });
    bus.answer("org.jackaudio.JackControl.StartServer", &[]);
    assert!(status(&bus).is_some());
    bus.service().signal(rustix::process::Signal::TERM);
    eventually("the service has ended", || (!bus.service().is_running()).then_some(()));
    assert!(status(&bus).is_none(), "its server has ended before it");
}

#[test]
fn jack_control_changes_a_running_server() {
    let bus = Bus::start();
    let control = |words: &str| bus.run("jack_control", &words.split(' ').collect::<Vec<_>>());
    assert!(control("sm").stdout.contains("org.jackaudio.Error.ServerNotRunning"));
    control("ds dummy dps period 512 start").expect_success();
    let process = status(&bus).expect("a server")["process"].clone();
    control("iload profiler").expect_success();
    let ports = || bus.run("jack_lsp", &[]).expect_success().stdout;
    let is_loaded = || {
        let clients = status(&bus).expect("a server")["clients"].clone();
        clients
            .as_array()
            .is_some_and(|clients| clients.iter().any(|client| client["name"] == "profiler"))
    };
    assert!(is_loaded());

    control("dps playback 4 dps period 256 sm").expect_success();
    assert!(ports().contains("system:playback_4") && is_loaded(), "{}", ports());
    let now = status(&bus).expect("a server");
    assert_eq!(
        (now["process"].clone(), now["quantum"].clone()),
        (process, 256.into()),
        "it is the same one"
    );

    // An unavailable driver is reported, and the previous one continues.
    for (words, reason) in [
        ("ds alsa dps device hw:nowhere sm", "hw:nowhere"),
        ("ds dummy dps rate 44100 sm", "44100"),
    ] {
        let refused = control(words);
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(
            said.contains("org.jackaudio.Error.Generic") && said.contains(reason),
            "{words}: {said}"
        );
        assert!(ports().contains("system:playback_4"), "{words}");
    }
    control("iunload profiler").expect_success();
    assert!(!is_loaded());
    assert!(control("iunload profiler").stdout.contains("there is no internal client"));
    control("stop").expect_success();
}

#[test]
fn parameters_outlive_the_service() {
    let mut bus = Bus::start();
    let file = bus.directory().join("consort/dbus.conf");
    let control = |bus: &Bus, words: &str| {
        bus.run("jack_control", &words.split(' ').collect::<Vec<_>>()).expect_success().stdout
    };
    assert!(!file.exists(), "nothing was set");
    control(&bus, "ds dummy dps period 128 eps client-timeout 700 asd alsarawmidi");
    bus.start_again();
    let kept = control(&bus, "dp ep");
    for line in ["(uint:set:1024:128)", "(sint:set:0:700)", "(str:set::alsarawmidi)"] {
        assert!(kept.contains(line), "{line}: {kept}");
    }
    control(&bus, "rsd alsarawmidi dpr period start");
    let running = status(&bus).expect("a server");
    assert_eq!(
        (running["quantum"].clone(), running["name"].clone()),
        (1024.into(), "under-test".into())
    );
    let text = std::fs::read_to_string(&file).expect("the file");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines, ["engine client-timeout = 700"], "what was reset is not kept");

    // One invalid line, and one valid line.
    std::fs::write(&file, "engine driver = oss\nengine client-timeout = 300\n").expect("written");
    bus.start_again();
    let await_said = |bus: &mut Bus, words: &str| {
        eventually(words, || bus.service().stderr().contains(words).then_some(()));
    };
    await_said(&mut bus, "dbus.conf, line 1: driver: 'oss' is not one of");
    let kept = control(&bus, "ep");
    assert!(
        kept.contains("(sint:set:0:300)") && kept.contains("(str:notset:dummy:dummy)"),
        "{kept}"
    );
    // A file that is no settings file is left alone, and settings hold until the service ends.
    std::fs::write(&file, [0xff]).expect("written");
    bus.start_again();
    await_said(&mut bus, "the file is left alone");
    assert!(control(&bus, "eps client-timeout 500 ep").contains("(sint:set:0:500)"));
    assert_eq!(std::fs::read(&file).expect("the file"), [0xff]);
}

#[test]
fn an_impossible_slave_driver_is_refused_with_the_reason() {
    let bus = Bus::start();
    let control = |words: &str| {
        let ended = bus.run("jack_control", &words.split(' ').collect::<Vec<_>>());
        format!("{}{}", ended.stdout, ended.stderr)
    };
    let kept =
        || control("ep").lines().find(|line| line.contains("slave-drivers")).map(str::to_owned);
    let none = kept().expect("a parameter");
    assert!(none.ends_with("(str:notset::)"), "{none}");
    for (words, error) in [
        ("asd dummy", "InvalidArgs: the driver 'dummy' adds no device"),
        ("asd loopback", "InvalidArgs: the driver 'loopback' adds no device"),
        ("rsd alsa", "InvalidArgs: no slave driver 'alsa' was added"),
        (
            "eps slave-drivers alsa,net",
            "InvalidArgs: slave-drivers: the driver 'net' adds no device",
        ),
        ("eps driver alsarawmidi", "'alsarawmidi' is not one of 'dummy', 'alsa'"),
    ] {
        let said = control(words);
        assert!(said.contains(error), "{words}: {said}");
    }
    // Before the server starts, the driver is remembered; if it is unavailable at the start, the
    // server does not start.
    control("ds alsa dps device hw:nowhere ds dummy asd alsa asd alsarawmidi rsd alsarawmidi");
    assert!(kept().is_some_and(|line| line.ends_with("(str:set::alsa)")), "{:?}", kept());
    let refused = control("start");
    assert!(
        refused.contains("Error.Generic: the slave driver 'alsa' cannot be added: "),
        "{refused}"
    );
    assert!(refused.contains("hw:nowhere"), "{refused}");
    assert!(status(&bus).is_none(), "the server has ended");
    control("rsd alsa");
    assert_eq!(kept(), Some(none.clone()));
    // A running server continues without it.
    control("start");
    assert!(control("asd alsa").contains("hw:nowhere") && status(&bus).is_some());
    assert_eq!(kept(), Some(none));
    control("stop");
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let bus = Bus::start();
    let address = "['drivers','alsa','device']";
    bus.answer("org.jackaudio.Configure.SetParameterValue", &[address, "<'hw:nowhere'>"]);
    bus.answer("org.jackaudio.Configure.SetParameterValue", &["['engine','driver']", "<'alsa'>"]);
    let refused = bus.call("org.jackaudio.JackControl.StartServer", &[]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("org.jackaudio.Error.Generic: the server did not start"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("hw:nowhere"), "{}", refused.stderr);
    assert_eq!(bus.answer("org.jackaudio.JackControl.IsStarted", &[]), "(false,)");
}

#[test]
fn the_bus_starts_the_service_when_a_program_asks_for_it() {
    let bus = Bus::that_starts_it();
    let control = |words: &[&str]| bus.run("jack_control", words);
    assert_eq!(control(&["status"]).code, Some(1));
    control(&["ds", "dummy", "start"]).expect_success();
    assert_eq!(control(&["status"]).code, Some(0));
    control(&["exit"]).expect_success();
    eventually("its server has ended with it", || status(&bus).is_none().then_some(()));
}

#[test]
fn a_second_service_is_refused_without_effect_on_the_first() {
    let mut bus = Bus::start();
    let consort = harness::binary("consort").to_string_lossy().into_owned();
    bus.answer("org.jackaudio.JackControl.StartServer", &[]);
    let second = bus.run(&consort, &["dbus"]);
    assert_eq!((second.code, second.signal), (Some(1), None), "{second:?}");
    assert!(
        second.stderr.contains("another program serves as org.jackaudio.service"),
        "{second:?}"
    );
    assert!(bus.service().is_running());
    assert_eq!(bus.answer("org.jackaudio.JackControl.IsStarted", &[]), "(true,)");
    bus.answer("org.jackaudio.JackControl.StopServer", &[]);
}

#[test]
fn the_service_ends_when_the_server_is_of_another_release() {
    let bus = Bus::start();
    let _other = OtherRelease::of_another_protocol(bus.directory());
    let ended = bus.ended().expect_success();
    assert!(ended.stderr.contains("the D-Bus service ends"), "{ended:?}");
    assert!(ended.stderr.contains("version 99 of the protocol"), "{ended:?}");
}
