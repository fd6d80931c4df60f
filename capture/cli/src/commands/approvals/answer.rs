//! The user's answers to an agent's questions.

use std::collections::BTreeMap;

use client::failure::Failed;
use projections::Approval;

use printing::{asked::numbered, safe};

use crate::{
    commands::context::{flush_typed, typed},
    show::request::{Question, QuestionOption, questions},
};

/// Asks the user at the terminal; returns the answers in the form used on the command line.
pub(super) fn ask(questions: &[Question]) -> anyhow::Result<Vec<String>> {
    let mut given = Vec::new();
    for question in questions {
        let which = if questions.len() > 1 { format!(" to \"{}\"", safe(&question.question)) } else { String::new() };
        let choice = match (question.options.len(), question.is_multiple) {
            (0, _) => String::new(),
            (1, _) => "1 or its text; ".to_owned(),
            (n, false) => format!("1-{n} or its text; "),
            (n, true) => format!("some of 1-{n}, separated by commas; "),
        };
        flush_typed();
        let line = typed(&format!("\nYour answer{which}? [{choice}Enter for none] "))?;
        if line.is_empty() {
            return Err(Failed::Refused("you gave no answer, so nothing was decided".into()).into());
        }
        let one = |text: &str| format!("{}={}", question.question, text.trim());
        if question.is_multiple {
            given.extend(line.split(',').map(one));
        } else {
            given.push(one(&line));
        }
    }
    Ok(given)
}

/// The answers by the texts of their questions; `None` if there are none.
///
/// # Errors
/// If the request asks no question, a question is not answered, or an answer is not one of its options.
pub(super) fn answers(
    approval: &Approval,
    given: &[String],
    is_any_accepted: bool,
) -> anyhow::Result<Option<BTreeMap<String, String>>> {
    if given.is_empty() {
        return Ok(None);
    }
    let questions = questions(approval);
    let usage = |text: String| anyhow::Error::from(Failed::Usage(text));
    if questions.is_empty() {
        return Err(usage("this request is not a question, so --answer does not apply".into()));
    }
    let mut answers: BTreeMap<String, String> = BTreeMap::new();
    for one in given {
        // The text of one question may be a prefix of another's.
        let named = questions.iter().filter_map(|q| Some((q, one.strip_prefix(&q.question)?.strip_prefix('=')?)));
        let named = named.max_by_key(|(question, _)| question.question.len());
        let (question, text) = match (named, questions.as_slice()) {
            (Some(named), _) => named,
            (None, [only]) => (only, one.as_str()),
            (None, _) => {
                let names: Vec<_> = questions.iter().map(|q| format!("`{}=…`", safe(&q.question))).collect();
                return Err(usage(format!("`{}` does not name a question; write {}", safe(one), names.join(" or "))));
            }
        };
        let text = option_of(question, text, is_any_accepted).map_err(usage)?;
        match answers.get_mut(&question.question) {
            Some(answer) if question.is_multiple => *answer = format!("{answer}, {text}"),
            Some(_) => return Err(usage(format!("`{}` accepts only one answer", safe(&question.question)))),
            None => {
                answers.insert(question.question.clone(), text);
            }
        }
    }
    Ok(Some(answers))
}

/// The label of the option the user chose, by the option's displayed number (from 1) or by its label.
fn option_of(question: &Question, text: &str, is_any_accepted: bool) -> Result<String, String> {
    let text = text.trim();
    let by_number = numbered(&question.options, text).and_then(|index| question.options.get(index));
    let by_words = || question.options.iter().find(|option| option.label.eq_ignore_ascii_case(text));
    match by_number.or_else(by_words) {
        Some(option) => Ok(option.label.clone()),
        None if question.options.is_empty() || is_any_accepted => Ok(text.to_owned()),
        None => {
            let number = |(index, option): (usize, &QuestionOption)| format!("{} {}", index + 1, safe(&option.label));
            let options: Vec<String> = question.options.iter().enumerate().map(number).collect();
            Err(format!(
                "`{}` is not an option of `{}`: {} (--any-answer sends it anyway)",
                safe(text),
                safe(&question.question),
                options.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn question(multiple: bool) -> Question {
        let option = |label: &str| QuestionOption { label: label.into(), description: String::new(), more: Map::new() };
        Question {
            question: "Which colour?".into(),
            header: String::new(),
            options: vec![option("Red"), option("Blue")],
            is_multiple: multiple,
            more: Map::new(),
        }
    }

    #[test]
    fn an_option_is_chosen_by_its_number_or_label() {
        assert_eq!(option_of(&question(false), "2", false), Ok("Blue".into()));
        assert_eq!(option_of(&question(false), " red", false), Ok("Red".into()));
        // Numbers refer to the displayed position, whatever the labels are.
        let mut numbers = question(false);
        (numbers.options[0].label, numbers.options[1].label) = ("2".into(), "1".into());
        assert_eq!(option_of(&numbers, "1", false), Ok("2".into()));
    }

    #[test]
    fn an_unknown_option_is_refused_unless_free_text_is_allowed() {
        for wrong in ["Purple", "0", "3", "+1", "01", ""] {
            let error = option_of(&question(false), wrong, false).unwrap_err();
            assert!(error.contains("1 Red, 2 Blue"), "{error}");
        }
        assert_eq!(option_of(&question(false), "Purple", true), Ok("Purple".into()));
    }

    #[test]
    fn an_answer_is_matched_to_the_longest_question_prefix() {
        let input = serde_json::json!({"questions": [
            {"question": "Delete?", "multiSelect": true, "options": [{"label": "cache"}, {"label": "Also logs?=1"}]},
            {"question": "Delete?=Also logs?", "options": [{"label": "No"}, {"label": "Yes"}]},
        ]});
        let asked = events::ApprovalRequested {
            about: Some(events::ApprovalKind::Question),
            input: Some(input.to_string()),
            ..events::ApprovalRequested::default()
        };
        let of = (events::SessionId::from_bits(1), events::Provider::Claude);
        let told = (events::Source::Hook, events::Confidence::High);
        let approval = Approval::of(&asked, of, None, told, events::Timestamp::MIN);
        let given = ["Delete?=1".to_owned(), "Delete?=Also logs?=1".to_owned()];
        let answers = answers(&approval, &given, false).unwrap().unwrap();
        assert_eq!(answers["Delete?"], "cache");
        assert_eq!(answers["Delete?=Also logs?"], "No");
    }

    #[test]
    fn a_question_without_options_accepts_any_answer() {
        let free = Question { options: Vec::new(), ..question(false) };
        assert_eq!(option_of(&free, "as you like", false), Ok("as you like".into()));
    }
}
