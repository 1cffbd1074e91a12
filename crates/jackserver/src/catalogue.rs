//! The parameters that control.h lists: those of `jackd` that have an effect.

use jack_parameters::{ALSA, DUMMY, FILE, PROFILER, RAW_MIDI, SERVER};

use crate::parameter::Parameter;

/// The driver that starts no cycles: it adds all raw MIDI devices to the ports of another driver.
pub const SLAVE: &str = RAW_MIDI;

fn of(table: &'static [jack_parameters::Parameter]) -> Vec<Parameter> {
    table.iter().filter(|parameter| parameter.has_effect()).map(Parameter::new).collect()
}

/// Returns the parameters of the server.
pub fn server() -> Vec<Parameter> {
    of(SERVER)
}

/// Returns the drivers, each with its parameters.
pub fn drivers() -> [(&'static str, Vec<Parameter>); 4] {
    [("alsa", of(ALSA)), ("dummy", of(DUMMY)), ("file", of(FILE)), (SLAVE, Vec::new())]
}

/// Returns the plug-ins, each with its parameters.
pub fn internals() -> [(&'static str, Vec<Parameter>); 1] {
    [("profiler", of(PROFILER))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_with_an_effect_is_listed_as_the_table_has_it() {
        let listed = drivers().into_iter().map(|(_, listed)| listed);
        let tables = [ALSA, DUMMY, FILE, &[]].into_iter();
        let parts = listed.zip(tables).chain([(server(), SERVER)]);
        for (listed, table) in parts {
            let listed: Vec<_> = listed.iter().map(|parameter| parameter.definition).collect();
            let expected: Vec<_> = table.iter().filter(|entry| entry.has_effect()).collect();
            assert_eq!(listed, expected);
            assert!(expected.iter().all(|entry| entry.letter.is_some_and(|it| it.is_ascii())));
        }
    }
}
