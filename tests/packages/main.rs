//! The Debian packages, on a fresh Debian 12: installed, used by a user who logs in, upgraded and
//! purged.
#![forbid(unsafe_code)]

mod debian;
mod desktop;
mod narrow;
mod settings;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{Sound, eventually, tone};

use debian::{Booted, Debian, packages};

/// Installs what lies in the machine's directory of packages, with the packages that are named. An
/// index that a mirror lacks is no failure, unless it is needed.
fn install(with: &str) -> String {
    format!(
        "apt-get update --quiet=2; \
         apt-get install --quiet=2 --yes --no-install-recommends /opt/packages/*.deb {with}"
    )
}

/// What `apt-get` would install of other sound servers.
const OTHER_SERVERS: [&str; 6] =
    ["jackd1", "jackd2 ", "pulseaudio ", "pipewire ", "pipewire-pulse", "pipewire-jack"];

#[test]
fn programs_play_through_the_packages_without_configuration() {
    let Some(debian) = Debian::make() else { return };
    let built: Vec<PathBuf> =
        packages().into_iter().filter(|path| !path.to_string_lossy().contains("-dev_")).collect();
    let narrow = built.iter().find(|package| narrow::is_narrow(package));
    let (_, wide): (Vec<_>, Vec<_>) =
        built.iter().cloned().partition(|package| narrow::is_narrow(package));
    debian.take(&wide);
    expect_no_second_server(&debian);
    desktop::install(&debian);
    // Debian's example programs come with its server, which may be installed beside ours.
    debian.run(&install("jackd2 pulseaudio-utils alsa-utils")).expect_success();
    desktop::expect_pipewire_without_sound(&debian);
    narrow::install(&debian, narrow);
    expect_notices(&debian);

    let Some(booted) = debian.boot() else { return };
    expect_first_program_starts_a_server(&debian, &booted);
    expect_pulseaudio(&debian, &booted);
    expect_alsa(&debian, &booted);
    narrow::expect_sound(&debian, &booted);
    desktop::expect_session_manager_without_cards(&booted);
    expect_dbus(&booted);
    expect_setup(&booted);
    expect_upgrade_while_it_plays(&debian, &booted, &built);
    booted.power_off();

    let Some(booted) = debian.boot() else { return };
    expect_sound(&debian, &booted);
    booted.power_off();

    expect_nothing_left(&debian);
}

/// Programs that need a JACK, or bring one along, bring no server.
fn expect_no_second_server(debian: &Debian) {
    debian.run("apt-get update --quiet=2").expect_success();
    let script = "apt-get install --simulate /opt/packages/*.deb qjackctl ardour mpv firefox-esr \
                  pavucontrol";
    let simulated = debian.run(script).expect_success().stdout;
    assert!(simulated.contains("Inst libjack-consort0 "), "{simulated}");
    for server in OTHER_SERVERS {
        assert!(!simulated.contains(&format!("Inst {server}")), "{server}: {simulated}");
    }
}

/// The licences of what is linked are in the packages that have it.
fn expect_notices(debian: &Debian) {
    for (package, linked) in [("consort", "plotters 0."), ("libjack-consort0", "rustix 1.")] {
        let file = format!("/usr/share/doc/{package}/third-party-notices.txt.gz");
        let text = debian.run(&format!("zcat {file}")).expect_success().stdout;
        assert!(text.contains(&format!("\n{linked}")), "{package}");
        assert!(text.contains("\nthe standard library of rustc "), "{package}");
    }
}

/// A user logs in, and starts a program of JACK: that is all.
fn expect_first_program_starts_a_server(debian: &Debian, booted: &Booted) {
    let before = booted.user("systemctl --user is-active consort.service");
    assert_eq!(before.stdout, "inactive\n", "no server runs before it is needed");
    expect_sound(debian, booted);
    let linked = booted.user("ldd $(command -v jack_metro)").expect_success().stdout;
    assert!(linked.contains("/consort/libjack.so.0"), "{linked}");
    let examined = booted.user("consort doctor").stdout;
    assert!(examined.starts_with("good   libjack "), "{examined}");
}

/// What a metronome plays into the graph is recorded there by another program.
fn expect_sound(debian: &Debian, booted: &Booted) {
    let metronome = booted.user_starts("exec jack_metro --bpm 300");
    await_program(booted, "metro");
    let script = "rm -f recorded.wav; jack_rec -f recorded.wav -d 2 -b 32 metro:300_bpm";
    booted.user(script).expect_success();
    let recorded = Sound::read(&debian.path("/home/musician/recorded.wav"));
    assert!(recorded.peak(0) > 0.1, "the metronome is heard: {}", recorded.peak(0));
    drop(metronome);
    booted.user("pkill jack_metro; consort stop").expect_success();
}

fn await_program(booted: &Booted, name: &str) {
    eventually(&format!("{name} runs in the graph"), || {
        let status = booted.user("consort status").stdout;
        let mut lines = status.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.any(|words| words.starts_with(&[name]) && words.contains(&"active")).then_some(())
    });
}

/// A program of PulseAudio plays in the same graph, with nothing set either.
fn expect_pulseaudio(debian: &Debian, booted: &Booted) {
    let sound = Sound::of(48_000, &[tone(440.0, 48_000, 960_000), tone(660.0, 48_000, 960_000)]);
    sound.write(&debian.path("/home/musician/tone.wav"));
    let server = booted.user("pactl info").expect_success().stdout;
    assert!(server.contains("Server Name: consort\n"), "{server}");
    let playing = booted.user_starts("exec paplay tone.wav");
    eventually("paplay is connected to the device", || {
        let ports = booted.user("jack_lsp -c").stdout;
        ports.contains("paplay:output_FL\n   system:playback_1\n").then_some(())
    });
    // A program of JACK hears it.
    booted.user("jack_rec -f heard.wav -d 2 -b 32 paplay:output_FL").expect_success();
    let heard = Sound::read(&debian.path("/home/musician/heard.wav")).sounding(0);
    assert!((heard.frequency_hz(0) - 440.0).abs() < 5.0, "{} Hz", heard.frequency_hz(0));
    drop(playing);
    booted.user("pkill paplay; consort stop").expect_success();
}

/// Programs of ALSA play in the same graph, with nothing set: on its default device as streams, and
/// on the device `jack` as clients with cycles.
fn expect_alsa(debian: &Debian, booted: &Booted) {
    // The server was stopped: its front end has a sink again once it has found the next one.
    eventually("there is a device to play on", || {
        booted.user("pactl list short sinks").stdout.contains("consort").then_some(())
    });
    for (device, player) in [("", "[aplay]:output_FL"), ("-D plug:jack", "aplay.P.")] {
        let mut playing = booted.user_starts(&format!("exec aplay --quiet {device} tone.wav"));
        let port = eventually("aplay is connected to the device", || {
            assert!(playing.is_running(), "aplay {device}: {}", playing.stderr());
            let ports = booted.user("jack_lsp -c").stdout;
            let mut lines = ports.lines().zip(ports.lines().skip(1));
            let is_aplays = |port: &str| port.contains(player) && !port.starts_with(' ');
            let found = lines.find(|(port, to)| is_aplays(port) && *to == "   system:playback_1");
            found.map(|(port, _)| port.to_owned())
        });
        booted.user(&format!("jack_rec -f heard.wav -d 2 -b 32 '{port}'")).expect_success();
        let heard = Sound::read(&debian.path("/home/musician/heard.wav")).sounding(0);
        assert!((heard.frequency_hz(0) - 440.0).abs() < 5.0, "{} Hz", heard.frequency_hz(0));
        drop(playing);
        booted.user("pkill aplay");
    }
    // Without the session's socket there is no server to play on, and no card here either.
    let alone = booted.user("env -u XDG_RUNTIME_DIR aplay --quiet tone.wav");
    assert!(alone.stderr.contains("sysdefault") || alone.stderr.contains("card"), "{alone:?}");
}

/// Debian's tool for jackdbus finds ours.
fn expect_dbus(booted: &Booted) {
    let printed = booted.user("jack_control start && jack_control status").expect_success().stdout;
    assert!(printed.contains("started"), "{printed}");
    booted.user("jack_control exit").expect_success();
}

/// Root sets the user up for a studio: the server has the options, the user the right. And undone.
fn expect_setup(booted: &Booted) {
    let machine = || {
        let list = "-printf '%p %y %m %u\\n' | sort";
        let (home, ours) = ("/home/musician/.config /home/musician/.local", "-name '*consort*'");
        let script = format!("find {home} {list}; find /etc /var/lib {ours} {list}");
        booted.run(&format!("cat /etc/group /etc/gshadow; {script}")).stdout
    };
    let before = machine();
    let setup = "consort setup --user musician";
    booted.run(&format!("{setup} --card none --for studio --yes")).expect_success();
    assert!(booted.run("id -nG musician").stdout.contains("realtime"));
    // As the command says: a server that runs keeps the options that it was started with.
    booted.user("consort stop; jack_lsp").expect_success();
    let status = booted.user("consort status").expect_success().stdout;
    assert!(status.contains("quantum  128 frames"), "{status}");
    booted.run(&format!("{setup} --undo")).expect_success();
    let after = machine();
    assert_eq!(after, before);
}

/// Programs keep playing while the packages are replaced, and the new server takes them over.
fn expect_upgrade_while_it_plays(debian: &Debian, booted: &Booted, built: &[PathBuf]) {
    let metronome = booted.user_starts("exec jack_metro --bpm 300");
    await_program(booted, "metro");
    let player = booted.user_starts("exec pacat --raw /dev/zero");
    let await_player = || {
        eventually("the player of PulseAudio plays", || {
            booted.user("jack_lsp").stdout.contains("pacat:output_FL\n").then_some(())
        });
    };
    await_player();
    let processes = || {
        let process =
            |unit| booted.user(&format!("systemctl --user show --property MainPID {unit}")).stdout;
        let programs = booted.user("pgrep jack_metro; pgrep pacat").stdout;
        (process("consort.service"), (process("consort-pulse.service"), programs))
    };
    let before = processes();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let newer: Vec<PathBuf> = built.iter().map(|old| next_version(old, directory.path())).collect();
    fs::remove_dir_all(debian.path("/opt/packages")).expect("removed");
    fs::create_dir(debian.path("/opt/packages")).expect("a directory");
    debian.take(&newer);
    booted.run(&install("")).expect_success();
    let version = "dpkg-query --show --showformat '${Version}' consort";
    assert_eq!(booted.run(version).stdout, NEXT);
    await_program(booted, "metro");
    await_player();
    let after = processes();
    assert_ne!(after.0, before.0, "another server runs");
    assert_eq!(after.1, before.1, "the same programs play, of PulseAudio through the same process");
    drop((metronome, player));
    booted.user("pkill jack_metro; pkill pacat").expect_success();
    eventually("the front end ends with its server and its programs", || {
        // While it has not noticed that its last program has gone, it has the next server started.
        booted.user("consort stop");
        let state = booted.user("systemctl --user is-active consort-pulse.service").stdout;
        (state == "inactive\n").then_some(())
    });
}

/// The version that is upgraded to.
const NEXT: &str = "99.0";

/// The same package under the version [`NEXT`], in `directory`.
fn next_version(package: &Path, directory: &Path) -> PathBuf {
    let name = package.file_name().expect("a file");
    let (content, newer) = (directory.join("content"), directory.join(name));
    let dpkg_deb = |arguments: &[&Path]| {
        let status = Command::new("dpkg-deb").args(arguments).status().expect("dpkg-deb runs");
        assert!(status.success());
    };
    dpkg_deb(&[Path::new("--raw-extract"), package, &content]);
    let control = content.join("DEBIAN/control");
    let text = fs::read_to_string(&control).expect("a control file");
    let version = text.lines().find_map(|line| line.strip_prefix("Version: "));
    let version = version.expect("a version").to_owned();
    let text = text
        .replace(&format!("Version: {version}\n"), &format!("Version: {NEXT}\n"))
        .replace(&format!("(= {version})"), &format!("(= {NEXT})"));
    fs::write(&control, text).expect("written");
    dpkg_deb(&[Path::new("--build"), Path::new("-Znone"), &content, &newer]);
    fs::remove_dir_all(&content).expect("removed");
    newer
}

/// Without the packages, Debian's JACK has all of its files, and nothing of ours remains.
fn expect_nothing_left(debian: &Debian) {
    desktop::expect_pipewire_takes_sound_back(debian);
    debian.run("rm -r /opt/packages && apt-get purge --yes '?name(consort)'").expect_success();
    let verified = debian.run("dpkg --verify jackd2 libjack-jackd2-0").expect_success();
    assert_eq!(verified.stdout, "", "files of Debian's JACK differ");
    let linked = debian.run("ldd $(command -v jack_metro)").expect_success().stdout;
    assert!(linked.contains("libjack.so.0 => /lib/x86_64-linux-gnu/libjack.so.0"), "{linked}");
    let found = debian
        .run("find / -xdev -path /proc -prune -o -name '*consort*' -print; getent group realtime");
    assert_eq!(found.stdout, "", "something remains");
}
