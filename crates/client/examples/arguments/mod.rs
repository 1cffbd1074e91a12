//! The examples' command lines: `--name value` pairs.

use std::str::FromStr;

/// The value of `--name`, if it is given and can be read.
pub fn value<T: FromStr>(name: &str) -> Option<T> {
    let mut words = std::env::args().skip_while(|word| *word != format!("--{name}"));
    words.nth(1)?.parse().ok()
}
