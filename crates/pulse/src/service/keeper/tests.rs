//! Files that are damaged, cannot be written, or have changed.

use std::os::unix::fs::PermissionsExt;

use policy::{DeviceEntry, Volumes};

use super::*;

/// A user's directory.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn keeper(&self) -> Keeper {
        Keeper::of(Some(self.path("state/desktop.json")), Some(self.path("desktop.rules")))
    }
}

fn memory(volume: u32) -> Memory {
    let mut memory = Memory::default();
    let volume = Volumes::of([("front-left", volume)]);
    memory.set_device("consort", DeviceEntry { volume, muted: false, mixer: false });
    memory
}

#[test]
fn a_change_is_written_at_once_and_what_follows_within_a_second_together() {
    let home = Home::new();
    let mut keeper = home.keeper();
    assert_eq!((keeper.load(), keeper.due_ns()), (Memory::default(), None));
    let now_ns = 10 * INTERVAL_NS;
    keeper.note(now_ns);
    assert_eq!(keeper.due_ns(), Some(now_ns));
    keeper.write(&memory(100), now_ns);
    assert_eq!(keeper.due_ns(), None);
    keeper.collect();
    assert_eq!(home.keeper().load(), memory(100));
    (1..100).for_each(|step| keeper.note(now_ns + step * 1_000_000));
    assert_eq!(keeper.due_ns(), Some(now_ns + INTERVAL_NS), "a second after the last write");
    keeper.write(&memory(200), now_ns + INTERVAL_NS);
    keeper.collect();
    assert_eq!(home.keeper().load(), memory(200));
    keeper.note(now_ns + 5 * INTERVAL_NS);
    assert_eq!(keeper.due_ns(), Some(now_ns + 5 * INTERVAL_NS));
    keeper.finish(&memory(300));
    assert_eq!(home.keeper().load(), memory(300));
    let mode = home.path("state").metadata().expect("made").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_damaged_file_is_set_aside_and_another_one_written() {
    let home = Home::new();
    std::fs::create_dir(home.path("state")).expect("made");
    for damage in [&b"{\"consort_desktop\": 1, \"streams\": ["[..], b"\xff", b""] {
        std::fs::write(home.path("state/desktop.json"), damage).expect("written");
        let mut keeper = home.keeper();
        assert_eq!(keeper.load(), Memory::default());
        let aside = std::fs::read(home.path("state/desktop.json.damaged")).expect("aside");
        assert_eq!(aside, damage);
        keeper.note(0);
        keeper.finish(&memory(100));
        assert_eq!(home.keeper().load(), memory(100));
    }
}

#[test]
fn a_file_of_a_later_version_is_left_alone() {
    let home = Home::new();
    std::fs::create_dir(home.path("state")).expect("made");
    let later = "{\"consort_desktop\": 3, \"moods\": []}";
    std::fs::write(home.path("state/desktop.json"), later).expect("written");
    let mut keeper = home.keeper();
    assert_eq!(keeper.load(), Memory::default());
    keeper.note(0);
    keeper.finish(&memory(100));
    let left = std::fs::read_to_string(home.path("state/desktop.json")).expect("left");
    assert_eq!(left, later);
}

#[test]
fn what_could_not_be_written_is_written_with_the_next_change() {
    let home = Home::new();
    // In the place of the directory.
    std::fs::write(home.path("state"), "").expect("written");
    let mut keeper = home.keeper();
    keeper.note(0);
    keeper.write(&memory(100), INTERVAL_NS);
    keeper.collect();
    assert!(keeper.is_failing);
    std::fs::remove_file(home.path("state")).expect("removed");
    keeper.note(2 * INTERVAL_NS);
    keeper.write(&memory(200), 3 * INTERVAL_NS);
    keeper.collect();
    assert!(!keeper.is_failing);
    assert_eq!(home.keeper().load(), memory(200));
}

#[test]
fn what_could_not_be_written_is_tried_again_at_the_end() {
    let home = Home::new();
    std::fs::write(home.path("state"), "").expect("written");
    let mut keeper = home.keeper();
    keeper.note(0);
    keeper.write(&memory(100), INTERVAL_NS);
    keeper.collect();
    std::fs::remove_file(home.path("state")).expect("removed");
    keeper.finish(&memory(100));
    assert_eq!(home.keeper().load(), memory(100));
}

#[test]
fn rules_are_read_again_once_they_have_changed() {
    let home = Home::new();
    let mut keeper = home.keeper();
    assert_eq!(keeper.changed_rules(), None);
    std::fs::write(home.path("desktop.rules"), "muted=yes name=a\nnonsense\n").expect("written");
    let rules = keeper.changed_rules().expect("new ones");
    assert_eq!(rules, Rules::parse("muted=yes name=a").0);
    assert_eq!(keeper.changed_rules(), None);
    std::fs::remove_file(home.path("desktop.rules")).expect("removed");
    assert_eq!(keeper.changed_rules(), Some(Rules::default()));
}
