//! Full-text search.

use api::{
    routes::SearchTexts,
    search::{SearchQuery, SearchSort, TextKind},
};
use events::{Provider, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ToolError,
    sessions::{find, limited},
};
use crate::{
    link::Link,
    text::{NOTE, line, maybe_line},
};

/// Default and maximum number of hits in an answer.
const HITS: (usize, usize) = (10, 50);
/// Maximum length of a snippet, characters.
const SNIPPET: usize = 500;
/// Maximum length of a title, characters.
const TITLE: usize = 240;

/// What to search for. At least `query` or one filter is required.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SearchArguments {
    /// Words, `"phrases"`, `field:value`, `prefix*`, `fuzzy~1`, `AND`, `OR`, `NOT`, `-word` and parentheses.
    query: Option<String>,
    /// Only texts of this session. Any of its ids is accepted.
    session: Option<String>,
    /// Only texts of these agents.
    agent: Vec<Provider>,
    /// Only texts of these kinds.
    kind: Vec<TextKind>,
    /// Only calls and outputs of this tool, by its name or kind.
    tool: Option<String>,
    /// Only sessions that began in a directory with this name.
    project: Option<String>,
    /// Only texts of sessions that were working in this directory or below it; an absolute path.
    cwd: Option<String>,
    /// Only texts from this time on.
    since: Option<Timestamp>,
    /// Only texts before this time.
    until: Option<Timestamp>,
    /// The order (default `relevance`).
    sort: Option<SearchSort>,
    /// Hits in the answer (default 10, at most 50).
    limit: Option<usize>,
    /// The `next_cursor` of the previous answer.
    cursor: Option<String>,
}

/// Hits.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SearchAnswer {
    /// How to read the texts of this answer.
    note: &'static str,
    /// The texts that match.
    hits: Vec<Hit>,
    /// Number of texts that match.
    matches: u64,
    /// Whether more texts than that may match, because counting stopped early.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    at_least: bool,
    /// Whether everything recorded so far is searchable; false while the index is being built.
    complete: bool,
    /// Continues the list; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A text that matches.
#[derive(Debug, Serialize, JsonSchema)]
struct Hit {
    /// The session.
    session: SessionId,
    /// What the session is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The agent.
    agent: Provider,
    /// What the text is.
    kind: TextKind,
    /// When it was written.
    at: Timestamp,
    /// The sequence of its event. To start reading there, pass one less than it as `after` to `read_conversation`.
    sequence: u64,
    /// The number of its turn within the session, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u32>,
    /// The part of the text that matches; `…` marks omissions.
    snippet: String,
}

pub(super) fn search(link: &Link, arguments: &SearchArguments) -> Result<SearchAnswer, ToolError> {
    let session = match &arguments.session {
        Some(given) => Some(find(link, given)?.id.to_string()),
        None => None,
    };
    let query = SearchQuery {
        q: arguments.query.clone(),
        session,
        agent: arguments.agent.clone().into(),
        kind: arguments.kind.clone().into(),
        tool: arguments.tool.clone(),
        project: arguments.project.clone(),
        cwd: arguments.cwd.clone(),
        since: arguments.since,
        until: arguments.until,
        sort: arguments.sort,
        cursor: arguments.cursor.clone(),
        limit: Some(limited(arguments.limit, HITS)),
    };
    let page = link.read(|client| client.get::<SearchTexts>("", &query))?;
    let hits = page.hits.iter().map(|hit| Hit {
        session: hit.session_id,
        title: maybe_line(hit.title.as_deref(), TITLE),
        agent: hit.agent,
        kind: hit.kind,
        at: hit.at,
        sequence: hit.sequence,
        turn: hit.turn,
        snippet: line(&hit.snippet.text, SNIPPET),
    });
    Ok(SearchAnswer {
        note: NOTE,
        hits: hits.collect(),
        matches: page.matches,
        at_least: page.at_least,
        complete: page.indexed >= page.total,
        next_cursor: page.next_cursor,
    })
}
