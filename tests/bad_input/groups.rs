//! A server for a group: only its members may be clients.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{
    Counts, Finished, Program, Server, binary, copy_program, eventually, library_directory,
};
use tempfile::TempDir;

use crate::wire::assert_says;

/// A group id that no system uses; ids need no entry.
const GROUP: &str = "47110815";
const NOBODY: &str = "65534";

/// A server for the group, and what another user needs to reach it.
struct Scenario {
    server: Server,
    /// A directory that any user may read, with the server's socket for the group.
    open: TempDir,
}

impl Scenario {
    /// `None` where this test cannot become another user.
    fn new(options: &[&str]) -> Option<Self> {
        if !rustix::process::getuid().is_root() {
            harness::not_run("only root can be two users");
            return None;
        }
        let open = TempDir::with_prefix("consort-group-").expect("room");
        std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o755))
            .expect("ours");
        let directory = TempDir::with_prefix("consort-test-").expect("room");
        let options = [&["--quantum", "256", "--group", GROUP], options].concat();
        let server = Server::start_with(directory, &options, |command| {
            command.env("CONSORT_GROUP_DIRECTORY", open.path());
        });
        let scenario = Self { server, open };
        scenario.copy(&binary("consort"), "consort");
        scenario.copy(&library_directory().join("libjack.so.0"), "libjack.so.0");
        Some(scenario)
    }

    fn copy(&self, file: &Path, name: &str) -> PathBuf {
        let copy = self.open.path().join(name);
        copy_program(file, &copy);
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).expect("ours");
        copy
    }

    /// Returns a command that runs `program` as a user with this group and these further ones.
    fn as_user(
        &self,
        program: &str,
        arguments: &[&str],
        group: &str,
        more: Option<&str>,
    ) -> Program {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", group]);
        match more {
            Some(groups) => command.args(["--groups", groups]),
            None => command.arg("--clear-groups"),
        };
        command.arg("--").arg(program).args(arguments);
        command
            .env("CONSORT_GROUP_DIRECTORY", self.open.path())
            .env("JACK_PROMISCUOUS_SERVER", GROUP)
            .env("JACK_DEFAULT_SERVER", "under-test")
            .env("JACK_NO_START_SERVER", "1")
            .env("LD_LIBRARY_PATH", self.open.path())
            .current_dir("/");
        Program::start(command)
    }

    fn status_as(&self, group: &str, more: Option<&str>) -> Finished {
        let consort = self.open.path().join("consort");
        self.as_user(&consort.to_string_lossy(), &["status"], group, more).finish()
    }

    /// The directory of the server's socket for the group.
    fn door(&self) -> PathBuf {
        self.open.path().join(format!("consort-group-{GROUP}-under-test"))
    }
}

#[test]
fn members_of_the_group_are_clients() {
    let Some(scenario) = Scenario::new(&[]) else { return };
    scenario.status_as(GROUP, None).expect_success();
    scenario.status_as(NOBODY, Some(GROUP)).expect_success();
    let _source = scenario.server.probe(&["source", "source"]);
    let probe = scenario.server.probe_command(&[]);
    let probe = scenario.copy(Path::new(probe.get_program()), "probe");
    let member = ["check", "member", "--from", "source:out"];
    let mut member = scenario.as_user(&probe.to_string_lossy(), &member, GROUP, None);
    eventually("the member's client is ready", || {
        assert!(member.is_running(), "{}", member.stderr());
        member.stdout().contains("ready\n").then_some(())
    });
    assert!(scenario.server.lsp(&[]).contains("member:in"), "the user's own programs see it");
    eventually("cycles go by", || (scenario.server.cycles() > 400).then_some(()));
    let counts = Counts::of(member);
    // One that is too late for its cycle may hear a later one.
    assert!(counts.good > 50 && counts.wrong <= counts.missed, "{counts:?}");
}

#[test]
fn a_member_of_the_group_has_only_the_policys_permissions() {
    let policy = TempDir::new().expect("room");
    let path = policy.path().join("policy");
    std::fs::write(&path, format!("record uid={NOBODY}\neverything uid=0\n")).expect("room");
    let Some(mut scenario) = Scenario::new(&["--policy", &path.to_string_lossy()]) else { return };
    scenario.status_as(GROUP, None).expect_success();
    let consort = scenario.open.path().join("consort");
    let refused = scenario.as_user(&consort.to_string_lossy(), &["stop"], GROUP, None).finish();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_says("a member", &refused.stderr, &["policy does not allow", "control the server"]);
    assert!(scenario.server.program().is_running());
    scenario.server.consort(&["stop"]).expect_success();
}

#[test]
fn a_member_has_no_plug_ins_run_as_the_user_whose_server_it_is() {
    let Some(scenario) = Scenario::new(&[]) else { return };
    let refused = scenario.as_user("jack_load", &["gain", "inprocess"], GROUP, None).finish();
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert_says("a member", &refused.stderr, &["does not allow", "run plug-ins"]);
    assert!(!scenario.server.lsp(&[]).contains("gain:"));
}

/// Other users' programs would write with their own rights where the member says.
#[test]
fn a_member_has_no_program_of_another_user_save() {
    let Some(scenario) = Scenario::new(&[]) else { return };
    let directory = scenario.open.path().join("session");
    std::fs::create_dir(&directory).expect("room");
    std::os::unix::fs::chown(&directory, NOBODY.parse().ok(), None).expect("root");
    let path = format!("{}/", directory.display());
    let as_member =
        |program: &str, arguments: &[&str]| scenario.as_user(program, arguments, GROUP, None);
    let mut of_user = scenario.server.spawn("jack_simple_session_client", &[]);
    scenario.server.await_connection("simple:output", "system:playback_1");
    let of_member = as_member("jack_simple_session_client", &[]);
    scenario.server.await_connection("simple-01:output", "system:playback_1");
    let asked = as_member("jack_session_notify", &["save", &path]).finish().expect_success();
    assert!(asked.stdout.contains("jack_simple_session_client"), "its own: {}", asked.stdout);
    assert!(directory.join("simple-01").is_dir());
    let by_name = format!(
        "import ctypes as c\n\
         jack = c.CDLL('libjack.so.0')\n\
         jack.jack_client_open.restype = jack.jack_session_notify.restype = c.c_void_p\n\
         client = c.c_void_p(jack.jack_client_open(b'asking', 1, None))\n\
         print(jack.jack_session_notify(client, b'simple', 1, b'{path}'))\n"
    );
    let refused = as_member("/usr/bin/python3", &["-c", &by_name]).finish();
    assert_eq!(refused.stdout, "None\n");
    assert_says("one", &refused.stderr, &["'simple' is a program of another user"]);
    assert!(!directory.join("simple").exists(), "{}", of_user.stdout());
    // Root may ask all.
    scenario.server.run("jack_session_notify", &["save", &path]).expect_success();
    assert!(directory.join("simple").is_dir());
    drop(of_member);
}

#[test]
fn a_process_outside_of_the_group_cannot_connect() {
    let Some(scenario) = Scenario::new(&[]) else { return };
    let rights = |path: &Path| {
        let found = path.symlink_metadata().expect("it is there");
        (found.mode() & 0o777, found.gid().to_string())
    };
    assert_eq!(rights(&scenario.door()), (0o750, GROUP.to_owned()));
    assert_eq!(rights(&scenario.door().join("control")), (0o660, GROUP.to_owned()));
    let refused = scenario.status_as(NOBODY, None);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert_says("outside the directory", &refused.stderr, &["Permission denied"]);
    // Wider file modes do not make other users members. The program gets the directory by hand.
    for (path, mode) in [(scenario.door().join("control"), 0o666), (scenario.door(), 0o755)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("ours");
    }
    let refused = scenario.status_as(NOBODY, None);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert_says(
        "a directory open to others",
        &refused.stderr,
        &["is not a directory that only group"],
    );
    // A program that does not check the owner.
    let said = raw_greeting(&scenario);
    assert_says("not a member", &said, &["serves another user"]);
}

/// What a server answers to another user's program that connects without our library.
fn raw_greeting(scenario: &Scenario) -> String {
    let script = "import socket, sys\n\
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n\
        s.connect(sys.argv[1])\n\
        print(s.recv(4096).decode('latin-1'))\n";
    let control = scenario.door().join("control");
    let arguments = ["-c", script, &control.to_string_lossy()];
    let finished = scenario.as_user("/usr/bin/python3", &arguments, NOBODY, None).finish();
    finished.stdout + &finished.stderr
}

#[test]
fn a_group_directory_of_another_user_is_left_alone() {
    if !rustix::process::getuid().is_root() {
        harness::not_run("only root can make another user's directory");
        return;
    }
    let (open, runtime) = (TempDir::new().expect("room"), TempDir::new().expect("room"));
    let door = open.path().join(format!("consort-group-{GROUP}-squatted"));
    std::fs::create_dir(&door).expect("ours");
    std::os::unix::fs::chown(&door, Some(12345), Some(12345)).expect("root");
    let mut command = Command::new(binary("consort"));
    command.args(["run", "-n", "squatted", "--group", GROUP]);
    command.env("XDG_RUNTIME_DIR", runtime.path()).env("CONSORT_GROUP_DIRECTORY", open.path());
    let refused = Program::start(command).finish();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_says("squatted", &refused.stderr, &["is not a directory that only group"]);
    assert_eq!(door.metadata().expect("there").uid(), 12345);
    assert_eq!(door.read_dir().expect("root").count(), 0, "nothing was put there");
}

#[test]
fn a_group_that_does_not_exist_is_named() {
    let runtime = TempDir::new().expect("room");
    let mut command = Command::new(binary("consort"));
    command.args(["run", "-n", "nowhere", "--group", "no-such-group"]);
    command.env("XDG_RUNTIME_DIR", runtime.path());
    let refused = Program::start(command).finish();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_says("unknown", &refused.stderr, &["there is no group 'no-such-group'"]);
    assert!(
        !refused.stderr.contains("JACK_PROMISCUOUS_SERVER"),
        "that is for programs: {}",
        refused.stderr
    );
}

#[test]
fn a_group_directory_that_cannot_be_made_is_named_once() {
    let runtime = TempDir::new().expect("room");
    let mut command = Command::new(binary("consort"));
    command.args(["run", "-n", "nowhere", "--group", GROUP]);
    command.env("XDG_RUNTIME_DIR", runtime.path());
    command.env("CONSORT_GROUP_DIRECTORY", runtime.path().join("missing"));
    let refused = Program::start(command).finish();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_says(
        "no room",
        &refused.stderr,
        &["missing/consort-group-", &format!("for group {GROUP}")],
    );
    assert_eq!(
        refused.stderr.matches("No such file or directory").count(),
        1,
        "{}",
        refused.stderr
    );
    assert!(!refused.stderr.contains("XDG_RUNTIME_DIR"), "{}", refused.stderr);
}
