//! Programs over TCP, and of other users: who is let in, and what the others cost.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use harness::{Finished, PATIENCE, Program, eventually};
use rustix::net::{AddressFamily, SocketType};

use crate::bad_input::packet;
use crate::{RATE_HZ, Scene, compare, path, ramps};

const SERVER: [&str; 4] = ["--driver", "timer", "--quantum", "1024"];
const COOKIE_BYTES: usize = 256;
/// What a wrong cookie is answered: an error, the number of the request, "access denied".
const REFUSAL: &[u8] = b"L\0\0\0\0L\0\0\0\x07L\0\0\0\x01";

/// A front end that listens at a free port as well.
struct Network {
    scene: Scene,
    address: SocketAddr,
}

impl Network {
    fn new() -> Self {
        Self::with(&["--tcp", "127.0.0.1:0"])
    }

    fn with(options: &[&str]) -> Self {
        let mut scene = Scene::with_front_end(&SERVER, options);
        let address = eventually("it says where it listens", || {
            let line =
                scene.front_end.stderr().lines().find_map(|line| {
                    line.strip_prefix("consort: programs of PulseAudio over TCP: ")
                })?;
            line.split(", ").next()?.parse().ok()
        });
        Self { scene, address }
    }

    /// The cookie that the front end has made.
    fn cookie(&self) -> PathBuf {
        self.scene.server.directory().join(".config/pulse/cookie")
    }

    /// Starts a program of PulseAudio on another machine, as far as it can tell.
    fn spawn(&self, cookie: &Path, program: &str, arguments: &[&str]) -> Program {
        let mut command = self.scene.server.command(program);
        command.args(arguments);
        let kind = if self.address.is_ipv6() { "tcp6" } else { "tcp" };
        command.env("PULSE_SERVER", format!("{kind}:{}", self.address));
        command.env("PULSE_COOKIE", cookie);
        Program::start(command)
    }

    fn run(&self, cookie: &Path, program: &str, arguments: &[&str]) -> Finished {
        self.spawn(cookie, program, arguments).finish()
    }

    fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(self.address).expect("connected");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        socket
    }

    /// Connects from another address of this machine.
    fn connect_from(&self, last: u8) -> TcpStream {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
        let socket = socket.expect("a socket");
        let from = SocketAddr::from(([127, 0, 0, last], 0));
        rustix::net::bind(&socket, &from).expect("an address of this machine");
        rustix::net::connect(&socket, &self.address).expect("connected");
        let socket = TcpStream::from(socket);
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        socket
    }
}

/// Says who one is, with this cookie; asks for shared memory of both kinds.
fn auth(cookie: &[u8]) -> Vec<u8> {
    let length = (cookie.len() as u32).to_be_bytes();
    packet(8, &[b"L\xc0\0\0\x23x", &length[..], cookie].concat())
}

/// The content of the next packet.
fn answer(socket: &mut TcpStream) -> Vec<u8> {
    let mut head = [0; 20];
    socket.read_exact(&mut head).expect("an answer");
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    let mut content = vec![0; length as usize];
    socket.read_exact(&mut content).expect("an answer");
    content
}

fn has_ended(socket: &mut TcpStream) -> bool {
    match socket.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_program_with_the_cookie_plays_over_tcp_sample_for_sample() {
    harness::in_three_attempts(|| {
        let network = Network::new();
        let sound = ramps(RATE_HZ as usize);
        let file = network.scene.file("played.wav", &sound);
        network.run(&network.cookie(), "paplay", &[path(&file)]).expect_success();
        compare(&network.scene.recorded(), &sound.channels)
    });
}

#[test]
fn a_program_over_tcp_may_do_what_one_of_this_user_may() {
    let network = Network::new();
    let pactl = |arguments: &[&str]| {
        network.run(&network.cookie(), "pactl", arguments).expect_success().stdout
    };
    assert!(pactl(&["info"]).contains("Is Local: no"));
    pactl(&["set-sink-volume", "consort", "50%"]);
    assert!(network.scene.pactl(&["get-sink-volume", "consort"]).contains("50%"));
    let _local = network.scene.spawn("pacat", &["/dev/zero"]);
    let inputs = || pactl(&["list", "short", "sink-inputs"]);
    let input = eventually("it plays", || Some(inputs().split_once('\t')?.0.to_owned()));
    pactl(&["set-sink-input-volume", &input, "25%"]);
    assert!(network.scene.pactl(&["list", "sink-inputs"]).contains("25%"));
    let recorded = network.scene.server.directory().join("heard.wav");
    let _player = network.spawn(&network.cookie(), "pacat", &["/dev/zero"]);
    let _recorder = network.spawn(
        &network.cookie(),
        "parecord",
        &["--device", "consort.monitor", path(&recorded)],
    );
    eventually("it records", || (recorded.metadata().ok()?.len() > 4096).then_some(()));
}

#[test]
fn programs_over_ipv6_are_let_in_with_the_cookie() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return harness::not_run("this machine has no IPv6");
    }
    let network = Network::with(&["--tcp", "[::1]:0"]);
    network.run(&network.cookie(), "pactl", &["info"]).expect_success();
}

#[test]
fn another_cookie_or_none_is_refused_and_the_connection_ends() {
    let network = Network::new();
    // libpulse makes one where there is none.
    let other = network.scene.server.directory().join("other-cookie");
    let refused = network.run(&other, "pactl", &["info"]);
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("Access denied"), "{}", refused.stderr);
    let mut almost = std::fs::read(network.cookie()).expect("a cookie");
    almost[COOKIE_BYTES - 1] ^= 1;
    for cookie in [&almost[..], &almost[..COOKIE_BYTES - 1], &[0; COOKIE_BYTES], &[]] {
        let mut socket = network.connect();
        socket.write_all(&auth(cookie)).expect("sent");
        assert_eq!(answer(&mut socket), REFUSAL, "{} bytes", cookie.len());
        assert!(has_ended(&mut socket));
    }
    // A request before anything else, and what a browser sends.
    for bytes in [packet(20, b""), b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()] {
        let mut socket = network.connect();
        socket.write_all(&bytes).expect("sent");
        let mut sent = Vec::new();
        let _ = socket.read_to_end(&mut sent);
        assert!(sent.is_empty() || sent.ends_with(REFUSAL), "{sent:?}");
    }
    assert!(!network.scene.pactl(&["list", "short", "clients"]).contains("other"));
}

#[test]
fn programs_over_tcp_get_no_shared_memory() {
    let network = Network::new();
    let mut socket = network.connect();
    let cookie = std::fs::read(network.cookie()).expect("a cookie");
    socket.write_all(&auth(&cookie)).expect("sent");
    assert_eq!(answer(&mut socket), b"L\0\0\0\x02L\0\0\0\x07L\0\0\0\x23");
}

#[test]
fn any_program_over_tcp_is_let_in_where_that_was_asked_for() {
    let network = Network::with(&["--tcp", "127.0.0.1:0", "--anonymous"]);
    let other = network.scene.server.directory().join("other-cookie");
    network.run(&other, "pactl", &["info"]).expect_success();
    let mut socket = network.connect();
    socket.write_all(&auth(&[])).expect("sent");
    assert_eq!(answer(&mut socket), b"L\0\0\0\x02L\0\0\0\x07L\0\0\0\x23");
}

#[test]
fn the_cookie_is_the_one_that_an_option_names() {
    let directory = tempfile::TempDir::with_prefix("consort-cookie-").expect("room");
    let cookie = directory.path().join("mine");
    std::fs::write(&cookie, [5; COOKIE_BYTES]).expect("room");
    let network = Network::with(&["--tcp", "127.0.0.1:0", "--cookie", path(&cookie)]);
    network.run(&cookie, "pactl", &["info"]).expect_success();
    assert!(!network.cookie().exists());
}

#[test]
fn without_a_cookie_there_is_no_way_in_over_tcp() {
    let scene = Scene::new();
    let song = scene.file("song.wav", &ramps(4800));
    let length = song.metadata().expect("a file").len();
    let socket = scene.server.directory().join("second");
    let options = ["pulse", "--socket", path(&socket), "--tcp", "127.0.0.1:0", "--cookie"];
    let refused = scene.server.consort(&[&options[..], &[path(&song)]].concat());
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("is not a cookie"), "{}", refused.stderr);
    assert_eq!(song.metadata().expect("a file").len(), length);
}

#[test]
fn programs_of_this_user_need_no_cookie_even_if_it_cannot_be_read() {
    let directory = tempfile::TempDir::with_prefix("consort-test-").expect("room");
    let cookie = directory.path().join(".config/pulse/cookie");
    // In the place of the file.
    std::fs::create_dir_all(&cookie).expect("room");
    let mut scene = Scene::in_directory(directory, &SERVER, &[]);
    assert!(scene.pactl(&["info"]).contains("consort"));
    eventually("it is reported", || {
        scene.front_end.stderr().contains("is not a cookie").then_some(())
    });
}

#[test]
fn connections_over_tcp_that_say_nothing_hold_up_no_other_and_are_ended() {
    let network = Network::new();
    // More than one address may have, some of which have begun to speak.
    let begun = auth(&[0; COOKIE_BYTES]);
    let mut silent: Vec<TcpStream> = (0..200).map(|_| network.connect()).collect();
    for (cut, socket) in silent.iter_mut().take(100).enumerate() {
        socket.write_all(&begun[..cut]).expect("sent");
    }
    assert!(silent[128..].iter_mut().all(has_ended), "more than one address may have");
    let first = &mut silent[0];
    first.set_nonblocking(true).expect("a socket");
    assert_eq!(first.read(&mut [0]).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    first.set_nonblocking(false).expect("a socket");
    // Programs of other addresses, and of this machine, have theirs.
    let cookie = std::fs::read(network.cookie()).expect("a cookie");
    let mut other = network.connect_from(2);
    other.write_all(&auth(&cookie)).expect("sent");
    assert_eq!(answer(&mut other), b"L\0\0\0\x02L\0\0\0\x07L\0\0\0\x23");
    let file = network.scene.file("short.wav", &ramps(4800));
    network.scene.run("paplay", &[path(&file)]).expect_success();
    assert!(silent[..128].iter_mut().all(has_ended), "they have had their time");
    network.run(&network.cookie(), "pactl", &["info"]).expect_success();
}

#[test]
fn a_first_packet_over_tcp_is_short() {
    let network = Network::new();
    let mut socket = network.connect();
    // Answered with a refusal if it were read to its end.
    socket.write_all(&packet(8, &[0; 5000])).expect("sent");
    let mut sent = Vec::new();
    let _ = socket.read_to_end(&mut sent);
    assert_eq!(sent, b"");
}

#[test]
fn a_program_over_tcp_that_never_reads_is_noticed_by_no_other() {
    harness::in_three_attempts(|| {
        let network = Network::new();
        let sound = ramps(3 * RATE_HZ as usize);
        let file = network.scene.file("played.wav", &sound);
        let player = network.spawn(&network.cookie(), "paplay", &[path(&file)]);
        eventually("it plays", || {
            network.scene.pactl(&["list", "short", "sinks"]).contains("RUNNING").then_some(())
        });
        let cookie = std::fs::read(network.cookie()).expect("a cookie");
        let mut deaf: Vec<TcpStream> = (0..8).map(|_| network.connect()).collect();
        for socket in &mut deaf {
            socket.set_write_timeout(Some(Duration::from_millis(100))).expect("a timeout");
            socket.write_all(&auth(&cookie)).expect("sent");
            for _ in 0..200_000 {
                if socket.write_all(&packet(22, b"")).is_err() {
                    break;
                }
            }
        }
        assert!(network.scene.pactl(&["info"]).contains("consort"));
        player.finish().expect_success();
        compare(&network.scene.recorded(), &sound.channels)
    });
}

#[test]
fn a_program_of_another_user_needs_the_cookie_where_it_reaches_the_socket() {
    if !rustix::process::getuid().is_root() {
        return harness::not_run("only root can be two users");
    }
    let scene = Scene::new();
    let set_mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("ours");
    };
    let socket = scene.socket();
    let open = tempfile::TempDir::with_prefix("consort-other-").expect("room");
    set_mode(open.path(), 0o777);
    let copy = open.path().join("cookie");
    std::fs::copy(scene.server.directory().join(".config/pulse/cookie"), &copy).expect("made");
    set_mode(&copy, 0o644);
    let as_another = |cookie: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--", "pactl"]);
        command.arg("info").env("HOME", open.path()).env_remove("XDG_RUNTIME_DIR");
        command.env("PULSE_SERVER", format!("unix:{}", socket.display()));
        command.env("PULSE_COOKIE", open.path().join(cookie)).current_dir("/");
        Program::start(command).finish()
    };
    let by_modes = as_another("cookie");
    assert_ne!(by_modes.code, Some(0), "the socket is this user's: {by_modes:?}");
    for path in [scene.server.directory(), socket.parent().expect("a file"), &socket] {
        set_mode(path, 0o777);
    }
    as_another("cookie").expect_success();
    let refused = as_another("none");
    assert!(refused.stderr.contains("Access denied"), "{refused:?}");
}

#[test]
fn a_module_lets_programs_in_over_tcp_as_its_arguments_say() {
    let mut scene = Scene::with(&SERVER);
    let cookie = scene.server.directory().join(".config/pulse/cookie");
    let none = scene.server.directory().join("no-cookie");
    std::fs::write(&none, [1; COOKIE_BYTES]).expect("written");
    // Nothing listens there any more.
    let free = || {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
        socket.local_addr().expect("its address").port()
    };
    let load = |further: &[&str]| {
        let port = free();
        let at = format!("port={port}");
        let arguments = ["load-module", "module-native-protocol-tcp", "listen=127.0.0.1", &at];
        let index = scene.pactl(&[&arguments[..], further].concat()).trim().to_owned();
        (index, port)
    };
    let with_cookie = load(&[]);
    let open = load(&["auth-anonymous=1"]);
    let to_this_machine = load(&["auth-ip-acl=192.0.2.0/24;127.0.0.0/8"]);
    let to_others = load(&["auth-ip-acl=192.0.2.0/24", "auth-cookie-enabled=0"]);
    let info = |port: u16, cookie: &Path| {
        let mut command = scene.server.command("pactl");
        command.arg("info").env("PULSE_SERVER", format!("tcp:127.0.0.1:{port}"));
        command.env("PULSE_COOKIE", cookie);
        Program::start(command).finish()
    };
    for (port, cookie, is_let_in) in [
        (with_cookie.1, &cookie, true),
        (with_cookie.1, &none, false),
        (open.1, &none, true),
        (to_this_machine.1, &none, true),
        (to_others.1, &cookie, false),
    ] {
        let finished = info(port, cookie);
        let text = format!("{}{}", finished.stdout, finished.stderr);
        assert_eq!(text.contains("Server Name: consort"), is_let_in, "{port}: {text}");
    }
    let taken = format!("port={}", open.1);
    let refused = scene
        .run("pactl", &["load-module", "module-native-protocol-tcp", "listen=127.0.0.1", &taken]);
    assert_eq!(refused.stderr, "Failure: Module initialization failed\n");
    let mut inside = TcpStream::connect(("127.0.0.1", open.1)).expect("connected");
    inside.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    inside.write_all(&auth(&[1; COOKIE_BYTES])).expect("sent");
    answer(&mut inside);
    scene.pactl(&["unload-module", &open.0]);
    assert!(has_ended(&mut inside), "those that came in by it are disconnected");
    eventually("nothing listens there", || {
        TcpStream::connect(("127.0.0.1", open.1)).err().map(|_| ())
    });
    let reason = "cannot listen at 127.0.0.1";
    eventually(reason, || scene.front_end.stderr().contains(reason).then_some(()));
}
