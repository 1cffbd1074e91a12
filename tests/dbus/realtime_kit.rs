//! Real-time priorities for a user who may not take them.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};

use harness::{Program, binary, copy_program, eventually, library_directory};
use rustix::process::{Pid, Signal, getpriority_process};

use crate::bus::Bus;

const NOBODY: u32 = 65_534;

/// A stand-in for RealtimeKit: grants a priority of at most 20 to threads of a process that has
/// limited itself, and prints which; and a nice value of at least -15 to any.
const KIT: &str = r#"
import os, sys, dbus, dbus.service, dbus.mainloop.glib
from gi.repository import GLib
dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SystemBus()
name = dbus.service.BusName("org.freedesktop.RealtimeKit1", bus)
refuses = sys.argv[1] == "refuses"
class Kit(dbus.service.Object):
    @dbus.service.method("org.freedesktop.RealtimeKit1", in_signature="ttu", out_signature="", sender_keyword="sender")
    def MakeThreadRealtimeWithPID(self, process, thread, priority, sender):
        user = bus.call_blocking("org.freedesktop.DBus", "/", "org.freedesktop.DBus",
                                 "GetConnectionUnixUser", "s", [sender])
        limits = open(f"/proc/{process}/limits").read().split("Max realtime timeout")[1].split()
        if refuses or priority > 20 or limits[:2] != ["200000", "200000"] or os.stat(f"/proc/{process}/task/{thread}").st_uid != user:
            raise dbus.exceptions.DBusException("no such luck", name="org.freedesktop.DBus.Error.AccessDenied")
        os.sched_setscheduler(int(thread), os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(int(priority)))
        print("given", int(priority), flush=True)
    @dbus.service.method("org.freedesktop.RealtimeKit1", in_signature="tti", out_signature="")
    def MakeThreadHighPriorityWithPID(self, process, thread, nice):
        if refuses or nice < -15 or not os.path.exists(f"/proc/{process}/task/{thread}"):
            raise dbus.exceptions.DBusException("no such luck", name="org.freedesktop.DBus.Error.AccessDenied")
        os.setpriority(os.PRIO_PROCESS, int(thread), int(nice))
    @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="ss", out_signature="v")
    def Get(self, interface, name):
        return dbus.Int32(20) if name == "MaxRealtimePriority" else dbus.Int64(200000)
Kit(bus, "/org/freedesktop/RealtimeKit1")
print("serves", flush=True)
GLib.MainLoop().run()
"#;

fn kit(bus: &Bus, manner: &str) -> Program {
    let mut command = bus.command("/usr/bin/python3");
    command.args(["-c", KIT, manner]);
    let mut kit = Program::start(command);
    eventually("it is on the bus", || {
        assert!(kit.is_running(), "{}", kit.stderr());
        kit.stdout().contains("serves").then_some(())
    });
    kit
}

/// Programs of an unprivileged user, and a directory of that user.
struct Unprivileged<'a>(&'a Bus);

impl<'a> Unprivileged<'a> {
    /// `None` if the test cannot act as two users, or cannot grant priorities.
    fn on(bus: &'a Bus) -> Option<Self> {
        if !rustix::process::getuid().is_root() {
            harness::not_run("only root can be two users");
            return None;
        }
        if bus.run("chrt", &["--rr", "1", "true"]).code != Some(0) {
            harness::not_run("root itself has no real-time priorities here");
            return None;
        }
        let all = Permissions::from_mode(0o755);
        std::fs::set_permissions(bus.directory(), all).expect("the directory is ours");
        // Other users may not read the project's directory.
        for file in [binary("consort"), library_directory().join("libjack.so.0")] {
            let name = file.file_name().expect("a file");
            copy_program(&file, bus.directory().join(name));
        }
        let home = bus.directory().join("home-of-nobody");
        std::fs::create_dir(&home).expect("a directory");
        std::fs::set_permissions(&home, Permissions::from_mode(0o700))
            .expect("the directory is ours");
        chown(&home, Some(NOBODY), Some(NOBODY)).expect("root may");
        Some(Self(bus))
    }

    fn start(&self, program: &str, arguments: &[&str]) -> Program {
        let home = self.0.directory().join("home-of-nobody");
        let mut command = self.0.command("prlimit");
        let nobody = NOBODY.to_string();
        command.args([
            "--rtprio=0",
            "setpriv",
            "--reuid",
            &nobody,
            "--regid",
            &nobody,
            "--clear-groups",
            "--",
        ]);
        command.arg(program).args(arguments).current_dir(&home);
        command.env("XDG_RUNTIME_DIR", &home).env("HOME", &home);
        command.env("LD_LIBRARY_PATH", self.0.directory());
        Program::start(command)
    }
}

fn consort(bus: &Bus) -> String {
    bus.directory().join("consort").to_string_lossy().into_owned()
}

/// Class and priority of the threads of a process that are real-time.
fn realtime(program: &Program) -> Vec<String> {
    let mut command = std::process::Command::new("ps");
    command.args(["-L", "-o", "cls=,rtprio=", "-p", &program.id().to_string()]);
    let printed = Program::start(command).finish().stdout;
    let threads = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    threads.filter(|thread| thread != "TS -").collect()
}

fn await_realtime(program: &Program, threads: &[&str]) {
    eventually(&format!("real-time: {threads:?}"), || (realtime(program) == threads).then_some(()));
}

#[test]
fn realtime_kit_gives_the_server_and_its_clients_priorities() {
    let bus = Bus::alone();
    let Some(user) = Unprivileged::on(&bus) else { return };
    let _kit = kit(&bus, "gives");
    let server =
        user.start(&consort(&bus), &["run", "--realtime-priority", "60", "--quantum", "256"]);
    await_realtime(&server, &["RR 20"]);
    let mut client = user.start("jack_simple_client", &["tone"]);
    await_realtime(&client, &["RR 15"]);
    client.signal(Signal::STOP);
    await_realtime(&client, &[]);
    client.signal(Signal::CONT);
    await_realtime(&client, &["RR 15"]);
    assert_eq!(client.stderr().matches("priority").count(), 0, "{}", client.stderr());
    user.start("jack_freewheel", &["y"]).finish().expect_success();
    await_realtime(&server, &[]);
    user.start("jack_freewheel", &["n"]).finish().expect_success();
    await_realtime(&server, &["RR 20"]);
    await_realtime(&client, &["RR 15"]);
}

#[test]
fn a_server_runs_without_the_priority_that_is_refused() {
    let bus = Bus::alone();
    let Some(user) = Unprivileged::on(&bus) else { return };
    let refusing = kit(&bus, "refuses");
    let said = |server: &mut Program| {
        await_server(server);
        server.stderr().to_owned()
    };
    let consort = consort(&bus);
    let mut server = user.start(&consort, &["run", "-n", "first"]);
    let text = said(&mut server);
    assert!(
        text.contains("without real-time priorities") && text.contains("no such luck"),
        "{text}"
    );
    assert_eq!(realtime(&server), [""; 0]);
    drop(refusing);
    let mut server = user.start(&consort, &["run", "-n", "second"]);
    let text = said(&mut server);
    assert!(text.contains("RealtimeKit gives none either"), "{text}");
}

fn await_server(server: &mut Program) {
    eventually("it runs", || server.stderr().contains("runs: timer").then_some(()));
}

/// Returns the nice value of a process's first thread.
fn nice(program: &Program) -> i32 {
    let process = Pid::from_raw(program.id().cast_signed()).expect("a process");
    getpriority_process(Some(process)).expect("it runs")
}

#[test]
fn realtime_kit_favours_the_server_and_its_front_end() {
    let bus = Bus::alone();
    let Some(user) = Unprivileged::on(&bus) else { return };
    let _kit = kit(&bus, "gives");
    let consort = consort(&bus);
    let mut server = user.start(&consort, &["run"]);
    await_server(&mut server);
    let mut front_end = user.start(&consort, &["pulse"]);
    for program in [&mut server, &mut front_end] {
        eventually("it is favoured", || {
            assert!(program.is_running(), "{}", program.stderr());
            (nice(program) == -11).then_some(())
        });
    }
}

#[test]
fn a_front_end_serves_without_a_priority_that_nobody_gives() {
    let bus = Bus::alone();
    let Some(user) = Unprivileged::on(&bus) else { return };
    let consort = consort(&bus);
    let mut server = user.start(&consort, &["run"]);
    await_server(&mut server);
    let mut front_end = user.start(&consort, &["pulse"]);
    eventually("it serves", || {
        user.start("pactl", &["info"]).finish().code.filter(|code| *code == 0)
    });
    assert_eq!(nice(&front_end), 0);
    assert!(front_end.is_running() && !front_end.stderr().contains("priorit"));
}
