//! Programs of 32 bits, with a library of 32 bits, at a server of 64.

use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{Counts, Program, Server, not_run};
use tempfile::TempDir;

const TARGET: &str = "i686-unknown-linux-gnu";
const COMPILER: &str = "i686-linux-gnu-gcc";
/// What starts such a program.
const LOADER: &str = "/lib/ld-linux.so.2";

/// The libraries.
const LIBRARIES: [&str; 3] = ["jack", "jackserver", "jacknet"];

/// Libraries and programs of 32 bits.
struct Narrow(TempDir);

impl Narrow {
    /// Builds the libraries. `None` where this machine cannot build it, or run it.
    fn build() -> Option<Self> {
        let mut rustc = Command::new("rustc");
        rustc.args(["--print", "target-libdir", "--target", TARGET]);
        let standard_library = rustc.output().expect("rustc runs").stdout;
        let standard_library = String::from_utf8_lossy(&standard_library).trim().to_owned();
        let has_compiler = Command::new(COMPILER).arg("--version").output().is_ok();
        if !has_compiler || [LOADER, &standard_library].iter().any(|it| !Path::new(it).exists()) {
            not_run(&format!("it takes {COMPILER}, {LOADER} and: rustup target add {TARGET}"));
            return None;
        }
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "--target", TARGET]);
        cargo.args(
            ["libjack", "jackserver", "jacknet"].map(|name| format!("--package=consort-{name}")),
        );
        cargo.env("CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER", COMPILER).current_dir(root());
        assert!(cargo.status().expect("cargo runs").success(), "the libraries are built");
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        let built = root().join(target).join(TARGET).join("debug");
        let directory = TempDir::with_prefix("consort-narrow-").expect("a temporary directory");
        for name in LIBRARIES.map(|name| format!("lib{name}.so")) {
            for copy in [name.clone(), format!("{name}.0")] {
                std::fs::copy(built.join(&name), directory.path().join(copy)).expect("copied");
            }
        }
        Some(Self(directory))
    }

    /// Compiles a C source below `tests`, which is linked with one of the libraries.
    fn compile(&self, library: &str, source: &str) -> PathBuf {
        let source = root().join("tests").join(source);
        let program = self.0.path().join(source.file_stem().expect("a file"));
        let mut compiler = Command::new(COMPILER);
        compiler.args(["-std=gnu11", "-O2", "-I"]).arg(root().join("crates/jack/include"));
        compiler.arg(&source).arg("-o").arg(&program).arg("-L").arg(self.0.path());
        compiler.arg(format!("-l{library}"));
        assert!(compiler.status().expect("it runs").success(), "{} compiles", source.display());
        program
    }

    fn command(&self, server: &Server, program: &Path) -> Command {
        let mut command = server.command(&program.to_string_lossy());
        command.env("LD_LIBRARY_PATH", self.0.path());
        command
    }

    /// Starts a probe, and waits until it is ready.
    fn probe(&self, server: &Server, arguments: &[&str]) -> Program {
        let program = self.compile("jack", "victims/probe.c");
        server.probe_with(arguments, |command| {
            let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
            *command = self.command(server, &program);
            command.args(words);
        })
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lies in the repository")
}

#[test]
fn programs_of_32_and_64_bits_hear_each_other_sample_for_sample() {
    let Some(narrow) = Narrow::build() else { return };
    let server = Server::timer(256);
    let _source = narrow.probe(&server, &["source", "narrow"]);
    let wide = server.probe(&["check", "wide", "--from", "narrow:out"]);
    let _other = server.probe(&["source", "broad"]);
    let narrow = narrow.probe(&server, &["check", "slim", "--from", "broad:out"]);
    server.await_cycles(200);
    for (name, checker) in [("of 64 bits", wide), ("of 32 bits", narrow)] {
        let counts = Counts::of(checker);
        assert!(counts.good >= 100, "{name}: {counts:?}");
        assert_eq!(counts.wrong, 0, "{name}: {counts:?}");
    }
}

#[test]
fn a_program_of_32_bits_names_its_server_or_none() {
    let Some(narrow) = Narrow::build() else { return };
    let server = Server::timer(256);
    let program = narrow.compile("jack", "programs/clients/open.c");
    let mut command = narrow.command(&server, &program);
    command.arg("under-test");
    let opened = Program::start(command).finish().expect_success();
    assert_eq!(opened.stdout, "named\nplain\n");
    let mut command = narrow.command(&server, &program);
    command.arg("no-such-server");
    assert_eq!(Program::start(command).finish().code, Some(1));
}

#[test]
fn messages_of_plug_ins_of_32_bits_have_all_of_their_arguments() {
    let Some(narrow) = Narrow::build() else { return };
    let server = Server::timer(256);
    let program = narrow.compile("jackserver", "control/messages.c");
    let printed = Program::start(narrow.command(&server, &program)).finish().expect_success();
    let expected = "error: one 2 3 4 5 6 7\ninfo: 0.5 1.5 2.5 3.5 4.5 5.5 6.5 7.5 8.5 nine\n";
    assert_eq!(printed.stdout, expected);
}
