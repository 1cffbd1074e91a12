//! A call by Mumble, through a server of its own: what one says, the other hears.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use harness::{Program, Sound, eventually, in_three_attempts, not_run, tone};

use crate::modules::recorded;
use crate::programs::{await_streams, screen};
use crate::tunnels::{distortion_db, free_port};
use crate::{RATE_HZ, Scene, is_installed, path};

const SERVER: &str = "/usr/sbin/murmurd";
/// Each sings another tone, Hz.
const SPEAKERS: [(&str, f64); 2] = [("alice", 600.0), ("bob", 1_500.0)];

/// How long each does: longer than all that is waited for meanwhile.
const VOICE_SECONDS: usize = 90;

/// Its settings: no dialogs of a first start, and nothing that takes a tone for noise. A gain of 1
/// is the most that may be applied.
const SETTINGS: &str = "\
[General]
lastupdate=2
[audio]
input=PulseAudio
output=PulseAudio
transmit=0
quality=96000
loudness=30000
noisesupress=0
denoise=false
echo=false
positional=false
attenuateothers=false
[net]
qos=false
[tts]
enable=false
[shortcut]
enable=false
[ui]
updatecheck=false
plugincheck=false
usage=false
askonquit=false
";

/// Notes in a program's database that it trusts a server's certificate.
const TRUST: &str = "
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as database:
    database.execute('CREATE TABLE `cert` (`id` INTEGER PRIMARY KEY AUTOINCREMENT,'
                     ' `hostname` TEXT, `port` INTEGER, `digest` TEXT)')
    database.execute('INSERT INTO `cert` (`hostname`, `port`, `digest`) VALUES (?, ?, ?)',
                     ('127.0.0.1', int(sys.argv[2]), sys.argv[3]))
";

/// A key, and a certificate that it has signed itself.
struct Identity {
    key: PathBuf,
    certificate: PathBuf,
}

impl Identity {
    fn make(scene: &Scene, name: &str) -> Self {
        let file = |kind: &str| scene.server.directory().join(format!("{name}.{kind}"));
        let (key, certificate) = (file("key"), file("pem"));
        let subject = format!("/CN={name}");
        let kind = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30"];
        let files = ["-subj", &subject, "-keyout", path(&key), "-out", path(&certificate)];
        scene.run("openssl", &[&kind[..], &files].concat()).expect_success();
        Self { key, certificate }
    }

    /// The digest by which a program knows it: SHA-1, in hexadecimal digits.
    fn digest(&self, scene: &Scene) -> String {
        let arguments = ["x509", "-noout", "-fingerprint", "-sha1", "-in", path(&self.certificate)];
        let printed = scene.run("openssl", &arguments).expect_success().stdout;
        let (_, digits) = printed.trim().split_once('=').expect("a fingerprint");
        digits.replace(':', "").to_lowercase()
    }

    /// Writes both into one file, as programs take them.
    fn export(&self, scene: &Scene, to: &Path) {
        let from = ["-inkey", path(&self.key), "-in", path(&self.certificate)];
        let arguments = [&["pkcs12", "-export", "-passout", "pass:"], &from[..]].concat();
        scene.run("openssl", &[&arguments[..], &["-out", path(to)]].concat()).expect_success();
    }
}

/// A server on a port of its own that logs on its standard error. Without `uname`, one that
/// root starts would change to the user of Debian's service, who may not write here.
fn start_server(scene: &Scene, identity: &Identity, port: u16) -> Program {
    let directory = scene.server.directory();
    let settings = format!(
        "uname=root\ndatabase={}\nport={port}\nhost=127.0.0.1\nbandwidth=130000\n\
         allowping=false\nbonjour=false\nsslCert={}\nsslKey={}\n",
        path(&directory.join("murmur.sqlite")),
        path(&identity.certificate),
        path(&identity.key),
    );
    let file = directory.join("murmur.ini");
    std::fs::write(&file, settings).expect("written");
    let mut server = scene.spawn(SERVER, &["-fg", "-ini", path(&file)]);
    eventually("the server listens", || {
        assert!(server.is_running(), "{}", server.stderr());
        std::net::TcpStream::connect(("127.0.0.1", port)).ok()
    });
    server
}

/// A program that calls at once, with a microphone and loudspeakers of its own, which are sinks.
fn call(scene: &Scene, name: &str, display: &str, (port, digest): (u16, &str)) -> Command {
    let home = scene.server.directory().join(name);
    let make = |directory: &str| {
        let directory = home.join(directory);
        std::fs::create_dir_all(&directory).expect("a directory");
        directory
    };
    let devices = format!("[pulseaudio]\ninput={name}-says.monitor\noutput={name}-hears\n");
    let settings = make(".config/Mumble").join("Mumble.conf");
    std::fs::write(settings, format!("{SETTINGS}{devices}")).expect("written");
    // It takes it from there instead of asking for one.
    let certificate = make("Documents").join("MumbleAutomaticCertificateBackup.p12");
    Identity::make(scene, name).export(scene, &certificate);
    let database = make(".local/share/Mumble/Mumble").join("mumble.sqlite");
    let trust = ["-c", TRUST, path(&database), &port.to_string(), digest];
    scene.run("/usr/bin/python3", &trust).expect_success();
    let url = format!("mumble://{name}@127.0.0.1:{port}/?version=1.2.0");
    let mut command = scene.command("mumble", &["--multiple", &url]);
    command.env("HOME", &home).env("DISPLAY", display).env_remove("XDG_DATA_HOME");
    // Not one of another program, nor one that it would start.
    command.env("DBUS_SESSION_BUS_ADDRESS", "disabled:");
    command
}

/// Checks that a tone is heard, and nothing as loud besides.
fn check_tone(sound: &Sound, frequency_hz: f64) -> Result<(), String> {
    let sounding = sound.sounding(0);
    let (found, frames) = (sounding.frequency_hz(0), sounding.channels[0].len());
    let (level, rest) = (sounding.rms(0), distortion_db(&sounding.channels[0], frequency_hz));
    let is_right = (found - frequency_hz).abs() < 2.0 && frames > 2 * RATE_HZ as usize;
    if is_right && level > 0.01 && rest < -30.0 {
        return Ok(());
    }
    Err(format!(
        "{found} Hz instead of {frequency_hz} in {frames} frames, level {level}, the rest {rest} dB"
    ))
}

#[test]
fn each_of_two_programs_of_mumble_plays_what_the_other_records() {
    if !is_installed("mumble") || !is_installed("Xvfb") {
        return;
    }
    if !Path::new(SERVER).exists() {
        return not_run("mumble-server is not installed; 'cargo xtask setup' installs it");
    }
    in_three_attempts(|| {
        let scene = Scene::new();
        let (_screen, display) = screen(&scene);
        let port = free_port();
        let identity = Identity::make(&scene, "server");
        let digest = identity.digest(&scene);
        let mut server = start_server(&scene, &identity, port);
        for (name, _) in SPEAKERS {
            for sink in ["says", "hears"] {
                scene.load(&["module-null-sink", &format!("sink_name={name}-{sink}")]);
            }
        }
        let calls = SPEAKERS.map(|(name, _)| call(&scene, name, &display, (port, &digest)));
        let calls = calls.map(Program::start);
        eventually("both have joined", || {
            (server.stderr().matches("Authenticated").count() == 2).then_some(())
        });
        await_streams(&scene, "source-outputs", 2);
        let voices = SPEAKERS.map(|(name, frequency_hz)| {
            let voice = tone(frequency_hz, RATE_HZ, VOICE_SECONDS * RATE_HZ as usize);
            let file = scene.file(&format!("{name}.wav"), &Sound::of(RATE_HZ, &[voice]));
            scene.spawn("paplay", &[&format!("--device={name}-says"), path(&file)])
        });
        await_streams(&scene, "sink-inputs", 4);
        // The voices are on their way, and what is played at a beginning is over.
        std::thread::sleep(Duration::from_secs(2));
        let heard = SPEAKERS.map(|(name, _)| scene.record_all(&format!("{name}-hears.monitor"), 2));
        let [by_alice, by_bob] = heard.map(recorded);
        for program in calls.into_iter().chain(voices) {
            program.terminate();
        }
        server.terminate();
        let [(_, alice_hz), (_, bob_hz)] = SPEAKERS;
        check_tone(&by_alice, bob_hz)?;
        check_tone(&by_bob, alice_hz)
    });
}
