//! The options before `-d`.

use cli::UsageError;
use device_bridge::DeviceOptions;
use engine::{Config, SelfConnect};
use jack_parameters::options::{Found, OptionReader, Spec, ValueForm};
use jack_parameters::{Effect, Parameter, SERVER, Value};
use proto::defaults;
use proto::limits::REALTIME_PRIORITY;

use crate::settings::spec;
use crate::slave;
use crate::startup::StartupLoad;

/// What an option stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum OptionId {
    AddSlave,
    Driver,
    Help,
    InternalClient,
    InternalSession,
    NoRealtime,
    /// A parameter of the server.
    Parameter(&'static Parameter),
    Slave,
    Switch,
    Version,
    WhileStdinIsOpen,
    /// It is accepted and has no effect, for this reason.
    Ignored(&'static str),
}

const fn flag(short: Option<char>, long: &'static [&'static str], id: OptionId) -> Spec<OptionId> {
    Spec { id, short, long, value: ValueForm::None }
}

const fn valued(short: char, long: &'static [&'static str], id: OptionId) -> Spec<OptionId> {
    Spec { id, short: Some(short), long, value: ValueForm::Required }
}

const NO_LOCK: OptionId = OptionId::Ignored("the server decides which memory it locks");
const NO_LOOPBACK: OptionId =
    OptionId::Ignored("there are no loopback ports: connect the programs themselves");
const NO_ZOMBIES: OptionId =
    OptionId::Ignored("a late client is left out and reinstated, not removed");

/// The options that are no parameters.
static COMMANDS: &[Spec<OptionId>] = &[
    flag(Some('r'), &["no-realtime"], OptionId::NoRealtime),
    flag(Some('V'), &["version"], OptionId::Version),
    flag(Some('h'), &["help"], OptionId::Help),
    valued('d', &["driver", "audio-driver"], OptionId::Driver),
    flag(Some('m'), &["no-mlock"], NO_LOCK),
    flag(Some('u'), &["unlock"], NO_LOCK),
    flag(Some('s'), &["silent"], OptionId::Ignored("messages cannot be turned off")),
    valued('L', &["loopback"], NO_LOOPBACK),
    valued('X', &["slave-backend", "slave-driver", "midi-driver"], OptionId::Slave),
    valued('I', &["internal-client"], OptionId::InternalClient),
    valued('C', &["internal-session-file"], OptionId::InternalSession),
    flag(Some('Z'), &["nozombies"], NO_ZOMBIES),
    // The program that started the server, such as one that called `jackctl_server_open`, holds the
    // other end.
    flag(None, &["while-stdin-is-open"], OptionId::WhileStdinIsOpen),
    flag(None, &["add-slave"], OptionId::AddSlave),
    flag(None, &["switch"], OptionId::Switch),
];

/// Returns all options before `-d`.
pub(crate) fn specs() -> Vec<Spec<OptionId>> {
    let parameters = SERVER.iter().map(|parameter| spec(parameter, OptionId::Parameter(parameter)));
    let commands = COMMANDS.iter().copied();
    parameters.chain(commands).collect()
}

/// What the options before `-d` ask for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Help,
    Version,
    Start,
    /// To let a running server continue with the driver.
    Switch,
    /// To add the driver's device to a running server.
    AddSlave,
}

/// The options before `-d`.
#[derive(Debug)]
pub(crate) struct Options<'a> {
    pub(crate) action: Action,
    /// Everything but the driver.
    pub(crate) config: Config,
    /// The word after `-d`.
    pub(crate) driver: Option<&'a str>,
    /// Devices in addition to the driver's own.
    pub(crate) devices: Vec<DeviceOptions>,
    /// Plug-ins that the server loads at the start.
    pub(crate) startup: StartupLoad,
    /// Whether the server ends when its standard input does.
    pub(crate) while_stdin_is_open: bool,
    /// Options without effect, one line each.
    pub(crate) notices: Vec<String>,
}

impl<'a> Options<'a> {
    /// Reads up to and including `-d NAME`. The driver's options follow.
    pub(crate) fn read(words: &mut OptionReader<'a>, name: String) -> Result<Self, UsageError> {
        let mut options = Self {
            action: Action::Start,
            config: Config { name, ..Config::default() },
            driver: None,
            devices: Vec::new(),
            startup: StartupLoad::default(),
            while_stdin_is_open: false,
            notices: Vec::new(),
        };
        let specs = specs();
        while options.driver.is_none()
            && let Some(found) = words.next_option(&specs).map_err(UsageError)?
        {
            options.apply(&found)?;
        }
        Ok(options)
    }

    fn apply(&mut self, found: &Found<'a, OptionId>) -> Result<(), UsageError> {
        let word = found.value.unwrap_or_default();
        match found.id {
            OptionId::AddSlave => self.action = Action::AddSlave,
            OptionId::Driver => self.driver = Some(word),
            OptionId::Help => self.action = Action::Help,
            OptionId::InternalClient => {
                let plug_in = word
                    .parse()
                    .map_err(|reason| UsageError(format!("{}: {reason}", found.written)))?;
                self.startup.plug_ins.push(plug_in);
            }
            OptionId::InternalSession => self.startup.session = Some(word.into()),
            OptionId::NoRealtime => self.config.realtime_priority = None,
            OptionId::Parameter(parameter) => self.set(parameter, &found.written, word)?,
            // jackd's name for no second driver.
            OptionId::Slave if word == "none" => {}
            OptionId::Slave => {
                self.devices.push(slave::read(word, OptionReader::new(&[]))?.device);
            }
            OptionId::Switch => self.action = Action::Switch,
            OptionId::Version => self.action = Action::Version,
            OptionId::WhileStdinIsOpen => self.while_stdin_is_open = true,
            OptionId::Ignored(reason) => self.notice(&found.written, reason),
        }
        Ok(())
    }

    fn notice(&mut self, written: &str, reason: &str) {
        self.notices.push(format!("{written} has no effect: {reason}"));
    }

    fn set(
        &mut self,
        parameter: &'static Parameter,
        written: &str,
        word: &str,
    ) -> Result<(), UsageError> {
        let value = match parameter.effect {
            Effect::Ignored(_, reason) => {
                self.notice(written, reason);
                return Ok(());
            }
            Effect::IfTrue | Effect::IfFalse => Value::Bool(true),
            Effect::Valued | Effect::OptionallyValued => {
                let word = self.within_limits(parameter, written, word);
                parameter.parse(written, &word).map_err(UsageError)?
            }
        };
        let config = &mut self.config;
        match (parameter.name, value) {
            ("name", Value::Text(name)) => config.name = name.into_owned(),
            ("realtime", _) => {
                config.realtime_priority.get_or_insert(defaults::REALTIME_PRIORITY);
            }
            ("realtime-priority", value) => config.realtime_priority = Some(number(&value)),
            ("temporary", _) => config.temporary = true,
            ("verbose", _) => config.verbose = true,
            ("client-timeout", value) => {
                config.client_timeout_ms = Some(number(&value)).filter(|ms| *ms != 0);
            }
            ("port-max", value) => config.port_max = number(&value),
            ("sync", _) => config.sync = true,
            ("self-connect-mode", Value::Char(mode)) => config.self_connect = self_connect(mode),
            (name, value) => unreachable!("the table has no parameter {name} = {value}"),
        }
        Ok(())
    }

    /// Lowers a real-time priority that is too high: start scripts ask for 99, the highest of the
    /// kernel, which a server leaves to the kernel's own threads.
    fn within_limits(&mut self, parameter: &Parameter, written: &str, word: &str) -> String {
        let highest = *REALTIME_PRIORITY.end();
        let is_too_high = word.parse::<u32>().is_ok_and(|number| number > highest);
        if parameter.name != "realtime-priority" || !is_too_high {
            return word.to_owned();
        }
        self.notices.push(format!("{written} {word} is taken as {highest}, the highest possible"));
        highest.to_string()
    }
}

/// Returns a number that its range keeps positive.
fn number(value: &Value) -> u32 {
    value.number().and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
}

/// Returns the mode of a letter of the table.
fn self_connect(letter: char) -> SelfConnect {
    match letter {
        'E' => SelfConnect::FailExternal,
        'e' => SelfConnect::IgnoreExternal,
        'A' => SelfConnect::FailAll,
        'a' => SelfConnect::IgnoreAll,
        _ => SelfConnect::Allow,
    }
}
