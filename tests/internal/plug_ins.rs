//! A server that finds plug-ins of a test's own.

use std::path::Path;
use std::process::Command;

use harness::{Finished, MODES, Server, c_compiler, eventually, library_directory};
use tempfile::TempDir;

/// Compiles `plug_in.c` into `directory`, linked with the library of that file's name.
pub(crate) fn compile(directory: &Path, name: &str, library: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let status = c_compiler()
        .args(["-shared", "-fPIC", "-o"])
        .arg(directory.join(format!("{name}.so")))
        .arg(root.join("internal/plug_in.c"))
        .arg("-Wl,--no-as-needed")
        .arg(library_directory().join(library))
        .status();
    assert!(
        status.expect("gcc runs; 'cargo xtask setup' installs it").success(),
        "the plug-in does not compile"
    );
}

/// A server whose first plug-in directory is its own directory's `plug-ins`, with `plug_in` in it.
pub(crate) fn server(options: &[&str]) -> Server {
    server_with(options, |_| {})
}

/// The same, started by a command that `prepare` has changed.
pub(crate) fn server_with(options: &[&str], prepare: impl FnOnce(&mut Command)) -> Server {
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let plug_ins = directory.path().join("plug-ins");
    std::fs::create_dir(&plug_ins).expect("a directory");
    compile(&plug_ins, "plug_in", "libjackserver.so.0");
    let usual = if options.contains(&"--quantum") { &[][..] } else { MODES[1] };
    Server::start_with(directory, &[usual, options].concat(), |command| {
        command.env("JACK_INTERNAL_DIR", &plug_ins);
        prepare(command);
    })
}

/// Debian's `jack_load`.
pub(crate) fn load(server: &Server, name: &str, object: &str, parameters: &str) -> Finished {
    server.run("jack_load", &["-i", parameters, name, object])
}

/// Debian's `jack_unload`.
pub(crate) fn unload(server: &Server, name: &str) -> Finished {
    server.run("jack_unload", &[name])
}

/// Process ids of all plug-ins of this server.
pub(crate) fn hosts(server: &mut Server) -> Vec<u32> {
    let id = server.program().id();
    let children =
        std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// Waits until none of these processes runs.
pub(crate) fn await_end(processes: &[u32]) {
    eventually("all plug-ins' processes have ended", || {
        let runs = |process: &u32| {
            let status =
                std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
        };
        (!processes.iter().any(runs)).then_some(())
    });
}

/// Whether any port of this client is left.
pub(crate) fn has_ports(server: &Server, name: &str) -> bool {
    server.has_ports(name)
}

/// Enough cycles for a connection to be heard.
pub(crate) fn let_cycles_pass(server: &Server) {
    server.await_cycles(100);
}
