//! What libpulse is answered by PulseAudio and by us in the same script of calls, field by field.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use harness::{Program, c_program_with, eventually, not_run};
use tempfile::TempDir;

use crate::Scene;

/// The page that lists the differences.
const PAGE: &str = include_str!("../../docs/pulse-conformance.md");
/// A cell for any value, and for a field that is not there.
const ANY: &str = "…";
const MISSING: &str = "–";

/// The values of each field; those of a list are joined.
type Answers = BTreeMap<String, String>;

fn answers(printed: &str) -> Answers {
    let mut answers = Answers::new();
    for line in printed.lines() {
        let (field, value) = line.split_once(' ').unwrap_or((line, ""));
        let known = answers.entry(field.to_owned());
        known
            .and_modify(|all| *all = format!("{all} / {value}"))
            .or_insert_with(|| value.to_owned());
    }
    assert_eq!(answers.get("end.reached").map(String::as_str), Some("yes"), "{printed}");
    answers
}

/// One row of the page's table.
struct Row {
    fields: Vec<String>,
    values: [String; 2],
}

impl Row {
    fn read(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.strip_prefix("| `")?.split(" | ").map(str::trim).collect();
        let [fields, own, other, _why] = cells[..] else { panic!("not four cells: {line}") };
        let fields = fields.split(',').map(|field| field.trim().trim_matches('`').to_owned());
        // Names of fields have commas, too.
        let mut joined: Vec<String> = Vec::new();
        for field in fields {
            match joined.last_mut() {
                Some(last) if field.starts_with(|first: char| first.is_ascii_digit()) => {
                    *last = format!("{last},{field}");
                }
                _ => joined.push(field),
            }
        }
        Some(Self { fields: joined, values: [own.to_owned(), other.to_owned()] })
    }

    fn allows(&self, field: &str, values: [&str; 2]) -> bool {
        let mut expected = self.values.iter().zip(values);
        self.fields.iter().any(|pattern| is_like(pattern, field))
            && expected.all(|(cell, value)| cell == ANY || cell == value)
    }
}

/// Returns whether a text is as a pattern, in which `*` stands for any text.
fn is_like(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((begin, rest)) => text.strip_prefix(begin).is_some_and(|text| {
            (0..=text.len()).any(|skipped| text.get(skipped..).is_some_and(|t| is_like(rest, t)))
        }),
    }
}

/// Debian's PulseAudio with a null sink that is named as ours.
pub(crate) struct PulseAudio {
    server: Program,
    directory: TempDir,
}

impl PulseAudio {
    pub(crate) fn start() -> Self {
        Self::start_with(&[], |command| command)
    }

    /// With further options, by a command that `prepare` has changed.
    pub(crate) fn start_with(further: &[&str], prepare: impl FnOnce(Command) -> Command) -> Self {
        let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
        let mut command = harness::command_in(directory.path(), Path::new("pulseaudio"));
        command.args(["-n", "--daemonize=no", "--use-pid-file=no", "--exit-idle-time=-1"]);
        command.args(["-L", "module-null-sink sink_name=consort format=float32le rate=48000"]);
        // What is built into consort.
        command.args(["-L", "module-stream-restore", "-L", "module-device-restore"]);
        command.args(["-L", "module-native-protocol-unix"]).args(further);
        let mut started = Self { server: Program::start(prepare(command)), directory };
        let socket = started.directory.path().join("pulse/native");
        eventually("PulseAudio listens", || {
            assert!(started.server.is_running(), "{}", started.server.stderr());
            // The kernel's list is that of one network, and this one may be in another.
            UnixStream::connect(&socket).ok().map(drop)
        });
        started
    }

    /// A program that finds it.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = harness::command_in(self.directory.path(), Path::new(program));
        command.env_remove("PULSE_SERVER").env_remove("PULSE_SINK").args(arguments);
        command
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn stop(self) {
        self.server.terminate();
    }
}

fn of_pulseaudio(program: &str) -> Answers {
    let pulseaudio = PulseAudio::start();
    let finished = Program::start(pulseaudio.command(program, &[])).finish().expect_success();
    pulseaudio.stop();
    answers(&finished.stdout)
}

fn of_consort(program: &str) -> Answers {
    answers(&Scene::new().run(program, &[]).expect_success().stdout)
}

#[test]
fn answers_are_pulseaudios_but_for_the_differences_that_are_listed() {
    if !Path::new("/usr/include/pulse/pulseaudio.h").exists()
        || !Path::new("/usr/bin/pulseaudio").exists()
    {
        return not_run("PulseAudio or libpulse's headers are not installed");
    }
    let rows: Vec<Row> = PAGE.lines().filter_map(Row::read).collect();
    let program = c_program_with("pulse", "pulse/conformance/conformance.c");
    let [theirs, ours] = [of_pulseaudio(&program), of_consort(&program)];
    assert!(theirs.len() > 1500, "{} fields", theirs.len());
    let (mut not_listed, mut used) = (Vec::new(), BTreeSet::new());
    let fields: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    for field in fields {
        let of = |answers: &Answers| answers.get(field).map_or(MISSING, String::as_str).to_owned();
        let [theirs, ours] = [of(&theirs), of(&ours)];
        if theirs == ours {
            continue;
        }
        let mut allowing = rows.iter().enumerate();
        match allowing.find(|(_, row)| row.allows(field, [&theirs, &ours])) {
            Some((row, _)) => {
                used.insert(row);
            }
            None => not_listed.push(format!("{field}: PulseAudio: {theirs}, consort: {ours}")),
        }
    }
    assert!(not_listed.is_empty(), "not in the table:\n{}", not_listed.join("\n"));
    let unused = rows.iter().enumerate().filter(|(row, _)| !used.contains(row));
    let unused: Vec<String> = unused.map(|(_, row)| row.fields.join(", ")).collect();
    assert!(unused.is_empty(), "no longer different:\n{}", unused.join("\n"));
}
