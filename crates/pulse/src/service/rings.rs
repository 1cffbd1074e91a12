//! Rings of messages of the programs that are served, from the offer on.

use sys::poll::Interest;

use super::link::State;
use super::{Service, token};

impl Service {
    /// Memory of rings was closed to writers, or cannot be.
    pub(super) fn rings_ready(&mut self) {
        self.sealed.reset();
        let mut ended = Vec::new();
        for (number, link) in &mut self.links {
            let state = link.begin_rings();
            // MUTATION: rings_ready.ringing_is_not_heard
            let watch = |eventfd| self.poller.add(eventfd, token(*number), Interest::Written);
            if state == State::Ended || link.new_eventfd().is_some_and(|new| watch(new).is_err()) {
                ended.push(*number);
            }
        }
        ended.into_iter().for_each(|number| self.end_link(number));
    }

    /// Offers rings to a program that is worth it.
    pub(super) fn offer_rings(&mut self, number: u32) {
        if let Some(link) = self.links.get_mut(&number) {
            link.offer_rings(&self.sealers);
            if !link.has_sent_all() {
                self.write(number);
            }
        }
    }
}
