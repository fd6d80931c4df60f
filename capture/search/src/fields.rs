//! The fields of the index.

use api::search::TextKind;
use events::{Event, Payload};
use tantivy::{
    TantivyDocument,
    schema::{
        Document, FAST, Field, INDEXED, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
    },
};

use crate::{
    document::{CalledTool, Searchable, SessionContext, ancestors, project_of},
    in_flight::Permit,
    tokens,
};

/// The version of what the index holds. One of another version is built again.
pub(crate) const VERSION: u32 = 1;

/// Names of the columns.
pub(crate) const POSITION: &str = "position";
pub(crate) const TIME: &str = "time";
pub(crate) const PART: &str = "part";

/// The fields.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    pub(crate) schema: Schema,
    pub(crate) text: Field,
    pub(crate) session: Field,
    pub(crate) agent: Field,
    pub(crate) kind: Field,
    pub(crate) tool: Field,
    pub(crate) outcome: Field,
    pub(crate) model: Field,
    pub(crate) project: Field,
    pub(crate) cwd: Field,
    /// The directory a session worked in, and those above it.
    pub(crate) below: Field,
    pub(crate) file: Field,
    pub(crate) time: Field,
    pub(crate) position: Field,
    /// The kind of the text as a number: with the position it leads to the text.
    pub(crate) part: Field,
}

impl Fields {
    pub(crate) fn new() -> Self {
        let mut schema = Schema::builder();
        let indexing =
            |tokenizer: &str, option| TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(option);
        let text = indexing(tokens::NAME, IndexRecordOption::WithFreqsAndPositions);
        let words = indexing(tokens::NAME, IndexRecordOption::WithFreqsAndPositions).set_fieldnorms(false);
        let exact = indexing("raw", IndexRecordOption::Basic).set_fieldnorms(false);
        let text = TextOptions::default().set_indexing_options(text);
        let words = TextOptions::default().set_indexing_options(words);
        let exact = TextOptions::default().set_indexing_options(exact);
        let indexed = NumericOptions::default() | FAST | INDEXED;
        Self {
            text: schema.add_text_field("text", text),
            session: schema.add_text_field("session", exact.clone()),
            agent: schema.add_text_field("agent", exact.clone()),
            kind: schema.add_text_field("kind", exact.clone()),
            tool: schema.add_text_field("tool", words.clone()),
            outcome: schema.add_text_field("outcome", exact.clone()),
            model: schema.add_text_field("model", words.clone()),
            project: schema.add_text_field("project", words.clone()),
            cwd: schema.add_text_field("cwd", words.clone()),
            below: schema.add_text_field("below", exact),
            file: schema.add_text_field("file", words),
            time: schema.add_i64_field(TIME, FAST),
            position: schema.add_u64_field(POSITION, indexed),
            part: schema.add_u64_field(PART, FAST),
            schema: schema.build(),
        }
    }

    /// The document of a searchable text.
    pub(crate) fn document(
        &self,
        event: &Event,
        searchable: &Searchable,
        context: &SessionContext,
        tool: Option<&CalledTool>,
    ) -> TantivyDocument {
        let mut document = TantivyDocument::with_capacity(searchable.text.len() + 512);
        document.add_text(self.text, &searchable.text);
        document.add_text(self.session, event.session_id.to_string().to_lowercase());
        document.add_text(self.session, event.provider_session_id.to_lowercase());
        document.add_text(self.agent, event.provider.as_str());
        document.add_text(self.kind, searchable.kind.as_str());
        if let Some(tool) = tool {
            document.add_text(self.tool, &tool.name);
            document.add_text(self.tool, tool.kind.as_str());
            if let Some(file) = &tool.file {
                document.add_text(self.file, file);
            }
        }
        if let Some(outcome) = outcome_of(&event.payload) {
            document.add_text(self.outcome, outcome);
        }
        if let Some(model) = &context.model {
            document.add_text(self.model, model);
        }
        if let Some(began_in) = &context.began_in {
            document.add_text(self.project, project_of(began_in));
        }
        if let Some(cwd) = &context.cwd {
            document.add_text(self.cwd, cwd);
            for directory in ancestors(cwd) {
                document.add_text(self.below, directory);
            }
        }
        document.add_i64(self.time, event.created_at.as_millisecond());
        document.add_u64(self.position, event.position);
        document.add_u64(self.part, searchable.kind.code());
        document
    }
}

/// How what an event reports ended.
fn outcome_of(payload: &Payload) -> Option<&'static str> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else has an outcome")]
    match payload {
        Payload::ToolResult(result) => Some(result.outcome.as_str()),
        Payload::Error(_) => Some(TextKind::Error.as_str()),
        _ => None,
    }
}

/// A document on its way into the index, counted as long as it is in memory.
pub(crate) struct CountedDocument {
    pub(crate) document: TantivyDocument,
    pub(crate) _permit: Permit,
}

impl Document for CountedDocument {
    type Value<'a> = <TantivyDocument as Document>::Value<'a>;
    type FieldsValuesIter<'a> = <TantivyDocument as Document>::FieldsValuesIter<'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        self.document.iter_fields_and_values()
    }
}
