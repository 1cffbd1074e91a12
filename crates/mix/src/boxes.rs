//! What a device's thread has a changing number of.

/// Boxes in the order in which they came, up to a number that is fixed when it is created. Nothing
/// is allocated or dropped when one comes or goes, and what there is not costs no time.
#[derive(Debug)]
pub(crate) struct Boxes<T> {
    all: Vec<Box<T>>,
    most: usize,
}

impl<T> Boxes<T> {
    /// Returns room for `most` of them. Not for a device's thread.
    pub(crate) fn new(most: usize) -> Self {
        Self { all: Vec::with_capacity(most), most }
    }

    /// Adds one after all others. Thread: cycle.
    ///
    /// # Errors
    /// Returns it if there is no room.
    pub(crate) fn add(&mut self, one: Box<T>) -> Result<(), Box<T>> {
        if self.all.len() >= self.most {
            return Err(one);
        }
        self.all.push(one);
        Ok(())
    }

    /// Takes out the first that is one of `which`; the others keep their order. Thread: cycle.
    pub(crate) fn take(&mut self, which: impl FnMut(&T) -> bool) -> Option<Box<T>> {
        let place = self.iter().position(which)?;
        Some(self.all.remove(place))
    }

    /// Returns all, in their order. Thread: cycle.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(Box::as_ref)
    }

    /// Returns all, in their order. Thread: cycle.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.iter_mut().map(Box::as_mut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_keeps_its_order_and_what_has_no_room_comes_back() {
        let mut boxes = Boxes::new(3);
        let added = [1, 2, 3, 4].map(|number| boxes.add(Box::new(number)));
        assert_eq!(added, [Ok(()), Ok(()), Ok(()), Err(Box::new(4))]);
        assert_eq!(boxes.take(|number| *number > 1), Some(Box::new(2)));
        assert_eq!((boxes.take(|number| *number > 3), boxes.add(Box::new(5))), (None, Ok(())));
        boxes.iter_mut().for_each(|number| *number *= 10);
        assert_eq!(boxes.iter().copied().collect::<Vec<_>>(), [10, 30, 50]);
    }
}
