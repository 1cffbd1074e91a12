//! jackd's own options: those before `-d`.

use engine::{Config, DriverChoice, SelfConnect};
use proto::limits::REALTIME_PRIORITY;

use super::slave;
use super::words::{Found, Spec, Value, Words};
use crate::command::device::DeviceOptions;
use crate::command::run::{DEFAULT_CHANNELS, DEFAULT_PORT_MAX, DEFAULT_QUANTUM, DEFAULT_REALTIME_PRIORITY};
use crate::exit::UsageError;
use crate::plug_ins::Beginning;

/// What an option means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    AddSlave,
    Autoconnect,
    Driver,
    Help,
    InternalClient,
    InternalSession,
    Name,
    NoRealtime,
    PortMax,
    Priority,
    Realtime,
    Slave,
    Switch,
    Sync,
    Temporary,
    Timeout,
    Verbose,
    Version,
    WhileStdinIsOpen,
    /// Accepted, with no effect here, for this reason.
    Ignored(&'static str),
}

const fn flag(short: char, long: &'static [&'static str], id: Id) -> Spec<Id> {
    Spec { id, short: Some(short), long, value: Value::None }
}

const fn valued(short: char, long: &'static [&'static str], id: Id) -> Spec<Id> {
    Spec { id, short: Some(short), long, value: Value::Required }
}

const NO_LOCK: Id = Id::Ignored("the server decides itself what memory it locks");

/// All of them.
pub(super) const SPECS: &[Spec<Id>] = &[
    flag('R', &["realtime"], Id::Realtime),
    flag('r', &["no-realtime"], Id::NoRealtime),
    valued('P', &["realtime-priority"], Id::Priority),
    valued('n', &["name"], Id::Name),
    valued('t', &["timeout"], Id::Timeout),
    valued('p', &["port-max"], Id::PortMax),
    flag('S', &["sync"], Id::Sync),
    flag('T', &["temporary"], Id::Temporary),
    flag('v', &["verbose"], Id::Verbose),
    flag('V', &["version"], Id::Version),
    flag('h', &["help"], Id::Help),
    valued('a', &["autoconnect"], Id::Autoconnect),
    valued('d', &["driver", "audio-driver"], Id::Driver),
    flag('m', &["no-mlock"], NO_LOCK),
    flag('u', &["unlock"], NO_LOCK),
    flag('s', &["silent"], Id::Ignored("messages cannot be turned off")),
    valued('c', &["clocksource", "clock-source"], Id::Ignored("the clock is always CLOCK_MONOTONIC")),
    valued('L', &["loopback"], Id::Ignored("there are no loopback ports: connect the programs themselves")),
    valued('X', &["slave-backend", "slave-driver", "midi-driver"], Id::Slave),
    valued('I', &["internal-client"], Id::InternalClient),
    valued('C', &["internal-session-file"], Id::InternalSession),
    flag('Z', &["nozombies"], Id::Ignored("a late client is left out and taken in again, not removed")),
    // Whoever started the server, as jackctl_server_open, holds the other end.
    Spec { id: Id::WhileStdinIsOpen, short: None, long: &["while-stdin-is-open"], value: Value::None },
    Spec { id: Id::AddSlave, short: None, long: &["add-slave"], value: Value::None },
    Spec { id: Id::Switch, short: None, long: &["switch"], value: Value::None },
    Spec {
        id: Id::Ignored("there is no registry of servers to replace"),
        short: None,
        long: &["replace-registry"],
        value: Value::None,
    },
];

/// What jackd is asked to do by the options before `-d`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Order {
    Help,
    Version,
    Start,
    /// Have a server that runs go on with the driver.
    Switch,
    /// Add the driver's device to a server that runs.
    AddSlave,
}

/// The options before `-d`.
#[derive(Debug)]
pub(super) struct Options<'a> {
    pub(super) order: Order,
    /// All but the driver.
    pub(super) config: Config,
    /// The word after `-d`.
    pub(super) driver: Option<&'a str>,
    /// Devices beside the driver's own.
    pub(super) devices: Vec<DeviceOptions>,
    /// Plug-ins that it begins with.
    pub(super) beginning: Beginning,
    /// The server ends when its standard input does.
    pub(super) while_stdin_is_open: bool,
    /// Options without effect, one line each.
    pub(super) notices: Vec<String>,
}

impl<'a> Options<'a> {
    /// Reads up to and including `-d NAME`; what follows is the driver's.
    pub(super) fn read(words: &mut Words<'a>, name: String) -> Result<Self, UsageError> {
        let mut options = Self {
            order: Order::Start,
            config: default_config(name),
            driver: None,
            devices: Vec::new(),
            beginning: Beginning::default(),
            while_stdin_is_open: false,
            notices: Vec::new(),
        };
        while options.driver.is_none()
            && let Some(found) = words.next(SPECS)?
        {
            options.apply(&found)?;
        }
        Ok(options)
    }

    fn apply(&mut self, found: &Found<'a, Id>) -> Result<(), UsageError> {
        let value = found.value.unwrap_or_default();
        match found.id {
            Id::AddSlave => self.order = Order::AddSlave,
            Id::Autoconnect => self.config.self_connect = self_connect(value)?,
            Id::Driver => self.driver = Some(value),
            Id::Help => self.order = Order::Help,
            Id::InternalClient => {
                let plug_in =
                    value.parse().map_err(|reason| UsageError(format!("{}: {reason}", found.written)))?;
                self.beginning.plug_ins.push(plug_in);
            }
            Id::InternalSession => self.beginning.session = Some(value.into()),
            Id::Name => self.config.name = value.into(),
            Id::NoRealtime => self.config.realtime_priority = None,
            Id::PortMax => self.config.port_max = number(&found.written, value, 1)?,
            Id::Priority => self.config.realtime_priority = Some(self.priority(found)?),
            Id::Realtime => {
                self.config.realtime_priority.get_or_insert(DEFAULT_REALTIME_PRIORITY);
            }
            // jackd's words for no second driver.
            Id::Slave if value == "none" => {}
            Id::Slave => self.devices.push(slave::read(value, Words::new(&[]))?.device),
            Id::Switch => self.order = Order::Switch,
            Id::Sync => self.config.sync = true,
            Id::Temporary => self.config.temporary = true,
            Id::Timeout => {
                let ms = number(&found.written, value, 0)?;
                self.config.client_timeout_ms = (ms != 0).then_some(ms);
            }
            Id::Verbose => self.config.verbose = true,
            Id::Version => self.order = Order::Version,
            Id::WhileStdinIsOpen => self.while_stdin_is_open = true,
            Id::Ignored(reason) => self.notices.push(format!("{} has no effect: {reason}", found.written)),
        }
        Ok(())
    }

    fn priority(&mut self, found: &Found<'_, Id>) -> Result<u32, UsageError> {
        let value = found.value.unwrap_or_default();
        let asked = number(&found.written, value, *REALTIME_PRIORITY.start())?;
        let highest = *REALTIME_PRIORITY.end();
        if asked > highest {
            self.notices
                .push(format!("{} {asked} is taken as {highest}, the highest possible", found.written));
        }
        Ok(asked.min(highest))
    }
}

/// What jackd does when it is told nothing.
fn default_config(name: String) -> Config {
    Config {
        name,
        driver: DriverChoice::Timer {
            capture: DEFAULT_CHANNELS,
            playback: DEFAULT_CHANNELS,
            sample_rate_hz: None,
            looped: false,
            monitors: false,
        },
        quantum: DEFAULT_QUANTUM,
        sync: false,
        realtime_priority: Some(DEFAULT_REALTIME_PRIORITY),
        client_timeout_ms: None,
        grace_ms: engine::DEFAULT_GRACE_MS,
        port_max: DEFAULT_PORT_MAX,
        client_ports: None,
        temporary: false,
        feedback: true,
        verbose: false,
        trace_switches: false,
        self_connect: SelfConnect::Allow,
        placement: true,
        group: None,
        policy: engine::policy::Policy::default(),
        cpus: None,
        state: None,
    }
}

fn self_connect(mode: &str) -> Result<SelfConnect, UsageError> {
    match mode {
        " " => Ok(SelfConnect::Allow),
        "E" => Ok(SelfConnect::FailExternal),
        "e" => Ok(SelfConnect::IgnoreExternal),
        "A" => Ok(SelfConnect::FailAll),
        "a" => Ok(SelfConnect::IgnoreAll),
        _ => Err(UsageError(format!("-a {mode} is none of ' ', E, e, A and a"))),
    }
}

/// A number that is at least `least`.
pub(super) fn number(written: &str, value: &str, least: u32) -> Result<u32, UsageError> {
    match value.parse() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(UsageError(format!("{written} {value} is no number from {least} up"))),
    }
}
