//! The bell of an X server is a sample that is heard.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};

use harness::{PATIENCE, Program, eventually, in_three_attempts};
use x11rb::connection::RequestConnection;
use x11rb::protocol::xkb::{self, BoolCtrl, ConnectionExt, ID};
use x11rb::rust_connection::RustConnection;

use crate::programs::screen;
use crate::{RATE_HZ, Scene, compare, is_installed, path, ramps};

const MODULE: &str = "module-x11-bell";
/// Streams of one program, at most.
const MAX_STREAMS: usize = 64;

/// Rings the bell of a display; a volume of 0 is that which is usual there, 50 %.
fn ring(scene: &Scene, display: &str, volume: &str) {
    let mut command = scene.command("xkbbell", &["-v", volume]);
    command.env("DISPLAY", display);
    Program::start(command).finish().expect_success();
}

/// Returns whether an X server rings its bell itself.
fn rings_itself(display: &RustConnection) -> bool {
    let controls = display.xkb_get_controls(ID::USE_CORE_KBD.into()).expect("asked");
    controls.reply().expect("an answer").enabled_controls.contains(BoolCtrl::AUDIBLE_BELL_MASK)
}

fn has_module(scene: &Scene) -> bool {
    scene.pactl(&["list", "short", "modules"]).contains(MODULE)
}

/// A request to ring a bell.
#[derive(Debug, PartialEq, Eq)]
struct Ringing {
    percent: u8,
    /// It is heard also where the bell is off.
    is_forced: bool,
}

/// An X server in front of that of `display`, which passes everything on, and says what it has been
/// asked to ring: Xvfb has no bell. Returns its display.
fn listening(display: &str) -> (String, Receiver<Ringing>) {
    const FIRST_PORT: u16 = 6_000;
    let (known, _) = RustConnection::connect(Some(display)).expect("an X server");
    let extension = known.extension_information(xkb::X11_EXTENSION_NAME).expect("asked");
    let opcode = extension.expect("the keyboard extension").major_opcode;
    let behind = format!("/tmp/.X11-unix/X{}", display.trim_start_matches(':'));
    let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = socket.local_addr().expect("its address").port();
    let (rung, ringings) = channel();
    std::thread::spawn(move || {
        for client in socket.incoming() {
            let (client, server) = (client.expect("one"), UnixStream::connect(&behind));
            let (rung, server) = (rung.clone(), server.expect("an X server"));
            std::thread::spawn(move || pass_on(client, server, opcode, &rung));
        }
    });
    (format!("127.0.0.1:{}", port - FIRST_PORT), ringings)
}

/// Passes on what a client and its X server say, until one of them ends.
fn pass_on(mut client: TcpStream, mut server: UnixStream, opcode: u8, rung: &Sender<Ringing>) {
    let mut answers = (server.try_clone().expect("a copy"), client.try_clone().expect("a copy"));
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut answers.0, &mut answers.1);
        let _ = answers.1.shutdown(Shutdown::Both);
    });
    let _ = pass_requests(&mut client, &mut server, opcode, rung);
    let _ = server.shutdown(Shutdown::Both);
}

/// Requests are in the byte order of this machine, because the client runs there.
fn pass_requests(
    client: &mut impl Read,
    server: &mut impl Write,
    opcode: u8,
    rung: &Sender<Ringing>,
) -> std::io::Result<()> {
    const BELL: u8 = 3;
    let short =
        |bytes: &[u8], at: usize| usize::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
    // What the client says first: the lengths of two texts that are filled up to words.
    let mut first = [0; 12];
    client.read_exact(&mut first)?;
    let mut texts = vec![0; [6, 8].map(|at| short(&first, at).next_multiple_of(4)).iter().sum()];
    client.read_exact(&mut texts)?;
    server.write_all(&[&first[..], &texts].concat())?;
    loop {
        let mut request = vec![0; 4];
        client.read_exact(&mut request)?;
        let words = short(&request, 2);
        assert_ne!(words, 0, "a request of more than 256 KiB");
        request.resize(4 * words, 0);
        client.read_exact(&mut request[4..])?;
        if request[..2] == [opcode, BELL] {
            let _ = rung.send(Ringing { percent: request[10], is_forced: request[11] != 0 });
        }
        server.write_all(&request)?;
    }
}

#[test]
fn the_x_server_rings_a_bell_for_which_there_is_no_sample() {
    if !is_installed("Xvfb") {
        return;
    }
    let scene = Scene::new();
    let (_screen, display) = screen(&scene);
    let (shown, ringings) = listening(&display);
    scene.load(&[MODULE, &format!("display={shown}")]);
    for (volume, percent) in [("0", 50), ("100", 100)] {
        ring(&scene, &display, volume);
        let ringing = ringings.recv_timeout(PATIENCE).expect("the X server is asked to ring");
        assert_eq!(ringing, Ringing { percent, is_forced: true });
    }
    let file = scene.file("ramps.wav", &ramps(3 * RATE_HZ as usize));
    scene.pactl(&["upload-sample", path(&file), "bell-window-system"]);
    ring(&scene, &display, "100");
    eventually("it plays", || {
        let list = scene.pactl(&["list", "sink-inputs"]);
        list.contains("bell-window-system").then_some(())
    });
    scene.pactl(&["remove-sample", "bell-window-system"]);
    ring(&scene, &display, "0");
    let ringing = ringings.recv_timeout(PATIENCE).expect("the X server is asked to ring");
    assert_eq!(ringing.percent, 50, "what was played was not rung as well");
}

#[test]
fn a_bell_is_heard_as_the_sample_of_its_name() {
    if !is_installed("Xvfb") {
        return;
    }
    let sound = ramps(RATE_HZ as usize);
    in_three_attempts(|| {
        let scene = Scene::new();
        let (_screen, display) = screen(&scene);
        let (sample, shown) = ("sample=ding", format!("display={display}"));
        scene.load(&[MODULE, sample, &shown]);
        ring(&scene, &display, "100");
        assert!(has_module(&scene), "the sample may come later");
        let file = scene.file("ramps.wav", &sound);
        scene.pactl(&["upload-sample", path(&file), "ding"]);
        ring(&scene, &display, "100");
        let stream = eventually("it plays", || {
            let list = scene.pactl(&["list", "sink-inputs"]);
            list.contains("media.name = \"ding\"").then_some(list)
        });
        assert!(stream.contains("application.name = \"X11 bell\""), "{stream}");
        compare(&scene.recorded(), &sound.channels)
    });
}

#[test]
fn a_bell_is_as_loud_as_the_x_server_says_on_the_sink_that_was_named() {
    if !is_installed("Xvfb") {
        return;
    }
    let scene = Scene::new();
    let (_screen, display) = screen(&scene);
    let shown = format!("display={display}");
    scene.load(&["module-null-sink", "sink_name=other"]);
    let file = scene.file("ramps.wav", &ramps(3 * RATE_HZ as usize));
    scene.pactl(&["upload-sample", path(&file), "bell-window-system"]);
    scene.load(&[MODULE, "sink=other", &shown]);
    ring(&scene, &display, "0");
    let stream = eventually("it plays", || {
        let list = scene.pactl(&["list", "sink-inputs"]);
        list.contains("bell-window-system").then_some(list)
    });
    assert!(stream.contains("front-left: 32768 /  50%"), "{stream}");
    let sinks = scene.pactl(&["list", "short", "sinks"]);
    let other = sinks.lines().find(|line| line.contains("other")).expect("the sink");
    let index = other.split('\t').next().expect("its number");
    assert!(stream.contains(&format!("Sink: {index}\n")), "{sinks}{stream}");
}

#[test]
fn an_x_server_rings_its_bell_itself_again_without_the_module() {
    if !is_installed("Xvfb") {
        return;
    }
    let scene = Scene::new();
    let (_screen, display) = screen(&scene);
    let (other, _) = RustConnection::connect(Some(&display)).expect("an X server");
    other.xkb_use_extension(1, 0).expect("asked").reply().expect("an answer");
    assert!(rings_itself(&other), "as it begins");
    let module = scene.load(&[MODULE, &format!("display={display}")]);
    assert!(!rings_itself(&other), "both would be heard");
    scene.pactl(&["unload-module", &module]);
    eventually("it rings itself", || rings_itself(&other).then_some(()));
    drop(other);
}

#[test]
fn a_bell_module_needs_an_x_server_that_lets_it_in_and_ends_with_that() {
    if !is_installed("Xvfb") || !is_installed("xauth") {
        return;
    }
    let mut scene = Scene::new();
    scene.refused(&[MODULE, "display=nonsense"], "cannot connect to the X server");
    let known = scene.server.directory().join("known");
    let authority = path(&known).to_owned();
    // For the number that the X server is about to choose, so for all.
    let cookie = "0123456789abcdef0123456789abcdef";
    let numbers = (0..100).map(|number| format!("add :{number} . {cookie}\n"));
    let script = scene.server.directory().join("script");
    std::fs::write(&script, numbers.collect::<String>()).expect("written");
    scene.run("xauth", &["-q", "-f", &authority, "source", path(&script)]).expect_success();
    let options = ["-displayfd", "1", "-auth", &authority];
    let mut screen = scene.spawn("Xvfb", &options);
    let number = eventually("a screen", || screen.stdout().lines().next().map(str::to_owned));
    let shown = format!("display=:{number}");
    scene.refused(&[MODULE, &shown, "xauthority=/nowhere"], "cannot connect to the X server");
    scene.load(&[MODULE, &shown, &format!("xauthority={authority}")]);
    screen.terminate();
    eventually("it is unloaded", || (!has_module(&scene)).then_some(()));
    scene.says("the X server has gone");
}

#[test]
fn bells_without_end_have_the_streams_that_any_program_may_have() {
    if !is_installed("Xvfb") {
        return;
    }
    let scene = Scene::new();
    let (_screen, display) = screen(&scene);
    let file = scene.file("ramps.wav", &ramps(20 * RATE_HZ as usize));
    scene.pactl(&["upload-sample", path(&file), "bell-window-system"]);
    scene.load(&[MODULE, &format!("display={display}")]);
    let (other, _) = RustConnection::connect(Some(&display)).expect("an X server");
    other.xkb_use_extension(1, 0).expect("asked").reply().expect("an answer");
    let [keyboard, class, id] =
        [ID::USE_CORE_KBD, ID::DFLT_XI_CLASS, ID::DFLT_XI_ID].map(u16::from);
    for _ in 0..2 * MAX_STREAMS {
        let rung = other.xkb_bell(keyboard, class, id, 0, false, false, 0, 0, 0, 0);
        rung.expect("rung").check().expect("a bell");
    }
    let streams = || scene.pactl(&["list", "short", "sink-inputs"]).lines().count();
    eventually("it has all", || (streams() == MAX_STREAMS).then_some(()));
    scene.pactl(&["play-sample", "bell-window-system"]);
    assert_eq!(streams(), MAX_STREAMS + 1, "others have theirs");
    assert!(has_module(&scene));
}
