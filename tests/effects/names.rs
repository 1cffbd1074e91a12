//! How long names may be, in bytes, and what happens to longer ones.

use harness::Server;

use crate::actors::Actor;

/// The longest client name, and the longest full port name: with a terminating 0 both fit what the
/// library says.
const CLIENT: usize = 64;
const FULL: usize = 319;

fn listed(server: &Server, name: &str) -> bool {
    server.lsp(&[]).lines().any(|line| line == name)
}

#[test]
fn one_byte_more_than_the_longest_client_name_is_refused() {
    let server = Server::timer(1024);
    let longest = "n".repeat(CLIENT);
    let (mut first, opened) = Actor::open(&server, "first", &longest, "");
    assert_eq!(opened, format!("opened 0x0 {longest}"));
    assert_eq!(first.ask("sizes"), format!("{} 321 32", CLIENT + 1));
    assert_eq!(first.ask("port_register out audio o"), "ok");
    assert!(listed(&server, &format!("{longest}:out")));
    // JackFailure
    let (_refused, opened) = Actor::open(&server, "second", &format!("{longest}n"), "");
    assert_eq!(opened, "refused 0x1");
    // Nothing is cut off, and there is no room for an appended number: JackFailure |
    // JackNameNotUnique, and JackServerError, as in JACK2.
    let (_refused, opened) = Actor::open(&server, "third", &longest, "");
    assert_eq!(opened, "refused 0x25");
    // The longest that has room for one.
    let (_third, _) = Actor::open(&server, "fourth", &longest[3..], "");
    let (_fourth, opened) = Actor::open(&server, "fifth", &longest[3..], "");
    assert_eq!(opened, format!("opened 0x4 {}-01", &longest[3..]));
}

#[test]
fn one_byte_more_than_the_longest_port_name_is_refused() {
    let server = Server::timer(1024);
    let (mut a, _) = Actor::open(&server, "a", "a", "");
    let (mut b, _) = Actor::open(&server, "b", "b", "");
    let longest = "p".repeat(FULL - "a:".len());
    let full = format!("a:{longest}");
    assert_eq!(a.ask(&format!("port_register {longest}p audio o")), "(null)");
    assert_eq!(a.ask(&format!("port_register {longest} audio o")), "ok");
    assert_eq!(b.ask(&format!("port_by_name {full}")), "ok");
    assert_eq!(b.ask(&format!("port_short_name {full}")), longest);
    assert!(listed(&server, &full));

    assert_eq!(a.ask("port_register out audio o"), "ok");
    let other = "q".repeat(longest.len());
    assert_eq!(a.ask(&format!("port_rename a:out {other}q")), "-1 from a:out to a:out");
    assert_eq!(a.ask(&format!("port_set_name a:out {other}q")), "-1");
    assert!(listed(&server, "a:out"));
    assert_eq!(a.ask(&format!("port_rename a:out {other}")), format!("0 from a:out to a:{other}"));
    assert!(listed(&server, &format!("a:{other}")));

    let alias = "s".repeat(FULL);
    assert_eq!(a.ask(&format!("port_set_alias {full} {alias}s")), "-1");
    assert_eq!(b.ask(&format!("port_get_aliases {full}")), "0 - -");
    assert_eq!(a.ask(&format!("port_set_alias {full} {alias}")), "0");
    assert_eq!(b.ask(&format!("port_get_aliases {full}")), format!("1 {alias} -"));
    assert_eq!(b.ask(&format!("port_by_name {alias}")), "ok");
}

#[test]
fn an_empty_name_is_refused_for_clients_ports_renames_and_aliases() {
    let server = Server::timer(1024);
    let (_refused, opened) = Actor::open(&server, "nameless", "", "");
    assert_eq!(opened, "refused 0x1");
    let (mut a, _) = Actor::open(&server, "a", "a", "");
    assert_eq!(a.ask("port_register out audio o"), "ok");
    // Arguments that are missing are empty texts.
    assert_eq!(a.ask("port_register"), "(null)");
    assert_eq!(a.ask("port_rename a:out"), "-1 from a:out to a:out");
    assert_eq!(a.ask("port_set_name a:out"), "-1");
    assert_eq!(a.ask("port_set_alias a:out"), "-1");
    assert!(listed(&server, "a:out") && !listed(&server, "a:"));
}

#[test]
fn a_rename_to_a_name_with_colons_stays_behind_the_clients_own() {
    let server = Server::timer(1024);
    let (mut a, _) = Actor::open(&server, "a", "a", "");
    let (mut b, _) = Actor::open(&server, "b", "b", "");
    assert_eq!(a.ask("port_register out audio o"), "ok");
    assert_eq!(a.ask("port_rename a:out system:playback_1"), "0 from a:out to a:system:playback_1");
    assert_eq!(b.ask("port_short_name a:system:playback_1"), "system:playback_1");
    // JACK2 lets any client rename any port.
    assert_eq!(b.ask("port_rename a:system:playback_1 out"), "0 from a:system:playback_1 to a:out");
    assert!(listed(&server, "a:out"));
}
