//! `consort device`: further sound cards, and MIDI hardware. Each is served by its own process,
//! which is a client of the graph. Devices for streams alone are the server's; what links them is a
//! process again.

mod every_card;
mod links;
mod of_server;
mod processing;
mod rtp;
mod serve;
mod tunnels;
mod x11_bell;
mod zeroconf;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use cli::{output, own_program};
use client::{Observer, Property, Requester, client_uuid};
use device::CardReservation;
use sys::helper::{Ending, Helper, Lines};
use sys::process::PidFd;
use sys::signals::Signal;

use crate::{DEVICE_KEY, LINK_KEY, STATE_KEY};
pub use serve::Options as DeviceOptions;

/// Time limit for a device's process to end.
const END_TIMEOUT_NS: u64 = 10_000_000_000;

/// Show, add and remove further devices: cards with their own clock, MIDI, devices without hardware
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort device list
  consort device add hw:USB --quantum 128 --periods 3
  consort device add seq
  consort device add raw
  consort device add hw:USB --streams
  consort device add null --name headphones
  consort device add loopback --from headphones --to system
  consort device add remap --name left --to system --map 1
  consort device add combined --to system --to headphones
  consort device add pipe-sink --file /tmp/heard --format s16le
  consort device add pipe-source --file /tmp/played --rate 44100 --to system
  consort device remove USB")]
pub struct Device {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the devices in the graph, and this machine's cards
    List,
    /// Add a device: a sound card, MIDI, or one without hardware
    #[command(after_help = "Devices:
  hw:NAME       a sound card: its channels are ports of the graph, or with --streams, programs play
                and record on it by its name (consort play --device NAME)
  seq           MIDI: all ports of ALSA's sequencer
  raw           MIDI: all raw devices, which no other program can use then
  null          a device without hardware, on which programs play and record by its name
  remap         chosen channels of another device
  combined      several other devices, in step
  loopback      plays on one device what is heard on another
  pipe-sink     writes what is played on it, or on another device, to a FIFO
  pipe-source   plays the raw samples of a FIFO")]
    Add(serve::Options),
    /// Remove a device that was added
    Remove {
        /// Its name
        name: String,
    },
    /// Run as the client of a device until it is removed or the server ends
    #[command(hide = true)]
    Serve(serve::Serve),
}

impl Device {
    /// Runs the command for the server of this name. A device that this process serves itself is
    /// reserved by `cards`.
    ///
    /// # Errors
    /// There is no server, no such device, or it cannot be opened.
    pub fn run(self, server: &str, cards: &dyn CardReservation) -> anyhow::Result<ExitCode> {
        match self.action {
            Action::List => output::print(&list(&Observer::open(Some(server))?)?)?,
            Action::Add(options) => {
                ensure!(
                    !options.is_every_card(),
                    "every card is added by the server's command line: consort run --stream-card all"
                );
                // Checked before a process is started for nothing.
                let running = Observer::open(Some(server))?;
                if options.is_of_server() {
                    output::print(&of_server::add(&running, &options)?)?;
                    return Ok(ExitCode::SUCCESS);
                }
                let Added { name, description } = add(server, &options)?;
                output::print(&format!("{name}: {description}\n"))?;
            }
            Action::Remove { name } => remove(&Observer::open(Some(server))?, &name)?,
            Action::Serve(serve) => return serve.run(server, cards),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A device in the graph.
struct Served {
    name: String,
    process: u32,
    device: String,
    state: String,
    /// It links devices, and has no ports in the graph.
    is_link: bool,
}

fn served(server: &Observer) -> anyhow::Result<Vec<Served>> {
    let properties = server.properties(None)?;
    let value = |subject: u64, key: &str| {
        let found = properties
            .iter()
            .find(|property: &&Property| property.subject == subject && property.key == key);
        found.map(|property| property.value.text.clone())
    };
    let clients = server.registry().clients().filter_map(|client| {
        let subject = client_uuid(client.id);
        let link = value(subject, LINK_KEY);
        let is_link = link.is_some();
        let device = link.or_else(|| value(subject, DEVICE_KEY))?;
        let state = value(subject, STATE_KEY).unwrap_or_default();
        Some(Served { name: client.name, process: client.process, device, state, is_link })
    });
    Ok(clients.collect())
}

fn list(server: &Observer) -> anyhow::Result<String> {
    let mut text = String::from("In the graph, in addition to the server's own device:\n");
    let (links, in_graph): (Vec<_>, Vec<_>) =
        served(server)?.into_iter().partition(|served| served.is_link);
    let line =
        |Served { name, device, state, .. }: Served| format!("    {name:<16} {device}: {state}\n");
    if in_graph.is_empty() {
        text += "    none; add one with 'consort device add'\n";
    }
    text.extend(in_graph.into_iter().map(line));
    text += &of_server::list(server)?;
    if !links.is_empty() {
        text += "From device to device:\n";
    }
    text.extend(links.into_iter().map(line));
    text += "In this machine:\n";
    let cards = alsa::cards();
    if cards.is_empty() {
        text += "    no sound card that this user may open\n";
    }
    for card in &cards {
        for device in &card.devices {
            let ways = match (device.captures, device.plays) {
                (true, true) => "captures and plays",
                (true, false) => "captures",
                _ => "plays",
            };
            let name = format!("hw:{},{}", card.id, device.index);
            text += &format!("    {name:<16} {}, {}: {ways}\n", card.name, device.name);
        }
        for control in alsa::clock_controls(card.index) {
            text += &format!("    {:<16} clock source, {control}\n", "");
        }
    }
    Ok(text)
}

/// Removes the device `name`. One that a process serves has gone when this returns.
///
/// # Errors
/// The server has no such device, or its process does not end.
pub fn remove(server: &Observer, name: &str) -> anyhow::Result<()> {
    let found = served(server)?.into_iter().find(|served| served.name == name);
    let Some(device) = found else {
        // Its refusal names those that there are.
        return Ok(server.remove_device(name)?);
    };
    let process = PidFd::open(device.process).context("cannot reach its process")?;
    process.kill(Signal::Terminate).with_context(|| format!("cannot terminate '{name}'"))?;
    let deadline_ns = sys::clock::now_ns() + END_TIMEOUT_NS;
    if !process.wait_until(Some(deadline_ns)).context("cannot wait for it")? {
        bail!("'{name}' was asked to end and is still running");
    }
    Ok(())
}

/// Returns the command line of a process that serves a device.
fn serve_command(server: &str, words: &[String]) -> anyhow::Result<Command> {
    let mut command = own_program()?;
    command.args(["--server", server, "device", "serve"]).args(words).stdin(Stdio::null());
    Ok(command)
}

/// A device that has joined the graph.
#[derive(Debug)]
pub struct Added {
    /// Its client's name.
    pub name: String,
    description: String,
}

/// Starts a process that outlives this one, and waits until it has joined the graph.
///
/// # Errors
/// What the process says: the device cannot be opened, or the server refuses it.
pub fn add(server: &str, options: &DeviceOptions) -> anyhow::Result<Added> {
    let mut words = options.words();
    words.push("--report".into());
    let mut command = serve_command(server, &words)?;
    command.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().context("cannot start a process for the device")?;
    let report = child.stdout.take().and_then(|stdout| Lines::new(stdout).next_until(None));
    let report = report.unwrap_or_default();
    let joined = report.strip_prefix(serve::READY);
    // Client names have no colon.
    if let Some((name, description)) = joined.and_then(|joined| joined.split_once(": ")) {
        // Reaps the process if it ends before this one.
        thread::spawn(move || child.wait());
        return Ok(Added { name: name.into(), description: description.into() });
    }
    let _ = child.wait();
    bail!(
        "{}",
        if report.is_empty() {
            "its process has ended without giving a reason"
        } else {
            report.as_str()
        }
    )
}

/// Processes that serve devices while a server runs in this process. They end when this value is
/// dropped.
#[derive(Debug)]
pub struct DeviceProcesses {
    _processes: Vec<Helper>,
}

impl DeviceProcesses {
    /// Starts one for each device; they wait for the server, and end with it.
    ///
    /// # Errors
    /// A process cannot be started.
    pub fn start(server: &str, devices: &[DeviceOptions]) -> anyhow::Result<Self> {
        // A process that still waits for the server must not outlive this one.
        let ending = Ending::Terminate { timeout_ns: END_TIMEOUT_NS };
        let start = |device: &DeviceOptions| {
            let mut words = device.words();
            words.push("--wait".into());
            let process =
                Helper::spawn(serve_command(server, &words)?.stdout(Stdio::null()), ending);
            process.with_context(|| format!("cannot start a process for '{}'", device.device))
        };
        let processes = devices.iter().map(start).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self { _processes: processes })
    }
}
