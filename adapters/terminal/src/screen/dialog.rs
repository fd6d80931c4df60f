//! Parses a dialog on the screen: its question, its subject, the answers it offers, and the mark that distinguishes it
//! from every other dialog.

use std::borrow::Cow;

use events::{Choice, ChoiceAnswer, Dialog};
use regex::Regex;

use super::{
    form::{DialogRule, Pattern, ScreenRule},
    rules::group,
    view::View,
};

/// Maximum length of a question or subject, in characters.
const MAX_TEXT: usize = 2000;
/// Maximum number of options that are read.
const MAX_OPTIONS: usize = 32;
/// Maximum number of lines of one option.
const MAX_LINES: usize = 6;
/// Length of a mark, in hexadecimal digits of a hash.
const MARK: usize = 24;

/// A dialog, and the keys that answer it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DialogReading {
    pub(crate) dialog: Dialog,
    /// For each option, the keys that choose it immediately.
    pub(crate) keys: Vec<Vec<String>>,
    /// For each option, the digit in front of it.
    pub(crate) digits: Vec<Option<usize>>,
    /// Every word of the dialog, without the cursor; `None` if the rule does not define where it begins and ends.
    pub(crate) whole: Option<String>,
    /// Number of dialogs that disappeared before this one.
    pub(crate) appearance: u64,
}

impl DialogReading {
    /// Whether this is the same dialog as the other, perhaps with the cursor elsewhere.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let (a, b) = (&self.dialog, &other.dialog);
        a.about == b.about
            && a.question == b.question
            && a.subject == b.subject
            && a.options.iter().map(|o| &o.label).eq(b.options.iter().map(|o| &o.label))
            && self.whole == other.whole
            && (self.whole.is_none() || self.appearance == other.appearance)
    }
}

/// Reads the dialog of a rule that matched.
pub(crate) fn read(rule: &ScreenRule, form: &DialogRule, view: &View<'_>, appearance: u64) -> DialogReading {
    let first = |patterns: &[Pattern]| {
        patterns.iter().find_map(|p| {
            let text = tidy(group(&p.regex, view.region(&p.place.name)?)?);
            (!text.is_empty()).then_some(text)
        })
    };
    let mut reading = DialogReading {
        dialog: Dialog {
            about: form.about,
            question: first(&form.question),
            subject: first(&form.subject),
            options: Vec::new(),
            mark: None,
            unanswerable: None,
        },
        keys: Vec::new(),
        digits: Vec::new(),
        whole: whole(form, view),
        appearance,
    };
    read_options(&mut reading, form, view);
    reading.dialog.mark = Some(mark(&rule.name, &reading));
    reading
}

fn read_options(reading: &mut DialogReading, form: &DialogRule, view: &View<'_>) {
    let Some(pattern) = &form.options else { return };
    let Some(text) = view.region(&pattern.place.name) else { return };
    let Some(regex) = pattern.regex.regex() else { return };
    let text = if form.wraps { Cow::Owned(unwrapped(text, regex)) } else { Cow::Borrowed(text) };
    for found in regex.captures_iter(&text).take(MAX_OPTIONS) {
        let of = |name| found.name(name).map(|m| m.as_str().trim()).filter(|t| !t.is_empty());
        let Some(label) = of("label") else { continue };
        // A list above the dialog, for example in a plan, looks the same; the options begin at the last 1.
        if of("digit") == Some("1") {
            reading.dialog.options.clear();
            reading.keys.clear();
            reading.digits.clear();
        }
        let digit = of("digit").filter(|_| form.digits_answer);
        let keys: Vec<String> = [of("key"), digit].into_iter().flatten().map(str::to_owned).collect();
        let label = tidy(label);
        reading.dialog.options.push(Choice {
            key: keys.first().cloned(),
            selected: if form.row { view.is_shaded(&label) } else { of("cursor").is_some() },
            answer: answer(form, &label),
            label,
        });
        reading.keys.push(keys);
        reading.digits.push(of("digit").and_then(|digit| digit.parse().ok()));
    }
}

/// Why the dialog's layout is not fully known, so that a key could mean something else in it: its subject is not found,
/// an option has an unknown meaning, or it does not describe its keys as the rule expects.
pub(crate) fn layout_fault(form: &DialogRule, reading: &DialogReading, view: &View<'_>) -> Option<&'static str> {
    let options = &reading.dialog.options;
    let count = |answer| options.iter().filter(|option| option.answer == Some(answer)).count();
    if reading.dialog.subject.is_none() {
        return Some("capture does not recognize what the dialog asks about");
    }
    if options.iter().any(|option| matches!(option.answer, None | Some(ChoiceAnswer::Other))) {
        return Some("capture does not recognize one of the options of the dialog");
    }
    if count(ChoiceAnswer::AllowOnce) != 1 || count(ChoiceAnswer::Deny) != 1 {
        return Some("the dialog does not have exactly one option to allow once and one to deny");
    }
    let numbered = reading.digits.iter().enumerate().all(|(at, digit)| *digit == Some(at + 1));
    if !numbered && reading.digits.iter().any(Option::is_some) {
        return Some("the options of the dialog are not numbered in order");
    }
    let named = form.names.iter().all(|pattern| view.find(pattern).is_some());
    (!named).then_some("capture does not recognize how the dialog names its keys")
}

/// The meaning of an option. If two expressions disagree on it, the meaning is unknown.
fn answer(form: &DialogRule, label: &str) -> Option<ChoiceAnswer> {
    if form.answers.is_empty() {
        return None;
    }
    let fits = form.answers.iter().filter(|(_, e)| e.regex().is_some_and(|regex| regex.is_match(label)));
    let mut fits = fits.map(|(answer, _)| *answer);
    let first = fits.next().unwrap_or(ChoiceAnswer::Other);
    Some(if fits.all(|other| other == first) { first } else { ChoiceAnswer::Other })
}

/// The text with each option on one line. Lines between two options belong to the first; lines below the last option
/// belong to it if they begin no further left than its label.
fn unwrapped(text: &str, options: &Regex) -> String {
    let mut lines: Vec<String> = Vec::new();
    // `open`: if the last line is an option that may continue, the number of its lines and the column of its label.
    // `loose`: lines that belong to it if another option follows.
    let mut open: Option<(usize, usize)> = None;
    let mut loose: Vec<&str> = Vec::new();
    for line in text.split('\n') {
        let body = tidy(line);
        if let Some(found) = options.captures(line) {
            if let (Some(option), Some(_)) = (lines.last_mut(), open) {
                for more in loose.drain(..) {
                    append_line(option, more);
                }
            }
            lines.extend(loose.drain(..).map(str::to_owned));
            let label = found.name("label").map_or(0, |m| line[..m.start()].chars().count());
            open = Some((1, label));
            lines.push(line.to_owned());
        } else if let Some((count, label)) = open.filter(|(count, _)| !body.is_empty() && *count < MAX_LINES) {
            let indent = line.chars().take_while(|c| is_frame(*c)).count();
            open = Some((count + 1, label));
            match lines.last_mut().filter(|_| loose.is_empty() && indent >= label) {
                Some(option) => append_line(option, line),
                None => loose.push(line),
            }
        } else {
            lines.extend(loose.drain(..).map(str::to_owned));
            lines.push(line.to_owned());
            open = None;
        }
    }
    lines.extend(loose.into_iter().map(str::to_owned));
    lines.join("\n")
}

fn append_line(option: &mut String, line: &str) {
    option.truncate(option.trim_end_matches(is_frame).len());
    option.push(' ');
    option.push_str(line.trim_matches(is_frame));
}

/// Every word of the dialog, without the cursor: the text before the label or digit of an option is removed.
pub(crate) fn whole(form: &DialogRule, view: &View<'_>) -> Option<String> {
    let text = view.region(&form.whole.as_ref()?.name)?;
    let Some(regex) = form.options.as_ref().and_then(|p| p.regex.regex()) else { return Some(text.to_owned()) };
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for found in regex.captures_iter(text) {
        let Some(begin) = found.name("digit").or_else(|| found.name("label")) else { continue };
        if found.name("cursor").is_none_or(|cursor| cursor.end() <= begin.start()) {
            out.push_str(&text[from..found.get(0).map_or(from, |all| all.start())]);
            from = begin.start();
        }
    }
    out.push_str(&text[from..]);
    Some(out)
}

/// The mark that distinguishes this dialog from every other of the run.
fn mark(rule: &str, reading: &DialogReading) -> String {
    let mut hash = blake3::Hasher::new();
    let dialog = &reading.dialog;
    let parts = [Some(rule), dialog.question.as_deref(), dialog.subject.as_deref(), reading.whole.as_deref()];
    for part in parts.into_iter().chain(dialog.options.iter().map(|o| Some(o.label.as_str()))) {
        let part = part.unwrap_or_default();
        hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hash.update(&reading.appearance.to_le_bytes());
    hash.finalize().to_hex().chars().take(MARK).collect()
}

fn is_frame(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{2500}'..='\u{257f}')
}

/// The text of a box, without its frame and without the blanks around each line.
fn tidy(text: &str) -> String {
    let lines = text.split('\n').map(|line| line.trim_matches(is_frame)).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n").chars().take(MAX_TEXT).collect()
}
