//! The log that JACK2 writes when it is built for profiling, and the Gnuplot scripts that draw it.
//!
//! A line is a cycle. Its columns are separated by tabs, and times are in µs after the driver woke:
//! the driver's period and its end; then for each client a number, signaled, awake, finished,
//! scheduling latency, duration, and its state, 3 if it has finished. A client that was not in the
//! cycle has seven empty columns.

use std::fmt::Write;
use std::io;
use std::path::Path;

use rt::record::ClientRecord;

use crate::plots::Empty;
use crate::timeline::{Run, Timeline};

const LOG: &str = "JackEngineProfiling.log";
/// `jack_client_state_t`.
const RUNNING: u32 = 2;
const FINISHED: u32 = 3;
/// Columns of a client.
const COLUMNS: usize = 7;

/// Writes `JackEngineProfiling.log` and `Timing1.plot` to `Timing5.plot` into `directory`.
pub(crate) fn write(timeline: &Timeline, directory: &Path) -> anyhow::Result<()> {
    let clients = clients(timeline);
    if timeline.pairs().next().is_none() {
        return Err(Empty.into());
    }
    save(directory, LOG, &log(timeline, &clients))?;
    for (number, script) in (1..).zip(scripts(timeline, &clients)) {
        save(directory, &format!("Timing{number}.plot"), &script)?;
    }
    Ok(())
}

fn save(directory: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = directory.join(name);
    std::fs::write(&path, text)
        .map_err(|error: io::Error| anyhow::anyhow!("cannot write {}: {error}", path.display()))
}

/// Returns the indices of the clients that ran.
fn clients(timeline: &Timeline) -> Vec<usize> {
    let ran = |index: &usize| {
        timeline.runs.iter().any(|run| run.clients.iter().any(|(at, _)| at == index))
    };
    (0..timeline.names.len()).filter(ran).collect()
}

/// Returns the log alone, for its fuzz target.
#[cfg(fuzzing)]
pub(crate) fn lines(timeline: &Timeline) -> String {
    log(timeline, &clients(timeline))
}

fn log(timeline: &Timeline, clients: &[usize]) -> String {
    let mut log = String::new();
    for (run, next) in timeline.pairs() {
        let after_us = |time_ns: u64| time_ns.saturating_sub(run.cycle.woken_ns) / 1000;
        // Writing to a string cannot fail.
        let _ = write!(log, "{}\t{}", after_us(next.cycle.woken_ns), after_us(run.cycle.end_ns));
        for client in clients {
            let found = run.clients.iter().find(|(index, _)| index == client);
            match found {
                Some((index, record)) => write_client(&mut log, *index, run, record),
                None => log.push_str(&"\t".repeat(COLUMNS)),
            }
        }
        log.push('\n');
    }
    log
}

fn write_client(log: &mut String, index: usize, run: &Run, record: &ClientRecord) {
    let after_us = |time_ns: u64| time_ns.saturating_sub(run.cycle.woken_ns) / 1000;
    let us = |duration_ns: Option<u64>| duration_ns.unwrap_or(0) / 1000;
    let state = if record.finished_ns == 0 { RUNNING } else { FINISHED };
    let _ = write!(
        log,
        "\t{}\t{}\t{}\t{}\t{}\t{}\t{state}",
        index + 1,
        after_us(record.signaled_ns),
        after_us(record.awake_ns),
        after_us(record.finished_ns),
        us(record.scheduling_ns()),
        us(record.duration_ns()),
    );
}

fn scripts(timeline: &Timeline, clients: &[usize]) -> [String; 5] {
    // Returns one column of each client, counted from 1 as Gnuplot does; `which` counts from the
    // client's number on.
    let columns = |which: usize| -> Vec<(usize, String)> {
        let of = |(slot, client): (usize, &usize)| {
            (3 + slot * COLUMNS + which, timeline.names.get(*client).cloned().unwrap_or_default())
        };
        clients.iter().enumerate().map(of).collect()
    };
    let period = || vec![(1, "Audio period".to_owned())];
    let with_period: Vec<(usize, String)> = period().into_iter().chain(columns(3)).collect();
    [
        script(1, "Audio driver timing", &period()),
        script(2, "Driver end time", &[(2, "Driver end time".to_owned())]),
        script(3, "Clients end time", &with_period),
        script(4, "Clients scheduling latency", &columns(4)),
        script(5, "Clients duration", &columns(5)),
    ]
}

fn script(number: u32, title: &str, columns: &[(usize, String)]) -> String {
    let mut curves: Vec<String> = columns
        .iter()
        .map(|(column, name)| {
            format!("\"{LOG}\" using {column} title \"{}\" with lines", escaped(name))
        })
        .collect();
    if curves.is_empty() {
        curves.push("0 title \"no client ran\"".into());
    }
    format!(
        "set datafile separator \"\\t\"
set terminal svg size 1200,700 background \"white\"
set output \"Timing{number}.svg\"
set grid
set key noenhanced
set title \"{title}\"
set xlabel \"audio cycles\"
set ylabel \"usec\"
plot {}
unset output
",
        curves.join(", \\\n  ")
    )
}

/// Escapes a name for Gnuplot's double quotes.
fn escaped(name: &str) -> String {
    name.chars()
        .filter(|letter| !letter.is_control())
        .flat_map(|letter| match letter {
            '"' | '\\' => vec!['\\', letter],
            letter => vec![letter],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::sample;

    #[test]
    fn the_log_has_jack2s_columns() {
        let mut timeline = sample(4);
        timeline.runs[1].clients.remove(0);
        timeline.runs[2].clients[1].1.finished_ns = 0;
        let log = log(&timeline, &clients(&timeline));
        let lines: Vec<&str> = log.lines().collect();
        let (synth, reverb) = ("1\t2\t12\t112\t10\t100\t3", "2\t112\t120\t320\t8\t200\t3");
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0], format!("1333\t9\t{synth}\t{reverb}"));
        assert_eq!(lines[1], format!("1333\t9\t\t\t\t\t\t\t\t{reverb}"));
        assert_eq!(lines[2], format!("1333\t9\t{synth}\t2\t112\t120\t0\t8\t0\t2"));
        assert!(lines.iter().all(|line| line.split('\t').count() == 2 + 2 * COLUMNS));
    }

    #[test]
    fn each_script_draws_the_columns_of_its_title() {
        let timeline = sample(2);
        let scripts = scripts(&timeline, &clients(&timeline));
        for (script, columns) in
            scripts.iter().zip([&[1][..], &[2], &[1, 6, 13], &[7, 14], &[8, 15]])
        {
            let found: Vec<u32> = script
                .match_indices(" using ")
                .map(|(at, word)| {
                    script[at + word.len()..].split(' ').next().unwrap().parse().unwrap()
                })
                .collect();
            assert_eq!(found, columns, "{script}");
        }
    }

    #[test]
    fn a_name_cannot_end_its_quotes() {
        assert_eq!(escaped("a\"; system \\\n"), "a\\\"; system \\\\");
    }
}
