//! The floors: what the machine allows to processes that are chained by futexes and by nothing
//! else.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::child::LineChild;
use crate::measure::graph::{self, Graph, SETTLE, Shape, Window};
use crate::measure::{floor_subject, us};
use crate::proc;
use crate::programs::Programs;
use crate::recording::{Recording, complete_cycles};
use crate::report::Report;
use crate::workplace::Workplace;

/// Where the processes run: the word for `floor.c`, and the one for the table.
const PLACEMENTS: [(&str, &str); 3] =
    [("one", "one CPU"), ("across", "across CPUs"), ("kernel", "kernel's choice")];

/// Measures every floor of one graph once.
pub fn run(
    graph: Graph,
    programs: &Programs,
    workplace: &Workplace,
    arguments: &Arguments,
    report: &mut Report,
) -> Result<()> {
    for (placement, place) in PLACEMENTS {
        let words: &[&str] =
            if graph.shape == Shape::Chain { &["chain"] } else { &["fan", "group"] };
        for word in words {
            let how = if *word == "group" { ", one futex" } else { "" };
            let floor = Floor { graph, word, placement, name: format!("{place}{how}") };
            floor.run(programs, workplace, arguments, report)?;
        }
    }
    Ok(())
}

struct Floor<'a> {
    graph: Graph,
    word: &'a str,
    placement: &'a str,
    name: String,
}

impl Floor<'_> {
    fn run(
        &self,
        programs: &Programs,
        workplace: &Workplace,
        arguments: &Arguments,
        report: &mut Report,
    ) -> Result<()> {
        let count = self.graph.clients;
        let recording = Recording::new(workplace, count + 1, graph::capacity(arguments.seconds))?;
        let mut command = Command::new(&programs.floor);
        command
            .args([self.word, &count.to_string(), self.placement, &report.priority.to_string()])
            .args([arguments.frames.to_string(), arguments.period_ns().to_string()])
            .args([recording.path(), recording.capacity().to_string()]);
        let mut child = LineChild::spawn("floor", &mut command)?;
        let pids = child.numbers("pids")?;
        let pids = pids.iter().map(|pid| u32::try_from(*pid)).collect::<Result<Vec<u32>, _>>()?;
        let (timer, nodes) = pids.split_first().context("a floor without processes")?;
        std::thread::sleep(SETTLE);

        let mut subject = floor_subject(report.machine(), proc::scheduling(nodes[0])?);
        subject.server_threads = proc::scheduling(*timer)?;
        subject.server = format!("floor: {}", self.name);
        subject.version = String::new();
        let title = graph::title(self.graph, arguments);
        let first = (0..=count).map(|lane| recording.count(lane)).collect::<Result<Vec<_>>>()?;
        let window = Window::measure(&recording, 1..count + 1, (*timer, nodes), arguments.seconds)?;
        window.report(&title, self.graph.shape, &subject, report);
        let lanes = first
            .iter()
            .enumerate()
            .map(|(lane, first)| recording.records(lane, *first))
            .collect::<Result<Vec<_>>>()?;
        let from_timer = complete_cycles(&lanes).into_iter().filter_map(|cycle| {
            let last = cycle.iter().skip(1).map(|record| record.exit_ns).max()?;
            Some(us(last - cycle[0].entry_ns))
        });
        report.spread(
            &subject,
            &format!("{title}: timer's wake-up to last exit"),
            "µs",
            from_timer,
        );
        let period_ns = arguments.period_ns();
        graph::report_switches(&title, (*timer, nodes), period_ns, workplace, &subject, report)?;
        ensure!(child.end(), "a floor did not end in order");
        Ok(())
    }
}
