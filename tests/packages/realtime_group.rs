//! What members of the group `realtime` may do on a machine.

use super::debian::{Debian, Machine};

/// udev gives them the device with which a server keeps CPUs awake enough, as its rules are in the
/// machine. The event is one that never happened: this kernel's own device is left alone.
pub(crate) fn expect_device(debian: &Debian) {
    let device = "/sys/devices/virtual/misc/cpu_dma_latency";
    let script = format!(
        "apt-get install --quiet=2 --yes --no-install-recommends udev; \
         getent group realtime; udevadm test {device} 2>&1"
    );
    let printed = debian.run(&script).expect_success().stdout;
    let group = printed.lines().find_map(|line| line.strip_prefix("realtime:x:"));
    let group = group.and_then(|line| line.split(':').next()).expect("the group");
    for given in
        [format!("60-consort.rules:3 GROUP {group}"), "60-consort.rules:3 MODE 0660".into()]
    {
        assert!(printed.contains(&given), "{given}: {printed}");
    }
}
