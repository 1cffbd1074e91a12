//! What the next server is to be started with: a tree of parameters, of which some are set.

use std::collections::BTreeMap;

use zbus::Variant;

use super::failure::{Answer, Failure};
use super::table::{Constraint, DRIVER, DRIVERS, Driver, ENGINE, Fixed, Parameter, SERVER, SLAVES, Words};
use crate::command::device::DeviceOptions;

/// A parameter's value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Bool(bool),
    Char(u8),
    Signed(i32),
    Unsigned(u32),
    Text(String),
}

/// Where a parameter lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Engine,
    /// Index of the driver.
    Driver(usize),
}

/// All parameters.
#[derive(Debug)]
pub(super) struct Parameters {
    /// Those that somebody has set.
    set: BTreeMap<(Place, &'static str), Value>,
    /// The server's name, if nobody sets another.
    server: String,
}

impl From<Fixed> for Value {
    fn from(fixed: Fixed) -> Self {
        match fixed {
            Fixed::Bool(value) => Self::Bool(value),
            Fixed::Char(value) => Self::Char(value),
            Fixed::Signed(value) => Self::Signed(value),
            Fixed::Unsigned(value) => Self::Unsigned(value),
            Fixed::Text(value) => Self::Text(value.into()),
        }
    }
}

impl Value {
    /// D-Bus's letter of the type.
    pub(super) fn letter(&self) -> u8 {
        match self {
            Self::Bool(_) => b'b',
            Self::Char(_) => b'y',
            Self::Signed(_) => b'i',
            Self::Unsigned(_) => b'u',
            Self::Text(_) => b's',
        }
    }

    pub(super) fn to_variant(&self) -> Variant<'static> {
        match self {
            Self::Bool(value) => Variant::from(*value),
            Self::Char(value) => Variant::from(*value),
            Self::Signed(value) => Variant::from(*value),
            Self::Unsigned(value) => Variant::from(*value),
            Self::Text(value) => Variant::from(value.clone()),
        }
    }

    fn number(&self) -> Option<i64> {
        match self {
            Self::Signed(value) => Some(i64::from(*value)),
            Self::Unsigned(value) => Some(i64::from(*value)),
            _ => None,
        }
    }

    /// As an option's value.
    fn to_word(&self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Char(value) => char::from(*value).to_string(),
            Self::Signed(value) => value.to_string(),
            Self::Unsigned(value) => value.to_string(),
            Self::Text(value) => value.clone(),
        }
    }
}

/// The value that [`Value::to_word`] has written, of the same type as `like`.
fn parse(word: &str, like: &Value) -> Option<Value> {
    match like {
        Value::Bool(_) => word.parse().ok().map(Value::Bool),
        Value::Char(_) => match word.as_bytes() {
            [byte] => Some(Value::Char(*byte)),
            _ => None,
        },
        Value::Signed(_) => word.parse().ok().map(Value::Signed),
        Value::Unsigned(_) => word.parse().ok().map(Value::Unsigned),
        Value::Text(_) => Some(Value::Text(word.into())),
    }
}

/// A value of the bus as one of the same type as `like`.
fn read(value: &Variant<'_>, like: &Value) -> Answer<Value> {
    let read = match (value, like) {
        (Variant::Bool(value), Value::Bool(_)) => Value::Bool(*value),
        (Variant::U8(value), Value::Char(_)) => Value::Char(*value),
        (Variant::I32(value), Value::Signed(_)) => Value::Signed(*value),
        (Variant::U32(value), Value::Unsigned(_)) => Value::Unsigned(*value),
        (Variant::Str(value), Value::Text(_)) => Value::Text(value.to_string()),
        _ => {
            let (expected, found) = (char::from(like.letter()), value.value_signature());
            return Err(Failure::InvalidArgs(format!(
                "the parameter is of type '{expected}', not '{found}'"
            )));
        }
    };
    Ok(read)
}

impl Constraint {
    fn check(self, value: &Value) -> Result<(), String> {
        match self {
            Self::Any => match value {
                Value::Text(text) if text.starts_with('-') || text.chars().any(char::is_control) => {
                    Err(format!("'{}' could be no name", text.escape_debug()))
                }
                _ => Ok(()),
            },
            Self::Range(least, most) => match value.number() {
                Some(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!("{} is out of range: {least} to {most}", value.to_word())),
            },
            Self::OneOf(values) => {
                if values.iter().any(|(allowed, _)| Value::from(*allowed) == *value) {
                    return Ok(());
                }
                let allowed: Vec<String> = values
                    .iter()
                    .map(|(allowed, _)| format!("'{}'", Value::from(*allowed).to_word()))
                    .collect();
                Err(format!("'{}' is none of {}", value.to_word().escape_debug(), allowed.join(", ")))
            }
            Self::ServerName => {
                let checked = proto::names::check_server(&value.to_word());
                checked.map_err(|reason| format!("no server can be called so: {reason}"))
            }
            Self::Slaves => match listed(&value.to_word()).find(|name| !crate::jackd::is_slave(name)) {
                Some(name) => Err(no_slave(name)),
                None => Ok(()),
            },
        }
    }

    /// Whether it is a range, whether nothing else may be, and the values: the ends of the range, or all.
    pub(super) fn values(self) -> (bool, bool, Vec<(Value, &'static str)>) {
        match self {
            Self::Any | Self::ServerName | Self::Slaves => (false, false, Vec::new()),
            Self::Range(least, most) => {
                let end = |number: i64| match i32::try_from(number) {
                    Ok(number) => Value::Signed(number),
                    Err(_) => Value::Unsigned(u32::MAX),
                };
                (true, true, vec![(end(least), "min"), (end(most), "max")])
            }
            Self::OneOf(values) => {
                (false, true, values.iter().map(|(value, meaning)| (Value::from(*value), *meaning)).collect())
            }
        }
    }
}

/// Names with commas between them.
fn listed(names: &str) -> impl Iterator<Item = &str> {
    names.split(',').map(str::trim).filter(|name| !name.is_empty())
}

fn no_slave(name: &str) -> String {
    format!(
        "the driver '{}' adds no device to a server: alsa (a card), alsarawmidi and seq (MIDI) do",
        name.escape_debug()
    )
}

fn no_such(address: &[String]) -> Failure {
    Failure::InvalidArgs(format!(
        "there is nothing at '{}'",
        address.join("':'").replace(char::is_control, "?")
    ))
}

impl Parameters {
    /// Nothing is set.
    pub(super) fn new(server: &str) -> Self {
        Self { set: BTreeMap::new(), server: server.into() }
    }

    fn driver(&self) -> (usize, &'static Driver) {
        let name = self.set.get(&(Place::Engine, DRIVER));
        let index = DRIVERS.iter().position(|driver| Some(&Value::Text(driver.name.into())) == name);
        let index = index.unwrap_or(0);
        (index, &DRIVERS[index])
    }

    /// What lies below an address: whether these are parameters, and their names.
    pub(super) fn children(&self, address: &[String]) -> Answer<(bool, Vec<String>)> {
        let words: Vec<&str> = address.iter().map(String::as_str).collect();
        let names = match words[..] {
            [] => {
                return Ok((false, ["engine", "drivers", "driver", "internals"].map(String::from).to_vec()));
            }
            ["drivers"] => return Ok((false, DRIVERS.iter().map(|driver| driver.name.into()).collect())),
            ["internals"] => return Ok((false, Vec::new())),
            _ => self.container(address)?.1.iter().map(|parameter| parameter.name.into()).collect(),
        };
        Ok((true, names))
    }

    fn container(&self, address: &[String]) -> Answer<(Place, &'static [Parameter])> {
        let words: Vec<&str> = address.iter().map(String::as_str).collect();
        match words[..] {
            ["engine"] => Ok((Place::Engine, ENGINE)),
            ["driver"] => {
                let (index, driver) = self.driver();
                Ok((Place::Driver(index), driver.parameters))
            }
            ["drivers", name] => {
                let index = DRIVERS.iter().position(|driver| driver.name == name);
                let index = index.ok_or_else(|| no_such(address))?;
                Ok((Place::Driver(index), DRIVERS[index].parameters))
            }
            _ => Err(no_such(address)),
        }
    }

    /// The parameters in a container.
    pub(super) fn listed(&self, address: &[String]) -> Answer<&'static [Parameter]> {
        Ok(self.container(address)?.1)
    }

    fn find(&self, address: &[String]) -> Answer<(Place, &'static Parameter)> {
        let (name, container) = address.split_last().ok_or_else(|| no_such(address))?;
        let (place, parameters) = self.container(container).map_err(|_| no_such(address))?;
        let parameter = parameters.iter().find(|parameter| parameter.name == name);
        Ok((place, parameter.ok_or_else(|| no_such(address))?))
    }

    /// A parameter.
    pub(super) fn parameter(&self, address: &[String]) -> Answer<&'static Parameter> {
        Ok(self.find(address)?.1)
    }

    fn default(&self, parameter: &Parameter) -> Value {
        if parameter.name == SERVER { Value::Text(self.server.clone()) } else { parameter.default.into() }
    }

    /// Whether a parameter was set, its default, and its value.
    pub(super) fn value(&self, address: &[String]) -> Answer<(bool, Value, Value)> {
        let (place, parameter) = self.find(address)?;
        let (set, default) = (self.set.get(&(place, parameter.name)), self.default(parameter));
        Ok((set.is_some(), default.clone(), set.cloned().unwrap_or(default)))
    }

    /// Sets a parameter, or refuses and changes nothing.
    pub(super) fn set(&mut self, address: &[String], value: &Variant<'_>) -> Answer<()> {
        let (place, parameter) = self.find(address)?;
        let value = read(value, &parameter.default.into())?;
        self.put(place, parameter, value)
    }

    fn put(&mut self, place: Place, parameter: &Parameter, value: Value) -> Answer<()> {
        let checked = parameter.constraint.check(&value);
        checked.map_err(|reason| Failure::InvalidArgs(format!("{}: {reason}", parameter.name)))?;
        self.set.insert((place, parameter.name), value);
        Ok(())
    }

    /// Gives a parameter its default again.
    pub(super) fn reset(&mut self, address: &[String]) -> Answer<()> {
        let (place, parameter) = self.find(address)?;
        self.set.remove(&(place, parameter.name));
        Ok(())
    }

    /// The server's name.
    pub(super) fn server(&self) -> String {
        self.set.get(&(Place::Engine, SERVER)).map_or_else(|| self.server.clone(), Value::to_word)
    }

    /// Those that are set to something else than their default: the address, " = ", and the value.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |((place, name), value): (&(Place, &'static str), &Value)| {
            let (address, parameters) = match *place {
                Place::Engine => ("engine".to_owned(), ENGINE),
                Place::Driver(index) => {
                    (format!("drivers {}", DRIVERS[index].name), DRIVERS[index].parameters)
                }
            };
            let parameter = parameters.iter().find(|parameter| parameter.name == *name)?;
            (*value != self.default(parameter)).then(|| format!("{address} {name} = {}", value.to_word()))
        };
        self.set.iter().filter_map(line).collect()
    }

    /// Sets what a line of [`Self::lines`] says, or says why not and changes nothing.
    pub(super) fn set_line(&mut self, line: &str) -> Result<(), String> {
        let (address, word) = line.split_once(" = ").ok_or("no parameter, ' = ' and value")?;
        let address: Vec<String> = address.split(' ').map(String::from).collect();
        let in_words = |failure: Failure| match failure {
            Failure::InvalidArgs(reason) => reason,
            other => other.to_string(),
        };
        let (place, parameter) = self.find(&address).map_err(in_words)?;
        let value = parse(word, &parameter.default.into());
        let value =
            value.ok_or_else(|| format!("{}: '{}' is no such value", parameter.name, word.escape_debug()))?;
        self.put(place, parameter, value).map_err(in_words)
    }

    /// The drivers of devices beside the driver's own.
    pub(super) fn slaves(&self) -> Vec<String> {
        let names = self.set.get(&(Place::Engine, SLAVES)).map(Value::to_word).unwrap_or_default();
        listed(&names).map(String::from).collect()
    }

    /// Sets them.
    pub(super) fn set_slaves(&mut self, names: &[String]) {
        let place = (Place::Engine, SLAVES);
        if names.is_empty() {
            self.set.remove(&place);
        } else {
            self.set.insert(place, Value::Text(names.join(",")));
        }
    }

    /// The device that a slave driver stands for, with the parameters that are set.
    pub(super) fn slave(&self, name: &str) -> Answer<DeviceOptions> {
        if !crate::jackd::is_slave(name) {
            return Err(Failure::InvalidArgs(no_slave(name)));
        }
        let index = DRIVERS.iter().position(|driver| driver.name == name);
        let words = index.map(|index| self.words_of_driver(index)).unwrap_or_default();
        crate::jackd::slave_of(name, &words).map_err(|error| Failure::InvalidArgs(error.to_string()))
    }

    /// The command line of `jackd` that starts such a server.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec!["-n".to_owned(), self.server()];
        for parameter in ENGINE.iter().filter(|parameter| parameter.name != SERVER) {
            words.extend(self.words_of(Place::Engine, parameter));
        }
        let (index, driver) = self.driver();
        words.extend(["-d".into(), driver.name.into()]);
        words.extend(self.words_of_driver(index));
        words
    }

    fn words_of_driver(&self, index: usize) -> Vec<String> {
        let parameters = DRIVERS[index].parameters.iter();
        parameters.flat_map(|parameter| self.words_of(Place::Driver(index), parameter)).collect()
    }

    fn words_of(&self, place: Place, parameter: &Parameter) -> Vec<String> {
        let Some(value) = self.set.get(&(place, parameter.name)) else { return Vec::new() };
        match (parameter.words, value) {
            (Words::IfTrue(option), Value::Bool(true)) | (Words::IfFalse(option), Value::Bool(false)) => {
                vec![option.into()]
            }
            (Words::Valued(option), value) if *value != parameter.default.into() => {
                vec![option.into(), value.to_word()]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).into()).collect()
    }

    fn parameters(set: &[(&[&str], Variant<'static>)]) -> Parameters {
        let mut parameters = Parameters::new("default");
        for (address, value) in set {
            parameters.set(&at(address), value).expect("possible");
        }
        parameters
    }

    #[test]
    fn what_is_set_becomes_words_that_jackd_reads() {
        for (set, expected) in [
            (&[][..], "-n default -d dummy"),
            (&[(&["engine", "realtime"][..], Variant::from(false))], "-n default -r -d dummy"),
            (&[(&["engine", "realtime"], Variant::from(true))], "-n default -d dummy"),
            (&[(&["engine", "name"], Variant::from("studio"))], "-n studio -d dummy"),
            (&[(&["driver", "rate"], Variant::from(44_100_u32))], "-n default -d dummy -r 44100"),
            (&[(&["drivers", "alsa", "device"], Variant::from("hw:1"))], "-n default -d dummy"),
            (
                &[
                    (&["engine", "sync"], Variant::from(true)),
                    (&["engine", "client-timeout"], Variant::from(500)),
                    (&["engine", "self-connect-mode"], Variant::from(b'e')),
                    (&["engine", "driver"], Variant::from("alsa")),
                    (&["driver", "device"], Variant::from("hw:USB")),
                    (&["driver", "period"], Variant::from(64_u32)),
                ],
                "-n default -t 500 -S -a e -d alsa -d hw:USB -p 64",
            ),
        ] {
            let words = parameters(set).words();
            assert_eq!(words.join(" "), expected);
        }
    }

    #[test]
    fn a_slave_driver_is_a_device_with_the_parameters_that_are_set_for_its_driver() {
        let parameters = parameters(&[
            (&["engine", "slave-drivers"], Variant::from(" alsa, alsarawmidi,")),
            (&["drivers", "alsa", "device"], Variant::from("hw:USB")),
            (&["drivers", "alsa", "period"], Variant::from(128_u32)),
        ]);
        assert_eq!(parameters.slaves(), ["alsa", "alsarawmidi"]);
        assert_eq!(parameters.words().join(" "), "-n default -d dummy", "they are added once it runs");
        let card = DeviceOptions { quantum: 128, periods: 2, ..DeviceOptions::of("hw:USB") };
        assert_eq!(parameters.slave("alsa").expect("a card"), card);
        assert_eq!(parameters.slave("alsarawmidi").expect("MIDI"), DeviceOptions::raw_midi());
        assert!(matches!(parameters.slave("dummy"), Err(Failure::InvalidArgs(_))));
    }

    #[test]
    fn a_value_that_cannot_be_is_refused_with_the_reason_and_changes_nothing() {
        let mut parameters = parameters(&[(&["driver", "rate"], Variant::from(44_100_u32))]);
        for (address, value, reason) in [
            (&[][..], Variant::from(1), "nothing at"),
            (&["engine"], Variant::from(1), "nothing at"),
            (&["engine", "nonsense"], Variant::from(1), "'engine':'nonsense'"),
            (&["nonsense", "engine"], Variant::from(1), "nothing at"),
            (&["drivers", "oss", "rate"], Variant::from(1_u32), "nothing at"),
            (&["driver", "rate", "more"], Variant::from(1_u32), "nothing at"),
            (&["driver", "rate"], Variant::from(48_000), "of type 'u', not 'i'"),
            (&["driver", "rate"], Variant::from("48000"), "of type 'u', not 's'"),
            (&["driver", "rate"], Variant::from(0_u32), "0 is out of range: 1000 to 768000"),
            (&["driver", "period"], Variant::from(8193_u32), "out of range"),
            (&["engine", "realtime-priority"], Variant::from(-1), "-1 is out of range: 1 to 98"),
            (&["engine", "driver"], Variant::from("oss"), "'oss' is none of 'dummy', 'alsa'"),
            (&["engine", "self-connect-mode"], Variant::from(b'x'), "'x' is none of"),
            (&["engine", "name"], Variant::from("../x"), "no server can be called so"),
            (&["engine", "slave-drivers"], Variant::from("alsa,loopback"), "'loopback' adds no device"),
            (&["drivers", "alsa", "device"], Variant::from("-d"), "no name"),
            (&["drivers", "alsa", "device"], Variant::from("hw\n"), "no name"),
        ] {
            let refused = parameters.set(&at(address), &value).expect_err(reason);
            let Failure::InvalidArgs(said) = refused else { panic!("{refused:?}") };
            assert!(said.contains(reason), "{address:?} {value:?}: {said}");
        }
        assert_eq!(parameters.words().join(" "), "-n default -d dummy -r 44100");
    }

    #[test]
    fn a_parameter_is_set_until_it_is_reset() {
        let mut parameters = parameters(&[(&["driver", "rate"], Variant::from(44_100_u32))]);
        let rate = at(&["driver", "rate"]);
        let default = Value::Unsigned(48_000);
        assert_eq!(parameters.value(&rate).unwrap(), (true, default.clone(), Value::Unsigned(44_100)));
        parameters.reset(&rate).unwrap();
        assert_eq!(parameters.value(&rate).unwrap(), (false, default.clone(), default));
        assert!(parameters.reset(&at(&["driver"])).is_err());
    }

    #[test]
    fn every_default_is_what_its_own_constraint_allows() {
        let all = DRIVERS.iter().flat_map(|driver| driver.parameters).chain(ENGINE);
        for parameter in all {
            assert_eq!(parameter.constraint.check(&parameter.default.into()), Ok(()), "{}", parameter.name);
        }
    }
}
