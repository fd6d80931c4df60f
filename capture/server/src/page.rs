//! Pages of lists: their length, and the cursor of the next page.

use std::{fmt, str::FromStr};

use api::list::Limit;
use events::Timestamp;
use store::Entity;

use crate::error::ApiError;

/// Number of items on a page if the client gives no limit.
const DEFAULT_LIMIT: usize = 100;

/// The number of items on a page.
pub(crate) fn limit(given: Option<Limit>) -> usize {
    given.map_or(DEFAULT_LIMIT, |limit| limit.get())
}

/// Cuts a list that has one item more than the page if there are more, and returns the cursor of the next page.
pub(crate) fn cut<T, Id: fmt::Display>(
    items: &mut Vec<T>,
    limit: usize,
    cursor: impl Fn(&T) -> Cursor<Id>,
) -> Option<String> {
    let more = items.len() > limit;
    items.truncate(limit);
    items.last().filter(|_| more).map(|last| cursor(last).to_string())
}

/// A position in a list sorted by a time and by ids. The time is when an item began, or a session's last event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor<Id> {
    pub(crate) at: Timestamp,
    pub(crate) id: Id,
}

impl<Id: Clone> Cursor<Id> {
    pub(crate) fn of<T: Entity<Id = Id>>(item: &T) -> Self {
        Self { at: item.began_at(), id: item.id().clone() }
    }
}

impl<Id: FromStr> Cursor<Id> {
    pub(crate) fn read(text: Option<&str>) -> Result<Option<Self>, ApiError> {
        let parse = |text: &str| {
            let (at, id) = text.split_once('.')?;
            Some(Self { at: Timestamp::from_millisecond(at.parse().ok()?), id: id.parse().ok()? })
        };
        let wrong = || ApiError::parameter("cursor", "expected a `next_cursor` of this list");
        text.map(|text| parse(text).ok_or_else(wrong)).transpose()
    }
}

impl<Id: fmt::Display> fmt::Display for Cursor<Id> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at.as_millisecond(), self.id)
    }
}

impl<Id> From<Cursor<Id>> for (Timestamp, Id) {
    fn from(cursor: Cursor<Id>) -> Self {
        (cursor.at, cursor.id)
    }
}
