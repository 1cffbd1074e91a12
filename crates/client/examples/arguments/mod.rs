//! Command lines of the examples: `--name value` pairs.

use std::str::FromStr;

/// Returns the value of `--name`, if it is given and can be parsed.
pub fn value<T: FromStr>(name: &str) -> Option<T> {
    let mut words = std::env::args().skip_while(|word| *word != format!("--{name}"));
    words.nth(1)?.parse().ok()
}
