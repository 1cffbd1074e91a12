//! The module that plays a sample when an X server rings its bell: what it asks for.

use super::FAILED;
use super::*;
use crate::output::{NewBell, NewLink};

#[test]
fn the_bell_of_a_display_is_a_sample_on_a_sink() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let module = "module-x11-bell";
    for (arguments, reason) in
        [("volume=1", "no argument 'volume'"), ("sample=", "sample is empty")]
    {
        assert_eq!(scene.load_named(client, module, arguments), Err(FAILED));
        assert!(scene.reported()[0].contains(reason), "{arguments}");
    }
    let (sink, display, authority) = (None, None, None);
    let default = NewBell { sink, sample: "bell-window-system".into(), display, authority };
    let other = NewBell {
        sink: Some("later".into()),
        sample: "ding".into(),
        display: Some(":7".into()),
        authority: Some("/run/a".into()),
    };
    let arguments = "sink=later sample=ding display=:7 xauthority=/run/a";
    // There may be several, of several displays.
    for (arguments, bell) in [("", default), (arguments, other)] {
        let index = scene.load_named(client, module, arguments).expect("loaded");
        assert_eq!(scene.links().get(&index), Some(&NewLink::X11Bell(bell)));
    }
}
