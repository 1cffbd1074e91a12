//! Which of this machine's users the page answers.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use harness::{Finished, Program, Server, binary, copy_program, eventually};
use serde_json::json;
use tempfile::TempDir;

use crate::http::{get, request};
use crate::served::{address_in, page_alone, served};

const NOBODY: &str = "65534";
const SOMEBODY: &str = "65533";
const SECRET: &str = "0123456789abcdef0123";

fn is_root() -> bool {
    let is_root = rustix::process::getuid().is_root();
    if !is_root {
        harness::not_run("only root can be two users");
    }
    is_root
}

fn as_user(user: &str, program: &str, arguments: &[&str]) -> Program {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", user, "--regid", user, "--clear-groups", "--", program])
        .args(arguments);
    command.current_dir("/");
    Program::start(command)
}

/// Sends a request as that user, `times` times, and then runs the shell commands `then` on the
/// connection.
fn asking(user: &str, address: SocketAddr, request: &str, times: u32, then: &str) -> Finished {
    let request = request.replace('\\', "\\\\").replace('\r', "\\r").replace('\n', "\\n");
    let (host, port) = (address.ip(), address.port());
    let script = format!(
        "for number in {{1..{times}}}; do exec 3<>/dev/tcp/{host}/{port} && printf '%b' '{request}' >&3; {then}; done"
    );
    as_user(user, "bash", &["-c", &script]).finish()
}

/// The answer to a request of that user.
fn answer_to(user: &str, address: SocketAddr, request: &str) -> String {
    asking(user, address, request, 1, "cat <&3").expect_success().stdout
}

fn page_request(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> String {
    request("GET", path, address, headers, "")
}

/// A command that connects two of the server's own ports.
fn connecting(address: SocketAddr) -> String {
    let order =
        json!({ "connect": { "source": "system:capture_1", "destination": "system:playback_1" } });
    request("POST", "/order", address, &[("Content-Type", "application/json")], &order.to_string())
}

fn connections(server: &Server) -> u32 {
    server.status().connections
}

#[test]
fn without_a_token_another_user_neither_sees_nor_orders_anything() {
    if !is_root() {
        return;
    }
    let (server, address) = served(&["--quantum", "1024"]);
    for path in ["/", "/main.js", "/events", "/metrics", "/state"] {
        let answer = answer_to(NOBODY, address, &page_request(address, path, &[]));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{path}: {answer}");
        assert!(answer.contains("this page is only for the user who runs it"), "{path}: {answer}");
    }
    let answer = answer_to(NOBODY, address, &connecting(address));
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(connections(&server), 0);
    // The same bytes from our own user.
    let answer = answer_to("0", address, &connecting(address));
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
    assert_eq!(connections(&server), 1);
    assert_eq!(get(address, "/").status, 200);
}

#[test]
fn a_request_of_a_closed_connection_has_no_effect() {
    if !is_root() {
        return;
    }
    let (server, address) = served(&["--quantum", "1024"]);
    // The kernel may list a closed socket as root's.
    asking(NOBODY, address, &connecting(address), 500, "exec 3>&-").expect_success();
    // The earlier connections have been checked when this one is answered.
    eventually("the page answers", || (get(address, "/metrics").status == 200).then_some(()));
    assert_eq!(connections(&server), 0);
}

#[test]
fn a_page_of_another_users_answers_that_user_and_root() {
    if !is_root() {
        return;
    }
    let open = TempDir::with_prefix("consort-web-").expect("room");
    std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    let consort = open.path().join("consort");
    copy_program(binary("consort"), &consort);
    let page = ["web", "127.0.0.1:0", "--server", "none"];
    let mut page = as_user(NOBODY, &consort.to_string_lossy(), &page);
    let address = eventually("the page is announced", || {
        assert!(page.is_running(), "{}", page.stderr());
        address_in(page.stderr())
    });
    for (user, status) in
        [(NOBODY, "HTTP/1.0 200 "), (SOMEBODY, "HTTP/1.1 403 "), ("0", "HTTP/1.0 200 ")]
    {
        let answer = answer_to(user, address, &page_request(address, "/", &[]));
        assert!(answer.starts_with(status), "{user}: {answer}");
    }
}

#[test]
fn with_a_token_any_user_that_has_it_is_admitted() {
    if !is_root() {
        return;
    }
    let server = Server::timer(1024);
    std::fs::write(server.directory().join("token"), SECRET).expect("a file");
    let (_page, address) = page_alone(&server, &["--token-file", "token"]);
    let bearer = format!("Bearer {SECRET}");
    for (headers, status) in
        [(&[("Authorization", bearer.as_str())][..], "HTTP/1.0 200 "), (&[], "HTTP/1.0 401 ")]
    {
        for user in [NOBODY, "0"] {
            let answer = answer_to(user, address, &page_request(address, "/metrics", headers));
            assert!(answer.starts_with(status), "{user}: {answer}");
        }
    }
}
