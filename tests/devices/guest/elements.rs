//! Elements of other cards on the dummy card: it stores their values, without any effect.

use std::fs;

use tempfile::TempDir;

use super::{awaited, has_card};

/// A Hammerfall's switches, the second one on.
pub const THRU: &str = "
    control.201 {
        iface MIXER
        name 'Channels Thru'
        value { 0 false 1 true 2 false 3 false }
        comment { access 'read write user' type BOOLEAN count 4 }
    }";

/// A Hammerfall DSP's mixer.
pub const MATRIX: &str = "
    control.202 {
        iface HWDEP
        name 'Mixer'
        value { 0 0 1 0 2 77 }
        comment { access 'read write user' type INTEGER count 3 range '0 - 65536' }
    }";

/// What two outputs of an ICE1712 play, the second one its digital input.
pub const ROUTES: &str = "
    control.203 {
        iface MIXER
        name 'H/W Playback Route'
        index 0
        value 'PCM Out'
        comment {
            access 'read write user' type ENUMERATED count 1
            item { 0 'PCM Out' 1 'H/W In 0' 2 'H/W In 1' 3 'IEC958 In L' }
        }
    }
    control.204 {
        iface MIXER
        name 'H/W Playback Route'
        index 1
        value 'IEC958 In L'
        comment {
            access 'read write user' type ENUMERATED count 1
            item { 0 'PCM Out' 1 'H/W In 0' 2 'H/W In 1' 3 'IEC958 In L' }
        }
    }";

/// A Hammerfall's clock.
pub const CLOCK: &str = "
    control.205 {
        iface MIXER
        name 'Sync Mode'
        value 'AutoSync'
        comment {
            access 'read write user' type ENUMERATED count 1
            item { 0 'AutoSync' 1 'Master' 2 'Word Clock' }
        }
    }";

/// Adds elements to card 2. They stay until it is removed.
pub fn add(elements: &str) {
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let file = directory.path().join("elements.state");
    fs::write(&file, format!("state.Dummy {{{elements}\n}}\n")).expect("a file");
    let path = file.to_string_lossy();
    super::run(
        "alsactl",
        &["--no-lock", "--no-ucm", "--no-init-fallback", "--file", &path, "restore", "2"],
    )
    .expect_success();
}

/// Values of an element of card 2, as `amixer` lists both.
pub fn values(element: &str) -> String {
    let listed = super::run("amixer", &["-c", "2", "contents"]).expect_success().stdout;
    let is_it = |line: &&str| line.split_once(',').is_some_and(|(_, listed)| listed == element);
    let after = listed.lines().skip_while(|line| !is_it(line));
    let values = after.filter_map(|line| line.strip_prefix("  : values=")).next();
    values.unwrap_or_else(|| panic!("{element} is not there: {listed}")).to_owned()
}

/// Waits until an element has these values.
#[track_caller]
pub fn await_values(element: &str, expected: &str) {
    awaited(&format!("{element} is {expected}"), || (values(element) == expected).then_some(()));
}

/// Sets an element as a person would.
pub fn set(element: &str, values: &str) {
    super::run("amixer", &["-q", "-c", "2", "cset", element, values]).expect_success();
}

fn write_to_driver(file: &str) {
    let path = format!("/sys/bus/platform/drivers/snd_dummy/{file}");
    fs::write(path, "snd_dummy.0").expect("a driver that takes orders");
}

/// Pulls card 2 out: returns when no program has it open any more.
pub fn pull_dummy() {
    write_to_driver("unbind");
    awaited("the card is gone", || (!has_card(2)).then_some(()));
}

/// Puts card 2 back, as new.
pub fn put_dummy_back() {
    write_to_driver("bind");
    awaited("the card is there", || has_card(2).then_some(()));
}
