//! The streams that play, found by their owner, and when each is to be looked at.

use std::collections::BTreeMap;

use super::agenda::Agenda;
use super::sink_inputs::{Owner, SinkInput};
use crate::output::Output;

/// All sink inputs, by their index.
#[derive(Debug)]
pub(super) struct SinkInputs<O> {
    inputs: BTreeMap<u32, SinkInput<O>>,
    by_owner: BTreeMap<Owner, u32>,
    /// Of the inputs that something was done with since, it has the look before.
    agenda: Agenda,
    /// These inputs; some more than once.
    touched: Vec<u32>,
}

impl<O> Default for SinkInputs<O> {
    fn default() -> Self {
        Self {
            inputs: BTreeMap::new(),
            by_owner: BTreeMap::new(),
            agenda: Agenda::default(),
            touched: Vec::new(),
        }
    }
}

impl<O: Output> SinkInputs<O> {
    pub fn insert(&mut self, index: u32, input: SinkInput<O>) {
        if let Some(owner) = input.owner {
            self.by_owner.insert(owner, index);
        }
        self.inputs.insert(index, input);
        self.touch(index);
    }

    pub fn remove(&mut self, index: u32) -> Option<SinkInput<O>> {
        let input = self.inputs.remove(&index)?;
        if let Some(owner) = input.owner {
            self.by_owner.remove(&owner);
        }
        self.touch(index);
        Some(input)
    }

    pub fn get(&self, index: u32) -> Option<&SinkInput<O>> {
        self.inputs.get(&index)
    }

    /// Returns an input, which may need to be looked at at another time afterwards.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut SinkInput<O>> {
        if self.inputs.contains_key(&index) {
            self.touch(index);
        }
        self.inputs.get_mut(&index)
    }

    /// Returns an input with which nothing is done: what was heard of it is asked for. Its next
    /// look stays when it is.
    pub fn untouched(&mut self, index: u32) -> Option<&mut SinkInput<O>> {
        self.inputs.get_mut(&index)
    }

    /// Returns all inputs, each of which may need to be looked at at another time afterwards.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut SinkInput<O>> {
        self.touched.extend(self.inputs.keys());
        self.inputs.values_mut()
    }

    /// Returns the index of the input that belongs to a channel of a program.
    pub fn of_owner(&self, owner: Owner) -> Option<u32> {
        self.by_owner.get(&owner).copied()
    }

    /// Returns the inputs of a program's connection.
    pub fn of_program(&self, client: u32) -> impl Iterator<Item = &SinkInput<O>> {
        let [first, last] = [0, u32::MAX].map(|channel| Owner { client, channel });
        self.by_owner.range(first..=last).filter_map(|(_, index)| self.inputs.get(index))
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &SinkInput<O>)> {
        self.inputs.iter().map(|(index, input)| (*index, input))
    }

    pub fn values(&self) -> impl Iterator<Item = &SinkInput<O>> {
        self.inputs.values()
    }

    pub fn indices(&self) -> Vec<u32> {
        self.inputs.keys().copied().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Returns when the first input is to be looked at, ns; `None`: after something was done with
    /// one.
    pub fn due_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.plan(now_ns);
        self.agenda.next_ns()
    }

    /// Returns the inputs that are to be looked at, and those that are looked at along with them.
    ///
    /// One that is due is looked at although something was done with it meanwhile: what is due may
    /// be that nothing of it is left, and then no other look follows.
    pub fn due(&self, now_ns: u64) -> Vec<u32> {
        self.agenda.due(now_ns)
    }

    fn touch(&mut self, index: u32) {
        if self.touched.last() != Some(&index) {
            self.touched.push(index);
        }
    }

    /// Derives the next look at the inputs with which something was done.
    fn plan(&mut self, now_ns: u64) {
        self.touched.sort_unstable();
        self.touched.dedup();
        for index in self.touched.drain(..) {
            let input = self.inputs.get_mut(&index).filter(|input| input.adrift.is_none());
            self.agenda.set(index, input.and_then(|input| input.playback.next_look(now_ns)));
        }
    }
}
