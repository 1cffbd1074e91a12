//! The values of a plug-in's control inputs: those that a user gives, and those that the plug-in's
//! hints make of none.

use anyhow::{Context, ensure};

use crate::library::ladspa::{Port, RangeHint};

const BOUNDED_BELOW: i32 = 0x1;
const BOUNDED_ABOVE: i32 = 0x2;
/// Bounds are to be multiplied by the rate.
const SAMPLE_RATE: i32 = 0x8;
const LOGARITHMIC: i32 = 0x10;
const INTEGER: i32 = 0x20;
const DEFAULT_MASK: i32 = 0x3c0;
const DEFAULT_MINIMUM: i32 = 0x40;
const DEFAULT_LOW: i32 = 0x80;
const DEFAULT_MIDDLE: i32 = 0xc0;
const DEFAULT_HIGH: i32 = 0x100;
const DEFAULT_MAXIMUM: i32 = 0x140;
const DEFAULT_0: i32 = 0x200;
const DEFAULT_1: i32 = 0x240;
const DEFAULT_100: i32 = 0x280;
const DEFAULT_440: i32 = 0x2c0;

/// Returns a value for each of these ports: those of `text`, which are separated by commas. An
/// empty one is the port's default, and so are all without a text.
///
/// # Errors
/// There are more or fewer values than ports, or one is no number, is out of bounds, or is left out
/// where the port has no default.
pub(crate) fn values(
    text: Option<&str>,
    ports: &[&Port],
    rate_hz: u32,
) -> anyhow::Result<Vec<f32>> {
    let given: Vec<&str> = match text {
        Some(text) => text.split(',').map(str::trim).collect(),
        None => vec![""; ports.len()],
    };
    // Of no ports, an empty text is no value.
    let given = if ports.is_empty() && given == [""] { Vec::new() } else { given };
    ensure!(
        given.len() == ports.len(),
        "control has {} values, and the plug-in takes {}: {}",
        given.len(),
        ports.len(),
        ports.iter().map(|port| &*port.name).collect::<Vec<_>>().join(", ")
    );
    let value = |(text, port): (&str, &&Port)| {
        let Port { name, hint, .. } = port;
        let bounds = Bounds::of(hint, rate_hz);
        if text.is_empty() {
            let default = bounds.default(hint);
            return default
                .with_context(|| format!("'{name}' has no default: give control a value"));
        }
        let number: f32 =
            text.parse().ok().filter(|number: &f32| number.is_finite()).with_context(|| {
                format!("'{text}' is not a number: it is the value for '{name}' in control")
            })?;
        let (lower, upper) = (bounds.lower, bounds.upper);
        ensure!(
            lower.is_none_or(|lower| number >= lower) && upper.is_none_or(|upper| number <= upper),
            "{number} is out of bounds: '{name}' takes {} to {}",
            lower.map_or_else(|| "anything".into(), |lower| lower.to_string()),
            upper.map_or_else(|| "anything".into(), |upper| upper.to_string()),
        );
        Ok(number)
    };
    given.into_iter().zip(ports).map(value).collect()
}

/// The least and the greatest value of a port.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bounds {
    lower: Option<f32>,
    upper: Option<f32>,
}

impl Bounds {
    fn of(hint: &RangeHint, rate_hz: u32) -> Self {
        let factor = if hint.kinds & SAMPLE_RATE != 0 { rate_hz as f32 } else { 1.0 };
        let bound = |kind: i32, value: f32| (hint.kinds & kind != 0).then_some(value * factor);
        let (lower, upper) = (bound(BOUNDED_BELOW, hint.lower), bound(BOUNDED_ABOVE, hint.upper));
        Self { lower, upper }
    }

    /// Returns the value that the plug-in's author takes to be good; `None`: there is none.
    fn default(&self, hint: &RangeHint) -> Option<f32> {
        let between = |part: f32| {
            let (lower, upper) = (self.lower?, self.upper?);
            let is_logarithmic = hint.kinds & LOGARITHMIC != 0 && lower > 0.0 && upper > 0.0;
            Some(if is_logarithmic {
                (lower.ln() * (1.0 - part) + upper.ln() * part).exp()
            } else {
                lower * (1.0 - part) + upper * part
            })
        };
        let value = match hint.kinds & DEFAULT_MASK {
            DEFAULT_MINIMUM => self.lower,
            DEFAULT_LOW => between(0.25),
            DEFAULT_MIDDLE => between(0.5),
            DEFAULT_HIGH => between(0.75),
            DEFAULT_MAXIMUM => self.upper,
            DEFAULT_0 => Some(0.0),
            DEFAULT_1 => Some(1.0),
            DEFAULT_100 => Some(100.0),
            DEFAULT_440 => Some(440.0),
            _ => None,
        }?;
        Some(if hint.kinds & INTEGER != 0 { value.round() } else { value })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::library::ladspa::PortKind;

    fn port(name: &str, kinds: i32, lower: f32, upper: f32) -> Port {
        let hint = RangeHint { kinds, lower, upper };
        Port { name: name.into(), kind: PortKind::ControlInput, hint }
    }

    fn of(text: Option<&str>, ports: &[Port]) -> Result<Vec<f32>, String> {
        let ports: Vec<&Port> = ports.iter().collect();
        values(text, &ports, 48_000).map_err(|error| error.to_string())
    }

    #[test]
    fn a_value_that_is_left_out_is_the_default_of_its_hints() {
        let both = BOUNDED_BELOW | BOUNDED_ABOVE;
        for (kinds, lower, upper, expected) in [
            (both | DEFAULT_MINIMUM, 2.0, 10.0, 2.0),
            (both | DEFAULT_LOW, 2.0, 10.0, 4.0),
            (both | DEFAULT_MIDDLE, 2.0, 10.0, 6.0),
            (both | DEFAULT_HIGH, 2.0, 10.0, 8.0),
            (both | DEFAULT_MAXIMUM, 2.0, 10.0, 10.0),
            (both | DEFAULT_MIDDLE | LOGARITHMIC, 1.0, 100.0, 10.0),
            // There is no logarithm of 0.
            (both | DEFAULT_MIDDLE | LOGARITHMIC, 0.0, 100.0, 50.0),
            (both | DEFAULT_MAXIMUM | SAMPLE_RATE, 0.0, 0.5, 24_000.0),
            (both | DEFAULT_LOW | INTEGER, 0.0, 5.0, 1.0),
            (DEFAULT_0, 0.0, 0.0, 0.0),
            (DEFAULT_1, 0.0, 0.0, 1.0),
            (DEFAULT_100, 0.0, 0.0, 100.0),
            (DEFAULT_440, 0.0, 0.0, 440.0),
        ] {
            for text in [None, Some("")] {
                let found = of(text, &[port("a", kinds, lower, upper)]).expect("a value");
                assert!((found[0] - expected).abs() < 1e-3, "{kinds:#x}: {found:?}");
            }
        }
    }

    #[test]
    fn values_are_in_the_order_of_the_ports() {
        let ports =
            [port("a", 0, 0.0, 0.0), port("b", DEFAULT_1, 0.0, 0.0), port("c", 0, 0.0, 0.0)];
        assert_eq!(of(Some("-0.5, ,3"), &ports), Ok(vec![-0.5, 1.0, 3.0]));
        assert_eq!(of(None, &[]), Ok(Vec::new()));
        assert_eq!(of(Some(""), &[]), Ok(Vec::new()));
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        let ports = [
            port("Gain", BOUNDED_BELOW, 0.0, 0.0),
            port("Cut", BOUNDED_ABOVE | SAMPLE_RATE, 0.0, 0.5),
        ];
        for (text, reason) in [
            (None, "'Gain' has no default"),
            (Some("1"), "control has 1 values, and the plug-in takes 2: Gain, Cut"),
            (Some("1,2,3"), "control has 3 values"),
            (Some("-1,2"), "-1 is out of bounds: 'Gain' takes 0 to anything"),
            (Some("1,24001"), "'Cut' takes anything to 24000"),
            (Some("1,loud"), "'loud' is not a number"),
            (Some("nan,1"), "'nan' is not a number"),
        ] {
            let refused = of(text, &ports).expect_err(reason);
            assert!(refused.contains(reason), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_values_within_bounds_or_refused(
            text in "[-0-9.,e ]{0,20}", kinds in 0..0x400, lower in -1e3_f32..1e3, more in 0.0_f32..1e3,
        ) {
            let ports = [port("a", kinds, lower, lower + more), port("b", kinds, lower, lower)];
            if let Ok(values) = of(Some(&text), &ports) {
                prop_assert_eq!(values.len(), 2);
                prop_assert!(values.iter().all(|value| value.is_finite()));
            }
        }
    }
}
