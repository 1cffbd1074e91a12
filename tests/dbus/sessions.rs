//! Clients by their uuids, and sessions.

use crate::bus::Bus;
use crate::patchbay::with_a_client;

fn call(bus: &Bus, method: &str, arguments: &[&str]) -> String {
    bus.answer(&format!("org.jackaudio.SessionManager.{method}"), arguments)
}

#[test]
fn a_session_over_the_bus_asks_the_clients_that_can_save() {
    let (bus, _metro) = with_a_client();
    let uuid = call(&bus, "GetUuidForClientName", &["metro"]);
    let digits: String = uuid.chars().filter(char::is_ascii_digit).collect();
    assert_eq!(uuid, format!("('{digits}',)"));
    assert_eq!(call(&bus, "GetClientNameByUuid", &[&format!("'{digits}'")]), "('metro',)");
    assert_eq!(call(&bus, "HasSessionCallback", &["metro"]), "(false,)");
    assert_eq!(call(&bus, "GetState", &[]), "(uint32 0, '')");
    let path = bus.directory().join("session/").to_string_lossy().into_owned();
    assert_eq!(
        call(&bus, "Notify", &["false", "''", "1", &path]),
        "(@a(sssu) [],)",
        "metro saves nothing"
    );
    call(&bus, "ReserveClientName", &["synth", "'8589934699'"]);
    let refused =
        bus.call("org.jackaudio.SessionManager.ReserveClientName", &["synth", "'8589934700'"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("'synth' is taken"), "{refused:?}");
}
