//! Whose a line is: a fork's file begins with copies of its parent's lines, and prompts wait until the next line
//! shows whether they are copies too.

use std::sync::Arc;

use events::{Identity, SessionForked};
use tailer::decode::{Decoded, Record};

use super::{CLAUDE, TranscriptDecoder};
use crate::claude::record::ClaudeLine;

impl TranscriptDecoder {
    /// Whose line it is: the file's own session, or the one a fork copied it from.
    pub(super) fn owner(&mut self, line: &ClaudeLine<'_>, record: &Record<'_>, out: &mut Decoded) -> Arc<str> {
        let own = Arc::clone(&self.session);
        if self.parent.is_some() || self.carried.own {
            return own;
        }
        let parent = line.copied_from();
        let is_own = line.first_session_id.as_deref() == Some(&*own) || self.carried.branched;
        if parent.is_none() && is_own {
            self.begin_own(out);
            return own;
        }
        let owner = match (line.first_session_id.as_deref(), parent) {
            (Some(first), _) => {
                let first: Arc<str> = Arc::from(first);
                self.copy(parent.unwrap_or(&first), &first, record, out);
                first
            }
            (None, Some(parent)) => self.copied(parent, record, out),
            (None, None) => self.foreign.clone().unwrap_or(own),
        };
        self.release(Some(&owner), out);
        owner
    }

    /// Notes a marked copy that does not say where it was first written; gives its neighbours'
    /// session.
    pub(super) fn copied(&mut self, parent: &str, record: &Record<'_>, out: &mut Decoded) -> Arc<str> {
        self.carried.branched = true;
        let owner = self.foreign.clone().unwrap_or_else(|| Arc::from(parent));
        self.copy(parent, &owner, record, out);
        owner
    }

    /// Notes that lines are copies: of `parent`'s, first written in `first`.
    fn copy(&mut self, parent: &str, first: &Arc<str>, record: &Record<'_>, out: &mut Decoded) {
        if self.foreign.is_none() {
            let identity = Identity::of(CLAUDE, "forked", &[self.session.as_bytes(), parent.as_bytes()]);
            out.push(out.event(record, &self.session, identity, SessionForked { from: parent.to_owned(), at: None }));
        }
        if self.foreign.as_ref() != Some(first) {
            self.carried.copying = Some(first.to_string());
            self.foreign = Some(Arc::clone(first));
        }
    }

    /// The copies, if there were any, are over.
    pub(super) fn begin_own(&mut self, out: &mut Decoded) {
        self.release_rest(out);
        self.foreign = None;
        self.carried.copying = None;
        self.carried.own = true;
    }

    /// Puts out held prompts that no line followed: a marked one is a copy, any other the first of
    /// the session's own.
    pub(super) fn release_rest(&mut self, out: &mut Decoded) {
        let copied = self.foreign.clone().filter(|_| self.carried.branched);
        self.release(copied.as_ref(), out);
    }

    /// Puts out the held prompts, in the session that turned out to be theirs.
    fn release(&mut self, session: Option<&Arc<str>>, out: &mut Decoded) {
        for mut event in self.held.drain(..) {
            if let Some(session) = session {
                event.provider_session_id = Arc::clone(session);
            }
            out.push(event);
        }
    }

    /// Whether a prompt must wait for the next line to know whose it is.
    pub(super) fn undecided(&self, line: &ClaudeLine<'_>) -> bool {
        let marked = line.forked_from.is_some();
        self.parent.is_none()
            && !self.carried.own
            && line.first_session_id.is_none()
            && (marked || !self.carried.branched)
    }
}
