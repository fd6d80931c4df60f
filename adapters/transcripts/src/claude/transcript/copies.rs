//! Determines the session of a line: a fork's file begins with copies of its parent's lines, and prompts are held until
//! the next line shows whether they are copies too.

use std::sync::Arc;

use events::{Identity, NewEvent, SessionForked, Timestamp};
use tailer::decode::{Decoded, Record};

use super::{CLAUDE, HeldPrompt, TranscriptDecoder};
use crate::claude::record::ClaudeLine;

impl TranscriptDecoder {
    /// The session of a line: the file's own, or the one a fork copied the line from.
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

    /// Records a marked copy that does not name the session it was first written in; returns the session of its
    /// neighbours.
    pub(super) fn copied(&mut self, parent: &str, record: &Record<'_>, out: &mut Decoded) -> Arc<str> {
        self.carried.branched = true;
        let owner = self.foreign.clone().unwrap_or_else(|| Arc::from(parent));
        self.copy(parent, &owner, record, out);
        owner
    }

    /// Records that the lines are copies from `parent`, first written in `first`.
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

    /// Detects whether this line shows that the prompts before it were copied from a session that this file resumes:
    /// the prompts name that session, and the line names the file's.
    pub(super) fn detect_resume(&mut self, line: &ClaudeLine<'_>, out: &mut Decoded) {
        if line.first_session_id.is_none() && line.session_id.as_deref() == Some(&*self.session) {
            self.release_resumed(out);
        }
    }

    /// If a held prompt was written for another session, emits all of them, each in the session it was written for.
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

    /// The session of a user line in a file that resumes a session: a prompt determines its own session and that of the
    /// lines after it.
    pub(super) fn resumed(&mut self, line: &ClaudeLine<'_>, record: &Record<'_>, out: &mut Decoded) -> Arc<str> {
        let written_for = self.written_for(line);
        if written_for.is_some() || !line.is_result() && !line.is_interrupt() {
            let typed_at = line.timestamp.as_deref().and_then(Timestamp::parse);
            let told_by = out.event(record, &self.session, Identity::from_bits(0), SessionForked::default());
            self.resume(written_for.as_ref(), typed_at, &told_by, out);
        }
        self.foreign.clone().unwrap_or_else(|| Arc::clone(&self.session))
    }

    /// Starts the lines of a prompt of session `of`, typed at `typed_at`; `None` for the file's own session.
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

    /// The session a line was written for, if that is not the file's session.
    pub(super) fn written_for(&self, line: &ClaudeLine<'_>) -> Option<Arc<str>> {
        line.session_id.as_deref().filter(|id| **id != *self.session).map(Arc::from)
    }

    /// Ends the copies, if there were any.
    pub(super) fn begin_own(&mut self, out: &mut Decoded) {
        self.release_rest(out);
        self.foreign = None;
        self.carried.copying = None;
        self.carried.own = true;
    }

    /// Emits held prompts that no line followed: marked ones are copies, others are the session's first own lines.
    pub(super) fn release_rest(&mut self, out: &mut Decoded) {
        let copied = self.foreign.clone().filter(|_| self.carried.branched);
        self.release(copied.as_ref(), out);
    }

    /// Emits the held prompts in the session that was determined.
    fn release(&mut self, session: Option<&Arc<str>>, out: &mut Decoded) {
        for HeldPrompt { mut event, .. } in self.held.drain(..) {
            if let Some(session) = session {
                event.provider_session_id = Arc::clone(session);
            }
            out.push(event);
        }
    }

    /// Whether the session of a prompt can only be determined from the next line.
    pub(super) fn undecided(&self, line: &ClaudeLine<'_>) -> bool {
        let marked = line.forked_from.is_some();
        self.parent.is_none()
            && !self.carried.own
            && !self.carried.resumed
            && line.first_session_id.is_none()
            && (marked || !self.carried.branched)
    }
}
