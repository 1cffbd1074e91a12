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
    let name = String::try_from(device.remove("Alias")?).ok()?;
    (plays && (is_connected || is_paired)).then_some(HeadsetFacts { name, is_connected })
}
