//! The fields of the index.

use std::{iter, slice, sync::Arc};

use api::search::TextKind;
use events::{Event, Payload};
use tantivy::schema::{
    Document, FAST, Field, INDEXED, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions, Value,
    document::{ReferenceValue, ReferenceValueLeaf},
};

use crate::{
    document::{CalledTool, Searchable, SessionContext},
    in_flight::Permit,
    tokens,
};

/// The version of the index content. An index of another version is rebuilt.
pub(crate) const VERSION: u32 = 3;

/// Names of the columns.
pub(crate) const POSITION: &str = "position";
pub(crate) const TIME: &str = "time";
pub(crate) const PART: &str = "part";
pub(crate) const TURN: &str = "turn";

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
    /// The directory a session worked in, and its ancestors.
    pub(crate) below: Field,
    pub(crate) file: Field,
    pub(crate) time: Field,
    pub(crate) position: Field,
    /// The kind of the text as a number: together with the position it identifies the text.
    pub(crate) part: Field,
    /// The number of the turn, if the text belongs to one.
    pub(crate) turn: Field,
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
            turn: schema.add_u64_field(TURN, FAST),
            schema: schema.build(),
        }
    }

    /// The document for a searchable text.
    pub(crate) fn document(
        &self,
        event: &Event,
        searchable: Searchable,
        context: &SessionContext,
        tool: Option<&CalledTool>,
        permit: Permit,
    ) -> IndexedText {
        let known = |text: &'static str| FieldValue::Known(text);
        let shared = |text: &Arc<str>| FieldValue::Shared(Arc::clone(text));
        let [id, agents_id] = &context.ids;
        let mut values = Vec::with_capacity(24);
        values.extend([
            (self.text, FieldValue::Text(searchable.text)),
            (self.session, shared(id)),
            (self.session, shared(agents_id)),
            (self.agent, known(event.provider.as_str())),
            (self.kind, known(searchable.kind.as_str())),
        ]);
        if let Some(tool) = tool {
            values.push((self.tool, shared(&tool.name)));
            values.extend(tool.kind.map(|kind| (self.tool, known(kind.as_str()))));
            values.extend(tool.files.iter().map(|file| (self.file, shared(file))));
        }
        values.extend(outcome_of(&event.payload).map(|outcome| (self.outcome, known(outcome))));
        values.extend(context.model.as_ref().map(|model| (self.model, shared(model))));
        values.extend(context.project.as_ref().map(|project| (self.project, shared(project))));
        if let Some(cwd) = &context.cwd {
            values.push((self.cwd, shared(&cwd.path)));
            values.extend(cwd.ancestors.iter().map(|directory| (self.below, shared(directory))));
        }
        values.extend([
            (self.time, FieldValue::Time(event.created_at.as_millisecond())),
            (self.position, FieldValue::Number(event.position)),
            (self.part, FieldValue::Number(searchable.kind.code())),
        ]);
        values.extend(context.turn_of(event).map(|turn| (self.turn, FieldValue::Number(turn.into()))));
        IndexedText { values, _permit: permit }
    }
}

/// The outcome an event reports.
fn outcome_of(payload: &Payload) -> Option<&'static str> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else has an outcome")]
    match payload {
        Payload::ToolResult(result) => Some(result.outcome.as_str()),
        Payload::Error(_) => Some(TextKind::Error.as_str()),
        _ => None,
    }
}

/// A document on its way into the index; its size is counted while it is in memory.
pub(crate) struct IndexedText {
    values: Vec<(Field, FieldValue)>,
    _permit: Permit,
}

/// The value of a document's field.
#[derive(Debug)]
pub(crate) enum FieldValue {
    Text(String),
    /// A text shared by many documents.
    Shared(Arc<str>),
    Known(&'static str),
    Number(u64),
    /// Milliseconds.
    Time(i64),
}

impl<'a> Value<'a> for &'a FieldValue {
    type ArrayIter = iter::Empty<Self>;
    type ObjectIter = iter::Empty<(&'a str, Self)>;

    fn as_value(&self) -> ReferenceValue<'a, Self> {
        ReferenceValue::Leaf(match self {
            FieldValue::Text(text) => ReferenceValueLeaf::Str(text),
            FieldValue::Shared(text) => ReferenceValueLeaf::Str(text),
            FieldValue::Known(text) => ReferenceValueLeaf::Str(text),
            FieldValue::Number(number) => ReferenceValueLeaf::U64(*number),
            FieldValue::Time(ms) => ReferenceValueLeaf::I64(*ms),
        })
    }
}

/// The fields of a document and their values.
pub(crate) type FieldValues<'a> =
    iter::Map<slice::Iter<'a, (Field, FieldValue)>, fn(&(Field, FieldValue)) -> (Field, &FieldValue)>;

impl Document for IndexedText {
    type Value<'a> = &'a FieldValue;
    type FieldsValuesIter<'a> = FieldValues<'a>;

    fn iter_fields_and_values(&self) -> FieldValues<'_> {
        self.values.iter().map(|(field, value)| (*field, value))
    }
}
