//! Reads a dialog off a frame: what it asks, about what, and the answers it offers.

use events::{Choice, Dialog};

use super::{
    form::{DialogRule, Pattern},
    rules::group,
    view::View,
};

/// The longest question or subject, in characters.
const MAX_TEXT: usize = 2000;
/// The most options that are read.
const MAX_OPTIONS: usize = 32;

/// A dialog, and the keys that answer it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Reading {
    pub(crate) dialog: Dialog,
    /// For each option the keys that give it at once.
    pub(crate) keys: Vec<Vec<String>>,
}

impl Reading {
    /// Whether this is the same dialog as the other, perhaps with the cursor elsewhere.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let (a, b) = (&self.dialog, &other.dialog);
        a.about == b.about
            && a.question == b.question
            && a.subject == b.subject
            && a.options.iter().map(|o| &o.label).eq(b.options.iter().map(|o| &o.label))
    }
}

/// Reads the dialog of a rule that matched.
pub(crate) fn read(rule: &DialogRule, view: &View<'_>) -> Reading {
    let first = |patterns: &[Pattern]| {
        patterns.iter().find_map(|p| {
            let text = tidy(group(&p.regex, view.region(&p.place.name)?)?);
            (!text.is_empty()).then_some(text)
        })
    };
    let mut reading = Reading {
        dialog: Dialog {
            about: rule.about,
            question: first(&rule.question),
            subject: first(&rule.subject),
            options: Vec::new(),
        },
        keys: Vec::new(),
    };
    let Some(options) = &rule.options else { return reading };
    let Some(text) = view.region(&options.place.name) else { return reading };
    let Some(regex) = options.regex.regex() else { return reading };
    for found in regex.captures_iter(text).take(MAX_OPTIONS) {
        let of = |name| found.name(name).map(|m| m.as_str().trim()).filter(|t| !t.is_empty());
        let Some(label) = of("label") else { continue };
        // A list above the dialog, in a plan say, looks the same; the options begin with the last 1.
        if of("digit") == Some("1") {
            reading.dialog.options.clear();
            reading.keys.clear();
        }
        let digit = of("digit").filter(|_| rule.digits_answer);
        let keys: Vec<String> = [of("key"), digit].into_iter().flatten().map(str::to_owned).collect();
        let selected = of("cursor").is_some();
        reading.dialog.options.push(Choice { label: tidy(label), key: keys.first().cloned(), selected });
        reading.keys.push(keys);
    }
    reading
}

/// The text of a box: without its frame, each line without the blanks around it.
fn tidy(text: &str) -> String {
    let frame = |c: char| c.is_whitespace() || matches!(c, '\u{2500}'..='\u{257f}');
    let lines = text.split('\n').map(|line| line.trim_matches(frame)).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n").chars().take(MAX_TEXT).collect()
}
