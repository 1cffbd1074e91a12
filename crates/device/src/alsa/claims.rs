//! The reserved cards of a device: which of them other programs have asked for, and whether the
//! device may be open. Thread: the recovery thread's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sys::poll::{Interest, Poller};

use crate::reservation::{CardClaim, ClaimNews, Reservation};

/// A card's standing on the session bus.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Standing {
    /// No other program has it or wants it.
    #[default]
    Ours,
    /// A program waits until it is closed.
    Asked { request: u32, by: String },
    /// The program has it.
    GivenUp { by: String },
}

impl Standing {
    fn on(&mut self, news: ClaimNews) {
        *self = match news {
            ClaimNews::Asked { request, by } => Self::Asked { request, by },
            // Without a bus there is nothing left to wait for: opening shows whether it is in use.
            ClaimNews::Ours | ClaimNews::Ended => Self::Ours,
        }
    }

    /// Returns the request to answer now that the card is closed.
    fn card_is_closed(&mut self) -> Option<u32> {
        let Self::Asked { request, by } = self else { return None };
        let request = *request;
        *self = Self::GivenUp { by: std::mem::take(by) };
        Some(request)
    }
}

/// One reserved card.
#[derive(Debug)]
struct Claim {
    card: u32,
    standing: Standing,
    /// `None`: it has ended.
    claim: Option<Box<dyn CardClaim>>,
}

/// The claims of a device's cards. Each card stays reserved until the last copy is dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct Claims(Arc<Mutex<Vec<Claim>>>);

impl Claims {
    pub(super) fn new(reservations: Vec<(u32, Reservation)>) -> Self {
        let claim = |(card, reservation): (u32, Reservation)| Claim {
            card,
            standing: Standing::Ours,
            claim: Some(reservation.claim),
        };
        Self(Arc::new(Mutex::new(reservations.into_iter().map(claim).collect())))
    }

    /// Never called by the cycle thread.
    fn claims(&self) -> MutexGuard<'_, Vec<Claim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `poller` report news, under this token.
    pub(super) fn watch(&self, poller: &Poller, token: u64) -> std::io::Result<()> {
        let claims = self.claims();
        let mut open = claims.iter().filter_map(|claim| claim.claim.as_ref());
        open.try_for_each(|claim| poller.add(claim.descriptor(), token, Interest::Readable))
    }

    /// Takes all news.
    pub(super) fn take_news(&self, poller: &Poller) {
        for Claim { standing, claim, .. } in &mut *self.claims() {
            while let Some(news) = claim.as_mut().and_then(|claim| claim.news()) {
                if news == ClaimNews::Ended
                    && let Some(ended) = claim.take()
                {
                    // Else its end would be reported again and again.
                    let _ = poller.remove(ended.descriptor());
                }
                standing.on(news);
            }
        }
    }

    /// Returns whether the device must be closed, or stay so.
    pub(super) fn forbid(&self) -> bool {
        self.claims().iter().any(|claim| claim.standing != Standing::Ours)
    }

    /// Answers all requests: the device is closed.
    pub(super) fn device_is_closed(&self) {
        for Claim { standing, claim, .. } in &mut *self.claims() {
            let request = standing.card_is_closed();
            if let (Some(request), Some(claim)) = (request, claim) {
                claim.card_is_closed(request);
            }
        }
    }

    /// Returns which program has a card instead, as a sentence; `None` if none has.
    pub(super) fn who_has_it(&self) -> Option<String> {
        let claims = self.claims();
        claims.iter().find_map(|Claim { card, standing, .. }| match standing {
            Standing::Ours => None,
            Standing::Asked { by, .. } | Standing::GivenUp { by } => Some(format!(
                "sound card {card} is given up to '{by}', which asked for it with a higher \
                 priority, until that program releases it"
            )),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::{PipeReader, PipeWriter, Read, Write};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A card's claim, with the end at which other programs ask.
    #[derive(Debug)]
    struct TestClaim {
        readable: PipeReader,
        news: Receiver<ClaimNews>,
        closed: Sender<u32>,
    }

    /// Other programs' end.
    pub(crate) struct Bus {
        pub(crate) closed: Receiver<u32>,
        news: Sender<ClaimNews>,
        wake: PipeWriter,
    }

    impl CardClaim for TestClaim {
        fn descriptor(&self) -> BorrowedFd<'_> {
            self.readable.as_fd()
        }

        fn news(&mut self) -> Option<ClaimNews> {
            let news = self.news.try_recv().ok()?;
            let _ = self.readable.read(&mut [0]);
            Some(news)
        }

        fn card_is_closed(&mut self, request: u32) {
            let _ = self.closed.send(request);
        }
    }

    impl Bus {
        pub(crate) fn tell(&mut self, news: ClaimNews) {
            self.news.send(news).unwrap();
            self.wake.write_all(&[0]).unwrap();
        }

        pub(crate) fn ask(&mut self, request: u32) {
            self.tell(ClaimNews::Asked { request, by: "jackd".into() });
        }
    }

    /// The claim of one card, and the other end of its bus.
    pub(crate) fn claims_of(card: u32) -> (Claims, Bus) {
        let (readable, wake) = std::io::pipe().unwrap();
        let ((news, taken), (answer, closed)) = (channel(), channel());
        let claim = Box::new(TestClaim { readable, news: taken, closed: answer });
        let claims = Claims::new(vec![(card, Reservation { refused_by: None, claim })]);
        (claims, Bus { closed, news, wake })
    }

    #[test]
    fn a_request_is_answered_once_the_device_is_closed() {
        let ((claims, mut bus), poller) = (claims_of(3), Poller::new().unwrap());
        claims.device_is_closed();
        assert!(!claims.forbid() && bus.closed.try_recv().is_err(), "nothing was asked");
        bus.ask(7);
        claims.take_news(&poller);
        assert!(claims.forbid() && bus.closed.try_recv().is_err(), "it is still open");
        claims.device_is_closed();
        claims.device_is_closed();
        assert_eq!(bus.closed.try_iter().collect::<Vec<_>>(), [7]);
        assert!(claims.forbid(), "until it is free");
        assert!(claims.who_has_it().unwrap().contains("card 3 is given up to 'jackd'"));
        bus.tell(ClaimNews::Ours);
        claims.take_news(&poller);
        assert!(!claims.forbid() && claims.who_has_it().is_none());
    }

    #[test]
    fn a_request_that_is_withdrawn_needs_no_answer() {
        let ((claims, mut bus), poller) = (claims_of(0), Poller::new().unwrap());
        bus.ask(1);
        bus.tell(ClaimNews::Ours);
        claims.take_news(&poller);
        claims.device_is_closed();
        assert!(!claims.forbid() && bus.closed.try_recv().is_err());
    }

    #[test]
    fn a_card_is_free_again_when_the_bus_ends() {
        let ((claims, mut bus), poller) = (claims_of(0), Poller::new().unwrap());
        claims.watch(&poller, 0).unwrap();
        bus.ask(1);
        claims.take_news(&poller);
        claims.device_is_closed();
        bus.tell(ClaimNews::Ended);
        claims.take_news(&poller);
        assert!(!claims.forbid());
        drop(bus);
        let mut events = Vec::new();
        poller.wait(&mut events, Some(0)).unwrap();
        assert_eq!(events, [], "its end is reported once");
    }
}
