//! A server with its page.

use std::net::SocketAddr;

use harness::{Counts, Program, Server, binary, eventually, in_three_attempts};

use tempfile::TempDir;

use crate::http::get;

/// The address of the page that a program has announced.
pub(crate) fn address_in(stderr: &str) -> Option<SocketAddr> {
    let line = stderr.lines().find_map(|line| line.split_once("web page: http://"))?.1;
    line.split('/').next()?.parse().ok()
}

/// A server with a page at a port of its own.
pub(crate) fn served(options: &[&str]) -> (Server, SocketAddr) {
    announced(Server::start(&with_page(options)))
}

/// The same, of a null device whose sound is [recorded](Server::recorded) from the first stream on.
pub(crate) fn served_and_recorded(options: &[&str]) -> (Server, SocketAddr) {
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let file = directory.path().join("recorded.wav");
    announced(Server::start_with(directory, &with_page(options), |command| {
        command.env("CONSORT_RECORD_NULL_DEVICE", file);
    }))
}

fn with_page<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [options, &["--web", "127.0.0.1:0"]].concat()
}

fn announced(mut server: Server) -> (Server, SocketAddr) {
    let address = address_in(server.program().stderr()).expect("the page is announced");
    (server, address)
}

/// `consort web` for a server that may come.
pub(crate) fn page_alone(server: &Server, arguments: &[&str]) -> (Program, SocketAddr) {
    let mut command = server.command(&binary("consort").to_string_lossy());
    command.args(["web", "127.0.0.1:0"]).args(arguments);
    let mut program = Program::start(command);
    let address = eventually("the page is announced", || {
        assert!(program.is_running(), "{}", program.stderr());
        address_in(program.stderr())
    });
    (program, address)
}

/// A value of the metrics, by the whole name with its labels.
pub(crate) fn metric(address: SocketAddr, name: &str) -> Option<f64> {
    let answer = get(address, "/metrics");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let value = answer.body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    Some(value.parse().expect("a number"))
}

/// Runs `bad` next to two programs that hear each other, in cycles of 85 ms: they lose no more than
/// a busy machine takes from them, and nothing of what they hear is wrong.
pub(crate) fn with_sound(bad: impl Fn(&Server, SocketAddr)) {
    in_three_attempts(|| {
        let (server, address) = served(&["--quantum", "4096"]);
        let _source = server.probe(&["source", "src"]);
        let checker = server.probe(&["check", "chk", "--from", "src:out"]);
        let cycles = || metric(address, "consort_cycles_total").unwrap_or_default();
        let await_cycles = |more: f64| {
            let begin = cycles();
            eventually("cycles continue", || (cycles() >= begin + more).then_some(()));
        };
        await_cycles(20.0);
        bad(&server, address);
        await_cycles(20.0);
        server.consort(&["status"]).expect_success();
        let counts = Counts::of(checker);
        let lost = counts.silent + counts.wrong + counts.missed;
        let is_machines = counts.good > 0 && counts.wrong == 0 && lost <= counts.cycles / 100 + 2;
        if is_machines { Ok(()) } else { Err(format!("{counts:?}")) }
    });
}
