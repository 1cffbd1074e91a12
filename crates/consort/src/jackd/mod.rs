//! consort as `jackd`: JACK's own options in JACK's order, as start scripts, `~/.jackdrc` and QjackCtl write
//! them. Read by hand, since the same letters mean one thing before `-d DRIVER` and another after it.

mod alsa;
mod driver;
pub(crate) mod man;
mod options;
mod slave;
#[cfg(test)]
mod tests;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::bail;
use client::Observer;
use engine::Config;
use proto::driver::DriverSwitch;

use crate::arguments::server_name;
use crate::command::device::{self, Attendants, DeviceOptions};
use crate::command::driver::with_whole_paths;
use crate::command::exec::end_with_stdin;
use crate::command::run::DEFAULT_QUANTUM;
use crate::exit::UsageError;
use crate::output;
use crate::plug_ins::{Beginning, Loading};
use driver::Asked;
use options::{Options, Order};
use slave::Slave;
pub(crate) use slave::is_slave;
use words::Words;

/// The release of JACK whose interface and command line consort follows.
const JACK_VERSION: &str = "1.9.22";

const HELP: &str = "\
Usage: jackd [OPTIONS] -d DRIVER [DRIVER-OPTIONS]

consort's server with JACK's command line. Options before -d:
    -R, --realtime               use real-time scheduling (default)
    -r, --no-realtime            do not
    -P, --realtime-priority N    SCHED_FIFO priority of the driver (default: 10)
    -n, --name NAME              the server's name (default: $JACK_DEFAULT_SERVER, or 'default')
    -t, --timeout MS             how long a client may be late (default, and 0: three quanta, and 20 ms at least)
    -p, --port-max N             how many ports there can be (default: 2048)
    -S, --sync                   play what was computed in the same cycle
    -T, --temporary              end when the last client has left
    --switch                     have the server of this name, which runs, go on with this driver
    --while-stdin-is-open        end when standard input does, as with the program that holds its other end
    -X, --slave-driver NAME      a device beside the driver's own: alsarawmidi or raw (MIDI hardware), seq or alsa_midi
                                 (MIDI through ALSA's sequencer), or alsa (the card hw:0, resampled); repeatable
    -I, --internal-client WORD   a plug-in that is loaded when the server runs: [NAME:]OBJECT[/PARAMETERS]; repeatable. If
                                 it fails, the server ends
    -C, --internal-session-file FILE
                                 then load the plug-ins (l NAME OBJECT PARAMETERS) and make the connections (c SOURCE
                                 DESTINATION) that it lists, one in a line
    --add-slave                  have the server of this name, which runs, add this driver's device: prints the client's
                                 name, by which consort device remove removes it
    -a, --autoconnect MODE       a client connects its own ports: ' ' allow (default), E refuse or e ignore
                                 with other clients' ports, A refuse or a ignore all
    -v, --verbose                say more, also which options had no effect
    -V, --version                print the version
    -h, --help                   print this; after -d DRIVER: the driver's options
    -m -u -s -c X -L N -Z, --replace-registry
                                 accepted, no effect

Drivers: alsa, dummy (or timer), file.
Example: jackd -P70 -n studio -d alsa -d hw:USB -r48000 -p64 -n3

Exit codes: 0 done, 1 failed, 2 the command line makes no sense, 3 no server of that name runs (--switch, --add-slave).
";

/// What a command line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Asking {
    Text(String),
    Run {
        config: Box<Config>,
        while_stdin_is_open: bool,
        notices: Vec<String>,
        /// Devices beside the driver's own.
        devices: Vec<DeviceOptions>,
        beginning: Beginning,
    },
    /// To have a server that runs go on with another driver.
    Switch {
        server: String,
        switch: DriverSwitch,
    },
    /// To add a device to a server that runs.
    AddSlave {
        server: String,
        slave: Slave,
    },
    /// A driver of jackd's that is not built here.
    NotBuilt(String),
}

/// Runs `jackd WORDS`.
pub(crate) fn run(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match parse(&words, std::env::var("JACK_DEFAULT_SERVER").ok())? {
        Asking::Text(text) => output::print(&text)?,
        Asking::NotBuilt(driver) => bail!("the driver '{driver}' is not built yet: use -d dummy"),
        Asking::Switch { server, switch } => {
            Observer::open(Some(&server))?.switch_driver(with_whole_paths(switch)?)?
        }
        Asking::AddSlave { server, slave } => {
            // Before a process is started for nothing.
            let _there = Observer::open(Some(&server))?;
            slave.notices.iter().for_each(|notice| eprintln!("jackd: {notice}"));
            output::print(&format!("{}\n", device::add(&server, &slave.device)?.name))?;
        }
        Asking::Run { config, while_stdin_is_open, notices, devices, beginning } => {
            if config.verbose {
                for notice in notices {
                    eprintln!("jackd: {notice}");
                }
            }
            let _signals = while_stdin_is_open.then(end_with_stdin).transpose()?;
            let loading = Loading::start(&config.name, beginning)?;
            let attendants = Attendants::start(&config.name, &devices)?;
            engine::run(*config, crate::command::host::hosting()?)?;
            drop(attendants);
            return Ok(loading.map_or(ExitCode::SUCCESS, Loading::finish));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn parse(words: &[String], default_server: Option<String>) -> Result<Asking, UsageError> {
    let mut words = Words::new(words);
    // Without a name in the environment there is always one that can be had.
    let default = default_server.filter(|name| !name.is_empty()).unwrap_or_else(|| "default".into());
    let Options { order, mut config, driver, mut devices, beginning, while_stdin_is_open, mut notices } =
        Options::read(&mut words, default)?;
    match order {
        Order::Help => return Ok(Asking::Text(HELP.into())),
        Order::Version => return Ok(Asking::Text(version())),
        Order::Start | Order::Switch | Order::AddSlave => config.name = server_name(Some(config.name), None)?,
    }
    let Some(driver) = driver else {
        if order != Order::Start {
            return Err(UsageError("--switch and --add-slave need a driver: -d NAME".into()));
        }
        let config = Box::new(config);
        return Ok(Asking::Run { config, while_stdin_is_open, notices, devices, beginning });
    };
    if order == Order::AddSlave {
        return Ok(Asking::AddSlave { server: config.name, slave: slave::read(driver, words)? });
    }
    match driver::read(driver, words)? {
        Asked::Help(text) => Ok(Asking::Text(text.into())),
        Asked::NotBuilt => Ok(Asking::NotBuilt(driver.into())),
        Asked::Run { driver, quantum, .. } if order == Order::Switch => {
            Ok(Asking::Switch { server: config.name, switch: DriverSwitch { driver, quantum } })
        }
        Asked::Run { driver, quantum, notices: more, devices: of_driver } => {
            notices.extend(more);
            devices.extend(of_driver);
            let quantum = quantum.unwrap_or(DEFAULT_QUANTUM);
            let config = Box::new(Config { driver, quantum, ..config });
            Ok(Asking::Run { config, while_stdin_is_open, notices, devices, beginning })
        }
    }
}

/// The driver that a command line of jackd's asks for.
pub(crate) fn driver_of(words: &[String]) -> Result<DriverSwitch, UsageError> {
    let words: Vec<String> = ["--switch".to_owned()].into_iter().chain(words.iter().cloned()).collect();
    match parse(&words, None)? {
        Asking::Switch { switch, .. } => Ok(switch),
        _ => Err(UsageError("no driver is asked for".into())),
    }
}

/// The device that a driver of jackd's, with its options, is as a slave driver.
pub(crate) fn slave_of(driver: &str, words: &[String]) -> Result<DeviceOptions, UsageError> {
    Ok(slave::read(driver, Words::new(words))?.device)
}

/// Reads a command line of jackd's, for its fuzz target: what would be started, if anything, or the refusal.
#[cfg(fuzzing)]
pub fn read_jackd(words: &[String]) -> Result<Option<Config>, String> {
    match parse(words, None) {
        Ok(Asking::Run { config, .. }) => Ok(Some(*config)),
        Ok(Asking::Text(_) | Asking::Switch { .. } | Asking::AddSlave { .. } | Asking::NotBuilt(_)) => {
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

/// One line as jackd prints it, for programs that take it apart.
fn version() -> String {
    let directory = sys::runtime_directory::runtime_directory()
        .map_or_else(|_| "unknown".into(), |path| path.join("consort").display().to_string());
    let (protocol, release) = (proto::hello::PROTOCOL_VERSION, env!("CARGO_PKG_VERSION"));
    format!("jackdmp version {JACK_VERSION} tmpdir {directory} protocol {protocol} (consort {release})\n")
}
