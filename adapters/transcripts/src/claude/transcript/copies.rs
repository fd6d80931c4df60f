//! Whose a line is: a fork's file begins with copies of its parent's lines, and prompts wait until the next line
//! shows whether they are copies too.

use std::sync::Arc;

use events::{Identity, NewEvent, SessionForked, Timestamp};
use tailer::decode::{Decoded, Record};

use super::{CLAUDE, HeldPrompt, TranscriptDecoder};
use crate::claude::record::ClaudeLine;

impl TranscriptDecoder {
    /// Whose line it is: the file's own session, or the one a fork copied it from.
    pub(super) fn owner(&mut self, line: &ClaudeLine<'_>, record: &Record<'_>, out: &mut Decoded) -> Arc<str> {
        let own = Arc::clone(&self.session);
        self.detect_resume(line, out);
        if self.carried.resumed {
            return self.foreign.clone().unwrap_or(own);
        }
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
            out.push(out.event(
                record,
                &self.session,
                identity,
                SessionForked { from: parent.to_owned(), ..SessionForked::default() },
            ));
        }
        if self.foreign.as_ref() != Some(first) {
            self.carried.copying = Some(first.to_string());
            self.foreign = Some(Arc::clone(first));
        }
    }

    /// Finds out whether this line shows that the prompts before it were copied from a session that this file resumes:
    /// they were written for that session, and the line for the file's.
    pub(super) fn detect_resume(&mut self, line: &ClaudeLine<'_>, out: &mut Decoded) {
        if line.first_session_id.is_none() && line.session_id.as_deref() == Some(&*self.session) {
            self.release_resumed(out);
        }
    }

    /// Puts out the held prompts if one was written for another session: each is of the one it was written for.
    pub(super) fn release_resumed(&mut self, out: &mut Decoded) {
        let is_decided = self.carried.own || self.carried.resumed || self.carried.branched || self.foreign.is_some();
        if is_decided || !self.held.iter().any(|held| held.written_for.is_some()) {
            return;
        }
        self.carried.resumed = true;
        for HeldPrompt { mut event, written_for } in std::mem::take(&mut self.held) {
            self.resume(written_for.as_ref(), event.created_at, &event, out);
            if let Some(session) = written_for {
                event.provider_session_id = session;
            }
            out.push(event);
        }
    }

    /// Whose a user's line of a file is that resumes a session: a prompt says whose it is and what follows it.
    pub(super) fn resumed(&mut self, line: &ClaudeLine<'_>, record: &Record<'_>, out: &mut Decoded) -> Arc<str> {
        let written_for = self.written_for(line);
        if written_for.is_some() || !line.is_result() && !line.is_interrupt() {
            let typed_at = line.timestamp.as_deref().and_then(Timestamp::parse);
            let told_by = out.event(record, &self.session, Identity::from_bits(0), SessionForked::default());
            self.resume(written_for.as_ref(), typed_at, &told_by, out);
        }
        self.foreign.clone().unwrap_or_else(|| Arc::clone(&self.session))
    }

    /// A prompt of the session `of`, typed at that time, begins; `None`: of the file's own.
    fn resume(&mut self, of: Option<&Arc<str>>, typed_at: Option<Timestamp>, told_by: &NewEvent, out: &mut Decoded) {
        if let Some(session) = of.filter(|of| self.foreign.as_ref() != Some(*of)) {
            out.push(NewEvent {
                provider_session_id: Arc::clone(&self.session),
                identity: Identity::of(CLAUDE, "forked", &[self.session.as_bytes(), session.as_bytes()]),
                created_at: None,
                text: None,
                payload: SessionForked { from: session.to_string(), ..SessionForked::default() }.into(),
                ..told_by.clone()
            });
        }
        self.foreign = of.map(Arc::clone);
        self.carried.copying = of.map(|session| session.to_string());
        self.carried.copied_at = typed_at;
    }

    /// The session a line was written for, when that is not the file's.
    pub(super) fn written_for(&self, line: &ClaudeLine<'_>) -> Option<Arc<str>> {
        line.session_id.as_deref().filter(|id| **id != *self.session).map(Arc::from)
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
        for HeldPrompt { mut event, .. } in self.held.drain(..) {
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
            && !self.carried.resumed
            && line.first_session_id.is_none()
            && (marked || !self.carried.branched)
    }
}
