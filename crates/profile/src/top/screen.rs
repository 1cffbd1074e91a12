//! The layout, for terminals of 80 columns and 24 lines or more.

use proto::status::{ClientStatus, Place, Status};
use proto::xrun::{Verdict, Xrun};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Gauge, Paragraph};

use super::model::Row;

/// Everything that the screen shows.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) status: Status,
    /// One row for each client of the status, in its order.
    pub(crate) rows: Vec<Row>,
    /// Newest last.
    pub(crate) xruns: Vec<Xrun>,
    /// State and position of the transport.
    pub(crate) transport: String,
}

const NAME: usize = 16;
/// Columns of the numbers to the right of the bar.
const NUMBERS: usize = 33;
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().fg(Color::DarkGray);

/// Draws the view.
pub(crate) fn draw(frame: &mut Frame<'_>, view: &View) {
    let [head, gauge, clients, xruns, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(2),
        Constraint::Min(4),
        Constraint::Length(7),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(headline(&view.status)), head);
    draw_load(frame, gauge, view);
    frame.render_widget(Paragraph::new(client_lines(clients, view)), clients);
    frame.render_widget(Paragraph::new(xrun_lines(xruns, view)), xruns);
    let legend = "░ signaled  █ running  (medians of the last second)   ~ not pinned   q quits";
    frame.render_widget(Paragraph::new(Line::styled(legend, DIM)), foot);
}

fn headline(status: &Status) -> Line<'static> {
    let Status { name, driver, sample_rate_hz, quantum, sync, .. } = status;
    let ms = f64::from(*quantum) * 1000.0 / f64::from((*sample_rate_hz).max(1));
    let mode = if *sync { "sync" } else { "async" };
    Line::from(vec![
        Span::styled(name.clone(), BOLD),
        Span::raw(format!("  {driver}  {sample_rate_hz} Hz  {quantum} frames, {ms:.2} ms  {mode}")),
    ])
}

fn draw_load(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let [left, right] =
        Layout::horizontal([Constraint::Length(24), Constraint::Min(10)]).areas(area);
    let left = Rect { height: 1, ..left };
    let load = view.status.load.clamp(0.0, 1.0);
    let color = match load {
        0.9.. => Color::Red,
        0.7.. => Color::Yellow,
        _ => Color::Green,
    };
    let gauge = Gauge::default().ratio(load).label(format!("DSP load {:.1} %", load * 100.0));
    frame.render_widget(gauge.gauge_style(Style::new().fg(color)), left);
    let (xruns, cycles) = (view.status.xruns, view.status.cycles);
    let text = format!("  {xruns} xruns in {cycles} cycles  {}", view.transport);
    frame.render_widget(Paragraph::new(text), right);
}

/// Cuts or pads a text to `columns`.
fn fitted(text: &str, columns: usize) -> String {
    let cut: String = match text.chars().count() > columns {
        true => text.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
        false => text.into(),
    };
    format!("{cut:<columns$}")
}

fn client_lines(area: Rect, view: &View) -> Vec<Line<'static>> {
    let bar = usize::from(area.width).saturating_sub(NAME + NUMBERS + 6).clamp(8, 60);
    let heading = format!(
        "{} cpu {} {:>8}{:>8} {:>8}{:>8}",
        fitted("client", NAME),
        fitted("cycle", bar),
        "sched µs",
        "max",
        "dur µs",
        "max"
    );
    let mut lines = vec![Line::styled(heading, BOLD)];
    let clients: Vec<(&ClientStatus, &Row)> = view.status.clients.iter().zip(&view.rows).collect();
    let room = usize::from(area.height).saturating_sub(2);
    for (client, row) in clients.iter().take(room) {
        lines.push(client_line(client, row, bar));
    }
    if clients.len() > room {
        lines.push(Line::styled(format!("… and {} more", clients.len() - room), DIM));
    }
    lines
}

fn client_line(client: &ClientStatus, row: &Row, bar: usize) -> Line<'static> {
    let cpu = row.cpu.map_or_else(|| "-".into(), |cpu| cpu.to_string());
    // All other clients run where placement wants them, or placement is off.
    let is_unpinned = matches!(client.place, Some(Place::Late { .. } | Place::Refused { .. }));
    let mark = if is_unpinned { '~' } else { ' ' };
    let name = Span::raw(format!("{} {cpu:>3}{mark}", fitted(&client.name, NAME)));
    let times = [row.scheduling_us, row.duration_us].concat();
    let numbers = match row.bar {
        Some(_) => {
            format!(" {:>8.1}{:>8.1} {:>8.1}{:>8.1}", times[0], times[1], times[2], times[3])
        }
        None => String::new(),
    };
    let mut spans = vec![name];
    match (client.bypassed, client.active, row.bar) {
        (true, ..) => {
            spans.push(Span::styled(fitted("bypassed: it does not answer", bar), Color::Red))
        }
        (_, false, _) => spans.push(Span::styled(fitted("inactive", bar), DIM)),
        (.., None) => {
            spans.push(Span::styled(fitted("has not finished lately", bar), Color::Yellow))
        }
        (.., Some(parts)) => spans.extend(bar_spans(parts, bar)),
    }
    spans.push(Span::raw(numbers));
    Line::from(spans)
}

/// Returns the bar of a client's cycle: blank until signaled, light until awake, full until
/// finished, dotted to the end of the period.
fn bar_spans(parts: [f64; 3], columns: usize) -> [Span<'static>; 4] {
    let [signaled, awake, finished] = parts.map(|part| (part * columns as f64).floor() as usize);
    // A client that ran has at least one column.
    let finished = finished.max(awake + 1).min(columns);
    let awake = awake.min(finished - 1);
    let signaled = signaled.min(awake);
    let span = |letter: &str, from: usize, to: usize| letter.repeat(to - from);
    [
        Span::styled(span(" ", 0, signaled), DIM),
        Span::styled(span("░", signaled, awake), Color::Yellow),
        Span::styled(span("█", awake, finished), Color::Green),
        Span::styled(span("·", finished, columns), DIM),
    ]
}

fn xrun_lines(area: Rect, view: &View) -> Vec<Line<'static>> {
    let mut lines = vec![Line::raw(""), Line::styled("latest xruns", BOLD)];
    let room = usize::from(area.height).saturating_sub(lines.len());
    let newest = view.xruns.iter().rev().take(room);
    let width = usize::from(area.width);
    lines.extend(newest.map(|xrun| {
        let name = xrun.client.as_ref().map_or("the driver", |(_, name)| name);
        let verdict = xrun.verdict.as_ref().map_or_else(|| "…".into(), Verdict::describe);
        let text =
            format!("{:>4} {} {:>3}× {verdict}", xrun.number, fitted(name, NAME), xrun.cycles);
        Line::raw(fitted(&text, width))
    }));
    if view.xruns.is_empty() {
        lines.push(Line::styled("none", DIM));
    }
    lines
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn client(name: &str) -> ClientStatus {
        ClientStatus {
            id: 2,
            name: name.into(),
            process: 1,
            active: true,
            bypassed: false,
            bypasses: 0,
            late_cycles: 0,
            cpu: Some(1),
            place: None,
            timing: None,
        }
    }

    fn view() -> View {
        let ran = Row {
            name: "synth".into(),
            cpu: Some(1),
            bar: Some([0.1, 0.2, 0.5]),
            scheduling_us: [20.0, 110.5],
            duration_us: [300.0, 1234.5],
        };
        let status = Status {
            name: "default".into(),
            version: "0.1.0".into(),
            process: 4321,
            driver: "timer".into(),
            sample_rate_hz: 48_000,
            quantum: 64,
            sync: false,
            freewheel: false,
            realtime_priority: Some(10),
            cycles: 75_000,
            xruns: 2,
            load: 0.1234,
            placement: None,
            clients: vec![
                ClientStatus { place: Some(Place::Late { left_ms: 4_000 }), ..client("synth") },
                ClientStatus { bypassed: true, ..client("a client with a long name") },
                ClientStatus { active: false, ..client("idle") },
            ],
            ports: (12, 2048),
            connections: 8,
        };
        let xrun = Xrun {
            number: 7,
            cycle: 1,
            unix_ms: 0,
            client: Some((2, "synth".into())),
            cycles: 2,
            period_ns: 1,
            driver_late_ns: 0,
            timestamps: proto::xrun::Timestamps::default(),
            usual: None,
            verdict: Some(Verdict::Blocked),
            evidence: None,
            had_cpu: Vec::new(),
            chain: Vec::new(),
        };
        View {
            status,
            rows: vec![ran, Row::default(), Row::default()],
            xruns: vec![xrun],
            transport: "stopped at 0".into(),
        }
    }

    fn drawn(view: &View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        let buffer = terminal.backend().buffer();
        let lines = buffer.content().chunks(usize::from(width));
        lines
            .map(|line| {
                line.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()
            })
            .collect()
    }

    #[test]
    fn everything_fits_eighty_columns_by_twenty_four_lines() {
        let lines = drawn(&view(), 80, 24);
        assert_eq!(lines[0], "default  timer  48000 Hz  64 frames, 1.33 ms  async");
        assert!(
            lines[1].contains("DSP load 12.3 %") && lines[1].contains("2 xruns in 75000 cycles")
        );
        assert_eq!(
            lines[3],
            "client           cpu cycle                     sched µs     max   dur µs     max"
        );
        assert_eq!(
            lines[4],
            "synth              1~  ░░░███████·············     20.0   110.5    300.0  1234.5"
        );
        assert!(
            lines[5].starts_with("a client with a… ") && lines[5].contains("bypassed"),
            "{}",
            lines[5]
        );
        assert!(lines[6].contains("inactive"));
        let xruns = lines.iter().position(|line| line == "latest xruns").unwrap();
        assert!(lines[xruns + 1].starts_with("   7 synth              2× blocked in its own code"));
        assert!(lines[23].ends_with("q quits"));
    }

    #[test]
    fn any_size_of_terminal_can_be_drawn_to() {
        let many = View {
            rows: vec![Row { bar: Some([1.0, 1.0, 1.0]), ..Row::default() }; 300],
            status: Status { clients: vec![client("x"); 300], load: 7.0, ..view().status },
            ..view()
        };
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 100)] {
            drawn(&many, width, height);
        }
        assert!(drawn(&many, 80, 24).iter().any(|line| line == "… and 289 more"));
    }
}
