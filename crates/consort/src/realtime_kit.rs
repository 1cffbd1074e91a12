//! Priorities from RealtimeKit on the system bus, for threads whose user may not set them.
//!
//! Source: README and org.freedesktop.RealtimeKit1.xml of rtkit 0.13.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::time::Duration;

use cli::FAVOURED;
use zbus::Connection;
use zbus::connection::Builder;

/// What the process prints before the highest available priority, in its first line.
pub(crate) const HIGHEST: &str = "highest ";
/// What it prints for each thread that was given its priority; any other line is the reason why it
/// was not.
pub(crate) const GIVEN: &str = "given";
const NAME: &str = "org.freedesktop.RealtimeKit1";
const OBJECT: &str = "/org/freedesktop/RealtimeKit1";
/// Time limit for one answer: RealtimeKit may have to consult polkit, which starts other programs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);

/// A thread that is to have a priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PriorityRequest {
    process: u32,
    thread: u32,
    priority: Priority,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Priority {
    RealTime(u32),
    /// Above ordinary threads.
    Favoured,
}

impl PriorityRequest {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let wanted = Self {
            process: words.next()?.parse().ok()?,
            thread: words.next()?.parse().ok()?,
            priority: match words.next()? {
                FAVOURED => Priority::Favoured,
                priority => Priority::RealTime(priority.parse().ok()?),
            },
        };
        words.next().is_none().then_some(wanted)
    }
}

/// `consort realtime-kit`: prints the highest real-time priority, then asks RealtimeKit for the
/// priority of each thread that a line of standard input names.
///
/// # Errors
/// Standard input or output fails.
pub(crate) fn ask() -> anyhow::Result<ExitCode> {
    let mut output = std::io::stdout();
    let kit = match Kit::find() {
        Ok(kit) => kit,
        Err(error) => {
            writeln!(output, "{}", in_one_line(&error))?;
            return Ok(ExitCode::FAILURE);
        }
    };
    writeln!(output, "{HIGHEST}{}", kit.highest).and_then(|()| output.flush())?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let answer = match PriorityRequest::read(&line).map(|wanted| kit.give(wanted)) {
            Some(Ok(())) => GIVEN.to_owned(),
            Some(Err(error)) => in_one_line(&error),
            None => {
                format!("'{line}' is not PROCESS THREAD PRIORITY, or PROCESS THREAD {FAVOURED}")
            }
        };
        writeln!(output, "{answer}").and_then(|()| output.flush())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn in_one_line(error: &dyn std::error::Error) -> String {
    error.to_string().replace(char::is_control, " ")
}

struct Kit {
    bus: Connection,
    highest: u32,
    /// How long a real-time thread may run without sleeping, in µs. RealtimeKit requires that the
    /// process already has this limit.
    longest_us: u64,
}

impl Kit {
    fn find() -> zbus::Result<Self> {
        zbus::block_on(async {
            let bus = Builder::system().method_timeout(ANSWER_TIMEOUT).build().await?;
            let highest: i32 = property(&bus, "MaxRealtimePriority").await?;
            let longest_us: i64 = property(&bus, "RTTimeUSecMax").await?;
            let (highest, longest_us) = (u32::try_from(highest), u64::try_from(longest_us));
            Ok(Self { bus, highest: highest.unwrap_or(0), longest_us: longest_us.unwrap_or(0) })
        })
    }

    fn give(&self, wanted: PriorityRequest) -> zbus::Result<()> {
        let PriorityRequest { process, thread, priority } = wanted;
        let (process_id, thread) = (u64::from(process), u64::from(thread));
        zbus::block_on(async {
            let (bus, name) = (&self.bus, Some(NAME));
            let answered = match priority {
                Priority::RealTime(priority) => {
                    // Fails where the limit is already lower; RealtimeKit decides whether that will
                    // do.
                    let _ = sys::process::limit_realtime(process, self.longest_us);
                    let wanted = (process_id, thread, priority);
                    bus.call_method(name, OBJECT, name, "MakeThreadRealtimeWithPID", &wanted).await
                }
                Priority::Favoured => {
                    let wanted = (process_id, thread, sys::thread::FAVOURED_NICE);
                    let method = "MakeThreadHighPriorityWithPID";
                    bus.call_method(name, OBJECT, name, method, &wanted).await
                }
            };
            answered.map(drop)
        })
    }
}

async fn property<T: TryFrom<zbus::OwnedVariant>>(bus: &Connection, name: &str) -> zbus::Result<T>
where
    zbus::Error: From<T::Error>,
{
    let interface = "org.freedesktop.DBus.Properties";
    let answer = bus.call_method(Some(NAME), OBJECT, Some(interface), "Get", &(NAME, name)).await?;
    let value: zbus::OwnedVariant = answer.body().deserialize()?;
    Ok(T::try_from(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_process_a_thread_and_a_priority() {
        assert_eq!(
            PriorityRequest::read("7 8 5"),
            Some(PriorityRequest { process: 7, thread: 8, priority: Priority::RealTime(5) })
        );
        assert_eq!(
            PriorityRequest::read("7 8 favoured"),
            Some(PriorityRequest { process: 7, thread: 8, priority: Priority::Favoured })
        );
        for line in ["", "7 8", "7 8 5 6", "7 8 -5", "7  8 5", "a b c", "7 8 favoured 5"] {
            assert_eq!(PriorityRequest::read(line), None, "{line:?}");
        }
    }
}
