//! Sinks and sources of other machines are connected by tunnels, as long as they are published.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use client::{OpenOptions, Session};
use pulse::RemoteControl;

use super::avahi::{Avahi, Sighting, Signal};
use super::service::{OWN_SOURCES, SINKS};
use crate::links::{LinkState, Links, Parts, Program, spawn};

/// Things that were said and not looked at, at most.
const MOST_WAITING: usize = 1024;
/// Tunnels at once. The front end has 32 modules that pass sound on, and a user needs some, too.
const MOST_TUNNELS: usize = 16;
/// Services that are kept in mind.
const MOST_SERVICES: usize = 64;

/// How tunnels are loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiscoverOptions {
    /// Where the front end listens, in PulseAudio's words.
    pub(crate) front_end: String,
    /// Latency of the tunnels, ms; `None`: their default.
    pub(crate) latency_ms: Option<u32>,
}

/// Finds, on a thread of its own.
///
/// # Errors
/// Nobody publishes services; the front end cannot be reached.
pub(crate) fn start(
    session: Session,
    options: DiscoverOptions,
    open: &OpenOptions,
) -> anyhow::Result<Links> {
    let (events, said) = sync_channel::<Signal>(MOST_WAITING);
    let avahi = Avahi::open(events)?;
    let control = RemoteControl::open(&options.front_end, "zeroconf discoverer")?;
    let loaded = Arc::new(Loaded::default());
    let ending = EndsTunnels { front_end: options.front_end.clone(), loaded: Arc::clone(&loaded) };
    let parts = Parts {
        _ending: Some(Box::new(ending)),
        ..Parts::new(session, "sinks and sources of other machines".into(), None)
    };
    Links::begin(parts, open, |program| {
        let Program { connection: _, state } = program()?;
        browse(&avahi)?;
        let (latency_ms, services) = (options.latency_ms, Services::default());
        let discoverer = Discoverer { avahi, said, control, latency_ms, services, loaded };
        spawn(Arc::clone(&state), move || discoverer.run(&state))
    })
}

fn browse(avahi: &Avahi) -> anyhow::Result<()> {
    for kind in [SINKS, OWN_SOURCES] {
        avahi.browse(kind).context("Avahi finds nothing")?;
    }
    Ok(())
}

/// The modules that were loaded; `None`: all end, and none is loaded any more.
#[derive(Debug)]
struct Loaded(Mutex<Option<BTreeSet<u32>>>);

impl Default for Loaded {
    fn default() -> Self {
        Self(Mutex::new(Some(BTreeSet::new())))
    }
}

impl Loaded {
    /// Loads a module, unless all end. They wait for that.
    fn load(&self, load: impl FnOnce() -> anyhow::Result<u32>) -> Option<u32> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // MUTATION: loaded.tunnels_without_limit
        let loaded = loaded.as_mut().filter(|all| all.len() < MOST_TUNNELS)?;
        let index = load().ok()?;
        loaded.insert(index);
        Some(index)
    }

    fn forget(&self, index: u32) {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = loaded.as_mut().map(|all| all.remove(&index));
    }

    fn take(&self) -> BTreeSet<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }
}

/// The tunnels end when this value is dropped.
#[derive(Debug)]
struct EndsTunnels {
    front_end: String,
    loaded: Arc<Loaded>,
}

impl Drop for EndsTunnels {
    fn drop(&mut self) {
        let all = self.loaded.take();
        // If the front end has ended, so have they.
        if let Ok(mut control) = RemoteControl::open(&self.front_end, "zeroconf discoverer") {
            all.iter().for_each(|index| drop(control.unload(*index)));
        }
    }
}

/// A service: by which ways it is seen, and the module that leads there.
#[derive(Debug, Default)]
struct Known {
    ways: BTreeSet<(i32, i32)>,
    module: Option<u32>,
}

/// Services that are seen, by name, kind and domain.
#[derive(Debug, Default)]
struct Services(BTreeMap<(String, String, String), Known>);

impl Services {
    /// Notes that a service is seen; `None`: there are too many to keep it in mind.
    fn found(&mut self, sighting: &Sighting) -> Option<&mut Known> {
        let Sighting { name, kind, domain, interface, protocol } = sighting.clone();
        let key = (name, kind, domain);
        // MUTATION: services.without_limit
        if self.0.len() >= MOST_SERVICES && !self.0.contains_key(&key) {
            return None;
        }
        let known = self.0.entry(key).or_default();
        known.ways.insert((interface, protocol));
        Some(known)
    }

    /// Notes that a service is lost from sight in one way; returns its module if that was the last.
    fn lost(&mut self, sighting: Sighting) -> Option<u32> {
        let Sighting { name, kind, domain, interface, protocol } = sighting;
        let key = (name, kind, domain);
        let known = self.0.get_mut(&key)?;
        known.ways.remove(&(interface, protocol));
        if !known.ways.is_empty() {
            return None;
        }
        self.0.remove(&key)?.module
    }
}

/// Loads tunnels. On its own thread.
struct Discoverer {
    avahi: Avahi,
    said: Receiver<Signal>,
    control: RemoteControl,
    latency_ms: Option<u32>,
    services: Services,
    loaded: Arc<Loaded>,
}

impl Discoverer {
    /// Loads and unloads until the front end ends.
    ///
    /// # Errors
    /// Avahi finds nothing more.
    fn run(mut self, state: &LinkState) -> anyhow::Result<()> {
        loop {
            match self.said.recv().context("the system bus has ended")? {
                Signal::Found(sighting) => self.found(&sighting),
                Signal::Lost(sighting) => {
                    let module = self.services.lost(sighting);
                    self.unload(module);
                }
                Signal::Gone => {
                    for known in std::mem::take(&mut self.services).0.into_values() {
                        self.unload(known.module);
                    }
                }
                Signal::There if self.services.0.is_empty() => browse(&self.avahi)?,
                Signal::There | Signal::Refused(_) => {}
            }
            state.set_plays(self.services.0.values().any(|known| known.module.is_some()));
        }
    }

    fn found(&mut self, sighting: &Sighting) {
        let Some(known) = self.services.found(sighting) else { return };
        if known.module.is_some() {
            return;
        }
        let resolved = self.avahi.resolve(sighting).ok();
        let tunnel = resolved.and_then(|resolved| resolved.tunnel(self.latency_ms));
        let control = &mut self.control;
        // One that cannot be loaded is tried again when it is seen again.
        known.module = tunnel
            .and_then(|tunnel| self.loaded.load(|| control.load(tunnel.module, &tunnel.arguments)));
    }

    fn unload(&mut self, module: Option<u32>) {
        if let Some(index) = module {
            self.loaded.forget(index);
            // It may have ended with its server.
            let _ = self.control.unload(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunnels_are_few_and_none_is_loaded_once_all_end() {
        let loaded = Loaded::default();
        let most = MOST_TUNNELS as u32;
        for index in 0..2 * most {
            let expected = (index < most).then_some(index);
            assert_eq!(loaded.load(|| Ok(index)), expected, "{index}");
        }
        loaded.forget(3);
        assert_eq!(loaded.load(|| anyhow::bail!("refused")), None);
        assert_eq!(loaded.load(|| Ok(30)), Some(30));
        let left = (0..most).filter(|index| *index != 3);
        assert_eq!(loaded.take(), left.chain([30]).collect());
        assert_eq!(loaded.load(|| Ok(31)), None);
    }

    fn sighting(number: usize, interface: i32) -> Sighting {
        Sighting {
            name: format!("sink {number}"),
            kind: SINKS.into(),
            domain: "local".into(),
            interface,
            protocol: 0,
        }
    }

    #[test]
    fn services_that_are_published_without_end_are_not_kept_in_mind() {
        let mut services = Services::default();
        for number in 0..1000 {
            let is_kept = services.found(&sighting(number, 1)).is_some();
            assert_eq!(is_kept, number < MOST_SERVICES, "{number}");
        }
        assert!(services.found(&sighting(0, 2)).is_some(), "it is known");
        services.lost(sighting(1, 1));
        assert!(services.found(&sighting(1000, 1)).is_some(), "there is room for another");
    }

    #[test]
    fn a_tunnel_ends_when_its_service_is_lost_in_every_way() {
        let mut services = Services::default();
        for interface in [1, 2] {
            services.found(&sighting(0, interface)).expect("room").module = Some(7);
        }
        assert_eq!(services.lost(sighting(0, 2)), None);
        assert_eq!(services.lost(sighting(0, 2)), None);
        assert_eq!(services.lost(sighting(0, 1)), Some(7));
        assert_eq!(services.lost(sighting(0, 1)), None);
    }
}
