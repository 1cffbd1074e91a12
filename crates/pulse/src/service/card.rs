//! What the kernel says about a card, in PulseAudio's names of properties.

use std::fs::{canonicalize, read_to_string};
use std::path::Path;

use crate::output::Card;

/// Letters of a property: what a device on a bus calls itself is not bounded otherwise.
const MAX_LETTERS: usize = 128;

/// Returns what is known of the card of this name, as ALSA has it.
pub(super) fn card(name: &str) -> Card {
    // Of two, the second one plays.
    let found = alsa::locate(name.split_whitespace().next_back().unwrap_or_default());
    let properties = found.map(|(card, device)| properties(Path::new("/"), card, device));
    Card { name: name.to_owned(), properties: properties.unwrap_or_default() }
}

/// Reads them from the files of the kernel below `root`.
fn properties(root: &Path, card: u32, device: u32) -> Vec<(&'static str, String)> {
    let mut all = vec![("alsa.card", card.to_string()), ("alsa.device", device.to_string())];
    let mut add = |key, value: Option<String>| {
        let value = value.map(|value| printable(&value)).filter(|value| !value.is_empty());
        all.extend(value.map(|value| (key, value)));
    };
    let list = read_to_string(root.join("proc/asound/cards")).unwrap_or_default();
    if let Some((name, long_name)) = names(&list, card) {
        add("alsa.card_name", Some(name));
        add("alsa.long_card_name", long_name);
    }
    let pcm = |direction| format!("proc/asound/card{card}/pcm{device}{direction}/info");
    let info = ["p", "c"].iter().find_map(|side| read_to_string(root.join(pcm(side))).ok());
    for (key, word) in [("alsa.name", "name: "), ("alsa.id", "id: ")] {
        let line = |info: &String| Some(info.lines().find_map(|l| l.strip_prefix(word))?.into());
        add(key, info.as_ref().and_then(line));
    }
    let sound = root.join(format!("sys/class/sound/card{card}"));
    let target = |name: &str| {
        let path = canonicalize(sound.join(name)).ok()?;
        Some(path.file_name()?.to_string_lossy().into_owned())
    };
    add("alsa.driver_name", target("device/driver/module"));
    let path = canonicalize(&sound).ok();
    let path = path.and_then(|path| Some(path.strip_prefix(root.join("sys")).ok()?.to_owned()));
    add("sysfs.path", path.map(|path| format!("/{}", path.display())));
    let bus = target("device/subsystem");
    let read = |name: &str| {
        let text = read_to_string(sound.join("device").join(name)).ok()?;
        Some(text.trim().trim_start_matches("0x").to_owned())
    };
    let files = match bus.as_deref() {
        Some("pci") => ["vendor", "device", "-", "-"],
        // Of a USB card, the device is one interface.
        Some("usb") => ["../idVendor", "../idProduct", "../manufacturer", "../product"],
        _ => return all,
    };
    let keys =
        ["device.vendor.id", "device.product.id", "device.vendor.name", "device.product.name"];
    add("device.bus", bus);
    for (key, file) in keys.into_iter().zip(files) {
        add(key, read(file));
    }
    all
}

/// Returns the name of a card in the kernel's list of all, and the long one below it.
fn names(list: &str, card: u32) -> Option<(String, Option<String>)> {
    let mut lines = list.lines();
    let number = |line: &str| line.split_whitespace().next()?.parse::<u32>().ok();
    // " 0 [PCH            ]: HDA-Intel - HDA Intel PCH"
    let line = lines.by_ref().find(|line| number(line) == Some(card) && line.contains("]: "))?;
    let (_, name) = line.split_once("]: ")?;
    let name = name.split_once(" - ").map_or(name, |(_, name)| name);
    Some((name.trim().to_owned(), lines.next().map(|line| line.trim().to_owned())))
}

fn printable(text: &str) -> String {
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    // MUTATION: printable.without_limit
    text.trim().chars().map(printable).take(MAX_LETTERS).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    use super::*;

    const LIST: &str = " 0 [PCH            ]: HDA-Intel - HDA Intel PCH
                      HDA Intel PCH at 0xf7e14000 irq 31
 1 [Headset        ]: USB-Audio - A\u{7} Headset
                      Maker A Headset at usb-1, full speed
";

    fn value<'a>(all: &'a [(&str, String)], key: &str) -> Option<&'a str> {
        all.iter().find(|(of, _)| *of == key).map(|(_, value)| value.as_str())
    }

    #[test]
    fn what_the_kernel_says_about_a_usb_card_is_said_by_its_properties() {
        let root = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: &str| {
            let path = root.path().join(name);
            create_dir_all(path.parent().expect("a directory")).expect("made");
            write(path, text).expect("written");
        };
        file("proc/asound/cards", LIST);
        file("proc/asound/card1/pcm0c/info", "card: 1\nid: USB Audio\nname: USB Audio\n");
        let device = "sys/devices/usb1/1-1";
        for (name, text) in
            [("idVendor", "046d\n"), ("idProduct", "0a44\n"), ("product", &"x".repeat(300))]
        {
            file(&format!("{device}/{name}"), text);
        }
        file(&format!("{device}/1-1:1.0/sound/card1/number"), "1\n");
        file("sys/bus/usb/drivers_probe", "");
        let link = |to: &str, at: &str| symlink(root.path().join(to), root.path().join(at));
        create_dir_all(root.path().join("sys/class/sound")).expect("made");
        link(&format!("{device}/1-1:1.0/sound/card1"), "sys/class/sound/card1").expect("linked");
        let own = format!("{device}/1-1:1.0/sound/card1/device");
        link(&format!("{device}/1-1:1.0"), &own).expect("linked");
        link("sys/bus/usb", &format!("{device}/1-1:1.0/subsystem")).expect("linked");
        let all = properties(root.path(), 1, 0);
        for (key, expected) in [
            ("alsa.card", "1"),
            ("alsa.card_name", "A  Headset"),
            ("alsa.long_card_name", "Maker A Headset at usb-1, full speed"),
            ("alsa.name", "USB Audio"),
            ("device.bus", "usb"),
            ("device.vendor.id", "046d"),
            ("device.product.id", "0a44"),
            ("device.product.name", &"x".repeat(MAX_LETTERS)),
            ("sysfs.path", "/devices/usb1/1-1/1-1:1.0/sound/card1"),
        ] {
            assert_eq!(value(&all, key), Some(expected), "{key}");
        }
        assert_eq!(value(&all, "device.vendor.name"), None, "it does not say");
    }

    #[test]
    fn a_card_is_found_in_the_kernels_list_by_its_number() {
        assert_eq!(names(LIST, 0).map(|(name, _)| name).as_deref(), Some("HDA Intel PCH"));
        assert_eq!(names(LIST, 2), None);
        assert_eq!(names("--- no soundcards ---\n", 0), None);
    }
}
