//! Decides whether a value is a secret: weighs its name against its form.

use crate::{
    assigned::form::ValueForm,
    names::{NameMeaning, NameWeight},
    value,
};

/// Whether a value is a secret, for a name with this `meaning`.
pub(crate) fn is_secret(meaning: NameMeaning, value: &[u8], form: ValueForm) -> bool {
    // A colour sequence at the start is not a value; the text after it is read without it.
    let is_sequence = value.starts_with(b"\x1b") || value.starts_with(b"\\u001b") || value.starts_with(b"\\x1b");
    if is_sequence || !value.iter().any(|b| b.is_ascii_alphanumeric() || *b >= 0x80) {
        return false;
    }
    if value::is_placeholder(value) || value::is_public(value) || value::is_path(value) || value::is_colour(value) {
        return false;
    }
    let is_bare = form == ValueForm::Bare;
    match meaning.weight {
        NameWeight::All => is_password(value, form),
        NameWeight::Much => {
            if value.len() < 8
                || value::is_sentence(value)
                || value::is_number(value)
                || value::is_words(value) && !long_word(value)
            {
                return false;
            }
            if is_bare && (value::is_code(value) || value::is_type(value))
                || value::is_code(value) && value.contains(&b'(')
            {
                return false;
            }
            let has_digit = value.iter().any(u8::is_ascii_digit);
            value::looks_random(value)
                || value::is_uuid(value)
                || value.len() >= 10 && (has_digit || has_special(value))
                || long_word(value)
        }
        NameWeight::Little => {
            value.len() >= 16
                && value::looks_random(value)
                && !value::is_uuid(value)
                && !value::is_code(value)
                && !value::is_named_hash(value)
                && !value::is_type(value)
                // A signature of this length belongs to the text beside it.
                && !(meaning.kind == "signature" && value.len() > 200)
                && (form == ValueForm::Plain || !value::is_hex(value))
        }
    }
}

/// Only letters, more than a word has: a token without digits.
fn long_word(value: &[u8]) -> bool {
    value.len() >= 20
        && value.iter().all(u8::is_ascii_alphabetic)
        && value::entropy(value) > 3.7
        && value::looks_random(value)
}

/// Four groups of four letters, the form of app passwords from mail providers: at least one group is not a word.
fn is_in_fours(value: &[u8]) -> bool {
    let has_vowel = |group: &[u8]| group.iter().any(|b| matches!(b, b'a' | b'e' | b'i' | b'o' | b'u' | b'y'));
    let groups: Vec<&[u8]> = value.split(|b| *b == b' ').collect();
    groups.len() == 4
        && groups.iter().all(|group| group.len() == 4 && group.iter().all(u8::is_ascii_lowercase))
        && groups.iter().any(|group| !has_vowel(group))
}

fn has_special(value: &[u8]) -> bool {
    value.iter().any(|b| matches!(b, b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'+' | b'='))
}

fn is_password(value: &[u8], form: ValueForm) -> bool {
    if value::is_sentence(value) {
        // A mnemonic or a phrase: only lower-case words, four of them or more.
        let words = value.split(|b| *b == b' ').filter(|w| !w.is_empty());
        let small = words.clone().all(|w| w.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()));
        let count = words.count();
        let has_both = value.iter().any(u8::is_ascii_digit) && has_special(value) && count <= 3;
        return form == ValueForm::Quoted
            && (has_both
                || is_in_fours(value)
                || small && (count >= 12 || count == 4 && !value.starts_with(b"the ") && value.len() > 20));
    }
    if value.len() < 4 || value::is_code(value) && value.contains(&b'(') {
        return false;
    }
    let is_letters = value.iter().all(u8::is_ascii_alphabetic);
    let dashes = value.iter().filter(|b| **b == b'-').count();
    let is_phrase = value::is_mixed(value)
        || dashes >= 2
            && value.len() >= 16
            && value.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-');
    match form {
        ValueForm::Quoted => {
            is_phrase
                || !value::is_words(value)
                || is_letters && value.len() >= 6 && value.iter().all(u8::is_ascii_lowercase)
                || is_letters && value.len() >= 8 && value::has_stray_capitals(value)
                || !is_letters && value.iter().any(u8::is_ascii_digit)
        }
        ValueForm::Plain => {
            is_phrase
                || !value::is_code(value)
                || is_letters && value.len() >= 5
                || value.iter().any(u8::is_ascii_digit)
        }
        ValueForm::Bare => {
            let is_plain_word = value.iter().all(u8::is_ascii_alphanumeric);
            let has_digit = value.iter().any(u8::is_ascii_digit);
            !value::is_number(value)
                && (is_phrase || !value::is_code(value) || value.len() >= 6 && has_digit && is_plain_word)
        }
    }
}
