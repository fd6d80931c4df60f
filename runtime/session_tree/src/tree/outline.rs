//! The whole tree as pi shows it: `getTree` of pi 0.87.1.
//!
//! An entry whose parent is missing is a root, and so is one that is its own parent. A cycle has no root and is not
//! shown. Children are sorted by timestamp; an invalid timestamp compares equal to any other, so the result depends on
//! the algorithm, and the one here sorts like V8.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
};

use crate::{
    entry::{Entry, EntryKey},
    tree::entries::{EntryLabel, Tree},
};

/// The tree, flattened.
#[derive(Debug, Clone)]
pub struct Outline<'a> {
    /// The roots in the order of the file.
    pub roots: Vec<&'a Entry>,
    /// The roots and all entries below them, each before its children.
    pub nodes: Vec<Node<'a>>,
}

/// An entry and its position.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Its parent; `None` for a root.
    pub parent: Option<&'a Entry>,
    /// The number of its ancestors.
    pub depth: usize,
    /// Its children.
    pub children: Vec<&'a Entry>,
    /// The label on it.
    pub label: Option<&'a EntryLabel>,
    /// Whether it already occurs above with its children: a duplicate line.
    pub is_repeated: bool,
}

pub(super) fn outline(tree: &Tree) -> Outline<'_> {
    let mut roots: Vec<usize> = Vec::new();
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    for entry in tree.entries() {
        let Some(node) = index_of(tree, entry.key()) else { continue };
        match index_of(tree, entry.parent()) {
            Some(parent)
                if entry.parent().finds() && entry.parent() != &EntryKey::Null && entry.parent() != entry.key() =>
            {
                children.entry(parent).or_default().push(node);
            }
            Some(_) | None => roots.push(node),
        }
    }
    for below in children.values_mut() {
        sort_by_time(below, |index| tree.entries[index].at_ms());
    }
    let nodes = flatten(tree, &roots, &children);
    Outline { roots: roots.into_iter().map(|index| &tree.entries[index]).collect(), nodes }
}

fn index_of(tree: &Tree, key: &EntryKey) -> Option<usize> {
    tree.by_id.get(key).copied()
}

fn flatten<'a>(tree: &'a Tree, roots: &[usize], children: &HashMap<usize, Vec<usize>>) -> Vec<Node<'a>> {
    let (mut nodes, mut seen) = (Vec::new(), HashSet::new());
    let mut open: Vec<(usize, Option<usize>, usize)> = roots.iter().rev().map(|root| (*root, None, 0)).collect();
    while let Some((index, parent, depth)) = open.pop() {
        let is_repeated = !seen.insert(index);
        let below: &[usize] = children.get(&index).filter(|_| !is_repeated).map_or(&[], Vec::as_slice);
        let entry = &tree.entries[index];
        nodes.push(Node {
            entry,
            parent: parent.map(|parent| &tree.entries[parent]),
            depth,
            children: below.iter().map(|child| &tree.entries[*child]).collect(),
            label: tree.mark(entry.key()),
            is_repeated,
        });
        open.extend(below.iter().rev().map(|child| (*child, Some(index), depth + 1)));
    }
    nodes
}

/// Sorts by time; an invalid time compares equal to all.
fn sort_by_time(items: &mut [usize], at: impl Fn(usize) -> Option<i64>) {
    if items.iter().all(|item| at(*item).is_some()) {
        items.sort_by_key(|item| at(*item));
        return;
    }
    // This is not a total order, and no sort of the standard library accepts it. V8 finds the initial run and inserts
    // the others by binary search.
    let compare = |a: usize, b: usize| at(a).zip(at(b)).map_or(Ordering::Equal, |(a, b)| a.cmp(&b));
    let falls = |i: usize, items: &[usize]| compare(items[i], items[i - 1]) == Ordering::Less;
    let mut run = 1;
    if items.len() > 1 {
        let down = falls(1, items);
        run = 2;
        while run < items.len() && falls(run, items) == down {
            run += 1;
        }
        if down {
            items[..run].reverse();
        }
    }
    for start in run..items.len() {
        let pivot = items[start];
        let (mut left, mut right) = (0, start);
        while left < right {
            let middle = left + (right - left) / 2;
            if compare(pivot, items[middle]) == Ordering::Less {
                right = middle;
            } else {
                left = middle + 1;
            }
        }
        items[left..=start].rotate_right(1);
    }
}

impl Tree {
    /// All entries as pi shows them: the roots and the entries below them.
    #[must_use]
    pub fn outline(&self) -> Outline<'_> {
        outline(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(times: &[Option<i64>], expected: &[usize]) {
        let mut items: Vec<usize> = (0..times.len()).collect();
        sort_by_time(&mut items, |i| times[i]);
        assert_eq!(items, expected);
    }

    /// The results of node 20 for `[…].sort((a, b) => a - b)`.
    #[test]
    fn entries_with_invalid_timestamps_are_sorted_as_in_v8() {
        check(&[Some(3), Some(1), Some(2)], &[1, 2, 0]);
        check(&[Some(3), None, Some(1)], &[0, 1, 2]);
        check(&[Some(3), Some(1), None, Some(2)], &[1, 3, 0, 2]);
        check(&[None, Some(2), Some(1)], &[0, 2, 1]);
        check(&[], &[]);
        check(&[None], &[0]);
    }
}
