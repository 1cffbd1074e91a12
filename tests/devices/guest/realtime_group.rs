//! The udev rule and the scripts of the package `consort`, on a kernel with the device that they
//! are about.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::awaited;

/// The packaging.
const DEBIAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../debian");

/// Where rules are that go with the next boot.
const RULES: &str = "/run/udev/rules.d";

/// What a program prints.
fn printed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect(program);
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Who has the device, and its permissions.
fn device() -> String {
    printed("stat", &["--format=%U %G %a", "/dev/cpu_dma_latency"])
}

/// Runs a script of the package as dpkg does.
fn script(name: &str, action: &str) {
    let script = Path::new(DEBIAN).join(format!("consort.{name}"));
    let status = Command::new("sh").arg(script).arg(action).status();
    assert!(status.expect("sh runs").success(), "{name} {action}");
}

#[test]
#[ignore = "in the virtual machine"]
fn members_of_the_group_have_the_device_while_the_package_is_there() {
    let rule = Path::new(RULES).join("60-consort.rules");
    assert_eq!(device(), "root root 600");
    fs::create_dir_all(RULES).expect("a directory");
    fs::copy(Path::new(DEBIAN).join("consort.udev"), &rule).expect("a rule");
    script("postinst", "configure");
    awaited("udev applies the rule", || (device() == "root realtime 660").then_some(()));
    fs::remove_file(&rule).expect("it is there");
    script("postrm", "remove");
    assert_eq!(device(), "root root 600");
    script("postrm", "purge");
    assert_eq!(printed("getent", &["group", "realtime"]), "");
}
