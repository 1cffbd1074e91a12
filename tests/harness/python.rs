//! A Python with the package JACK-Client, as its users install it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::binary;

/// From PyPI.
const PACKAGE: &str = "JACK-Client==0.5.7";

/// A Python interpreter that finds JACK-Client, in an environment that is made once next to the
/// built programs.
///
/// # Panics
/// If the package cannot be installed.
pub fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let environment = binary("python-jack-client");
        let python = environment.join("bin/python");
        let has_package = || {
            run(Command::new(&python)
                .args(["-c", "import jack; assert jack.__version__ == '0.5.7'"]))
        };
        if !has_package() {
            let made = run(Command::new("/usr/bin/python3")
                .args(["-m", "venv", "--system-site-packages"])
                .arg(&environment));
            assert!(
                made,
                "python3 makes an environment; 'cargo xtask setup' installs what it needs"
            );
            let mut pip = Command::new(&python);
            pip.args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--ignore-installed",
                "--no-deps",
                PACKAGE,
            ]);
            assert!(run(&mut pip) && has_package(), "pip installs {PACKAGE}");
        }
        python
    })
}

fn run(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
