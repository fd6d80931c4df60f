//! The handoff note, as printed by `capture handoff`, for clients that only receive the response.

use agents::directory::resume_line;
use export::report::{Handoff, Markup, ReportFormat};
use home::paths;
use live_view::HandoffParts;

/// The note in Markdown, without secrets and with times in UTC.
pub(crate) fn note(parts: HandoffParts) -> String {
    let HandoffParts { session, turns, work, findings } = parts;
    let transcripts = session.transcripts.iter().map(|transcript| transcript.path.as_str());
    let resume = session.provider_session_id.as_deref();
    let resume = resume.and_then(|id| resume_line(session.provider, id, transcripts));
    let note = Handoff { resume, ..Handoff::new(session, turns, work, findings) };
    let home = paths::home().ok();
    let path = |path: &str| match home.as_deref().and_then(|home| path.strip_prefix(home.to_str()?)) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        Some(_) | None => path.to_owned(),
    };
    let format = ReportFormat { markup: Markup::Markdown, path: &path, time: &|at| at.to_string() };
    redact::text(&note.text(format)).into_owned()
}
