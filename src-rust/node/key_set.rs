//! Sets of keys that a reader looks up in an object: one walk over its members finds all of them.

use super::keys::{Key, UNKNOWN};

/// The place of a key outside the set.
const NOWHERE: u8 = u8::MAX;

/// A set of at most 32 keys, each with its place.
#[derive(Clone, Debug)]
pub struct KeySet<const N: usize> {
    /// Places by [`Key::ordinal`], with an entry for unknown names.
    places: [u8; UNKNOWN as usize + 1],
}

impl<const N: usize> KeySet<N> {
    /// A set of these keys, with places in this order.
    #[must_use]
    pub const fn new(keys: [Key; N]) -> Self {
        assert!(N <= u32::BITS as usize);
        let mut places = [NOWHERE; UNKNOWN as usize + 1];
        let mut place = 0;
        while place < N {
            places[keys[place].ordinal()] = place as u8;
            place += 1;
        }
        KeySet { places }
    }

    /// The place of the key with this ordinal, if it is in the set; see `keys::ordinal_of`.
    #[inline]
    #[must_use]
    pub fn place_of(&self, ordinal: u8) -> Option<usize> {
        let place = usize::from(self.places[usize::from(ordinal)]);
        (place < N).then_some(place)
    }
}

/// The values found under a set of keys.
#[derive(Clone, Debug)]
pub struct Fields<T, const N: usize> {
    values: [Option<T>; N],
    /// A bit for each occupied place, the lowest for the first.
    places: u32,
}

impl<T, const N: usize> Fields<T, N> {
    /// No values.
    #[inline]
    #[must_use]
    pub fn nothing() -> Self {
        Fields { values: [const { None }; N], places: 0 }
    }

    /// Stores the value of the key at this place; of repeated keys the last is kept.
    #[inline]
    pub fn note(&mut self, place: usize, value: T) {
        if let Some(taken) = self.values.get_mut(place) {
            *taken = Some(value);
            self.places |= 1 << place;
        }
    }

    /// The value of a key of the set.
    #[inline(always)]
    #[must_use]
    pub fn under(&self, wanted: &KeySet<N>, key: Key) -> Option<&T> {
        self.values.get(wanted.place_of(key.ordinal() as u8)?)?.as_ref()
    }

    /// Whether all places from this one on are empty.
    #[inline]
    #[must_use]
    pub fn is_empty_from(&self, place: usize) -> bool {
        self.places >> place == 0
    }

    /// Whether all places before this one are empty.
    #[inline]
    #[must_use]
    pub fn is_empty_until(&self, place: usize) -> bool {
        self.places & ((1 << place) - 1) == 0
    }

    /// The same as [`Fields::is_empty_from`], ignoring one key.
    #[inline]
    #[must_use]
    pub fn is_empty_from_but_for(&self, place: usize, wanted: &KeySet<N>, key: Key) -> bool {
        let other = wanted.place_of(key.ordinal() as u8).map_or(0, |other| 1 << other);
        (self.places & !other) >> place == 0
    }

    /// Stores all values that `find` finds, converted by `make`.
    pub fn fill<R>(&mut self, make: impl Fn(R) -> T, find: impl FnOnce(&mut Fields<R, N>)) {
        let mut found = Fields::nothing();
        find(&mut found);
        *self = Fields { values: found.values.map(|value| value.map(&make)), places: found.places };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_own_place() {
        let wanted = KeySet::new([Key::ROLE, Key::ACTION, Key::VALUE]);
        for (ordinal, name) in (0..).zip(Key::ALL) {
            let place = ["role", "action", "value"].iter().position(|key| key == name);
            assert_eq!(wanted.place_of(ordinal), place, "{name}");
        }
        assert_eq!(wanted.place_of(UNKNOWN), None);
    }

    #[test]
    fn of_repeated_names_the_last_is_kept() {
        static WANTED: KeySet<2> = KeySet::new([Key::ROLE, Key::ACTION]);
        let of = |found: &Fields<u8, 2>, key| found.under(&WANTED, key).copied();
        let mut found = Fields::nothing();
        assert!((0..3).all(|place| found.is_empty_from(place)));
        found.note(1, 7);
        found.note(1, 8);
        found.note(2, 9);
        assert_eq!((of(&found, Key::ROLE), of(&found, Key::ACTION)), (None, Some(8)));
        assert_eq!([0, 1, 2].map(|place| found.is_empty_from(place)), [false, false, true]);
        let but_for = |key| [0, 1, 2].map(|place| found.is_empty_from_but_for(place, &WANTED, key));
        assert_eq!(but_for(Key::ACTION), [true, true, true]);
        assert_eq!(but_for(Key::ROLE), [false, false, true]);
        assert_eq!(but_for(Key::VALUE), [false, false, true]);
        found.note(0, 9);
        assert_eq!(of(&found, Key::VALUE), None);
        let mut others = Fields::nothing();
        others.fill(u16::from, |same| *same = found);
        assert_eq!([Key::ROLE, Key::ACTION].map(|key| others.under(&WANTED, key)), [Some(&9), Some(&8)]);
    }
}
