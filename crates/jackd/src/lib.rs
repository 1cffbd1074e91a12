//! consort as `jackd`: JACK's own options in JACK's order, as start scripts, `~/.jackdrc` and
//! QjackCtl write them. They are not read by the argument parser of the other commands, since the
//! same letters mean one thing before `-d DRIVER` and another after it.

#![forbid(unsafe_code)]

mod alsa;
mod driver;
mod driver_request;
mod man;
mod options;
mod settings;
mod slave;
mod startup;
#[cfg(test)]
mod tests;

use cli::{UsageError, server_name};
use device_bridge::DeviceOptions;
use engine::Config;
use jack_parameters::options::OptionReader;
use jack_parameters::{Parameter, SERVER, help_line};
use proto::defaults;
use proto::driver::DriverSwitch;

pub use driver::INSTEAD_OF_NETWORK;
use driver_request::DriverRequest;
pub use man::page as man_page;
use options::{Action, Options};
pub use slave::Slave;
pub use startup::{InternalClient, StartupLoad};

/// The release of JACK whose interface and command line consort follows.
const JACK_VERSION: &str = "1.9.22";

const USAGE: &str = "\
Usage: jackd [OPTIONS] -d DRIVER [DRIVER-OPTIONS]

consort's server with JACK's command line. Options before -d:
";

/// The options that are no parameters.
const COMMANDS: [(&str, &str); 11] = [
    ("-r, --no-realtime", "Use no real-time scheduling"),
    (
        "-X, --slave-driver NAME",
        "Add a device: alsarawmidi or raw (MIDI hardware), seq or alsa_midi (MIDI through ALSA's \
         sequencer), or alsa (the card hw:0, resampled); repeatable",
    ),
    (
        "-I, --internal-client WORD",
        "Load a plug-in at the start: [NAME:]OBJECT[/PARAMETERS]; repeatable. If it fails, the \
         server ends",
    ),
    (
        "-C, --internal-session-file FILE",
        "Then load the plug-ins (l NAME OBJECT PARAMETERS) and make the connections (c SOURCE \
         DESTINATION) of this file, one per line",
    ),
    ("--switch", "Let the running server of this name continue with this driver"),
    (
        "--add-slave",
        "Add this driver's device to the running server of this name. Prints the client's name, \
         by which consort device remove removes it",
    ),
    (
        "--while-stdin-is-open",
        "End when standard input ends, as it does when the program that holds its other end ends",
    ),
    ("-V, --version", "Print the version"),
    ("-h, --help", "Print this; after -d DRIVER: the driver's options"),
    ("-m -u -s -L N", "No effect: --no-mlock, --unlock, --silent, --loopback N"),
    ("-Z, --nozombies", "No effect: a late client is left out and reinstated, not removed"),
];

const AFTER_OPTIONS: &str = "
Drivers: alsa, dummy (or timer), file.
Example: jackd -P70 -n studio -d alsa -d hw:USB -r48000 -p64 -n3

Exit codes: 0 done, 1 failed, 2 the command line makes no sense, 3 no server of that name is running
(--switch, --add-slave).
";

/// Returns the help of the options before `-d`.
fn help() -> String {
    let parameters = SERVER.iter().map(Parameter::help);
    let commands = COMMANDS.iter().map(|(option, text)| help_line(option, text));
    let lines: String = parameters.chain(commands).collect();
    format!("{USAGE}{lines}{AFTER_OPTIONS}")
}

/// What a command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// To print this.
    Text(String),
    /// To run a server.
    Run {
        /// The server, with its driver.
        config: Box<Config>,
        /// Whether the server ends when its standard input does.
        while_stdin_is_open: bool,
        /// Options without effect, one line each.
        notices: Vec<String>,
        /// Devices in addition to the driver's own.
        devices: Vec<DeviceOptions>,
        /// Plug-ins that the server loads at the start.
        startup: StartupLoad,
    },
    /// To let a running server continue with another driver.
    Switch {
        /// The server's name.
        server: String,
        /// The driver.
        switch: DriverSwitch,
    },
    /// To add a device to a running server.
    AddSlave {
        /// The server's name.
        server: String,
        /// The device.
        slave: Box<Slave>,
    },
    /// A driver of jackd that is not built here.
    NotBuilt {
        /// Its name.
        driver: String,
        /// What to use instead.
        instead: &'static str,
    },
}

/// Reads a command line: `words` without the program's name. `default_server` is the value of
/// `JACK_DEFAULT_SERVER`.
///
/// # Errors
/// A sentence that says which word makes no sense, and what to write instead.
pub fn parse(words: &[String], default_server: Option<String>) -> Result<Request, UsageError> {
    let mut words = OptionReader::new(words);
    // An empty name in the environment counts as unset.
    let default =
        default_server.filter(|name| !name.is_empty()).unwrap_or_else(|| "default".into());
    let Options {
        action,
        mut config,
        driver,
        mut devices,
        startup,
        while_stdin_is_open,
        mut notices,
    } = Options::read(&mut words, default)?;
    match action {
        Action::Help => return Ok(Request::Text(help())),
        Action::Version => return Ok(Request::Text(version())),
        Action::Start | Action::Switch | Action::AddSlave => {
            config.name = server_name(Some(config.name), None)?
        }
    }
    let Some(driver) = driver else {
        if action != Action::Start {
            return Err(UsageError("--switch and --add-slave need a driver: -d NAME".into()));
        }
        let config = Box::new(config);
        return Ok(Request::Run { config, while_stdin_is_open, notices, devices, startup });
    };
    if action == Action::AddSlave {
        return Ok(Request::AddSlave {
            server: config.name,
            slave: Box::new(slave::read(driver, words)?),
        });
    }
    match driver::read(driver, words)? {
        DriverRequest::Help(text) => Ok(Request::Text(text)),
        DriverRequest::NotBuilt { instead } => {
            Ok(Request::NotBuilt { driver: driver.into(), instead })
        }
        DriverRequest::Run { driver, quantum, .. } if action == Action::Switch => {
            Ok(Request::Switch { server: config.name, switch: DriverSwitch { driver, quantum } })
        }
        DriverRequest::Run { driver, quantum, notices: more, devices: of_driver } => {
            notices.extend(more);
            devices.extend(of_driver);
            let quantum = quantum.unwrap_or(defaults::QUANTUM_FRAMES);
            let config = Box::new(Config { driver, quantum, ..config });
            Ok(Request::Run { config, while_stdin_is_open, notices, devices, startup })
        }
    }
}

/// Returns the driver that a command line of jackd asks for.
///
/// # Errors
/// Same as [`parse`], or it names no driver.
pub fn driver_of(words: &[String]) -> Result<DriverSwitch, UsageError> {
    let words: Vec<String> =
        ["--switch".to_owned()].into_iter().chain(words.iter().cloned()).collect();
    match parse(&words, None)? {
        Request::Switch { switch, .. } => Ok(switch),
        _ => Err(UsageError("no driver is asked for".into())),
    }
}

/// Returns the device that a driver of jackd with these options is as a slave driver.
///
/// # Errors
/// The driver adds no device to a server, or the options make no sense.
pub fn slave_of(driver: &str, words: &[String]) -> Result<DeviceOptions, UsageError> {
    Ok(slave::read(driver, OptionReader::new(words))?.device)
}

/// Reads a command line of jackd, for its fuzz target. Returns what would be started, if anything.
#[cfg(fuzzing)]
pub fn read_jackd(words: &[String]) -> Result<Option<Config>, String> {
    match parse(words, None) {
        Ok(Request::Run { config, .. }) => Ok(Some(*config)),
        Ok(
            Request::Text(_)
            | Request::Switch { .. }
            | Request::AddSlave { .. }
            | Request::NotBuilt { .. },
        ) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the version in the line that jackd prints, which programs parse.
fn version() -> String {
    let directory = sys::runtime_directory::runtime_directory()
        .map_or_else(|_| "unknown".into(), |path| path.join("consort").display().to_string());
    let (protocol, release) = (proto::hello::PROTOCOL_VERSION, env!("CARGO_PKG_VERSION"));
    format!(
        "jackdmp version {JACK_VERSION} tmpdir {directory} protocol {protocol} (consort {release})\n"
    )
}
