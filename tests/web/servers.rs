//! A page ends with the server that started it, and otherwise waits for servers.

use std::net::TcpStream;

use harness::{Server, eventually};
use serde_json::json;

use crate::http::{Events, get, order};
use crate::served::{page_alone, served};

#[test]
fn the_page_ends_with_its_server_however_that_ends() {
    for is_killed in [false, true] {
        let (mut server, address) = served(&["--quantum", "1024"]);
        let mut events = Events::of(address);
        events.await_event("live", "the server", |live| live["up"] == true);
        if is_killed {
            server.kill();
        } else {
            server.stop().expect_success();
        }
        eventually("no process listens any more", || {
            TcpStream::connect(address).is_err().then_some(())
        });
        assert!(std::iter::from_fn(|| events.next()).count() < 1000, "the stream ends");
    }
}

#[test]
fn a_page_without_a_server_finds_the_next_one() {
    let mut server = Server::timer(1024);
    let (_page, address) = page_alone(&server, &[]);
    let mut events = Events::of(address);
    events.await_event("live", "the server", |live| live["up"] == true);
    server.kill();
    let live = events.await_event("live", "the server's end", |live| live["up"] == false);
    assert!(live["why"].as_str().is_some_and(|why| !why.is_empty()), "{live}");
    let refused = order(address, &json!({ "roll": { "roll": true } }));
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(get(address, "/metrics").body.contains("consort_up 0"));
    let refused = get(address, "/state");
    assert_eq!(refused.status, 503, "{}", refused.body);
    server.start_again();
    events.await_event("graph", "the new server's graph", |graph| !graph[0]["ports"].is_null());
    events.await_event("live", "the new server", |live| live["up"] == true);
    assert!(get(address, "/metrics").body.contains("consort_up 1"));
}
