//! Monitoring in the card, with the elements of such cards on a card that has nothing else of
//! theirs.

use harness::{Program, Server, c_program};
use rustix::process::Signal;

use crate::guest::elements::{self, await_values, values};
use crate::guest::{awaited, driver, server_on};

const SWITCHES: &str = "iface=MIXER,name='Channels Thru'";

const OPTIONS: [&str; 7] =
    ["--capture", "2", "--playback", "2", "--quantum", "1024", "--hardware-monitoring"];

/// Starts a program that requests monitoring of a port until it is asked to end, and waits until
/// the request is answered.
fn ask(server: &Server, port: &str) -> Program {
    let mut program = server.spawn(&c_program("devices/monitor.c"), &[port]);
    let answer = format!("{port} 1");
    awaited("the request is counted", || program.stdout().contains(&answer).then_some(()));
    program
}

fn is_away(server: &Server) -> bool {
    driver(server).contains("not there")
}

/// Card 2 with these elements and no others.
fn with_elements(elements: &str) {
    elements::pull_dummy();
    elements::put_dummy_back();
    if !elements.is_empty() {
        elements::add(elements);
    }
}

#[test]
#[ignore = "in the virtual machine"]
fn monitor_requests_survive_every_change_of_the_driver() {
    with_elements(elements::THRU);
    let mut server = server_on("hw:2", &OPTIONS);
    // Without a program that needs cycles, none are run.
    let _program = server.spawn("jack_metro", &["-b", "120"]);
    let first = ask(&server, "system:capture_1");
    let second = ask(&server, "system:capture_1");
    await_values(SWITCHES, "on,on,off,off");
    first.terminate().expect_success();
    assert_eq!(values(SWITCHES), "on,on,off,off", "one request is left");
    // The Hammerfall's driver does this when its device is opened, as for a new quantum.
    elements::set(SWITCHES, "off,on,off,on");
    server.run("jack_bufsize", &["512"]).expect_success();
    await_values(SWITCHES, "on,on,off,on");
    awaited("the device is back", || (!is_away(&server)).then_some(()));
    server.consort(&["driver", "timer"]).expect_success();
    await_values(SWITCHES, "off,on,off,on");
    server
        .consort(&[&["driver", "alsa", "--device", "hw:2"], &OPTIONS[..4], &OPTIONS[6..]].concat())
        .expect_success();
    await_values(SWITCHES, "on,on,off,on");
    elements::pull_dummy();
    awaited("the status says so", || is_away(&server).then_some(()));
    // A card has its elements before any program sees it: this one gets its elements afterwards.
    server.program().signal(Signal::STOP);
    elements::put_dummy_back();
    elements::add(elements::THRU);
    server.program().signal(Signal::CONT);
    await_values(SWITCHES, "on,on,off,off");
    awaited("the card is back", || (!is_away(&server)).then_some(()));
    server.await_cycles(20);
    second.terminate().expect_success();
    await_values(SWITCHES, "off,on,off,off");
    let third = ask(&server, "system:capture_2");
    assert_eq!(values(SWITCHES), "off,on,off,off", "it was on before");
    server.stop();
    assert_eq!(values(SWITCHES), "off,on,off,off", "and stays on");
    drop(third);
}

#[test]
#[ignore = "in the virtual machine"]
fn the_paths_of_a_hammerfall_dsp_and_an_ice1712_are_restored() {
    for (added, port, element, before, during) in [
        (elements::MATRIX, "system:capture_1", "iface=HWDEP,name='Mixer'", "0,0,77", "0,0,32768"),
        (
            elements::ROUTES,
            "system:capture_2",
            "iface=MIXER,name='H/W Playback Route',index=1",
            "3",
            "2",
        ),
        (elements::ROUTES, "system:capture_1", "iface=MIXER,name='H/W Playback Route'", "0", "1"),
    ] {
        with_elements(added);
        let server = server_on("hw:2", &OPTIONS);
        assert!(driver(&server).contains("hardware monitoring of 2 inputs"), "{element}");
        assert_eq!(values(element), before);
        let request = ask(&server, port);
        await_values(element, during);
        request.terminate().expect_success();
        await_values(element, before);
        let request = ask(&server, port);
        await_values(element, during);
        server.stop();
        assert_eq!(values(element), before, "with the server, it ends");
        drop(request);
    }
}

#[test]
#[ignore = "in the virtual machine"]
fn a_card_without_monitor_elements_only_counts_requests() {
    with_elements("");
    let mut server = server_on("hw:2", &OPTIONS);
    let said = server.program().stderr().to_owned();
    let expected = "no hardware monitoring, requests are only counted: sound card 'Dummy': it has no path from its \
                    inputs to its outputs";
    assert!(said.contains(expected), "{said}");
    ask(&server, "system:capture_1").terminate().expect_success();
}

#[test]
#[ignore = "in the virtual machine"]
fn a_card_follows_the_clock_that_is_asked_for_also_when_it_comes_back() {
    const CONTROL: &str = "iface=MIXER,name='Sync Mode'";
    with_elements(elements::CLOCK);
    let server = server_on("hw:2", &["--quantum", "1024", "--clock-source", "word clock"]);
    assert_eq!(values(CONTROL), "2");
    assert!(driver(&server).contains("Sync Mode Word Clock"), "{}", driver(&server));
    let listed = server.consort(&["device", "list"]).expect_success().stdout;
    assert!(listed.contains("Sync Mode: AutoSync, Master, [Word Clock]"), "{listed}");
    // As when the card has forgotten it.
    elements::set(CONTROL, "1");
    server.run("jack_bufsize", &["512"]).expect_success();
    await_values(CONTROL, "2");
    let refused = ["driver", "alsa", "--device", "hw:2", "--clock-source", "MADI"];
    let said = server.consort(&refused).stderr;
    assert!(said.contains("no clock source 'MADI'") && said.contains("Master"), "{said}");
    assert_eq!(values(CONTROL), "2");
    with_elements("");
    let said = server.consort(&refused).stderr;
    assert!(said.contains("no control of its clock"), "{said}");
}
