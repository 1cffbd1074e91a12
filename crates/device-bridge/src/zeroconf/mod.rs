//! Machines of a network learn of each other's sinks and sources, through Avahi, as with
//! PulseAudio's `module-zeroconf-publish` and `module-zeroconf-discover`.
//!
//! Both are programs of the front end, which ask what there is, and load modules. What others
//! publish is checked in [`service`].

mod avahi;
mod discover;
mod publish;
mod service;

pub(crate) use discover::{DiscoverOptions, start as discover};
pub(crate) use publish::{PublishOptions, start as publish};
