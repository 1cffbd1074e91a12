//! Machines that learn of each other's devices: two networks that are connected, each with Debian's
//! Avahi on a bus of its own.

use std::path::Path;
use std::process::Command;

use harness::{Program, Sound, eventually, in_three_attempts};
use tempfile::TempDir;

use crate::conformance::PulseAudio;
use crate::modules::{has_levels, recorded};
use crate::networks::Network;
use crate::{RATE_HZ, Scene, is_installed, path};

const BUS: &str = "DBUS_SYSTEM_BUS_ADDRESS";

/// A machine with a bus and Avahi on it.
struct Machine<'a> {
    network: &'a Network,
    // In the order in which they end.
    avahi: Option<Program>,
    _bus: Program,
    address: String,
    directory: TempDir,
}

impl<'a> Machine<'a> {
    fn new(network: &'a Network, name: &str) -> Self {
        let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
        let avahi = directory.path().join("avahi");
        let address = format!("unix:path={}", path(&directory.path().join("socket")));
        let host = format!(
            "[server]\nhost-name={name}\nuse-ipv6=no\nallow-interfaces=ether\n\
             [publish]\npublish-workstation=no\npublish-hinfo=no\n"
        );
        std::fs::write(&avahi, host).expect("written");
        let mut command = Command::new("dbus-daemon");
        command.args(["--session", "--nofork", &format!("--address={address}")]);
        let bus = Program::start(network.inside_with_run(&command));
        eventually("the bus is there", || directory.path().join("socket").exists().then_some(()));
        let mut machine = Self { network, avahi: None, _bus: bus, address, directory };
        machine.start_avahi();
        machine
    }

    fn start_avahi(&mut self) {
        let mut command = Command::new("avahi-daemon");
        command.args(["--no-drop-root", "--no-rlimits", "--no-chroot", "--file"]);
        command.arg(self.directory.path().join("avahi")).env(BUS, &self.address);
        let avahi = self.avahi.insert(Program::start(self.network.inside_with_run(&command)));
        eventually("Avahi runs", || {
            assert!(avahi.is_running(), "{}", avahi.stderr());
            avahi.stderr().contains("Server startup complete").then_some(())
        });
    }

    fn scene(&self) -> Scene {
        self.network.scene_with(|command| {
            command.env(BUS, &self.address);
        })
    }

    /// Debian's PulseAudio, which others may use.
    fn pulseaudio(&self, module: &str) -> PulseAudio {
        let tcp = "module-native-protocol-tcp auth-anonymous=1";
        PulseAudio::start_with(&["-L", tcp, "-L", module], |mut command| {
            self.network.inside(command.env(BUS, &self.address))
        })
    }
}

/// Publishes the devices of a front end, which anybody may use.
fn publish(scene: &Scene) -> String {
    scene.load(&["module-native-protocol-tcp", "auth-anonymous=1"]);
    scene.load(&["module-zeroconf-publish"])
}

/// Waits until there is a sink of this name, or none.
fn await_sink(scene: &Scene, name: &str, is_there: bool) {
    eventually(&format!("{name} is there: {is_there}"), || {
        let sinks = scene.pactl(&["list", "short", "sinks"]);
        (sinks.lines().any(|line| line.split('\t').nth(1) == Some(name)) == is_there).then_some(())
    });
}

fn has_avahi() -> bool {
    if !Path::new("/usr/sbin/avahi-daemon").exists() {
        harness::not_run("avahi-daemon is not installed");
        return false;
    }
    true
}

const FAR: &str = "tunnel.one.local.consort";

#[test]
fn a_sink_of_another_machine_is_heard_there_as_long_as_it_is_published() {
    if !has_avahi() {
        return;
    }
    in_three_attempts(|| {
        let Some([first, second]) = Network::pair() else { return Ok(()) };
        let (one, two) = (Machine::new(&first, "one"), Machine::new(&second, "two"));
        let (there, here) = (one.scene(), two.scene());
        let published = publish(&there);
        let discoverer = here.load(&["module-zeroconf-discover", "latency_msec=300"]);
        await_sink(&here, FAR, true);
        // What leads elsewhere is not published again.
        publish(&here);
        let heard = there.record_all("consort.monitor", 2);
        here.play_levels(FAR, &[0.5, -0.25]);
        has_levels(&recorded(heard), &[0.5, -0.25])?;
        there.pactl(&["unload-module", &published]);
        await_sink(&here, FAR, false);
        there.load(&["module-zeroconf-publish"]);
        await_sink(&here, FAR, true);
        here.pactl(&["unload-module", &discoverer]);
        await_sink(&here, FAR, false);
        Ok(())
    });
}

#[test]
fn what_is_published_is_there_again_when_avahi_is() {
    if !has_avahi() {
        return;
    }
    let Some([first, second]) = Network::pair() else { return };
    let (mut one, two) = (Machine::new(&first, "one"), Machine::new(&second, "two"));
    let (there, here) = (one.scene(), two.scene());
    publish(&there);
    here.load(&["module-zeroconf-discover"]);
    await_sink(&here, FAR, true);
    let avahi = one.avahi.take().expect("it runs");
    avahi.terminate();
    await_sink(&here, FAR, false);
    one.start_avahi();
    await_sink(&here, FAR, true);
    // A sink that comes later is published as well.
    there.load(&["module-null-sink", "sink_name=later"]);
    await_sink(&here, "tunnel.one.local.later", true);
}

#[test]
fn a_module_that_needs_avahi_is_refused_without() {
    let Some(network) = Network::new() else { return };
    let mut scene = network.scene_with(|command| {
        command.env(BUS, "unix:path=/nowhere");
    });
    scene.refused(&["module-zeroconf-discover"], "cannot reach the system bus");
    scene.refused(&["module-zeroconf-publish"], "load module-native-protocol-tcp before");
    scene.load(&["module-native-protocol-tcp", "auth-anonymous=1"]);
    scene.refused(&["module-zeroconf-publish"], "cannot reach the system bus");
}

#[test]
fn debians_pulseaudio_and_consort_find_each_other() {
    let module = "/usr/lib/pulse-16.1+dfsg1/modules/module-zeroconf-publish.so";
    if !has_avahi() || !is_installed("pulseaudio") {
        return;
    }
    if !Path::new(module).exists() {
        return harness::not_run("pulseaudio-module-zeroconf is not installed");
    }
    in_three_attempts(|| {
        let Some([first, second]) = Network::pair() else { return Ok(()) };
        let (one, two) = (Machine::new(&first, "one"), Machine::new(&second, "two"));
        let here = two.scene();
        {
            let there = one.pulseaudio("module-zeroconf-publish");
            here.load(&["module-zeroconf-discover"]);
            await_sink(&here, FAR, true);
            let heard = crate::tunnels::record_there(&there, "consort.monitor");
            here.play_levels(FAR, &[0.5, -0.25]);
            has_levels(&recorded(heard), &[0.5, -0.25])?;
            there.stop();
            await_sink(&here, FAR, false);
        }
        publish(&here);
        let there = one.pulseaudio("module-zeroconf-discover");
        eventually("PulseAudio has found the sink", || {
            let list = there.command("pactl", &["list", "short", "sinks"]);
            Program::start(list).finish().stdout.contains("tunnel.two.local.consort").then_some(())
        });
        let heard = here.record_all("consort.monitor", 2);
        let planes = [0.5, -0.25].map(|level| vec![level; 2 * RATE_HZ as usize]);
        let file = here.file("levels.wav", &Sound::of(RATE_HZ, &planes));
        let play = there.command("paplay", &["--device=tunnel.two.local.consort", path(&file)]);
        Program::start(play).finish().expect_success();
        let sound = recorded(heard);
        there.stop();
        has_levels(&sound, &[0.5, -0.25])
    });
}
