//! Cards that other sound servers let go while this one has them.
//!
//! A desktop's sound server keeps every card open. On the session bus it owns a name for each, and
//! gives the card up when it is asked to by somebody more important. Whoever owns the name has the
//! card, until it leaves the bus.
//!
//! Source: "A simple device reservation scheme with D-Bus", reserve.txt of
//! git.0pointer.net/reserve.git.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use zbus::connection::Builder;
use zbus::fdo::RequestNameFlags;
use zbus::{Connection, interface};

const INTERFACE: &str = "org.freedesktop.ReserveDevice1";
/// Above everybody's: music is not interrupted for a notification.
const PRIORITY: i32 = i32::MAX;
/// What the process prints before the name of an owner that does not release the card; anything
/// else says that the card is reserved.
pub(crate) const REFUSED: &str = "refused ";
/// For the owner's answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What became of the wish for a card.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// It is ours while the connection lives.
    Ours,
    /// Its owner, as it calls itself, does not let it go.
    Refused(String),
}

/// What others see of the owner of a card.
struct Reservation {
    card: u32,
}

#[interface(name = "org.freedesktop.ReserveDevice1")]
impl Reservation {
    /// Nobody is more important.
    fn request_release(&self, _priority: i32) -> bool {
        false
    }

    #[zbus(property)]
    fn priority(&self) -> i32 {
        PRIORITY
    }

    #[zbus(property)]
    fn application_name(&self) -> &str {
        "consort"
    }

    #[zbus(property)]
    fn application_device_name(&self) -> String {
        format!("hw:{}", self.card)
    }
}

/// `consort reserve`: asks for the card, says what became of it, and keeps it until standard input
/// ends.
///
/// # Errors
/// If there is no session bus.
pub(crate) fn keep(card: u32) -> anyhow::Result<ExitCode> {
    let (connection, answer) = reserve(card).context("no session bus")?;
    let line = match answer {
        Answer::Ours => "ours".to_owned(),
        Answer::Refused(owner) => format!("{REFUSED}{}", owner.replace(char::is_control, " ")),
    };
    let mut output = std::io::stdout();
    writeln!(output, "{line}").and_then(|()| output.flush())?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    drop(connection);
    Ok(ExitCode::SUCCESS)
}

/// Asks for a card, and its owner to let it go.
///
/// # Errors
/// If there is no session bus, or it does not do what a bus does.
fn reserve(card: u32) -> zbus::Result<(Connection, Answer)> {
    zbus::block_on(async {
        let (name, path) = (format!("{INTERFACE}.Audio{card}"), path(card));
        let connection = Builder::session()
            .method_timeout(PATIENCE)
            .serve_at(path.as_str(), Reservation { card })
            .build()
            .await?;
        let asked =
            connection.request_name_with_flags(name.as_str(), RequestNameFlags::DO_NOT_QUEUE).await;
        match asked {
            Err(zbus::Error::NameTaken) => {}
            asked => return asked.map(|_| (connection, Answer::Ours)),
        }
        // An owner that has just left, or does not know the method, has not agreed.
        if !lets_go(&connection, &name, &path).await.unwrap_or(false) {
            let owner = owner(&connection, &name, &path).await.unwrap_or_else(|_| name.clone());
            return Ok((connection, Answer::Refused(owner)));
        }
        let flags = RequestNameFlags::DO_NOT_QUEUE | RequestNameFlags::REPLACE_EXISTING;
        match connection.request_name_with_flags(name.as_str(), flags).await {
            // Somebody else was quicker.
            Err(zbus::Error::NameTaken) => Ok((connection, Answer::Refused(name))),
            asked => asked.map(|_| (connection, Answer::Ours)),
        }
    })
}

fn path(card: u32) -> String {
    format!("/org/freedesktop/ReserveDevice1/Audio{card}")
}

async fn lets_go(connection: &Connection, name: &str, path: &str) -> zbus::Result<bool> {
    let answer = connection
        .call_method(Some(name), path, Some(INTERFACE), "RequestRelease", &PRIORITY)
        .await?;
    answer.body().deserialize()
}

/// What the owner of a name calls itself.
async fn owner(connection: &Connection, name: &str, path: &str) -> zbus::Result<String> {
    let properties = "org.freedesktop.DBus.Properties";
    let asked = (INTERFACE, "ApplicationName");
    let answer = connection.call_method(Some(name), path, Some(properties), "Get", &asked).await?;
    let value: zbus::OwnedVariant = answer.body().deserialize()?;
    String::try_from(value)
}
