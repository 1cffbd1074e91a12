//! `consort disconnect`.

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use cli::UsageError;

use crate::attach;
use crate::server::Server;

/// Remove one connection, or all connections of a port
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort disconnect synth:left system:playback_1
  consort disconnect --all synth:left")]
pub(crate) struct Disconnect {
    /// Name or alias of the output port
    #[arg(required_unless_present = "all")]
    source: Option<String>,
    /// Name or alias of the input port
    destination: Option<String>,
    /// Remove all connections of this port
    #[arg(long, value_name = "PORT", conflicts_with_all = ["source", "destination"])]
    all: Option<String>,
}

impl Disconnect {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        match (self.source, self.destination, self.all) {
            (Some(source), Some(destination), _) => {
                attach::to(server)?.disconnect(&source, &destination)?
            }
            (_, _, Some(port)) => disconnect_all(&attach::to(server)?, &port)?,
            _ => {
                let message =
                    "name the input port, too; --all PORT removes all connections of a port";
                return Err(UsageError(message.into()).into());
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn disconnect_all(server: &impl Server, name: &str) -> anyhow::Result<()> {
    let ports = server.ports()?;
    let port = ports
        .iter()
        .find(|port| port.is_called(name))
        .with_context(|| format!("there is no port '{name}': `consort ls` lists the ports"))?;
    for peer in &port.peers {
        if port.is_output() {
            server.disconnect(&port.name, peer)?;
        } else {
            server.disconnect(peer, &port.name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use proto::status::Status;

    use super::*;
    use crate::server::tests::port;
    use crate::server::{Port, TransportView};

    struct Fake {
        ports: Vec<Port>,
        removed: RefCell<Vec<String>>,
    }

    impl Server for Fake {
        fn ports(&self) -> anyhow::Result<Vec<Port>> {
            Ok(self.ports.clone())
        }

        fn streams(&self) -> anyhow::Result<crate::command::status::streams::Streams> {
            anyhow::bail!("not used by this test")
        }

        fn status(&self) -> anyhow::Result<Status> {
            anyhow::bail!("not used by this test")
        }

        fn connect(&self, _: &str, _: &str) -> anyhow::Result<()> {
            anyhow::bail!("not used by this test")
        }

        fn disconnect(&self, source: &str, destination: &str) -> anyhow::Result<()> {
            self.removed.borrow_mut().push(format!("{source} > {destination}"));
            Ok(())
        }

        fn transport(&self) -> anyhow::Result<TransportView> {
            anyhow::bail!("not used by this test")
        }

        fn roll(&self, _: bool) -> anyhow::Result<()> {
            anyhow::bail!("not used by this test")
        }

        fn locate(&self, _: u32) -> anyhow::Result<()> {
            anyhow::bail!("not used by this test")
        }

        fn stop(&self) -> anyhow::Result<()> {
            anyhow::bail!("not used by this test")
        }
    }

    #[test]
    fn all_connections_of_a_port_go_at_either_end() {
        let peers = || vec![String::from("x:1"), String::from("y:2")];
        let source = Port { peers: peers(), ..port(1, "a:out", 2) };
        let destination =
            Port { peers: peers(), aliases: vec!["left".into()], ..port(2, "b:in", 1) };
        let fake = Fake { ports: vec![source, destination], removed: RefCell::default() };
        disconnect_all(&fake, "a:out").expect("known");
        disconnect_all(&fake, "left").expect("known by its alias");
        assert_eq!(
            *fake.removed.borrow(),
            ["a:out > x:1", "a:out > y:2", "x:1 > b:in", "y:2 > b:in"]
        );
        assert!(disconnect_all(&fake, "b").is_err(), "a client is not a port");
    }
}
