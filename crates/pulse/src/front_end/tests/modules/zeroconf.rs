//! Modules by which machines learn of each other's devices: what they ask for.

use super::FAILED;
use super::*;
use crate::output::NewLink;

#[test]
fn devices_are_published_with_the_port_at_which_programs_come_in() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let publish = "module-zeroconf-publish";
    assert_eq!(scene.load_named(client, publish, ""), Err(FAILED));
    let said = scene.reported();
    assert!(said[0].contains("load module-native-protocol-tcp before"), "{said:?}");
    let tcp = "auth-anonymous=1 port=4799";
    scene.load_named(client, "module-native-protocol-tcp", tcp).expect("loaded");
    let index = scene.load_named(client, publish, "").expect("loaded");
    assert_eq!(scene.links().get(&index), Some(&NewLink::ZeroconfPublisher { port: 4799 }));
    assert_eq!(scene.load_named(client, publish, ""), Err(FAILED), "there is one");
}

#[test]
fn tunnels_to_devices_that_are_found_have_the_latency_that_is_asked_for() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let discover = "module-zeroconf-discover";
    for (arguments, reason) in [("latency_msec=401", "400 is the most"), ("port=1", "no argument")]
    {
        assert_eq!(scene.load_named(client, discover, arguments), Err(FAILED));
        assert!(scene.reported()[0].contains(reason), "{arguments}");
    }
    for (arguments, latency_ms) in [("", None), ("latency_msec=5", Some(20))] {
        let index = scene.load_named(client, discover, arguments).expect("loaded");
        let link = NewLink::ZeroconfDiscoverer { latency_ms };
        assert_eq!(scene.links().get(&index), Some(&link));
        let unloaded = scene.tell(client, &Command::UnloadModule(index));
        assert_eq!(unloaded, Ok(()));
    }
}
