//! The parameters in the order of jackdbus: those of `jackd`, and two that only the service has.

use std::sync::LazyLock;

use jack_parameters::{ALSA, Constraint, DUMMY, Effect, Parameter, RAW_MIDI, SERVER, Value};

pub(crate) use jack_parameters::SERVER_NAME;

/// A driver.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Parameter],
}

/// Name of the parameter that is the server's driver.
pub(crate) const DRIVER: &str = "driver";
/// Name of the parameter that lists the slave drivers.
pub(crate) const SLAVES: &str = "slave-drivers";

static DRIVER_NAMES: &[(Value, &str)] = &[
    (Value::Text(std::borrow::Cow::Borrowed("dummy")), "dummy"),
    (Value::Text(std::borrow::Cow::Borrowed("alsa")), "alsa"),
];

/// Returns a parameter that is not an option of jackd.
const fn own(
    name: &'static str,
    default: &'static str,
    constraint: Constraint,
    text: &'static str,
) -> Parameter {
    Parameter {
        letter: None,
        name,
        long: &[],
        value_name: "",
        default: Value::Text(std::borrow::Cow::Borrowed(default)),
        is_derived: false,
        constraint,
        effect: Effect::Valued,
        text,
    }
}

static DRIVER_PARAMETER: Parameter =
    own(DRIVER, "dummy", Constraint::OneOf(DRIVER_NAMES), "Driver that starts the cycles");

static SLAVES_PARAMETER: Parameter = own(
    SLAVES,
    "",
    Constraint::Any,
    "Devices in addition to the driver's own, separated by commas: alsa (a card, resampled), \
     alsarawmidi (MIDI hardware), seq (MIDI through ALSA's sequencer)",
);

/// Parameters of the server.
pub(crate) static ENGINE: LazyLock<Vec<&'static Parameter>> = LazyLock::new(|| {
    let own = [&DRIVER_PARAMETER];
    own.into_iter().chain(SERVER).chain([&SLAVES_PARAMETER]).collect()
});

/// The drivers with their parameters. The last one can only be a slave driver.
pub(crate) static DRIVERS: [Driver; 3] = [
    Driver { name: "dummy", parameters: DUMMY },
    Driver { name: "alsa", parameters: ALSA },
    Driver { name: RAW_MIDI, parameters: &[] },
];
