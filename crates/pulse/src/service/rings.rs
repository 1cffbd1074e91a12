//! Rings of messages of the programs that are served, from the offer on.

use sys::poll::Interest;

use super::{Service, token};

impl Service {
    /// Memory of rings was closed to writers, or cannot be.
    pub(super) fn rings_ready(&mut self) {
        self.sealed.reset();
        let mut ended = Vec::new();
        for (number, link) in &mut self.links {
            let Some(is_closed) = link.begin_rings() else { continue };
            // MUTATION: rings_ready.ringing_is_not_heard
            let watch = |eventfd| self.poller.add(eventfd, token(*number), Interest::Written);
            if !is_closed || link.eventfd().is_none_or(|eventfd| watch(eventfd).is_err()) {
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
