//! What to change, for the answers that were given. Pure.

use std::path::{Path, PathBuf};

/// What the machine is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Purpose {
    /// Players, browsers, calls: cycles of 1024 frames when a program of JACK runs, cards that are
    /// closed when nothing plays, and each that is plugged in to be chosen for any program
    Desktop,
    /// Instruments and recording: cycles of 128 frames, and a card that stays open
    Studio,
}

/// What starts the server's cycles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CardChoice {
    /// The most sensible card at each start, or the timer where there is none.
    Auto,
    /// No card: the timer.
    None,
    /// This device of ALSA.
    Device(String),
}

/// What a part of the setup makes true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// A file has this content.
    File { path: PathBuf, content: String },
    /// A user is a member of a group.
    Member { user: String, group: String },
}

/// The group whose members have real-time priorities, where the package has made it.
pub(crate) const GROUP: &str = "realtime";

/// What the user's own files are to be.
pub(crate) fn of_user(config: &Path, card: &CardChoice, purpose: Purpose) -> Vec<Change> {
    let path = config.join("consort/service");
    vec![Change::File { path, content: service(card, purpose) }]
}

/// What the machine's files are to be, which takes root. Root itself needs no rights.
pub(crate) fn of_machine(user: &str, has_group: bool) -> Vec<Change> {
    if user == "root" {
        return Vec::new();
    }
    let user = user.to_owned();
    if has_group {
        return vec![Change::Member { user, group: GROUP.into() }];
    }
    let content = format!(
        "# Real-time priorities and locked memory for consort and its programs.\n\
         {user} - rtprio 95\n\
         {user} - memlock unlimited\n"
    );
    let path = PathBuf::from(format!("/etc/security/limits.d/25-consort-{user}.conf"));
    vec![Change::File { path, content }]
}

/// The options of `consort run`, as `consort.service` reads them.
fn service(card: &CardChoice, purpose: Purpose) -> String {
    let driver = match card {
        CardChoice::Auto => "--driver auto".into(),
        CardChoice::None => "--driver timer".into(),
        CardChoice::Device(device) => format!("--driver alsa --device {device}"),
    };
    let more = match (purpose, card) {
        (Purpose::Desktop, CardChoice::None) => "",
        (Purpose::Desktop, _) => " --stream-card all",
        (Purpose::Studio, _) => " --quantum 128 --suspend 0",
    };
    format!(
        "# Options of 'consort run'. Written by 'consort setup', undone by 'consort setup --undo'.\n\
         OPTIONS=\"{driver}{more}\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(card: CardChoice, purpose: Purpose) -> String {
        let changes = of_user(Path::new("/home/ann/.config"), &card, purpose);
        let [Change::File { path, content }] = &changes[..] else { panic!("{changes:?}") };
        assert_eq!(path, Path::new("/home/ann/.config/consort/service"));
        content.lines().last().expect("a line").to_owned()
    }

    #[test]
    fn answers_become_options_of_the_server() {
        let usb = || CardChoice::Device("hw:CARD=USB,DEV=0".into());
        for (card, purpose, expected) in [
            (CardChoice::Auto, Purpose::Desktop, "OPTIONS=\"--driver auto --stream-card all\""),
            (CardChoice::None, Purpose::Desktop, "OPTIONS=\"--driver timer\""),
            (
                usb(),
                Purpose::Desktop,
                "OPTIONS=\"--driver alsa --device hw:CARD=USB,DEV=0 --stream-card all\"",
            ),
            (
                usb(),
                Purpose::Studio,
                "OPTIONS=\"--driver alsa --device hw:CARD=USB,DEV=0 --quantum 128 --suspend 0\"",
            ),
        ] {
            assert_eq!(options(card, purpose), expected);
        }
    }

    #[test]
    fn rights_come_from_the_group_or_a_file_of_limits() {
        let member = Change::Member { user: "ann".into(), group: GROUP.into() };
        assert_eq!(of_machine("ann", true), [member]);
        let changes = of_machine("ann", false);
        let [Change::File { path, content }] = &changes[..] else { panic!("{changes:?}") };
        assert_eq!(path, Path::new("/etc/security/limits.d/25-consort-ann.conf"));
        assert!(content.ends_with("ann - rtprio 95\nann - memlock unlimited\n"), "{content}");
        assert_eq!(of_machine("root", true), []);
    }
}
