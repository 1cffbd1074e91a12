//! The library of `guard/guard.c`, which ends a process whose cycle touches the heap, a lock or a
//! stream.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::{Program, Server, binary, c_compiler};

/// The compiled guard.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let library = binary(&format!("cycle-guard-{}.so", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guard/guard.c");
        let mut compiler = c_compiler();
        compiler.args(["-shared", "-fPIC", "-o"]);
        let status = compiler.arg(&library).arg(source).arg("-ldl").status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "gcc compiles the guard; 'cargo xtask setup' installs it"
        );
        library
    })
}

/// Arms the guard in the programs of one test, and reads what they recorded.
#[derive(Debug)]
pub struct Guard {
    notes: PathBuf,
}

impl Guard {
    /// A server whose cycles are guarded, and the guard for more programs.
    pub fn server(options: &[&str]) -> (Server, Self) {
        let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
        let guard = Self { notes: directory.path().join("guard-notes") };
        let server = Server::start_with(directory, options, |command| guard.arm(command));
        (server, guard)
    }

    /// Runs a guarded program of ours that needs no server.
    ///
    /// # Panics
    /// If it fails, breaks the rule, or never enters what is guarded.
    pub fn run(program: &Path) {
        let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
        let guard = Self { notes: directory.path().join("guard-notes") };
        let mut command = Command::new(program);
        guard.arm(&mut command);
        let output = command.output().expect("the program starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", program.display());
        assert_eq!(guard.guarded_processes(), 1, "{} armed the guard", program.display());
    }

    fn arm(&self, command: &mut Command) {
        command.env("LD_PRELOAD", library()).env("CONSORT_GUARD_FILE", &self.notes);
    }

    /// A guarded probe.
    pub fn probe(&self, server: &Server, arguments: &[&str]) -> Program {
        server.probe_with(arguments, |command| self.arm(command))
    }

    /// Starts a guarded program of Debian's.
    pub fn spawn(&self, server: &Server, program: &str, arguments: &[&str]) -> Program {
        let mut command = server.command(program);
        command.args(arguments);
        self.arm(&mut command);
        Program::start(command)
    }

    /// Processes that ran guarded cycles.
    ///
    /// # Panics
    /// If one of them broke the rule.
    pub fn guarded_processes(&self) -> usize {
        let notes = std::fs::read_to_string(&self.notes).unwrap_or_default();
        assert!(
            !notes.contains('!'),
            "a cycle touched the heap, a lock or a stream (see the output above)"
        );
        notes.len()
    }
}
