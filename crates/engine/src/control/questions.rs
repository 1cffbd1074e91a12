//! Questions to clients, and the tokens by which they are answered.

use std::collections::BTreeMap;

/// Gives each question of a server a token of its own.
#[derive(Debug)]
pub(super) struct Tokens {
    last: u64,
}

impl Tokens {
    /// Tokens after `last`.
    pub(super) fn after(last: u64) -> Self {
        Self { last }
    }

    /// Returns a token that no question has had.
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

/// The questions of one kind that have not been answered, by token.
#[derive(Debug)]
pub(super) struct Questions<Q> {
    open: BTreeMap<u64, (u32, Q)>,
}

impl<Q> Default for Questions<Q> {
    fn default() -> Self {
        Self { open: BTreeMap::new() }
    }
}

impl<Q> Questions<Q> {
    /// Notes that `client` was asked, and answers with `token`.
    pub(super) fn note(&mut self, token: u64, client: u32, question: Q) {
        self.open.insert(token, (client, question));
    }

    /// Takes the question that `client` answers. `None`: it is another client's, or none of these.
    pub(super) fn answered(&mut self, client: u32, token: u64) -> Option<Q> {
        let (asked, _) = self.open.get(&token)?;
        if *asked != client {
            return None;
        }
        self.open.remove(&token).map(|(_, question)| question)
    }

    /// The open questions: (token, client, question).
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u32, &Q)> {
        self.open.iter().map(|(token, (client, question))| (*token, *client, question))
    }

    /// Takes back the questions for which `is_withdrawn` holds: (token, client, question).
    pub(super) fn withdraw(
        &mut self,
        is_withdrawn: impl Fn(u32, &Q) -> bool,
    ) -> Vec<(u64, u32, Q)> {
        let withdrawn =
            self.open.extract_if(.., |_, (client, question)| is_withdrawn(*client, question));
        withdrawn.map(|(token, (client, question))| (token, client, question)).collect()
    }

    /// Takes back the questions to a client that has gone; gives their tokens.
    pub(super) fn forget(&mut self, gone: u32) -> Vec<u64> {
        let withdrawn = self.withdraw(|client, _| client == gone);
        withdrawn.into_iter().map(|(token, _, _)| token).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_client_that_was_asked_can_answer_a_question() {
        let (mut tokens, mut questions) = (Tokens::after(100), Questions::default());
        let (first, second) = (tokens.next(), tokens.next());
        questions.note(first, 1, "first");
        questions.note(second, 2, "second");
        assert_eq!(questions.answered(2, first), None, "another client's token");
        assert_eq!(questions.answered(1, first), Some("first"));
        assert_eq!(questions.answered(1, first), None, "a second answer");
        assert_eq!(questions.answered(1, 7), None, "a token of another server");
        assert_eq!(questions.answered(2, second), Some("second"));
    }

    #[test]
    fn a_client_that_leaves_takes_its_questions_with_it() {
        let mut questions = Questions::default();
        for (token, client) in [(1, 7), (2, 8), (3, 7)] {
            questions.note(token, client, ());
        }
        assert_eq!(questions.forget(7), [1, 3]);
        assert_eq!(
            questions.iter().map(|(token, client, _)| (token, client)).collect::<Vec<_>>(),
            [(2, 8)]
        );
    }
}
