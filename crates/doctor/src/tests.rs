use alsa::Holder;
use clap::Args;
use serde_json::Value;

use crate::command::{Doctor, document, screen};
use crate::flatpak::{allows_pulseaudio, processes};
use crate::listener::inode_of_listener;
use crate::pipewire::sound;
use crate::pulse::{default_server, unit_of};
use crate::{
    BusName, CardFacts, Facts, FlatpakFacts, FlatpakSocket, HeadsetFacts, LibraryFacts,
    NamedServer, OtherServer, PipeWireFacts, PulseSocket, ServerFacts, Verdict, WirePlumber,
    findings,
};

fn library(path: &str, is_ours: bool) -> Option<LibraryFacts> {
    Some(LibraryFacts { path: path.into(), is_ours })
}

/// A machine with nothing to complain about.
fn healthy() -> Facts {
    Facts {
        rtprio_limit: 95,
        memlock_limit: None,
        has_realtime_kit: true,
        realtime_throttle_us: Some((950_000, 1_000_000)),
        governors: vec!["performance".into()],
        cards: vec![CardFacts {
            name: "Studio".into(),
            device: "hw:CARD=Studio,DEV=0".into(),
            is_forbidden: false,
            holder: None,
        }],
        others: Vec::new(),
        pulse: PulseSocket::Ours(8),
        pulse_server: None,
        pipewire: Some(PipeWireFacts {
            process: 5,
            sound: Some(Vec::new()),
            has_our_settings: true,
        }),
        bus: vec![BusName {
            name: "org.jackaudio.service".into(),
            owner: OtherServer { program: "consort".into(), process: 6 },
            is_ours: true,
        }],
        flatpaks: Some(Vec::new()),
        headsets: Vec::new(),
        wireplumber: Some(WirePlumber::Scripts),
        libjack: library("/usr/lib/x86_64-linux-gnu/consort/libjack.so.0", true),
        narrow_libjack: library("/usr/lib/i386-linux-gnu/consort/libjack.so.0", true),
        server: Some(ServerFacts {
            name: "default".into(),
            process: 7,
            driver: "alsa hw:Studio".into(),
            realtime_priority: Some(10),
            xruns: 0,
            cycles: 1000,
        }),
        starts_on_demand: false,
    }
}

fn by_variable(address: &str) -> NamedServer {
    NamedServer { address: address.into(), file: None }
}

/// What is found about one subject, with the advice.
fn about(facts: &Facts, subject: &str) -> (Verdict, String) {
    let found = findings(facts).into_iter().find(|finding| finding.subject == subject);
    let found = found.expect("looked at");
    (found.verdict, format!("{} → {}", found.found, found.advice.unwrap_or_default()))
}

#[track_caller]
fn expect(change: impl FnOnce(&mut Facts), subject: &str, verdict: Verdict, part: &str) {
    let mut facts = healthy();
    change(&mut facts);
    let (found, text) = about(&facts, subject);
    assert_eq!(found, verdict, "{text}");
    assert!(text.contains(part), "{text}");
    let others = findings(&facts).into_iter().filter(|finding| finding.subject != subject);
    for other in others {
        assert_eq!(other.verdict, Verdict::Good, "{other:?}");
    }
}

#[test]
fn a_healthy_machine_is_good_in_every_line() {
    for finding in findings(&healthy()) {
        assert_eq!((finding.verdict, finding.advice), (Verdict::Good, None), "{}", finding.found);
    }
}

#[test]
fn another_projects_library_is_wrong() {
    let others = |facts: &mut Facts| {
        facts.narrow_libjack = None;
        facts.libjack = library("/lib/x86_64-linux-gnu/libjack.so.0", false);
    };
    expect(others, "libjack", Verdict::Wrong, "/lib/x86_64-linux-gnu/libjack.so.0, which is not");
    expect(|facts| facts.libjack = None, "libjack", Verdict::Wrong, "libjack-consort0");
}

/// What is found about the library of 32 bits, with the advice.
fn about_narrow_library(narrow_libjack: Option<LibraryFacts>) -> Option<(Verdict, String)> {
    let found = findings(&Facts { narrow_libjack, ..healthy() });
    let found = found.into_iter().find(|finding| finding.found.contains("programs of 32 bits"))?;
    Some((found.verdict, format!("{} → {}", found.found, found.advice.unwrap_or_default())))
}

#[test]
fn another_projects_library_of_32_bits_is_noted() {
    let (verdict, text) = about_narrow_library(healthy().narrow_libjack).expect("a line");
    assert!(verdict == Verdict::Good && text.starts_with("/usr/lib/i386-linux-gnu/"), "{text}");
    let others = library("/lib/i386-linux-gnu/libjack.so.0", false);
    let (verdict, text) = about_narrow_library(others).expect("a line");
    assert_eq!(verdict, Verdict::Note);
    assert!(text.contains("get /lib/i386-linux-gnu/libjack.so.0, which is not"), "{text}");
    assert!(text.contains("libjack-consort0:i386"), "{text}");
    assert_eq!(about_narrow_library(None), None, "no program of 32 bits needs one");
}

#[test]
fn a_card_in_use_names_who_holds_it() {
    let held = |program: &str| {
        let holder = Holder { process: 42, program: Some(program.into()) };
        move |facts: &mut Facts| facts.cards[0].holder = Some(holder)
    };
    expect(held("pulseaudio"), "card", Verdict::Wrong, "in use by pulseaudio (process 42)");
    expect(held("consort"), "card", Verdict::Good, "open in consort");
}

#[test]
fn a_card_may_be_missing_or_closed() {
    expect(|facts| facts.cards.clear(), "card", Verdict::Note, "not heard");
    expect(|facts| facts.cards[0].is_forbidden = true, "card", Verdict::Wrong, "adduser");
}

#[test]
fn other_servers_come_with_the_command_that_ends_them() {
    let run = |program: &str| {
        let server = OtherServer { program: program.into(), process: 9 };
        move |facts: &mut Facts| facts.others.push(server)
    };
    let pulse = "disable --now pipewire-pulse.socket pipewire-pulse.service";
    expect(run("pipewire-pulse"), "servers", Verdict::Note, pulse);
    expect(run("jackd"), "servers", Verdict::Note, "kill 9");
}

#[test]
fn pipewire_is_good_without_sound_and_otherwise_comes_with_what_takes_it_from_it() {
    let has = |sound: Option<&[&str]>, has_our_settings| {
        let sound = sound.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let found = PipeWireFacts { process: 5, sound, has_our_settings };
        move |facts: &mut Facts| facts.pipewire = Some(found)
    };
    let cards: &[&str] = &["alsa_output.pci", "alsa_input.pci"];
    let advice = "alsa_output.pci, alsa_input.pci → mkdir -p ~/.config/wireplumber/main.lua.d";
    expect(has(Some(cards), false), "pipewire", Verdict::Note, advice);
    let advice = "alsa_input.pci → systemctl --user restart wireplumber";
    expect(has(Some(cards), true), "pipewire", Verdict::Note, advice);
    let without = |facts: &mut Facts| {
        has(Some(cards), false)(facts);
        facts.wireplumber = None;
    };
    expect(without, "pipewire", Verdict::Note, "its session manager");
    expect(has(None, true), "pipewire", Verdict::Note, "pipewire-bin");
    let found = findings(&Facts { pipewire: None, ..healthy() });
    assert!(found.iter().all(|finding| finding.subject != "pipewire"), "it does not run");
}

#[test]
fn wireplumber_is_given_settings_that_its_version_reads() {
    let printed = |version: &str| {
        format!("Compiled with libwireplumber 0.4.1\nLinked with libwireplumber {version}\n")
    };
    for (version, expected) in [
        ("0.4.13", Some(WirePlumber::Scripts)),
        ("0.5.0", Some(WirePlumber::Files)),
        ("0.10.1", Some(WirePlumber::Files)),
        ("1.0", Some(WirePlumber::Files)),
        ("of nobody", None),
    ] {
        assert_eq!(WirePlumber::of_version(&printed(version)), expected, "{version}");
    }
    assert_eq!(WirePlumber::of_version("no such program"), None);
    let held = |wireplumber| {
        let holder = Holder { process: 42, program: Some("wireplumber".into()) };
        move |facts: &mut Facts| {
            facts.wireplumber = Some(wireplumber);
            facts.cards[0].holder = Some(holder);
        }
    };
    let script = "echo 'alsa_monitor.enabled = false' > ~/.config/wireplumber/main.lua.d/51-";
    expect(held(WirePlumber::Scripts), "card", Verdict::Wrong, script);
    let file = "monitor.alsa-midi = disabled } }' > ~/.config/wireplumber/wireplumber.conf.d/51-";
    expect(held(WirePlumber::Files), "card", Verdict::Wrong, file);
}

#[test]
fn only_sinks_and_sources_are_pipewires_sound() {
    let object = |kind: &str, class: &str, name: &str| {
        format!(
            r#"{{"type": "PipeWire:Interface:{kind}",
                "info": {{"props": {{"media.class": "{class}", "node.name": "{name}"}}}}}}"#
        )
    };
    let all = [
        object("Node", "Audio/Sink", "speaker"),
        object("Node", "Video/Source", "camera"),
        object("Node", "Stream/Output/Audio", "player"),
        object("Device", "Audio/Device", "card"),
        object("Node", "Audio/Source", "microphone"),
        r#"{"type": "PipeWire:Interface:Node", "info": null}"#.to_owned(),
    ];
    let found = sound(&format!("[{}]", all.join(", ")));
    assert_eq!(found, Some(vec!["speaker".to_owned(), "microphone".to_owned()]));
    assert_eq!(sound("[]"), Some(Vec::new()));
    assert_eq!(sound("no such server"), None);
}

#[test]
fn a_name_on_the_bus_comes_with_who_has_it_and_what_ends_that() {
    let has = |name: &str, program: &str| {
        let owner = OtherServer { program: program.into(), process: 9 };
        let found = BusName { name: name.into(), owner, is_ours: false };
        move |facts: &mut Facts| facts.bus = vec![found]
    };
    let jack = has("org.jackaudio.service", "jackdbus");
    expect(jack, "d-bus", Verdict::Note, "is jackdbus's (process 9) → programs that control JACK");
    let server = has("org.pulseaudio.Server", "pulseaudio");
    let units = "disable --now pulseaudio.socket pulseaudio.service";
    expect(server, "d-bus", Verdict::Note, units);
    let card = has("org.freedesktop.ReserveDevice1.Audio1", "wireplumber");
    expect(card, "d-bus", Verdict::Note, "echo 'alsa_monitor.enabled = false'");
    let card = has("org.freedesktop.ReserveDevice1.Audio1", "ardour");
    expect(card, "d-bus", Verdict::Note, "gives it up: kill 9");
}

#[test]
fn programs_in_flatpaks_have_the_socket_that_was_there_when_they_started() {
    let has = |pulse, named: Option<&'static str>| {
        let mut facts = Facts { pulse, ..healthy() };
        facts.pulse_server = named.map(by_variable);
        about(&facts, "flatpak")
    };
    let ours = PulseSocket::Unit(Some("consort-pulse.service".into()));
    assert_eq!(has(ours.clone(), None).0, Verdict::Good);
    let (verdict, text) = has(ours.clone(), Some("tcp:studio"));
    assert!(verdict == Verdict::Note && text.contains("play to tcp:studio"), "{text}");
    let (verdict, text) = has(ours, Some("unix:/run/other"));
    assert!(verdict == Verdict::Note && text.contains("play to unix:/run/other"), "{text}");
    let (verdict, text) = has(PulseSocket::Nobody, None);
    assert!(verdict == Verdict::Note && text.contains("start them again"), "{text}");
    let pipewire = OtherServer { program: "pipewire-pulse".into(), process: 9 };
    let (verdict, text) = has(PulseSocket::Other(pipewire), None);
    assert!(verdict == Verdict::Note && text.contains("another server"), "{text}");
    let found = findings(&Facts { flatpaks: None, ..healthy() });
    assert!(found.iter().all(|finding| finding.subject != "flatpak"), "it is not installed");
}

#[test]
fn an_application_with_a_replaced_socket_is_started_again() {
    let has = |socket| {
        let application = "org.example.Player".to_owned();
        let flatpaks = Some(vec![FlatpakFacts { application, socket }]);
        about(&Facts { flatpaks, ..healthy() }, "flatpak")
    };
    let (verdict, text) = has(FlatpakSocket::Current);
    assert!(verdict == Verdict::Good && !text.contains("org.example.Player"), "{text}");
    let (verdict, text) = has(FlatpakSocket::NotAllowed);
    assert!(verdict == Verdict::Good && text.contains("without sound: org.example"), "{text}");
    let (verdict, text) = has(FlatpakSocket::Other);
    assert!(verdict == Verdict::Note && text.contains("flatpak kill org.example"), "{text}");
}

#[test]
fn a_headset_comes_with_the_way_to_hear_something_there() {
    let has = |sound: &[&str], wireplumber| {
        let headsets = vec![HeadsetFacts { name: "Ears".into(), is_connected: true }];
        let mut facts = Facts { headsets, wireplumber, ..healthy() };
        let sound = sound.iter().map(|name| (*name).to_owned()).collect();
        facts.pipewire.as_mut().expect("it runs").sound = Some(sound);
        about(&facts, "bluetooth")
    };
    let (verdict, text) = has(&[], Some(WirePlumber::Scripts));
    assert!(verdict == Verdict::Note && text.starts_with("Ears is connected"), "{text}");
    assert!(text.contains("touch ~/.config/wireplumber/bluetooth.lua.d/51-consort.lua"), "{text}");
    let (_, text) = has(&[], Some(WirePlumber::Files));
    assert!(text.contains("monitor.bluez = optional"), "{text}");
    let (verdict, text) = has(&["bluez_output.00_11.1"], Some(WirePlumber::Scripts));
    assert!(verdict == Verdict::Note && text.contains("PipeWire has Ears"), "{text}");
    assert!(text.contains("/pulse/pipewire sink=bluez_output.00_11.1 "), "{text}");
    let (_, text) = has(&[], None);
    assert!(text.contains("no program here"), "{text}");
}

#[test]
fn the_name_of_a_sink_becomes_a_part_of_a_command_only_if_a_shell_takes_it_for_a_name() {
    let advice = |sink: &str| {
        let headsets = vec![HeadsetFacts { name: "Ears".into(), is_connected: true }];
        let mut facts = Facts { headsets, ..healthy() };
        facts.pipewire.as_mut().expect("it runs").sound = Some(vec![sink.to_owned()]);
        about(&facts, "bluetooth").1
    };
    let plain = advice("bluez_output.00_11-a.1");
    assert!(plain.ends_with("/pipewire sink=bluez_output.00_11-a.1 sink_name=headset"), "{plain}");
    for name in ["bluez_output.$(reboot)", "bluez_output.a b", "bluez_output.;x", "bluez_output.ä"]
    {
        let text = advice(name);
        assert!(text.ends_with("/pulse/pipewire sink_name=headset"), "{text}");
    }
}

#[test]
fn the_name_of_a_program_changes_no_terminal() {
    let other = OtherServer { program: "x\u{1b}[2J\u{9b}".into(), process: 9 };
    let (_, text) = about(&Facts { others: vec![other], ..healthy() }, "servers");
    assert!(text.contains("also running: x [2J  (process 9)"), "{text}");
}

#[test]
fn a_sandbox_says_whether_it_is_to_have_the_socket() {
    let listed = "12\torg.example.Player\n  7  a.b.C\n\n";
    let found: Vec<_> = processes(listed).collect();
    assert_eq!(found, [(12, "org.example.Player"), (7, "a.b.C")]);
    let info = |sockets| {
        format!(
            "[Application]\nname=a\n\n[Context]\nshared=ipc;\n{sockets}\n[Session Bus Policy]\n"
        )
    };
    assert!(allows_pulseaudio(&info("sockets=x11;pulseaudio;")));
    assert!(!allows_pulseaudio(&info("sockets=x11;")));
    assert!(!allows_pulseaudio("[Context]\nshared=ipc;\n[Other]\nsockets=pulseaudio;\n"));
}

#[test]
fn another_listener_for_programs_of_pulseaudio_comes_with_the_command_that_ends_it() {
    let listens =
        |listener| move |facts: &mut Facts| (facts.pulse, facts.flatpaks) = (listener, None);
    let process =
        |program: &str| PulseSocket::Other(OtherServer { program: program.into(), process: 9 });
    expect(listens(process("pipewire-pulse")), "pulse", Verdict::Note, "disable --now pipewire");
    expect(listens(process("something")), "pulse", Verdict::Note, "kill 9, then systemctl");
    let unit = |unit: &str| PulseSocket::Unit(Some(unit.into()));
    expect(listens(unit("pulseaudio.service")), "pulse", Verdict::Note, "now pulseaudio.socket");
    expect(listens(unit("consort-pulse.service")), "pulse", Verdict::Good, "play here");
    expect(listens(PulseSocket::Unit(None)), "pulse", Verdict::Note, "list-sockets");
    expect(listens(PulseSocket::Nobody), "pulse", Verdict::Note, "find no server");
    let elsewhere = |facts: &mut Facts| {
        (facts.pulse_server, facts.flatpaks) = (Some(by_variable("tcp:studio")), None);
    };
    expect(elsewhere, "pulse", Verdict::Note, "to tcp:studio → unset PULSE_SERVER");
    let by_file = |facts: &mut Facts| {
        let (address, file) = ("tcp:studio".into(), Some("/etc/pulse/client.conf".into()));
        (facts.pulse_server, facts.flatpaks) = (Some(NamedServer { address, file }), None);
    };
    let advice = "tcp:studio → remove 'default-server' from /etc/pulse/client.conf";
    expect(by_file, "pulse", Verdict::Note, advice);
}

#[test]
fn the_last_server_in_a_file_of_settings_counts_if_it_is_named() {
    let named = |text| default_server(text);
    assert_eq!(named("; default-server =\n# default-server = a\nautospawn = no\n"), None);
    let text = "default-server=unix:/a\n default-server = tcp:studio \n";
    assert_eq!(named(text).as_deref(), Some("tcp:studio"));
    assert_eq!(named("default-server = unix:/a\ndefault-server =\n"), None);
}

#[test]
fn the_newest_of_the_sockets_that_listen_at_a_path_is_meant() {
    let sockets = "Num       RefCount Protocol Flags    Type St Inode Path\n\
         00000000060c93ea: 00000003 00000000 00000000 0001 03 99 /run/user/7/pulse/native\n\
         00000000060c93eb: 00000002 00000000 00010000 0001 01  8 /run/user/7/pulse/native\n\
         00000000060c93ec: 00000002 00000000 00010000 0001 01 12 /run/user/7/pulse/native\n\
         00000000060c93ed: 00000002 00000000 00010000 0001 01 77 /run/user/77/pulse/native\n\
         00000000060c93ee: 00000003 00000000 00000000 0005 03 55\n";
    let inode = |path| inode_of_listener(sockets, path);
    assert_eq!(inode("/run/user/7/pulse/native").as_deref(), Some("12"));
    assert_eq!(inode("/run/user/8/pulse/native"), None);
}

#[test]
fn systemd_says_what_it_starts_for_a_socket() {
    let listed = "/run/user/7/bus          dbus.socket          dbus.service\n\
         /run/user/7/pulse/native consort-pulse.socket consort-pulse.service\n";
    let unit = unit_of(listed, "/run/user/7/pulse/native");
    assert_eq!(unit.as_deref(), Some("consort-pulse.service"));
    assert_eq!(unit_of(listed, "/run/user/8/pulse/native"), None);
}

#[test]
fn real_time_needs_a_limit_or_realtime_kit() {
    expect(|facts| facts.rtprio_limit = 0, "real-time", Verdict::Note, "RealtimeKit gives");
    let neither = |facts: &mut Facts| (facts.rtprio_limit, facts.has_realtime_kit) = (0, false);
    expect(neither, "real-time", Verdict::Wrong, "sudo consort setup");
}

#[test]
fn little_locked_memory_is_named_in_kibibytes() {
    expect(|facts| facts.memlock_limit = Some(8 << 20), "memory", Verdict::Note, "8192 KiB");
    expect(|facts| facts.memlock_limit = Some(1 << 30), "memory", Verdict::Good, "1024 MiB");
}

#[test]
fn throttling_is_wrong_where_it_stops_work_and_noted_where_it_is_off() {
    let throttle = |us| move |facts: &mut Facts| facts.realtime_throttle_us = Some((us, 1_000_000));
    expect(throttle(500_000), "throttling", Verdict::Wrong, "50 %");
    expect(throttle(-1), "throttling", Verdict::Note, "hangs");
}

#[test]
fn a_frugal_governor_is_noted() {
    let frugal = |facts: &mut Facts| facts.governors = vec!["powersave".into()];
    expect(frugal, "governor", Verdict::Note, "powersave → for short cycles");
}

#[test]
fn a_server_without_priority_and_no_server_at_all_are_noted() {
    let lame = |facts: &mut Facts| {
        let server = facts.server.as_mut().expect("it runs");
        server.realtime_priority = None;
    };
    expect(lame, "server", Verdict::Note, "not real-time");
    expect(|facts| facts.server = None, "server", Verdict::Note, "consort.socket");
}

#[test]
fn a_server_that_the_first_program_starts_is_not_missed() {
    let waits = |facts: &mut Facts| (facts.server, facts.starts_on_demand) = (None, true);
    expect(waits, "server", Verdict::Good, "the first program starts it");
}

/// Rows and columns of the smallest terminal that is usual.
const SCREEN: (usize, usize) = (24, 80);

#[test]
fn all_that_a_bare_machine_lacks_fits_on_a_screen() {
    let bare = Facts {
        memlock_limit: Some(8 << 20),
        realtime_throttle_us: Some((950_000, 1_000_000)),
        governors: vec!["powersave".into()],
        ..Facts::default()
    };
    let text = screen(&findings(&bare));
    let rows = text.lines().map(|line| line.chars().count().div_ceil(SCREEN.1));
    // The last row is for the prompt.
    assert!(rows.sum::<usize>() < SCREEN.0, "{text}");
}

#[test]
fn the_document_has_the_keys_that_the_help_explains() {
    let findings = findings(&Facts::default());
    let document: Value = serde_json::from_str(&document(&findings)).expect("JSON");
    let list = document.as_array().expect("a list");
    assert_eq!(list.len(), findings.len());
    let help = Doctor::augment_args(clap::Command::new("doctor"));
    let help = help.get_after_help().expect("help").to_string();
    for finding in list {
        for key in finding.as_object().expect("an object").keys() {
            assert!(help.contains(&format!("\n  {key}  ")), "{key} is not explained: {help}");
        }
        let verdict = finding["verdict"].as_str().expect("text");
        assert!(help.contains(&format!("\"{verdict}\"")), "{verdict}");
    }
}

#[test]
fn advice_stands_below_what_it_is_about() {
    let mut facts = healthy();
    facts.libjack = None;
    let text = screen(&findings(&facts));
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("wrong  libjack     the loader finds none"));
    let advice = lines.next().expect("a second line");
    assert!(advice.starts_with("                   → install"), "{advice}");
}
