//! Headsets of Bluetooth are left alone by PipeWire's session manager: a program that stands for
//! BlueZ says what is asked of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use harness::{Program, eventually};
use tempfile::TempDir;

/// What the packages say.
const SETTINGS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../debian/wireplumber/bluetooth.lua.d/51-consort.lua");
const BLUEZ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/bluez.py");

/// Nobody has logged in here, which would keep it from taking headsets, too.
const WITHOUT_LOGIN: &str = "bluez_monitor.properties[\"with-logind\"] = false\n";

/// The last of its settings: by then, what it loads is decided.
const LAST: &str = "print(\"headsets: \" .. tostring(components[\"monitors/bluez.lua\"] ~= nil))\n";

/// Whether the session manager looks for headsets with a file of settings, if there is one; and
/// what it asks of BlueZ, `until` it has asked that.
fn asked(settings: Option<&str>, until: Option<&str>) -> (bool, Vec<String>) {
    let place = TempDir::with_prefix("consort-bluez-").expect("a temporary directory");
    let configuration = place.path().join("config/wireplumber/bluetooth.lua.d");
    fs::create_dir_all(&configuration).expect("a directory");
    let write = |name: &str, text: &str| {
        fs::write(configuration.join(name), text).expect("written");
    };
    settings.into_iter().for_each(|settings| write("51-consort.lua", settings));
    write("52-test.lua", WITHOUT_LOGIN);
    write("95-last.lua", LAST);
    let start = |program: &str, arguments: &[&str], bus: &str| {
        let mut command = Command::new("stdbuf");
        command.args(["-o0", program]).args(arguments);
        command.env("XDG_RUNTIME_DIR", place.path()).env("HOME", place.path());
        command.env("XDG_CONFIG_HOME", place.path().join("config"));
        command.env("DBUS_SYSTEM_BUS_ADDRESS", bus).env("DBUS_SESSION_BUS_ADDRESS", bus);
        Program::start(command)
    };
    let mut bus = start("dbus-daemon", &["--session", "--nofork", "--print-address"], "");
    let address = eventually("there is a bus", || {
        let printed = bus.stdout();
        printed.ends_with('\n').then(|| printed.trim().to_owned())
    });
    let mut bluez = start("/usr/bin/python3", &[BLUEZ], &address);
    eventually("BlueZ is there", || bluez.stdout().starts_with("begun\n").then_some(()));
    let _pipewire = start("pipewire", &[], &address);
    let socket = place.path().join("pipewire-0");
    eventually("PipeWire is there", || socket.exists().then_some(()));
    let mut manager = start("wireplumber", &[], &address);
    let looks = eventually("it has read its settings", || {
        assert!(manager.is_running(), "{}", manager.stderr());
        manager.stdout().lines().find_map(|line| line.strip_prefix("headsets: ")?.parse().ok())
    });
    eventually("it has asked", || {
        let printed = bluez.stdout();
        until.is_none_or(|method| printed.lines().any(|line| line == method)).then_some(())
    });
    (looks, bluez.stdout().lines().skip(1).map(str::to_owned).collect())
}

#[test]
fn wireplumber_takes_no_headset_unless_a_user_says_so() {
    let ours = fs::read_to_string(Path::new(SETTINGS)).expect("a file of the packages");
    assert_eq!(asked(Some(&ours), None), (false, Vec::new()));
    // As Debian has it, and where a user has an empty file of that name.
    for settings in [None, Some("")] {
        let (looks, asked) = asked(settings, Some("RegisterApplication"));
        assert!(looks && asked.contains(&"GetManagedObjects".to_owned()), "{asked:?}");
    }
}
