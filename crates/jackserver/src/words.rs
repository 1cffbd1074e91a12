//! Parameters as `jackd`'s command line, there and back.

use crate::objects::{Part, Server};
use crate::parameter::Parameter;
use crate::value::{Kind, Value};

/// What starts `server` with `driver`: every parameter that was set, and no other.
pub(crate) fn command_line(server: &Server, driver: &Part) -> Vec<String> {
    let mut words = Vec::new();
    for parameter in &server.parameters {
        match (parameter.letter(), parameter.set_value()) {
            ('R', Some(Value::Bool(false))) => words.push("-r".into()),
            // No name is the default one.
            ('n', Some(Value::Text(name))) if name.is_empty() => {}
            (_, Some(value)) => push(&mut words, parameter, &value),
            (_, None) => {}
        }
    }
    words.extend(driver_words(driver));
    words
}

/// `driver` with its parameters that were set.
pub(crate) fn driver_words(driver: &Part) -> Vec<String> {
    let mut words = vec!["-d".into(), driver.name.to_string_lossy().into_owned()];
    for parameter in &driver.parameters {
        match parameter.set_value() {
            // No card and no file is as if it were not set.
            Some(Value::Text(text)) if text.is_empty() || text == "none" => {}
            Some(value) => push(&mut words, parameter, &value),
            None => {}
        }
    }
    words
}

/// What a plug-in is told.
pub(crate) fn parameters_of(internal: &Part) -> String {
    let mut words = Vec::new();
    for parameter in &internal.parameters {
        if let Some(value) = parameter.set_value() {
            push(&mut words, parameter, &value);
        }
    }
    words.join(" ")
}

fn push(words: &mut Vec<String>, parameter: &Parameter, value: &Value) {
    let option = format!("-{}", parameter.letter());
    match value {
        Value::Bool(true) => words.push(option),
        Value::Bool(false) => {}
        value => words.push(option + &value.word()),
    }
}

/// Sets parameters as a command line says, without the driver's name: `-r 48000`, `-r48000`, `--rate 48000`,
/// `--rate=48000`. False, and all that stood before it is set, at the first word that is none of that.
pub(crate) fn parse(driver: &Part, words: &[String]) -> bool {
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let (found, attached) = if let Some(long) = word.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            (driver.parameters.iter().find(|known| known.name.to_bytes() == name.as_bytes()), value)
        } else {
            let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
            let letter = letters.next();
            let rest = Some(letters.as_str()).filter(|rest| !rest.is_empty());
            (driver.parameters.iter().find(|known| Some(known.letter()) == letter), rest)
        };
        let Some(parameter) = found else { return false };
        let value = match (parameter.kind(), attached) {
            (Kind::Bool, None) => Some(Value::Bool(true)),
            (kind, Some(value)) => Value::parse(kind, value),
            (kind, None) => words.next().and_then(|value| Value::parse(kind, value)),
        };
        if !value.is_some_and(|value| parameter.change(Some(value))) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use crate::objects;

    use super::*;

    fn line(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn what_was_set_and_nothing_else_is_on_jackds_command_line() {
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
    fn no_card_and_no_file_are_as_if_they_were_not_set() {
        let server = objects::server(objects::create(None, None)).expect("a server");
        let alsa = &server.drivers[0];
        assert!(parse(alsa, &line(&["-Pnone", "-C", "hw:1", "-D", "--shorts=0"])));
        assert_eq!(command_line(&server, alsa), ["-d", "alsa", "-Chw:1", "-D"]);
        objects::forget(&server);
    }
}
