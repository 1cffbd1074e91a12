//! Reservation of sound cards against other sound servers.
//!
//! A desktop's sound server keeps every card open. On the session bus it owns a name for each, and
//! releases the card when a program of higher priority asks for it. The program that owns the name
//! has the card until it leaves the bus.
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
/// Highest priority: music is not interrupted for a notification.
const PRIORITY: i32 = i32::MAX;
/// What the process prints before the name of an owner that does not release the card; anything
/// else says that the card is reserved.
pub(crate) const REFUSED: &str = "refused ";
/// Time limit for the owner's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Result of a reservation.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// The card is ours while the connection lives.
    Ours,
    /// Its owner, by the name it gives itself, does not release it.
    Refused(String),
}

/// The object that other programs see for a card that we own.
struct Reservation {
    card: u32,
}

#[interface(name = "org.freedesktop.ReserveDevice1")]
impl Reservation {
    /// Refuses: no program has a higher priority.
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

/// `consort reserve`: reserves the card, prints the result, and keeps the card until standard input
/// ends.
///
/// # Errors
/// There is no session bus.
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

/// Takes the card's name on the bus; if it is taken, asks its owner to release it first.
///
/// # Errors
/// There is no session bus, or it fails.
fn reserve(card: u32) -> zbus::Result<(Connection, Answer)> {
    zbus::block_on(async {
        let (name, path) = (format!("{INTERFACE}.Audio{card}"), path(card));
        let connection = Builder::session()
            .method_timeout(ANSWER_TIMEOUT)
            .serve_at(path.as_str(), Reservation { card })
            .build()
            .await?;
        let asked =
            connection.request_name_with_flags(name.as_str(), RequestNameFlags::DO_NOT_QUEUE).await;
        match asked {
            Err(zbus::Error::NameTaken) => {}
            asked => return asked.map(|_| (connection, Answer::Ours)),
        }
        // No answer counts as a refusal: the owner has just left, or does not know the method.
        if !request_release(&connection, &name, &path).await.unwrap_or(false) {
            let owner = owner(&connection, &name, &path).await.unwrap_or_else(|_| name.clone());
            return Ok((connection, Answer::Refused(owner)));
        }
        let flags = RequestNameFlags::DO_NOT_QUEUE | RequestNameFlags::REPLACE_EXISTING;
        match connection.request_name_with_flags(name.as_str(), flags).await {
            // Another program was quicker.
            Err(zbus::Error::NameTaken) => Ok((connection, Answer::Refused(name))),
            asked => asked.map(|_| (connection, Answer::Ours)),
        }
    })
}

fn path(card: u32) -> String {
    format!("/org/freedesktop/ReserveDevice1/Audio{card}")
}

async fn request_release(connection: &Connection, name: &str, path: &str) -> zbus::Result<bool> {
    let answer = connection
        .call_method(Some(name), path, Some(INTERFACE), "RequestRelease", &PRIORITY)
        .await?;
    answer.body().deserialize()
}

/// Returns the application name of a card's owner.
async fn owner(connection: &Connection, name: &str, path: &str) -> zbus::Result<String> {
    let properties = "org.freedesktop.DBus.Properties";
    let asked = (INTERFACE, "ApplicationName");
    let answer = connection.call_method(Some(name), path, Some(properties), "Get", &asked).await?;
    let value: zbus::OwnedVariant = answer.body().deserialize()?;
    String::try_from(value)
}
