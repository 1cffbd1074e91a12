//! The version of Linux that is needed, by what running programs ask of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{Program, Server, eventually, tone};

use crate::tarball::{numbers, stated};
use crate::{Sound, run};

/// What may be asked for, and since which version.
const LIST: &str = include_str!("../../crates/sys/system-calls");
const NEEDS: &str = include_str!("../../docs/needs.md");
/// Calls of which constants are in the list.
const WITH_CONSTANTS: [&str; 11] = [
    "fcntl",
    "futex",
    "getrandom",
    "getsockopt",
    "madvise",
    "memfd_create",
    "mlock2",
    "mlockall",
    "mmap",
    "mremap",
    "prctl",
];
/// Numbers of more digits are addresses.
const MOST_DIGITS: usize = 3;
const RATE_HZ: u32 = 48_000;

/// A line of the list.
struct Known {
    version: Vec<u32>,
    /// It is tried, and done in another way where it is not known.
    has_another_way: bool,
}

fn list() -> BTreeMap<&'static str, Known> {
    let lines = LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let known = lines.map(|line| {
        let mut words = line.split_whitespace();
        let (name, version) = (words.next().expect("a name"), words.next().expect("a version"));
        (name, Known { version: numbers(version), has_another_way: words.next() == Some("else") })
    });
    known.collect()
}

/// The call of a line of a trace, and the constants in its arguments.
fn asked(line: &str) -> Option<(&str, Vec<String>)> {
    let (_process, line) = line.split_once(char::is_whitespace)?;
    let line = line.trim_start();
    // The rest of a line that another thread has interrupted.
    let line = line.strip_prefix("<... ").unwrap_or(line);
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let (name, rest) = line.split_at(line.find(|letter: char| !is_word(letter))?);
    if name.is_empty() || !rest.starts_with(['(', ' ']) {
        return None;
    }
    // Without the result.
    let arguments = rest.split(" = ").next().unwrap_or_default();
    let words = arguments.split(|letter: char| !is_word(letter)).filter_map(|word| {
        if let Some(digits) = word.strip_prefix("0x") {
            return (digits.len() <= MOST_DIGITS).then(|| format!("{name}:{word}"));
        }
        let is_constant = word.contains('_')
            && !word.ends_with('_')
            && !word.chars().any(|letter| letter.is_ascii_lowercase());
        is_constant.then(|| word.to_owned())
    });
    let takes_constants = WITH_CONSTANTS.contains(&name);
    Some((name, words.filter(|_| takes_constants).collect()))
}

/// Has the command and all that it starts write what they ask for into a file.
fn traced(command: &mut Command, into: &Path) {
    let mut outer = Command::new("strace");
    // The command stays the child that is started here, and strace outlives its process group.
    outer.args(["-DD", "-f", "-q", "-s0", "-o"]).arg(into);
    outer.arg(command.get_program()).args(command.get_args());
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.current_dir(command.get_current_dir().expect("set"));
    *command = outer;
}

/// What a trace says, once it is complete.
fn trace(file: &Path) -> String {
    eventually("strace has ended", || {
        let text = std::fs::read_to_string(file).ok()?;
        text.lines().last()?.contains("+++").then_some(text)
    })
}

#[test]
fn the_kernel_that_is_needed_knows_all_that_running_programs_ask_for() {
    let directory = tempfile::TempDir::with_prefix("consort-traces-").expect("a directory");
    let into = |name: &str| directory.path().join(name);
    let files = ["server", "client", "player", "question"].map(into);
    let [of_server, of_client, of_player, of_question]: &[PathBuf; 4] = &files;
    let server = Server::start_with(
        tempfile::TempDir::with_prefix("consort-test-").expect("a directory"),
        &["--driver", "timer", "--quantum", "1024", "--pulse"],
        |command| traced(command, of_server),
    );
    let mut client = server.command("jack_metro");
    client.args(["-b", "120"]);
    traced(&mut client, of_client);
    let client = Program::start(client);
    eventually("it has ports", || server.lsp(&[]).contains("metro").then_some(()));
    let sound = directory.path().join("tone.wav");
    Sound::of(RATE_HZ, &[tone(1_000.0, RATE_HZ, RATE_HZ as usize / 2)]).write(&sound);
    let mut player = server.consort_command(&["play"]);
    player.arg(&sound);
    traced(&mut player, of_player);
    run(player).expect_success();
    let mut program = server.command("paplay");
    program.arg(&sound).env_remove("PULSE_SERVER");
    let socket = server.directory().join("pulse/native");
    eventually("the front end listens", || socket.exists().then_some(()));
    run(program).expect_success();
    let mut question = server.consort_command(&["why"]);
    traced(&mut question, of_question);
    run(question).expect_success();
    client.terminate();
    server.stop();

    let known = list();
    let mut seen = BTreeSet::new();
    let traces = files.each_ref().map(|file| trace(file));
    for line in traces.iter().flat_map(|trace| trace.lines()) {
        let Some((call, constants)) = asked(line) else { continue };
        for name in [call.to_owned()].into_iter().chain(constants) {
            assert!(known.contains_key(&*name), "crates/sys/system-calls lacks {name}: {line}");
            seen.insert(name);
        }
    }
    let needed = known.iter().filter(|(_, known)| !known.has_another_way);
    let version = needed.clone().map(|(_, known)| &known.version).max().expect("a version");
    assert_eq!(*version, numbers(stated(NEEDS, "Linux")), "docs/needs.md");
    let row = NEEDS.lines().find(|line| line.starts_with("| Linux |")).expect("its row");
    for (name, _) in needed.filter(|(_, known)| known.version == *version) {
        assert!(
            row.contains(&format!("`{name}`")),
            "docs/needs.md does not say that {name} is new"
        );
        assert!(seen.contains(*name), "{name} decides the version, and nothing asks for it");
    }
}
