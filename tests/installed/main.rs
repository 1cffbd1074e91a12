//! What `cargo xtask install` lays out works wherever it is moved to, with nothing else of this
//! repository.
#![forbid(unsafe_code)]

mod kernel;
mod tarball;
mod tree;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use harness::{Finished, Program, Sound, eventually, in_three_attempts};
use rustix::process::Signal;

use tree::Tree;

/// The C example, compiled with what pkg-config says of the tree and of no other JACK.
fn example(tree: &Tree) -> PathBuf {
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "jack"])
        .env("PKG_CONFIG_LIBDIR", tree.path("lib/pkgconfig"))
        .output()
        .expect("pkg-config runs; 'cargo xtask setup' installs it");
    let flags = String::from_utf8(flags.stdout).expect("text");
    let directories =
        flags.split_whitespace().filter_map(|flag| Path::new(flag.get(2..)?).canonicalize().ok());
    let directories: Vec<PathBuf> = directories.collect();
    assert_eq!(directories, [tree.path("include"), tree.path("lib")], "{flags}");
    let program = tree.outside("tone");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/jack/examples/tone.c");
    let compiled = Command::new("gcc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(source)
        .args(flags.split_whitespace())
        .arg("-lm")
        .status();
    assert!(compiled.expect("gcc runs; 'cargo xtask setup' installs it").success());
    program
}

fn run(command: Command) -> Finished {
    Program::start(command).finish()
}

#[test]
fn a_c_program_is_built_and_run_with_an_installed_tree() {
    let tree = Tree::install_and_move();
    tree.expect_layout();
    tree.expect_no_trace_of_the_build();
    expect_versions(&tree);
    let tone = example(&tree);
    expect_own_library(&tree, &tone);
    expect_service(&tree);
    expect_start_by_connection(&tree, &tone);
    expect_plug_ins_and_control(&tree);
    in_three_attempts(|| expect_sound(&tree, &tone));
    expect_server_of_its_own(&tree, &tone);
}

fn expect_versions(tree: &Tree) {
    let version = concat!("consort ", env!("CARGO_PKG_VERSION"), "\n");
    let mut command = tree.command("bin/consort");
    command.arg("--version");
    assert_eq!(run(command).expect_success().stdout, version);
    let mut command = tree.command("bin/jackd");
    command.arg("--version");
    let printed = run(command).expect_success().stdout;
    assert!(printed.starts_with("jackdmp version 1.9.22 "), "{printed}");
    let version = Command::new("pkg-config")
        .args(["--modversion", "jack"])
        .env("PKG_CONFIG_LIBDIR", tree.path("lib/pkgconfig"))
        .output()
        .expect("pkg-config runs");
    assert_eq!(version.stdout, b"1.9.22\n");
}

/// The units are valid, and the program that one of them starts reports when it is ready.
fn expect_service(tree: &Tree) {
    let mut command = tree.command_of(Path::new("systemd-analyze"));
    command.args(["--user", "--man=no", "verify"]);
    command.args(
        ["consort.service", "consort.socket", "consort-pulse.service", "consort-pulse.socket"]
            .map(|unit| tree.path("share/systemd/user").join(unit)),
    );
    let verified = run(command).expect_success();
    assert!(!verified.stderr.contains("consort."), "{}", verified.stderr);

    let place = tree.outside("run/notify");
    let manager = UnixDatagram::bind(&place).expect("a socket");
    manager.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let mut command = tree.command("bin/consort");
    command.args(["run", "-n", "service"]).env("NOTIFY_SOCKET", &place);
    let server = Program::start(command);
    let mut said = [0; 64];
    let bytes = manager.recv(&mut said).expect("it says that it is ready");
    assert_eq!(&said[..bytes], b"READY=1\n");
    server.terminate().expect_success();
}

/// A service manager listens on the socket of the unit, and passes it to the server with the first
/// program.
fn expect_start_by_connection(tree: &Tree, tone: &Path) {
    let name = "listened-for";
    let unit =
        fs::read_to_string(tree.path("share/systemd/user/consort.socket")).expect("the unit");
    let place = unit
        .lines()
        .find_map(|line| line.strip_prefix("ListenSequentialPacket=%t/"))
        .expect("a place");
    let place = tree.outside("run").join(place.replace("/default/", &format!("/{name}/")));
    fs::create_dir_all(place.parent().expect("a directory")).expect("a directory");
    let listening = |server: &str| {
        let mut command = tree.command_of(Path::new("systemd-socket-activate"));
        command
            .args(["-E", "XDG_RUNTIME_DIR", "-E", "HOME", "--seqpacket", "--listen"])
            .arg(&place);
        command.arg(tree.path("bin/consort")).args(["run", "-n", server]);
        let manager = Program::start(command);
        eventually("it listens", || place.exists().then_some(()));
        manager
    };
    let consort = |arguments: &[&str]| {
        let mut command = tree.command("bin/consort");
        command.args(arguments).args(["-n", name]);
        run(command)
    };
    let server = listening(name);
    let mut command = tree.command_of(tone);
    command.args(["440", "0.1"]).env("JACK_DEFAULT_SERVER", name).env("JACK_NO_START_SERVER", "1");
    command.env("LD_LIBRARY_PATH", tree.path("lib"));
    run(command).expect_success();
    consort(&["stop"]).expect_success();
    server.finish().expect_success();
    let left = fs::read_dir(place.parent().expect("a directory")).expect("a list").flatten();
    let left: BTreeSet<_> = left.map(|entry| entry.file_name()).collect();
    assert_eq!(
        left,
        ["control", "lock"].map(OsString::from).into(),
        "the manager's name, and no trace of a crash"
    );

    fs::remove_file(&place).expect("a socket");
    let misled = listening("of-another-name");
    assert_ne!(consort(&["status"]).code, Some(0));
    let refused = misled.finish();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("ListenSequentialPacket="), "{}", refused.stderr);
}

/// A program under `consort exec` finds the library of the same tree.
fn expect_own_library(tree: &Tree, tone: &Path) {
    let mut command = tree.command("bin/consort");
    command.args(["exec", "--", "ldd"]).arg(tone);
    let printed = run(command).expect_success().stdout;
    let library = format!("libjack.so.0 => {} (", tree.path("lib/libjack.so.0").display());
    assert!(printed.contains(&library), "{library}… is not in {printed}");
}

/// A plug-in finds the tree's libraries, and a program that controls servers the tree's server.
fn expect_plug_ins_and_control(tree: &Tree) {
    let mut command = tree.command_of(Path::new("jack_server_control"));
    command.args(["-d", "dummy"]).env("LD_LIBRARY_PATH", tree.path("lib"));
    let mut server = Program::start(command);
    eventually("the server runs", || {
        assert!(server.is_running(), "{}", server.stderr());
        server.stderr().contains("runs:").then_some(())
    });
    let mut command = tree.command("bin/consort");
    command.args(["exec", "--", "jack_load", "inprocess", "inprocess"]);
    run(command).expect_success();
    let mut command = tree.command("bin/consort");
    command.arg("ls");
    let listed = run(command).expect_success().stdout;
    assert!(listed.contains("inprocess:input"), "{listed}");
    server.signal(Signal::TERM);
    server.finish().expect_success();
}

/// A server of the tree records the tone.
fn expect_sound(tree: &Tree, tone: &Path) -> Result<(), String> {
    let recording = tree.outside("recorded.wav");
    let mut command = tree.command("bin/consort");
    command.args(["run", "-n", "studio", "--driver", "file", "--output"]).arg(&recording);
    let mut server = Program::start(command);
    eventually("the server runs", || {
        assert!(server.is_running(), "{}", server.stderr());
        server.stderr().contains("runs:").then_some(())
    });
    let mut command = tree.command("bin/consort");
    command.args(["-n", "studio", "exec", "--"]).arg(tone).args(["1000", "2"]);
    assert_eq!(run(command).expect_success().stdout, "tone plays to 2 inputs at 48000 Hz\n");
    server.signal(Signal::TERM);
    server.finish().expect_success();
    let recorded = Sound::read(&recording);
    for channel in [0, 1] {
        let heard = recorded.sounding(channel);
        // A busy machine may have taken cycles from it.
        let (frequency_hz, peak) = (heard.frequency_hz(0), heard.peak(0));
        if (frequency_hz - 1000.0).abs() > 20.0 || (peak - 0.5).abs() > 0.001 {
            return Err(format!("{frequency_hz} Hz with a peak of {peak}"));
        }
    }
    Ok(())
}

/// Where no server runs, `consort exec` starts one for the program, and so does the library:
/// `jackd` of the tree.
fn expect_server_of_its_own(tree: &Tree, tone: &Path) {
    let mut command = tree.command("bin/consort");
    command.args(["exec", "--"]).arg(tone).args(["1000", "0.1"]);
    assert_eq!(run(command).expect_success().stdout, "tone plays to 2 inputs at 48000 Hz\n");

    let line = format!("{} -T -d dummy -r 44100", tree.path("bin/jackd").display());
    std::fs::write(tree.outside("home/.jackdrc"), line).expect("a start line");
    let mut command = tree.command_of(tone);
    command.args(["1000", "0.1"]).env("LD_LIBRARY_PATH", tree.path("lib"));
    assert_eq!(run(command).expect_success().stdout, "tone plays to 2 inputs at 44100 Hz\n");
}
