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

    fn with(script: &str) -> Option<Self> {
        let script = format!("{script} && echo there && exec sleep infinity");
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", &script]);
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

    /// The same command inside.
    pub(crate) fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--net=/proc/{}/ns/net", self.holder.id()));
        inside.arg(command.get_program()).args(command.get_args());
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
        let mut scene = Scene::new();
        scene.front_end.signal(rustix::process::Signal::KILL);
        eventually("it has ended", || (!scene.front_end.is_running()).then_some(()));
        let command = scene.server.consort_command(&["pulse"]);
        scene.front_end = Program::start(self.inside(&command));
        eventually("it answers", || {
            scene.run("pactl", &["info"]).stdout.contains("consort").then_some(())
        });
        scene
    }
}
