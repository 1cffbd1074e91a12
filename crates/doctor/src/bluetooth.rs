//! Headsets and loudspeakers that BlueZ knows.

use std::collections::HashMap;
use std::sync::mpsc::channel;

use zbus::connection::Builder;
use zbus::{OwnedObjectPath, OwnedVariant};

use crate::bus::{PATIENCE, call, call_at};

/// A device of Bluetooth that plays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadsetFacts {
    /// Its name for users.
    pub name: String,
    /// It is connected now; otherwise it is paired.
    pub is_connected: bool,
}

/// Letters of a name: a device calls itself what it likes.
const MAX_LETTERS: usize = 64;

const BLUEZ: &str = "org.bluez";

/// What a device that plays offers: A2DP's sink, a headset, a hands-free unit.
const PLAYS: [&str; 3] = ["0000110b-", "00001108-", "0000111e-"];

type Properties = HashMap<String, OwnedVariant>;
type Objects = HashMap<OwnedObjectPath, HashMap<String, Properties>>;

/// Asks BlueZ, if it runs: it is not started for this.
pub(crate) fn headsets() -> Vec<HeadsetFacts> {
    let (sender, receiver) = channel();
    // It may be left behind, at a bus that hangs: the program ends soon.
    std::thread::spawn(move || sender.send(zbus::block_on(ask()).unwrap_or_default()));
    receiver.recv_timeout(PATIENCE).unwrap_or_default()
}

async fn ask() -> zbus::Result<Vec<HeadsetFacts>> {
    let connection = Builder::system().method_timeout(PATIENCE).build().await?;
    if !call::<bool, _>(&connection, "NameHasOwner", &BLUEZ).await? {
        return Ok(Vec::new());
    }
    let manager = "org.freedesktop.DBus.ObjectManager";
    let objects: Objects =
        call_at(&connection, (BLUEZ, "/", manager), "GetManagedObjects", &()).await?;
    let devices = objects.into_values().filter_map(|mut parts| parts.remove("org.bluez.Device1"));
    let mut found: Vec<HeadsetFacts> = devices.filter_map(headset).collect();
    found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// A device, if it plays and belongs to this machine.
fn headset(mut device: Properties) -> Option<HeadsetFacts> {
    let mut is = |name| device.remove(name).and_then(|value| bool::try_from(value).ok());
    let (is_connected, is_paired) = (is("Connected") == Some(true), is("Paired") == Some(true));
    let services = Vec::<String>::try_from(device.remove("UUIDs")?).ok()?;
    let plays = services.iter().any(|service| PLAYS.iter().any(|uuid| service.starts_with(uuid)));
    let name = printable(&String::try_from(device.remove("Alias")?).ok()?);
    (plays && (is_connected || is_paired)).then_some(HeadsetFacts { name, is_connected })
}

fn printable(name: &str) -> String {
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    name.trim().chars().map(printable).take(MAX_LETTERS).collect()
}

#[cfg(test)]
mod tests {
    use zbus::Variant;

    use super::*;

    #[test]
    fn the_name_that_a_device_has_given_itself_is_short_and_changes_no_terminal() {
        let of = |alias: &str| {
            let uuids = vec![format!("{}0000", PLAYS[0])];
            let device = [
                ("Connected", owned(true)),
                ("UUIDs", owned(uuids)),
                ("Alias", owned(alias.to_owned())),
            ];
            let device = device.map(|(name, value)| (name.to_owned(), value));
            headset(device.into_iter().collect()).expect("it plays").name
        };
        assert_eq!(of("My Ears"), "My Ears");
        assert_eq!(of("Ears\u{1b}[2J\nnote \u{9b}x"), "Ears [2J note  x");
        assert_eq!(of(&"x".repeat(300)), "x".repeat(MAX_LETTERS));
    }

    fn owned(value: impl Into<Variant<'static>>) -> OwnedVariant {
        OwnedVariant::try_from(value.into()).expect("it has no descriptor")
    }
}
