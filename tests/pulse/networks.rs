//! Networks of a test's own, in which nothing but what it makes is reached.

use std::process::Command;

use harness::{Program, eventually, not_run};

use crate::Scene;

/// A machine, as far as its network is concerned. It is there as long as this is.
pub(crate) struct Network {
    holder: Program,
}

impl Network {
    /// Groups are reached by the loopback interface. `None` if this user may make none.
    pub(crate) fn new() -> Option<Self> {
        Self::with("ip link set lo multicast on up && ip route add 224.0.0.0/4 dev lo")
    }

    /// Two that are connected: addresses 10.77.0.1 and 10.77.0.2, on `ether`.
    pub(crate) fn pair() -> Option<[Self; 2]> {
        let loopback = "mount -t tmpfs tmpfs /run && ip link set lo up";
        let pair = [Self::with(loopback)?, Self::with(loopback)?];
        let [one, two] = [&pair[0], &pair[1]].map(|network| network.holder.id().to_string());
        let add = ["link", "add", "ether", "netns", &*one, "type", "veth"];
        let peer = ["peer", "name", "ether", "netns", &*two];
        run(Command::new("ip").args(add).args(peer));
        for (network, address) in pair.iter().zip(["10.77.0.1/24", "10.77.0.2/24"]) {
            let ip = |words: &[&str]| run(&mut network.inside(Command::new("ip").args(words)));
            ip(&["address", "add", address, "dev", "ether"]);
            ip(&["link", "set", "ether", "up"]);
        }
        Some(pair)
    }

    fn with(script: &str) -> Option<Self> {
        let script = format!("{script} && echo there && exec sleep infinity");
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "sh", "-c", &script]);
        let mut holder = Program::start(command);
        let is_there = eventually("it is there, or not", || {
            let is_running = holder.is_running();
            (holder.stdout().contains("there") || !is_running).then_some(is_running)
        });
        if !is_there {
            not_run("'unshare --net' is not permitted here, or 'ip' is not installed");
            return None;
        }
        Some(Self { holder })
    }

    /// The same command inside, with the files outside.
    pub(crate) fn inside(&self, command: &Command) -> Command {
        self.enter(&[&*format!("--net=/proc/{}/ns/net", self.holder.id())], command)
    }

    /// The same with a `/run` of its own.
    pub(crate) fn inside_with_run(&self, command: &Command) -> Command {
        let holder = self.holder.id();
        let [net, mount] = ["net=/proc/N/ns/net", "mount=/proc/N/ns/mnt"]
            .map(|space| format!("--{}", space.replace('N', &holder.to_string())));
        self.enter(&[&net, &mount], command)
    }

    fn enter(&self, spaces: &[&str], command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.args(spaces).arg(command.get_program()).args(command.get_args());
        for (variable, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(variable, value),
                None => inside.env_remove(variable),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            inside.current_dir(directory);
        }
        inside
    }

    /// A server whose front end is inside.
    pub(crate) fn scene(&self) -> Scene {
        self.scene_with(|_| {})
    }

    /// The same, with a command of the front end that `prepare` has changed.
    pub(crate) fn scene_with(&self, prepare: impl FnOnce(&mut Command)) -> Scene {
        let mut scene = Scene::new();
        scene.front_end.signal(rustix::process::Signal::KILL);
        eventually("it has ended", || (!scene.front_end.is_running()).then_some(()));
        let mut command = scene.server.consort_command(&["pulse"]);
        prepare(&mut command);
        scene.front_end = Program::start(self.inside(&command));
        eventually("it answers", || {
            scene.run("pactl", &["info"]).stdout.contains("consort").then_some(())
        });
        scene
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("a program");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
