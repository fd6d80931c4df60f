//! The description of a sub-agent: `subagents/agent-<id>.meta.json`, written next to its transcript (2.1.328).

use std::sync::Arc;

use events::{Annotation, Identity, Provider, SessionStarted, StartKind, Topic};
use serde::Deserialize;

use agents::borrowed::Text;
use tailer::decode::{Decoded, Decoder, Malformed, Record};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    #[serde(borrow)]
    agent_type: Option<Text<'a>>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
}

/// Decodes one metadata file.
pub struct MetaDecoder {
    session: Arc<str>,
    parent: Option<Arc<str>>,
}

impl MetaDecoder {
    /// A decoder for the file at `path`.
    #[must_use]
    pub fn new(path: &str) -> Self {
        let stem = path.rsplit('/').next().unwrap_or_default().trim_end_matches(".meta.json");
        Self { session: Arc::from(stem.trim_start_matches("agent-")), parent: super::parent_of(path).map(Arc::from) }
    }
}

impl Decoder for MetaDecoder {
    fn record(&mut self, record: Record<'_>, out: &mut Decoded) -> Result<(), Malformed> {
        let meta: Meta<'_> = serde_json::from_slice(record.bytes)?;
        let started = SessionStarted {
            how: StartKind::Subagent,
            parent_provider_session_id: self.parent.as_deref().map(str::to_owned),
            agent_type: meta.agent_type.map(Text::into_string),
            model: meta.model.map(Text::into_string),
            ..SessionStarted::default()
        };
        let identity = Identity::of(Provider::Claude, "meta", &[self.session.as_bytes()]);
        out.push(out.event(&record, &self.session, identity, started));
        if let Some(description) = meta.description {
            let identity =
                Identity::of(Provider::Claude, "meta-title", &[self.session.as_bytes(), description.as_bytes()]);
            let title = Annotation { topic: Topic::Title, value: description.into_string() };
            out.push(out.event(&record, &self.session, identity, title));
        }
        Ok(())
    }

    fn session(&self) -> Option<&Arc<str>> {
        Some(&self.session)
    }
}
