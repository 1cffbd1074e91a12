//! Which requests the page accepts.

use std::net::SocketAddr;

use harness::{Finished, Program, Server, binary, eventually};
use serde_json::json;

use crate::http::{Answer, ask, get, order};
use crate::served::{address_in, page_alone, served};

const SECRET: &str = "0123456789abcdef0123";

#[test]
fn another_sites_page_can_neither_read_nor_control() {
    let (server, address) = served(&["--quantum", "1024"]);
    let connect =
        json!({ "connect": { "source": "system:capture_1", "destination": "system:playback_1" } })
            .to_string();
    let json = ("Content-Type", "application/json");
    let own = format!("http://{address}");
    let post = |headers: &[(&str, &str)]| ask(address, "POST", "/order", headers, &connect).status;
    for (what, status, expected) in [
        ("a page of another site", post(&[json, ("Origin", "http://evil.example")]), 403),
        ("a page of another port", post(&[json, ("Origin", "http://127.0.0.1:1")]), 403),
        ("a page of no site", post(&[json, ("Origin", "null")]), 403),
        ("a form", post(&[("Content-Type", "text/plain"), ("Origin", &own)]), 415),
        ("a browser's word", post(&[json, ("Sec-Fetch-Site", "cross-site")]), 403),
        ("a name that points here", post(&[json, ("Host", "evil.example")]), 421),
        ("two names", post(&[json, ("Host", "127.0.0.1"), ("Host", "evil.example")]), 400),
    ] {
        assert_eq!(status, expected, "{what}");
    }
    for path in ["/", "/events", "/metrics"] {
        assert_eq!(
            ask(address, "GET", path, &[("Host", "evil.example")], "").status,
            421,
            "{path}"
        );
    }
    assert_eq!(
        ask(address, "GET", "/metrics", &[("Sec-Fetch-Site", "cross-site")], "").status,
        403
    );
    let asked = ask(address, "OPTIONS", "/order", &[("Origin", "http://evil.example")], "");
    assert!(
        asked.status == 403 && asked.header("access-control-allow-origin").is_none(),
        "{}",
        asked.head
    );
    assert_eq!(connections(&server), 0, "nothing was connected");
    assert_eq!(post(&[json, ("Origin", &own)]), 200, "our own page may");
    assert_eq!(connections(&server), 1);
}

fn connections(server: &Server) -> u32 {
    server.status().connections
}

#[test]
fn every_file_of_the_page_has_a_strict_content_policy() {
    let (_server, address) = served(&["--quantum", "1024"]);
    for path in ["/", "/page.css", "/main.js", "/icon.svg"] {
        let answer = get(address, path);
        assert_eq!(answer.status, 200, "{path}");
        let policy = answer.header("content-security-policy").expect("a policy");
        for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    assert_eq!(get(address, "/nothing").status, 404);
    assert_eq!(get(address, "/../../etc/passwd").status, 404);
    assert_eq!(ask(address, "DELETE", "/order", &[], "").status, 405);
    assert_eq!(get(address, "/order").status, 405);
}

/// A page without a server, behind a token in a file.
fn with_token(server: &Server) -> (Program, SocketAddr) {
    std::fs::write(server.directory().join("token"), format!("{SECRET}\n")).expect("a file");
    page_alone(server, &["--token-file", "token"])
}

#[test]
fn a_page_with_a_token_answers_nothing_without_it() {
    let server = Server::timer(1024);
    let (_page, address) = with_token(&server);
    for path in [
        "/",
        "/main.js",
        "/events",
        "/metrics",
        "/state",
        "/?token=",
        "/?token=0123456789abcdef0124",
    ] {
        let refused = get(address, path);
        assert_eq!(refused.status, 401, "{path}");
        assert!(!refused.body.contains(SECRET) && refused.header("set-cookie").is_none());
    }
    let (json, state) =
        (("Content-Type", "application/json"), r#"{"consort_state":1,"buffer_size":512}"#);
    let restored = |headers: &[(&str, &str)]| ask(address, "POST", "/state", headers, state).status;
    let quantum = || server.status().quantum;
    assert_eq!((restored(&[json]), quantum()), (401, 1024), "nothing is restored");
    let bearer = format!("Bearer {SECRET}");
    assert_eq!(
        (restored(&[json, ("Authorization", &bearer)]), quantum()),
        (200, 512),
        "with it, it is"
    );
    let metrics = ask(address, "GET", "/metrics", &[("Authorization", &bearer)], "");
    assert!(metrics.status == 200 && metrics.body.contains("consort_up 1"), "{}", metrics.body);
    let entered = get(address, &format!("/?token={SECRET}"));
    assert_eq!((entered.status, entered.header("location")), (303, Some("/")));
    let cookie = entered.header("set-cookie").expect("a cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().expect("its value");
    let named = |headers: &[(&str, &str)]| -> Answer { ask(address, "GET", "/", headers, "") };
    assert_eq!(named(&[("Cookie", cookie)]).status, 200);
    assert_eq!(
        named(&[("Cookie", cookie), ("Host", "studio.example:8048")]).status,
        200,
        "under any name"
    );
}

#[test]
fn a_page_without_a_token_serves_no_server_with_a_policy() {
    let mut server = Server::timer(1024);
    let (_page, address) = page_alone(&server, &[]);
    let is_up = |address, authorization: &str| {
        let metrics = ask(address, "GET", "/metrics", &[("Authorization", authorization)], "");
        metrics.body.contains("consort_up 1").then_some(())
    };
    eventually("it serves a server without one", || is_up(address, ""));
    let policy = server.directory().join("policy");
    std::fs::write(&policy, "everything\n").expect("a file");
    server.kill();
    server.start_another(&["--quantum", "1024", "--policy", &policy.to_string_lossy()]);
    let connect = json!({ "connect": { "source": "system:capture_1",
                                       "destination": "system:playback_1" } });
    let answer = eventually("the page finds the next server", || {
        let answer = order(address, &connect);
        (answer.status != 503).then_some(answer)
    });
    assert!(answer.status == 409 && answer.body.contains("--token-file"), "{}", answer.body);
    assert_eq!(get(address, "/state").status, 409);
    assert_eq!(is_up(address, ""), None);
    assert_eq!(connections(&server), 0, "nothing was connected");
    let refused = refused(&server, &["web", "127.0.0.1:0"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("start the page with --token-file"), "{refused:?}");
    let (_page, address) = with_token(&server);
    eventually("one with a token serves it", || is_up(address, &format!("Bearer {SECRET}")));
}

fn refused(server: &Server, arguments: &[&str]) -> Finished {
    let mut command = server.command(&binary("consort").to_string_lossy());
    command.args(arguments);
    let finished = Program::start(command).finish();
    assert_eq!(finished.stderr.lines().count(), 1, "one line: {}", finished.stderr);
    finished
}

#[test]
fn a_page_for_other_machines_needs_a_token_that_cannot_be_guessed() {
    let server = Server::timer(1024);
    std::fs::write(server.directory().join("weak"), "secret\n").expect("a file");
    for (arguments, code, part) in [
        (&["run", "-n", "other", "--web", "0.0.0.0:0"][..], 2, "without a token"),
        (&["web", "[::]:0"], 2, "without a token"),
        (&["web", "0.0.0.0:0", "--token-file", "weak"], 1, "a token has 16 or more"),
        (&["web", "0.0.0.0:0", "--token-file", "absent"], 1, "cannot read absent"),
        (&["run", "-n", "other", "--web-token-file", "weak"], 2, "--web"),
        (&["web", "everywhere"], 2, "everywhere"),
    ] {
        let finished = refused(&server, arguments);
        assert_eq!(finished.code, Some(code), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(part), "{arguments:?}: {}", finished.stderr);
    }
}

#[test]
fn a_taken_port_is_reported_before_the_server_runs() {
    let (mut server, address) = served(&["--quantum", "1024"]);
    let finished = refused(&server, &["run", "-n", "other", "--web", &address.to_string()]);
    assert_eq!(finished.code, Some(1));
    assert!(
        finished.stderr.contains(&format!("cannot listen at {address}")),
        "{}",
        finished.stderr
    );
    assert_eq!(address_in(server.program().stderr()), Some(address));
}
