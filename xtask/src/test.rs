//! `cargo xtask test`: every check, in the order in which a failure is cheapest to find.

use anyhow::{Result, ensure};

use crate::command::{cargo, cargo_with};
use crate::install;
use crate::times::Times;

mod beside;
mod failures;
mod not_run;
mod page_cache;
mod programs;

use not_run::NotRun;
use programs::TestProgram;

/// The profile of what is installed and packaged here; a release rehearsal tests releases.
const TRIAL: &str = "trial";

/// Runs all checks, and prints how long each took; stops at the first that fails, but runs all
/// tests before it names those that failed. `arguments` go to the tests (a name, say).
pub fn run(arguments: &[String]) -> Result<()> {
    let mut times = Times::default();
    let judgement = checks(arguments, &mut times);
    println!("the longest steps:\n{}", times.summary());
    judgement
}

fn checks(arguments: &[String], times: &mut Times) -> Result<()> {
    times.step("formatting", || cargo(&["fmt", "--all", "--check"]))?;
    times.step("documents", || crate::width::run().and_then(|()| crate::links::run()))?;
    times.step("clippy", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])
    })?;
    times.step("documentation", || {
        let strict = [("RUSTDOCFLAGS", "-D warnings")];
        cargo_with(&["doc", "--workspace", "--no-deps", "--quiet"], &strict)
    })?;
    let programs = times.step("build", programs::build)?;
    tests(&programs, arguments, times)
}

/// Suites that wait for programs most of the time, and judge no cycle by the clock.
const PATIENT: [&str; 10] = [
    "control",
    "dbus",
    "effects",
    "instructions",
    "internal",
    "latency",
    "programs",
    "state",
    "sync",
    "web",
];

/// Suites about what is installed, which is built beside the patient ones.
const PACKED: [&str; 2] = ["installed", "packages"];

/// Runs of programs of tests, and what failed in them.
struct Runs<'a> {
    /// What goes to each test.
    arguments: &'a [String],
    times: &'a mut Times,
    failed: Vec<String>,
    not_run: NotRun<'a>,
}

impl<'a> Runs<'a> {
    /// Runs programs one after the other, each with `threads` tests at a time. What fails in them
    /// is noted after `condition`.
    fn run(
        &mut self,
        programs: impl Iterator<Item = &'a TestProgram>,
        threads: u32,
        environment: &[(&str, &str)],
        condition: &str,
    ) -> Result<()> {
        let mut words = vec![format!("--test-threads={threads}")];
        words.extend_from_slice(self.arguments);
        // All of them have been built; nothing is built again for each.
        let all = [("CONSORT_TESTS_ARE_BUILT", "1"), (install::PROFILE, TRIAL)];
        let environment = [environment, &all].concat();
        for program in programs {
            let name = format!("{condition}{}", program.words);
            let failed = self
                .times
                .step(&name, || program.run(&words, &environment, &mut std::io::stdout()))?;
            self.failed.extend(failed.iter().map(|test| format!("{condition}{test}")));
            self.not_run.take_from(program, &environment);
        }
        Ok(())
    }

    fn note_task(&mut self, task: beside::Ended) {
        self.times.add(&task.words, task.took);
        self.failed.extend((!task.is_good).then_some(task.words));
    }
}

/// Process-level tests share two processors with the servers that they start.
fn tests<'a>(
    programs: &'a [TestProgram],
    arguments: &'a [String],
    times: &'a mut Times,
) -> Result<()> {
    let not_run = crate::command::root().join("target/not-run.txt");
    let path = not_run.to_string_lossy().into_owned();
    // What failed for one person fails for all: `cargo test` alone looks at new cases each time.
    let environment = [("PROPTEST_RNG_SEED", "20261121"), ("CONSORT_NOT_RUN", &*path)];
    let among = |list: &'static [&str]| {
        move |program: &&TestProgram| program.suite.as_deref().is_some_and(|it| list.contains(&it))
    };
    let (suites, units): (Vec<_>, Vec<_>) =
        programs.iter().partition(|program| program.suite.is_some());
    let (patient, timed): (Vec<_>, Vec<_>) = suites.into_iter().partition(among(&PATIENT));
    let (packed, timed): (Vec<_>, Vec<_>) = timed.into_iter().partition(among(&PACKED));

    let not_run = NotRun::in_file(not_run);
    let mut runs = Runs { arguments, times, failed: Vec::new(), not_run };
    runs.run(units.into_iter(), 2, &environment, "")?;
    // First of the suites: what is built beside the others fills the page cache, and a kernel that
    // reclaims it takes its time from everybody.
    runs.times.step("drop the build from the page cache", || {
        page_cache::drop_files_below(&crate::command::root().join("target"));
    });
    runs.run(timed.into_iter(), 2, &environment, "")?;
    if arguments.is_empty() {
        let wrapping = [("CONSORT_COUNTERS_NEAR_END", "2")];
        let condition = "with counters near their ends: ";
        runs.run(programs.iter().filter(among(&AT_WRAPS)), 2, &wrapping, condition)?;
    }
    let beside = beside::start();
    examples_in_documentation(&mut runs);
    runs.run(patient.into_iter(), 4, &environment, "")?;
    let installed = runs.times.step("wait for what is installed", || beside.recv())??;
    runs.note_task(installed);
    runs.run(packed.into_iter(), 2, &environment, "")?;
    let rest: Vec<_> =
        runs.times.step("wait for what runs beside the tests", || beside.iter().collect());
    let are_all = rest.len() + 1 == beside::TASKS.len() || rest.iter().any(Result::is_err);
    ensure!(are_all, "the thread of the tasks beside the tests panicked");
    for task in rest {
        runs.note_task(task?);
    }
    let failed = runs.times.step("what was not run", || runs.not_run.try_again())?;
    runs.failed.extend(failed);
    let not_run = runs.not_run.report();
    // These are the last lines of all: of a long log, CI keeps the end.
    let names: String = runs.failed.iter().map(|name| format!("\n  {name}")).collect();
    ensure!(runs.failed.is_empty(), "{} tests failed:{names}", runs.failed.len());
    not_run
}

/// Runs the examples in the documentation, which only cargo can build.
fn examples_in_documentation(runs: &mut Runs<'_>) {
    let mut words = vec!["test", "--workspace", "--doc", "--quiet", "--"];
    words.extend(runs.arguments.iter().map(String::as_str));
    if runs.times.step("examples in the documentation", || cargo(&words)).is_err() {
        runs.failed.push("cargo test --workspace --doc".to_owned());
    }
}

/// Suites that also run on servers whose cycle number and frame clock wrap after two seconds, which
/// a variable asks for. All others could.
const AT_WRAPS: [&str; 3] = ["driver", "timing", "transport"];

/// Runs the long form of the tests on sound cards: what [`run`] leaves out. One machine after the
/// other, and finally those that need the release build of the server.
pub fn devices() -> Result<()> {
    let build = ["build", "--package", "consort", "--package", "consort-libjack", "--quiet"];
    let package = ["test", "--package", "consort-tests", "--test", "devices"];
    let one_by_one = ["--include-ignored", "--test-threads=1"];
    cargo(&build)?;
    cargo(
        &[&package[..], &["machine::", "--"], &one_by_one, &["--skip", "machine::released"]]
            .concat(),
    )?;
    cargo(&[&build[..], &["--release"]].concat())?;
    cargo(&[&package[..], &["--release", "machine::released", "--"], &one_by_one].concat())
}
