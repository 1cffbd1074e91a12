//! Who has the names on the session bus by which programs find a sound server.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use zbus::Connection;
use zbus::connection::Builder;
use zbus::zvariant::{DynamicType, Type};

use crate::OtherServer;
use crate::facts::is_consort;

/// A name on the session bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusName {
    /// The name.
    pub name: String,
    /// The process that has it.
    pub owner: OtherServer,
    /// Whether that is consort.
    pub is_ours: bool,
}

/// The name through which programs control JACK.
pub(crate) const JACK: &str = "org.jackaudio.service";
/// The name that PulseAudio owns while it runs.
pub(crate) const PULSEAUDIO: &str = "org.pulseaudio.Server";
/// Before a card's number: the program that has the name has the card.
pub(crate) const CARD: &str = "org.freedesktop.ReserveDevice1.Audio";

/// A bus that does not answer within this time counts as absent.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The names of sound servers that somebody has.
pub(crate) fn names() -> Vec<BusName> {
    let (sender, receiver) = channel();
    // It may be left behind, at a bus that hangs: the program ends soon.
    std::thread::spawn(move || sender.send(zbus::block_on(ask()).unwrap_or_default()));
    receiver.recv_timeout(PATIENCE).unwrap_or_default()
}

async fn ask() -> zbus::Result<Vec<BusName>> {
    let connection = Builder::session().method_timeout(PATIENCE).build().await?;
    let names: Vec<String> = call(&connection, "ListNames", &()).await?;
    let is_a_servers = |name: &String| name == JACK || name == PULSEAUDIO || name.starts_with(CARD);
    let mut found = Vec::new();
    for name in names.into_iter().filter(is_a_servers) {
        // Its owner may have left meanwhile.
        let asked = call(&connection, "GetConnectionUnixProcessID", &name.as_str()).await;
        let Ok(process): zbus::Result<u32> = asked else { continue };
        let directory = Path::new("/proc").join(process.to_string());
        let program = std::fs::read_to_string(directory.join("comm")).unwrap_or_default();
        let owner = OtherServer { program: program.trim().to_owned(), process };
        found.push(BusName { name, owner, is_ours: is_consort(&directory) });
    }
    found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Asks the bus itself.
pub(crate) async fn call<Answer, Question>(
    connection: &Connection,
    method: &str,
    question: &Question,
) -> zbus::Result<Answer>
where
    Answer: DeserializeOwned + Type,
    Question: Serialize + DynamicType,
{
    const BUS: &str = "org.freedesktop.DBus";
    call_at(connection, (BUS, "/org/freedesktop/DBus", BUS), method, question).await
}

/// Asks an object: the name of its program, its path, and its interface.
pub(crate) async fn call_at<Answer, Question>(
    connection: &Connection,
    (program, path, interface): (&str, &str, &str),
    method: &str,
    question: &Question,
) -> zbus::Result<Answer>
where
    Answer: DeserializeOwned + Type,
    Question: Serialize + DynamicType,
{
    let answer =
        connection.call_method(Some(program), path, Some(interface), method, question).await?;
    answer.body().deserialize()
}
