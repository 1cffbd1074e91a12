//! One connected program.

use std::ffi::{CStr, CString};

use confinement::Confinement;
use policy::Rights;
use pulseaudio::protocol::{
    ClientInfo, MAX_VERSION, Prop, Props, SubscriptionEventFacility as Facility, SubscriptionMask,
};

use super::Origin;
use super::owed_events::OwedEvents;
use super::properties::{self, text};

/// One connected program.
#[derive(Debug)]
pub(super) struct Client {
    pub origin: Origin,
    /// What it may do beyond what is its own; `None`: that is not known yet, and so it may do none
    /// of it.
    pub rights: Option<Rights>,
    /// A request of it that is answered when that is known.
    pub unanswered: Option<Vec<u8>>,
    /// Why that is not everything.
    pub confinement: Option<Confinement>,
    /// What it speaks, once it was let in.
    pub admitted: Option<u16>,
    /// It was answered that it may send samples in blocks of its memory.
    pub shares_memory: bool,
    /// Its own words about itself.
    pub props: Props,
    /// What it is notified of.
    pub subscription: SubscriptionMask,
    /// It is notified of changes of what is remembered of streams.
    pub follows_memory: bool,
    /// The module of whose known devices it is notified; that may not be there any more.
    pub follows_module: Option<u32>,
    /// The channel of its next stream.
    pub next_channel: u32,
    /// It has not taken all that was sent: what is recorded for it waits.
    pub is_busy: bool,
    /// It has not taken all that was sent, and what follows from others waits.
    pub is_behind: bool,
    /// The events that wait.
    pub owed_events: OwedEvents,
    /// It is to be notified of a change of what is remembered.
    pub owes_memory: bool,
    /// The same of what is remembered of devices.
    pub owes_devices: bool,
    /// Bytes of the answers that are still among the effects.
    pub answered_bytes: usize,
}

impl Client {
    /// A program that has connected.
    pub fn new(origin: Origin) -> Self {
        let (props, subscription) = (Props::new(), SubscriptionMask::empty());
        Self {
            origin,
            rights: None,
            unanswered: None,
            confinement: None,
            admitted: None,
            shares_memory: false,
            props,
            subscription,
            follows_memory: false,
            follows_module: None,
            next_channel: 0,
            is_busy: false,
            is_behind: false,
            owed_events: OwedEvents::default(),
            owes_memory: false,
            owes_devices: false,
            answered_bytes: 0,
        }
    }

    /// Returns what it may do.
    pub fn rights(&self) -> Rights {
        self.rights.unwrap_or(Rights::NONE)
    }

    /// Returns the protocol's version for packets to it and from it.
    pub fn version(&self) -> u16 {
        self.admitted.unwrap_or(MAX_VERSION)
    }

    /// Returns its name.
    pub fn name(&self) -> &CStr {
        text(&self.props, Prop::ApplicationName).unwrap_or(c"")
    }

    /// Returns a channel that none of its streams has.
    pub fn take_channel(&mut self) -> u32 {
        let channel = self.next_channel;
        self.next_channel = self.next_channel.wrapping_add(1);
        channel
    }

    pub fn has_subscribed(&self, facility: Facility) -> bool {
        let bit = SubscriptionMask::from_bits_truncate(1 << facility as u32);
        self.subscription.intersects(bit)
    }

    /// Returns what other programs see of it.
    pub fn info(&self, index: u32) -> ClientInfo {
        let mut props = self.props.clone();
        if let Some(why) = self.confinement {
            properties::set(&mut props, c"consort.confined", &why.to_string());
        }
        ClientInfo {
            index,
            name: self.name().to_owned(),
            owner_module_index: None,
            driver: Some(CString::from(c"protocol-native.c")),
            props,
        }
    }
}
