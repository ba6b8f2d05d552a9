//! An ordered map whose copies share what neither has changed.
//!
//! Every change of a group is made to a copy of it. With this map a copy costs nothing, and a
//! change of the copy as much as a leaf is long and as there are leaves.

use crate::protocol::wire::Str;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// Entries in order, in leaves in order. No leaf is empty.
#[derive(Clone)]
pub(super) struct Shared<V> {
    leaves: Arc<Vec<Leaf<V>>>,
    len: usize,
}

type Leaf<V> = Arc<Vec<(Str, V)>>;

/// The most entries of a leaf; one that gets longer becomes two. With 4,000 entries there are about
/// as many leaves as entries in one.
const LEAF: usize = 64;

impl<V> Default for Shared<V> {
    fn default() -> Self {
        Self { leaves: Arc::default(), len: 0 }
    }
}

impl<V> Shared<V> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn get(&self, key: &str) -> Option<&V> {
        let leaf = self.leaves.get(self.leaf_of(key)?)?;
        Some(&leaf[place_in(leaf, key).ok()?].1)
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Str, &V)> {
        self.leaves.iter().flat_map(|leaf| leaf.iter().map(|(key, value)| (key, value)))
    }

    pub(super) fn first_key(&self) -> Option<&Str> {
        self.iter().next().map(|(key, _)| key)
    }

    /// The leaf that has the key if any has.
    fn leaf_of(&self, key: &str) -> Option<usize> {
        self.leaves.partition_point(|leaf| &*leaf[0].0 <= key).checked_sub(1)
    }
}

impl<V: Clone> Shared<V> {
    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        let index = self.leaf_of(key)?;
        let place = place_in(&self.leaves[index], key).ok()?;
        let leaf = &mut Arc::make_mut(&mut self.leaves)[index];
        Some(&mut Arc::make_mut(leaf)[place].1)
    }

    pub(super) fn insert(&mut self, key: Str, value: V) {
        let leaves = Arc::make_mut(&mut self.leaves);
        // What is before all others goes into the first leaf.
        let index = leaves.partition_point(|leaf| leaf[0].0 <= key).saturating_sub(1);
        if leaves.is_empty() {
            leaves.push(Leaf::default());
        }
        let leaf = Arc::make_mut(&mut leaves[index]);
        match place_in(leaf, &key) {
            Ok(place) => leaf[place].1 = value,
            Err(place) => {
                leaf.insert(place, (key, value));
                self.len += 1;
            }
        }
        if leaf.len() > LEAF {
            let upper = leaf.split_off(LEAF / 2);
            leaves.insert(index + 1, Arc::new(upper));
        }
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<V> {
        let index = self.leaf_of(key)?;
        let place = place_in(&self.leaves[index], key).ok()?;
        let leaves = Arc::make_mut(&mut self.leaves);
        let leaf = Arc::make_mut(&mut leaves[index]);
        let (_, value) = leaf.remove(place);
        self.len -= 1;
        if leaves[index].is_empty() {
            leaves.remove(index);
        } else {
            join_short(leaves, index);
        }
        if let Some(before) = index.checked_sub(1) {
            join_short(leaves, before);
        }
        Some(value)
    }

    pub(super) fn for_each_mut(&mut self, mut change: impl FnMut(&mut V)) {
        for leaf in Arc::make_mut(&mut self.leaves) {
            Arc::make_mut(leaf).iter_mut().for_each(|(_, value)| change(value));
        }
    }
}

/// Makes a leaf and the next one into one if both are short, so that there are not many of them.
fn join_short<V: Clone>(leaves: &mut Vec<Leaf<V>>, index: usize) {
    let Some([leaf, next]) = leaves.get(index..index + 2) else { return };
    if leaf.len() + next.len() <= LEAF / 2 {
        let next = leaves.remove(index + 1);
        Arc::make_mut(&mut leaves[index]).extend_from_slice(&next);
    }
}

fn place_in<V>(leaf: &[(Str, V)], key: &str) -> Result<usize, usize> {
    leaf.binary_search_by(|(kept, _)| (**kept).cmp(key))
}

impl<V: PartialEq> PartialEq for Shared<V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<V: Debug> Debug for Shared<V> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};
    use std::collections::BTreeMap;

    fn key(number: u32) -> Str {
        format!("{number:04}").into()
    }

    fn check(map: &Shared<u32>, model: &BTreeMap<Str, u32>) {
        assert!(map.iter().eq(model.iter()));
        assert_eq!((map.len(), map.first_key()), (model.len(), model.keys().next()));
        assert!(map.leaves.iter().all(|leaf| (1..=LEAF).contains(&leaf.len())));
    }

    #[test]
    fn it_is_a_map_and_a_copy_does_not_change_with_it() {
        let mut rng = SmallRng::seed_from_u64(1);
        let (mut map, mut model) = (Shared::default(), BTreeMap::new());
        for keys in [1_000, 3_000, 10] {
            let (copy, model_then) = (map.clone(), model.clone());
            for value in 0..5_000 {
                let key = key(rng.random_range(0..keys));
                assert_eq!(map.get(&key), model.get(&key));
                match rng.random_range(0..3) {
                    0 => assert_eq!(map.remove(&key), model.remove(&key)),
                    1 => assert_eq!(map.get_mut(&key), model.get_mut(&key)),
                    _ => {
                        map.insert(key.clone(), value);
                        model.insert(key, value);
                    }
                }
            }
            check(&map, &model);
            check(&copy, &model_then);
        }
        map.for_each_mut(|value| *value += 1);
        model.values_mut().for_each(|value| *value += 1);
        check(&map, &model);
    }

    #[test]
    fn a_change_of_a_copy_copies_one_leaf() {
        let mut map = Shared::default();
        (0..1_000).for_each(|number| map.insert(key(number), number));
        let before = map.clone();
        map.insert(key(500), 0);
        let is_shared = |(one, other): (&Leaf<u32>, &Leaf<u32>)| Arc::ptr_eq(one, other);
        let shared = map.leaves.iter().zip(before.leaves.iter()).filter(|two| is_shared(*two));
        assert_eq!(shared.count(), map.leaves.len() - 1);
    }

    #[test]
    fn what_is_taken_out_leaves_no_many_short_leaves() {
        let mut map = Shared::default();
        (0..4_000).for_each(|number| map.insert(key(number), number));
        (0..4_000).filter(|number| number % 32 != 0).for_each(|number| {
            map.remove(&key(number));
        });
        assert_eq!(map.len(), 125);
        assert!(map.leaves.len() <= 125 / (LEAF / 4), "{}", map.leaves.len());
    }
}
