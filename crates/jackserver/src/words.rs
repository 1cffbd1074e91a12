//! Parameters as words of `jackd`'s command line, and read from them.

use std::sync::Arc;

use jack_parameters::options::{OptionReader, Spec, ValueForm};
use jack_parameters::{Kind, Value};

use crate::objects::{Part, Server};
use crate::parameter::Parameter;

/// Returns the command line that starts `server` with `driver`: every parameter that was set.
pub(crate) fn command_line(server: &Server, driver: &Part) -> Vec<String> {
    let mut words = Vec::new();
    for parameter in &server.parameters {
        match (parameter.letter(), parameter.set_value()) {
            ('R', Some(Value::Bool(false))) => words.push("-r".into()),
            // An empty name is the default one.
            ('n', Some(Value::Text(name))) if name.is_empty() => {}
            (_, Some(value)) => push(&mut words, parameter, &value),
            (_, None) => {}
        }
    }
    words.extend(driver_words(driver));
    words
}

/// Returns the words for `driver` with its parameters that were set.
pub(crate) fn driver_words(driver: &Part) -> Vec<String> {
    let mut words = vec!["-d".into(), driver.name.to_string_lossy().into_owned()];
    for parameter in &driver.parameters {
        match parameter.set_value() {
            // No card or file is the same as a parameter that was not set.
            Some(Value::Text(text)) if text.is_empty() || text == "none" => {}
            Some(value) => push(&mut words, parameter, &value),
            None => {}
        }
    }
    words
}

/// Returns the parameters of a plug-in as one string.
pub(crate) fn parameters_of(internal: &Part) -> String {
    let mut words = Vec::new();
    for parameter in &internal.parameters {
        if let Some(value) = parameter.set_value() {
            push(&mut words, parameter, &value);
        }
    }
    words.join(" ")
}

/// Adds the words of a parameter that was set. A value is in the word of its option, so that it may
/// begin with a dash.
fn push(words: &mut Vec<String>, parameter: &Parameter, value: &Value) {
    let option = format!("-{}", parameter.letter());
    match value {
        Value::Bool(true) => words.push(option),
        Value::Bool(false) => {}
        value => words.push(format!("{option}{value}")),
    }
}

/// Sets parameters as a command line says, without the driver's name: `-r 48000`, `-r48000`,
/// `--rate 48000`, `--rate=48000`. At the first word that makes no sense it returns false; the
/// parameters before that word stay set.
pub(crate) fn parse(driver: &Part, words: &[String]) -> bool {
    let spec = |(id, parameter): (usize, &Arc<Parameter>)| Spec {
        id,
        short: Some(parameter.letter()),
        long: parameter.definition.long,
        value: match parameter.kind() {
            Kind::Bool => ValueForm::Attached,
            _ => ValueForm::Required,
        },
    };
    let specs: Vec<Spec<usize>> = driver.parameters.iter().enumerate().map(spec).collect();
    let mut options = OptionReader::new(words);
    loop {
        let found = match options.next_option(&specs) {
            Ok(Some(found)) => found,
            Ok(None) => return true,
            Err(_) => return false,
        };
        let Some(parameter) = driver.parameters.get(found.id) else { return false };
        // A flag without a value is true.
        let value = Value::parse(parameter.kind(), found.value.unwrap_or("1"));
        if !value.is_some_and(|value| parameter.change(Some(value))) {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::objects;

    use super::*;

    fn line(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn only_set_parameters_are_on_jackds_command_line() {
        let server = objects::server(objects::create(None, None)).expect("a server");
        let driver = &server.drivers[1];
        assert_eq!(command_line(&server, driver), ["-d", "dummy"]);
        let set = |letter: char, value: Value| {
            let found = server.parameters.iter().find(|parameter| parameter.letter() == letter);
            assert!(found.expect("a parameter").change(Some(value)), "{letter}");
        };
        set('R', Value::Bool(false));
        set('P', Value::Int(70));
        set('n', Value::Text("studio".into()));
        set('S', Value::Bool(true));
        set('v', Value::Bool(false));
        set('a', Value::Char(' '));
        assert!(parse(driver, &line(&["--rate=44100", "-p", "64"])));
        let expected = ["-nstudio", "-r", "-P70", "-S", "-a ", "-d", "dummy", "-r44100", "-p64"];
        assert_eq!(command_line(&server, driver), expected);
        objects::forget(&server);
    }

    #[test]
    fn empty_card_or_file_names_count_as_not_set() {
        let server = objects::server(objects::create(None, None)).expect("a server");
        let alsa = &server.drivers[0];
        assert!(parse(alsa, &line(&["-Pnone", "-C", "hw:1", "-D", "--shorts=0"])));
        assert_eq!(command_line(&server, alsa), ["-d", "alsa", "-Chw:1", "-D"]);
        objects::forget(&server);
    }
}
