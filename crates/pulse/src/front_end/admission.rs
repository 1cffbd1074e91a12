//! Who is let in.

use std::fmt;
use std::hint::black_box;

/// Bytes of a cookie.
pub(crate) const COOKIE_BYTES: usize = 256;

/// How a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From a program of this user on this machine, says the kernel.
    OwnUser,
    /// From a program of another user, or of one that the kernel does not name.
    OtherUser,
    /// Over the network: nobody says whose program it is.
    Network,
    /// Likewise, where a module listens.
    Module {
        /// The module's index.
        module: u32,
        /// It needs no cookie.
        is_open: bool,
    },
}

impl Way {
    /// Returns whether it is over the network.
    pub fn is_network(self) -> bool {
        matches!(self, Self::Network | Self::Module { .. })
    }
}

/// PulseAudio's cookie: a secret that a user's programs can read.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Cookie(pub [u8; COOKIE_BYTES]);

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookie(…)")
    }
}

impl Cookie {
    /// Compares in constant time.
    fn is(&self, offered: &[u8]) -> bool {
        // MUTATION: cookie.any_length
        let has_its_length = offered.len() == COOKIE_BYTES;
        let pairs = self.0.iter().zip(offered);
        let differences = pairs.fold(0, |all, (own, other)| black_box(all | (own ^ other)));
        has_its_length && differences == 0
    }
}

/// What programs need to be let in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Admission {
    /// What lets in those who are not of this user, if anything does.
    pub cookie: Option<Cookie>,
    /// Programs over the network need none.
    pub is_open_to_network: bool,
}

impl Admission {
    /// Returns whether a program that comes this way, with this cookie, is let in.
    pub fn lets_in(&self, way: Way, offered: &[u8]) -> bool {
        // MUTATION: lets_in.any_cookie
        let has_cookie = self.cookie.as_ref().is_some_and(|cookie| cookie.is(offered));
        has_cookie
            || match way {
                Way::OwnUser => true,
                Way::OtherUser => false,
                Way::Network => self.is_open_to_network,
                Way::Module { is_open, .. } => is_open,
            }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COOKIE: [u8; COOKIE_BYTES] = [7; COOKIE_BYTES];

    #[test]
    fn who_needs_the_cookie_depends_on_the_way() {
        for (cookie, is_open_to_network, offered, expected) in [
            (None, false, &[][..], [true, false, false]),
            (None, true, &[], [true, false, true]),
            (None, false, &COOKIE, [true, false, false]),
            (Some(Cookie(COOKIE)), false, &[], [true, false, false]),
            (Some(Cookie(COOKIE)), false, &COOKIE, [true, true, true]),
            (Some(Cookie(COOKIE)), true, &[], [true, false, true]),
        ] {
            let admission = Admission { cookie, is_open_to_network };
            let found = [Way::OwnUser, Way::OtherUser, Way::Network];
            let found = found.map(|way| admission.lets_in(way, offered));
            assert_eq!(found, expected, "{admission:?}, {} bytes", offered.len());
            // Where a module listens, it is the module that says whether the cookie is needed.
            let by_module =
                |is_open| admission.lets_in(Way::Module { module: 0, is_open }, offered);
            assert_eq!([by_module(false), by_module(true)], [expected[1], true]);
        }
    }

    #[test]
    fn a_part_of_the_cookie_is_not_the_cookie() {
        let cookie = Cookie(COOKIE);
        assert!(cookie.is(&COOKIE));
        for offered in [&[][..], &COOKIE[1..], &[7; COOKIE_BYTES + 1]] {
            assert!(!cookie.is(offered), "{} bytes", offered.len());
        }
    }

    proptest! {
        #[test]
        fn one_other_bit_is_another_cookie(byte in 0..COOKIE_BYTES, bit in 0..8_u32) {
            let mut offered = COOKIE;
            offered[byte] ^= 1 << bit;
            prop_assert!(!Cookie(COOKIE).is(&offered));
        }
    }

    #[test]
    fn the_cookie_is_not_printed() {
        let printed =
            format!("{:?}", Admission { cookie: Some(Cookie(COOKIE)), ..Admission::default() });
        assert!(!printed.contains('7'), "{printed}");
    }
}
