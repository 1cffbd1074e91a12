//! `consort ls`: the ports.

use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use cli::output;
use proto::property::Property;
use proto::request::PortType;
use serde_json::{Value, json};

use crate::attach;
use crate::server::{Latency, Port, Server};

/// List the ports
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort ls --connections
  consort ls --properties --latency system:
  consort ls --json | jq -r '.[] | select(.owner == \"synth\") | .name'")]
pub(crate) struct List {
    /// Show only ports with this text in their name or an alias
    pattern: Option<String>,
    #[command(flatten)]
    details: Details,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// What is shown besides the names.
#[derive(Debug, Clone, Copy, Default, Args)]
struct Details {
    /// Show what each port is connected to
    #[arg(short, long)]
    connections: bool,
    /// Show flags, type, owner, aliases, and the properties that programs have set
    #[arg(short, long)]
    properties: bool,
    /// Show latencies
    #[arg(short, long)]
    latency: bool,
}

impl List {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let mut ports = attach::to(server)?.ports()?;
        if let Some(pattern) = &self.pattern {
            ports.retain(|port| matches(port, pattern));
        }
        if self.json {
            output::print_json(&ports.iter().map(as_json).collect())?;
        } else {
            output::print(&as_text(&ports, self.details))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn matches(port: &Port, pattern: &str) -> bool {
    std::iter::once(&port.name).chain(&port.aliases).any(|name| name.contains(pattern))
}

fn type_name(port_type: PortType) -> &'static str {
    match port_type {
        PortType::Audio => "audio",
        PortType::Midi => "midi",
    }
}

fn as_text(ports: &[Port], details: Details) -> String {
    let mut text = String::new();
    for port in ports {
        // Writing to a string cannot fail.
        let _ = add_text(&mut text, port, details);
    }
    text
}

fn add_text(text: &mut String, port: &Port, details: Details) -> std::fmt::Result {
    writeln!(text, "{}", port.name)?;
    if details.properties {
        writeln!(text, "    flags     {}", port.flag_names().join(", "))?;
        writeln!(text, "    type      {}", type_name(port.port_type))?;
        writeln!(text, "    owner     {}", port.owner)?;
        for alias in &port.aliases {
            writeln!(text, "    alias     {alias}")?;
        }
        for Property { key, value, .. } in &port.properties {
            // A value may have lines of its own.
            writeln!(text, "    property  {key} = {:?}", value.text)?;
        }
    }
    if details.latency {
        writeln!(text, "    capture   {}", latency_text(port.capture_latency))?;
        writeln!(text, "    playback  {}", latency_text(port.playback_latency))?;
    }
    if details.connections {
        let arrow = if port.is_output() { "->" } else { "<-" };
        for peer in &port.peers {
            writeln!(text, "    {arrow} {peer}")?;
        }
    }
    Ok(())
}

fn latency_text(latency: Latency) -> String {
    let Latency { min_frames, max_frames } = latency;
    if min_frames == max_frames {
        format!("{min_frames} frames")
    } else {
        format!("{min_frames} to {max_frames} frames")
    }
}

fn as_json(port: &Port) -> Value {
    let latency = |latency: Latency| json!({"min_frames": latency.min_frames, "max_frames": latency.max_frames});
    let property = |Property { key, value, .. }: &Property| {
        let type_name = Some(&value.type_name).filter(|name| !name.is_empty());
        (key.clone(), json!({"value": value.text, "type": type_name}))
    };
    json!({
        "id": port.id,
        "name": port.name,
        "owner": port.owner,
        "type": type_name(port.port_type),
        "flags": port.flag_names(),
        "aliases": port.aliases,
        "properties": port.properties.iter().map(property).collect::<serde_json::Map<_, _>>(),
        "connections": port.peers,
        "capture_latency": latency(port.capture_latency),
        "playback_latency": latency(port.playback_latency),
    })
}

#[cfg(test)]
mod tests {
    use proto::property::PropertyValue;

    use super::*;
    use crate::server::tests::port;

    fn sample() -> Vec<Port> {
        vec![
            Port {
                aliases: vec!["mic:left".into()],
                properties: vec![Property {
                    subject: proto::property::port_uuid(1),
                    key: "order".into(),
                    value: PropertyValue { text: "1\n".into(), type_name: "text/plain".into() },
                }],
                peers: vec!["rec:in 1".into(), "rec:in 2".into()],
                capture_latency: Latency { min_frames: 64, max_frames: 64 },
                playback_latency: Latency { min_frames: 64, max_frames: 128 },
                ..port(1, "system:capture_1", 0b1_0110)
            },
            Port { peers: vec!["system:capture_1".into()], ..port(7, "rec:in 1", 1) },
            Port { port_type: PortType::Midi, ..port(8, "keys:out", 2) },
        ]
    }

    #[test]
    fn without_details_each_line_is_a_name() {
        assert_eq!(
            as_text(&sample(), Details::default()),
            "system:capture_1\nrec:in 1\nkeys:out\n"
        );
        assert_eq!(as_text(&[], Details::default()), "");
    }

    #[test]
    fn details_are_indented_below_their_port() {
        let details = Details { connections: true, properties: true, latency: true };
        assert_eq!(
            as_text(&sample(), details),
            "\
system:capture_1
    flags     output, physical, terminal
    type      audio
    owner     system
    alias     mic:left
    property  order = \"1\\n\"
    capture   64 frames
    playback  64 to 128 frames
    -> rec:in 1
    -> rec:in 2
rec:in 1
    flags     input
    type      audio
    owner     rec
    capture   0 frames
    playback  0 frames
    <- system:capture_1
keys:out
    flags     output
    type      midi
    owner     keys
    capture   0 frames
    playback  0 frames
"
        );
    }

    #[test]
    fn a_pattern_matches_names_and_aliases() {
        let found = |pattern| -> Vec<u32> {
            sample().iter().filter(|port| matches(port, pattern)).map(|port| port.id).collect()
        };
        for (what, pattern, expected) in [
            ("part of a name", "in", vec![7]),
            ("a client", "system:", vec![1]),
            ("an alias", "mic:", vec![1]),
            ("anything", "", vec![1, 7, 8]),
            ("case counts", "System", vec![]),
        ] {
            assert_eq!(found(pattern), expected, "{what}");
        }
    }

    #[test]
    fn json_holds_everything_whatever_details_are_asked_for() {
        assert_eq!(
            as_json(&sample()[0]),
            json!({
                "id": 1,
                "name": "system:capture_1",
                "owner": "system",
                "type": "audio",
                "flags": ["output", "physical", "terminal"],
                "aliases": ["mic:left"],
                "properties": {"order": {"value": "1\n", "type": "text/plain"}},
                "connections": ["rec:in 1", "rec:in 2"],
                "capture_latency": {"min_frames": 64, "max_frames": 64},
                "playback_latency": {"min_frames": 64, "max_frames": 128},
            })
        );
    }
}
