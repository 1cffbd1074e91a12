//! The consort command, which also answers to the name `jackd`.

use std::process::ExitCode;

fn main() -> ExitCode {
    consort::run(std::env::args_os())
}
