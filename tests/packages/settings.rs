//! What the packages say to a session manager that Debian 12 does not have.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

const FILE: &str = "debian/wireplumber/wireplumber.conf.d/51-consort.conf";

#[test]
fn wireplumber_0_5_is_without_cards_and_headsets_and_keeps_cameras() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lies in the tree");
    let mut reader = Command::new("spa-json-dump");
    let read = reader.arg(root.join(FILE)).output().expect("it comes with pipewire-bin");
    let errors = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success() && errors.is_empty(), "{errors}");
    let settings: Value = serde_json::from_slice(&read.stdout).expect("one object");
    // The names are those of WirePlumber's "well-known features", from 0.5.0 on. Those of cameras
    // are monitor.v4l2 and monitor.libcamera.
    let off = ["monitor.alsa", "monitor.alsa-midi", "monitor.bluez", "monitor.bluez-midi"];
    let off: Value =
        off.map(|feature| (feature.to_owned(), json!("disabled"))).into_iter().collect();
    assert_eq!(settings, json!({ "wireplumber.profiles": { "main": off } }));
}
