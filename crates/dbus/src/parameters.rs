//! The parameters that the next server is started with: a tree whose leaves may be set.

use std::collections::BTreeMap;
use std::sync::Arc;

use jack_parameters::{Constraint, Kind, Parameter, Value};
use zbus::Variant;

use crate::Jackd;
use crate::failure::{Answer, Failure};
use crate::table::{DRIVER, DRIVERS, Driver, ENGINE, SERVER_NAME, SLAVES};

/// The container of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Container {
    Engine,
    /// Index of the driver.
    Driver(usize),
}

/// All parameters.
#[derive(Debug)]
pub(crate) struct Parameters {
    /// The parameters that are set.
    set: BTreeMap<(Container, &'static str), Value>,
    /// The server's name unless the parameter is set.
    server: String,
    jackd: Arc<dyn Jackd>,
}

/// Returns D-Bus's letter of a type.
pub(crate) fn letter(kind: Kind) -> u8 {
    match kind {
        Kind::Bool => b'b',
        Kind::Char => b'y',
        Kind::Int => b'i',
        Kind::UInt => b'u',
        Kind::Text => b's',
    }
}

/// Returns a value for the bus.
pub(crate) fn to_variant(value: &Value) -> Variant<'static> {
    match value {
        Value::Bool(value) => Variant::from(*value),
        // Every letter of the table is ASCII.
        Value::Char(value) => Variant::from(u8::try_from(*value).unwrap_or_default()),
        Value::Int(value) => Variant::from(*value),
        Value::UInt(value) => Variant::from(*value),
        Value::Text(value) => Variant::from(value.clone().into_owned()),
    }
}

/// Reads a value from the bus, which must be of this type.
fn read(value: &Variant<'_>, kind: Kind) -> Answer<Value> {
    let read = match (value, kind) {
        (Variant::Bool(value), Kind::Bool) => Value::Bool(*value),
        (Variant::U8(value), Kind::Char) => Value::Char(char::from(*value)),
        (Variant::I32(value), Kind::Int) => Value::Int(*value),
        (Variant::U32(value), Kind::UInt) => Value::UInt(*value),
        (Variant::Str(value), Kind::Text) => Value::Text(value.to_string().into()),
        _ => {
            let (expected, found) = (char::from(letter(kind)), value.value_signature());
            return Err(Failure::InvalidArgs(format!(
                "the parameter is of type '{expected}', not '{found}'"
            )));
        }
    };
    Ok(read)
}

/// Returns whether a constraint is a range, whether other values are refused, and the values: the
/// ends of the range, or all of them.
pub(crate) fn constraint_values(
    constraint: Constraint,
) -> (bool, bool, Vec<(Value, &'static str)>) {
    match constraint {
        Constraint::Any => (false, false, Vec::new()),
        Constraint::Range(min, max) => {
            let end = |number: i64| match i32::try_from(number) {
                Ok(number) => Value::Int(number),
                Err(_) => Value::UInt(u32::MAX),
            };
            (true, true, vec![(end(min), "min"), (end(max), "max")])
        }
        Constraint::OneOf(values) => (false, true, values.to_vec()),
    }
}

/// Splits names at commas.
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
    /// Creates the parameters, none of which is set.
    pub(crate) fn new(server: &str, jackd: Arc<dyn Jackd>) -> Self {
        Self { set: BTreeMap::new(), server: server.into(), jackd }
    }

    fn driver(&self) -> (usize, &'static Driver) {
        let name = self.set.get(&(Container::Engine, DRIVER));
        let index =
            DRIVERS.iter().position(|driver| Some(&Value::Text(driver.name.into())) == name);
        let index = index.unwrap_or(0);
        (index, &DRIVERS[index])
    }

    /// Returns whether the children of an address are parameters, and their names.
    pub(crate) fn children(&self, address: &[String]) -> Answer<(bool, Vec<String>)> {
        let words: Vec<&str> = address.iter().map(String::as_str).collect();
        let names = match words[..] {
            [] => {
                return Ok((
                    false,
                    ["engine", "drivers", "driver", "internals"].map(String::from).to_vec(),
                ));
            }
            ["drivers"] => {
                return Ok((false, DRIVERS.iter().map(|driver| driver.name.into()).collect()));
            }
            ["internals"] => return Ok((false, Vec::new())),
            _ => self.container(address)?.1.iter().map(|parameter| parameter.name.into()).collect(),
        };
        Ok((true, names))
    }

    fn container(&self, address: &[String]) -> Answer<(Container, Vec<&'static Parameter>)> {
        let words: Vec<&str> = address.iter().map(String::as_str).collect();
        match words[..] {
            ["engine"] => Ok((Container::Engine, ENGINE.clone())),
            ["driver"] => {
                let (index, driver) = self.driver();
                Ok((Container::Driver(index), driver.parameters.iter().collect()))
            }
            ["drivers", name] => {
                let index = DRIVERS.iter().position(|driver| driver.name == name);
                let index = index.ok_or_else(|| no_such(address))?;
                Ok((Container::Driver(index), DRIVERS[index].parameters.iter().collect()))
            }
            _ => Err(no_such(address)),
        }
    }

    /// The parameters in a container.
    pub(crate) fn listed(&self, address: &[String]) -> Answer<Vec<&'static Parameter>> {
        Ok(self.container(address)?.1)
    }

    fn find(&self, address: &[String]) -> Answer<(Container, &'static Parameter)> {
        let (name, container) = address.split_last().ok_or_else(|| no_such(address))?;
        let (container, parameters) = self.container(container).map_err(|_| no_such(address))?;
        let parameter = parameters.into_iter().find(|parameter| parameter.name == name);
        Ok((container, parameter.ok_or_else(|| no_such(address))?))
    }

    /// A parameter.
    pub(crate) fn parameter(&self, address: &[String]) -> Answer<&'static Parameter> {
        Ok(self.find(address)?.1)
    }

    fn default(&self, parameter: &Parameter) -> Value {
        if parameter.name == SERVER_NAME {
            Value::Text(self.server.clone().into())
        } else {
            parameter.default.clone()
        }
    }

    /// Returns whether a parameter is set, its default, and its value.
    pub(crate) fn value(&self, address: &[String]) -> Answer<(bool, Value, Value)> {
        let (container, parameter) = self.find(address)?;
        let (set, default) = (self.set.get(&(container, parameter.name)), self.default(parameter));
        Ok((set.is_some(), default.clone(), set.cloned().unwrap_or(default)))
    }

    /// Sets a parameter. A value that is refused changes nothing.
    pub(crate) fn set(&mut self, address: &[String], value: &Variant<'_>) -> Answer<()> {
        let (container, parameter) = self.find(address)?;
        let value = read(value, parameter.default.kind())?;
        self.put(container, parameter, value)
    }

    fn put(&mut self, container: Container, parameter: &Parameter, value: Value) -> Answer<()> {
        let checked = self.check(parameter, &value);
        checked.map_err(|reason| Failure::InvalidArgs(format!("{}: {reason}", parameter.name)))?;
        self.set.insert((container, parameter.name), value);
        Ok(())
    }

    fn check(&self, parameter: &Parameter, value: &Value) -> Result<(), String> {
        parameter.constraint.check(value)?;
        let Value::Text(text) = value else { return Ok(()) };
        match parameter.name {
            SERVER_NAME => proto::names::check_server(text)
                .map_err(|reason| format!("'{text}' is not a valid server name: {reason}")),
            SLAVES => match listed(text).find(|name| !self.jackd.is_slave_driver(name)) {
                Some(name) => Err(no_slave(name)),
                None => Ok(()),
            },
            _ if text.starts_with('-') || text.chars().any(char::is_control) => {
                Err(format!("'{}' is not a valid name", text.escape_debug()))
            }
            _ => Ok(()),
        }
    }

    /// Resets a parameter to its default.
    pub(crate) fn reset(&mut self, address: &[String]) -> Answer<()> {
        let (container, parameter) = self.find(address)?;
        self.set.remove(&(container, parameter.name));
        Ok(())
    }

    /// The server's name.
    pub(crate) fn server(&self) -> String {
        self.set
            .get(&(Container::Engine, SERVER_NAME))
            .map_or_else(|| self.server.clone(), Value::to_string)
    }

    /// Returns a line for each parameter that differs from its default: the address, " = ", and
    /// the value.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |((container, name), value): (&(Container, &'static str), &Value)| {
            let (address, parameters) = match *container {
                Container::Engine => ("engine".to_owned(), ENGINE.clone()),
                Container::Driver(index) => {
                    let driver = &DRIVERS[index];
                    (format!("drivers {}", driver.name), driver.parameters.iter().collect())
                }
            };
            let parameter = parameters.into_iter().find(|parameter| parameter.name == *name)?;
            (*value != self.default(parameter)).then(|| format!("{address} {name} = {value}"))
        };
        self.set.iter().filter_map(line).collect()
    }

    /// Sets the parameter of a line of [`Self::lines`]. Returns the reason if it cannot be set.
    pub(crate) fn set_line(&mut self, line: &str) -> Result<(), String> {
        let (address, word) = line.split_once(" = ").ok_or("no parameter, ' = ' and value")?;
        let address: Vec<String> = address.split(' ').map(String::from).collect();
        let in_words = |failure: Failure| match failure {
            Failure::InvalidArgs(reason) => reason,
            other => other.to_string(),
        };
        let (container, parameter) = self.find(&address).map_err(in_words)?;
        let value = Value::parse_exactly(parameter.default.kind(), word);
        let value = value.ok_or_else(|| {
            format!("{}: '{}' is not a value of its type", parameter.name, word.escape_debug())
        })?;
        self.put(container, parameter, value).map_err(in_words)
    }

    /// The slave drivers.
    pub(crate) fn slaves(&self) -> Vec<String> {
        let names =
            self.set.get(&(Container::Engine, SLAVES)).map(Value::to_string).unwrap_or_default();
        listed(&names).map(String::from).collect()
    }

    /// Sets the slave drivers.
    pub(crate) fn set_slaves(&mut self, names: &[String]) {
        let key = (Container::Engine, SLAVES);
        if names.is_empty() {
            self.set.remove(&key);
        } else {
            self.set.insert(key, Value::Text(names.join(",").into()));
        }
    }

    /// Returns the options of a slave driver: the parameters that are set for its driver.
    pub(crate) fn slave_options(&self, name: &str) -> Answer<Vec<String>> {
        if !self.jackd.is_slave_driver(name) {
            return Err(Failure::InvalidArgs(no_slave(name)));
        }
        let index = DRIVERS.iter().position(|driver| driver.name == name);
        Ok(index.map(|index| self.arguments_of_driver(index)).unwrap_or_default())
    }

    /// Returns the arguments with which jackd starts such a server.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["-n".to_owned(), self.server()];
        for parameter in ENGINE.iter().filter(|parameter| parameter.name != SERVER_NAME) {
            arguments.extend(self.arguments_of(Container::Engine, parameter));
        }
        let (index, driver) = self.driver();
        arguments.extend(["-d".into(), driver.name.into()]);
        arguments.extend(self.arguments_of_driver(index));
        arguments
    }

    fn arguments_of_driver(&self, index: usize) -> Vec<String> {
        let parameters = DRIVERS[index].parameters.iter();
        parameters
            .flat_map(|parameter| self.arguments_of(Container::Driver(index), parameter))
            .collect()
    }

    fn arguments_of(&self, container: Container, parameter: &Parameter) -> Vec<String> {
        let value = self.set.get(&(container, parameter.name));
        value.map(|value| parameter.words(value)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use jack_parameters::{ALSA, DUMMY, SERVER};

    use super::*;
    use crate::jackd::tests::TwoSlaveDrivers;

    fn at(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).into()).collect()
    }

    fn parameters(set: &[(&[&str], Variant<'static>)]) -> Parameters {
        let mut parameters = Parameters::new("default", Arc::new(TwoSlaveDrivers));
        for (address, value) in set {
            parameters.set(&at(address), value).expect("possible");
        }
        parameters
    }

    #[test]
    fn parameters_that_are_set_become_arguments_of_jackd() {
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
            let arguments = parameters(set).arguments();
            assert_eq!(arguments.join(" "), expected);
        }
    }

    #[test]
    fn a_slave_driver_has_the_parameters_of_its_driver_as_options() {
        let parameters = parameters(&[
            (&["engine", "slave-drivers"], Variant::from(" alsa, alsarawmidi,")),
            (&["drivers", "alsa", "device"], Variant::from("hw:USB")),
            (&["drivers", "alsa", "period"], Variant::from(128_u32)),
        ]);
        assert_eq!(parameters.slaves(), ["alsa", "alsarawmidi"]);
        assert_eq!(
            parameters.arguments().join(" "),
            "-n default -d dummy",
            "slave drivers are added once the server runs"
        );
        let options = |name| parameters.slave_options(name).map(|options| options.join(" "));
        assert_eq!(options("alsa").expect("a card"), "-d hw:USB -p 128");
        assert_eq!(options("alsarawmidi").expect("MIDI"), "");
        assert!(matches!(options("dummy"), Err(Failure::InvalidArgs(_))));
    }

    #[test]
    fn an_impossible_value_is_refused_with_the_reason() {
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
            (&["engine", "driver"], Variant::from("oss"), "'oss' is not one of 'dummy', 'alsa'"),
            (&["engine", "self-connect-mode"], Variant::from(b'x'), "'x' is not one of"),
            (&["engine", "name"], Variant::from("../x"), "is not a valid server name"),
            (
                &["engine", "slave-drivers"],
                Variant::from("alsa,loopback"),
                "'loopback' adds no device",
            ),
            (&["drivers", "alsa", "device"], Variant::from("-d"), "not a valid name"),
            (&["drivers", "alsa", "device"], Variant::from("hw\n"), "not a valid name"),
        ] {
            let refused = parameters.set(&at(address), &value).expect_err(reason);
            let Failure::InvalidArgs(text) = refused else { panic!("{refused:?}") };
            assert!(text.contains(reason), "{address:?} {value:?}: {text}");
        }
        assert_eq!(parameters.arguments().join(" "), "-n default -d dummy -r 44100");
    }

    #[test]
    fn a_parameter_is_set_until_it_is_reset() {
        let mut parameters = parameters(&[(&["driver", "rate"], Variant::from(44_100_u32))]);
        let rate = at(&["driver", "rate"]);
        let default = Value::UInt(48_000);
        assert_eq!(parameters.value(&rate).unwrap(), (true, default.clone(), Value::UInt(44_100)));
        parameters.reset(&rate).unwrap();
        assert_eq!(parameters.value(&rate).unwrap(), (false, default.clone(), default));
        assert!(parameters.reset(&at(&["driver"])).is_err());
    }

    #[test]
    fn a_card_is_passed_to_jackd_even_if_it_has_the_default_name() {
        let parameters = parameters(&[
            (&["engine", "driver"], Variant::from("alsa")),
            (&["driver", "device"], Variant::from("hw:0")),
            (&["driver", "midi-driver"], Variant::from("seq")),
        ]);
        let expected = "-n default -d alsa -d hw:0 -X seq";
        assert_eq!(parameters.arguments().join(" "), expected);
    }

    #[test]
    fn the_bus_shows_every_parameter_of_jackd_with_its_default() {
        let parameters = parameters(&[]);
        for (path, table) in [
            (&["engine"][..], SERVER),
            (&["drivers", "dummy"], DUMMY),
            (&["drivers", "alsa"], ALSA),
        ] {
            let shown = parameters.listed(&at(path)).unwrap();
            for parameter in table {
                assert!(shown.contains(&parameter), "{}", parameter.name);
                if parameter.name != SERVER_NAME {
                    let address = at(&[path, &[parameter.name]].concat());
                    assert_eq!(parameters.value(&address).unwrap().1, parameter.default);
                }
            }
        }
    }
}
