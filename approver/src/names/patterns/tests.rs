use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use proptest::prelude::*;

use super::*;
use crate::names::{RunsLaterTable, SecretTable};

/// All patterns of the tables, and a few that they might contain.
fn all() -> Vec<String> {
    let secrets: SecretTable = toml::from_str(include_str!("../../../secrets.toml")).unwrap();
    let later: RunsLaterTable = toml::from_str(include_str!("../../../runs-later.toml")).unwrap();
    let groups = [secrets.secret, secrets.suspect, later.protected, later.runs].into_iter().flatten();
    let of_groups = groups.flat_map(|group| group.names.into_iter().chain(group.except));
    let more = ["**/a/**/b*c", "a*b*c", "**/x[0-9]/**", "/etc/**/k[-_.]y", "**/**/z", "**/*"].map(str::to_owned);
    of_groups.chain(secrets.history).chain(more).collect()
}

fn globs(patterns: &[String]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(GlobBuilder::new(&pattern.to_lowercase()).literal_separator(true).build().unwrap());
    }
    set.build().unwrap()
}

/// Paths that match a pattern, and paths that almost match.
fn paths(pattern: &str) -> Vec<String> {
    let pattern = pattern.to_lowercase();
    let mut found = Vec::new();
    for any in ["", "a", "a/b", "/r", "a/"] {
        for some in ["", "x", ".y-z", "pem"] {
            for letter in ["-", ".", "0", "q"] {
                let mut text = pattern.replace("**", any).replace('*', some);
                while let (Some(from), Some(to)) = (text.find('['), text.find(']')) {
                    text.replace_range(from..=to, letter);
                }
                found.extend([
                    format!("z{text}"),
                    format!("{text}z"),
                    format!("/home/dev/{text}"),
                    format!("{text}/c/d"),
                ]);
                found.push(text);
            }
        }
    }
    found
}

#[test]
fn table_patterns_use_only_supported_syntax() {
    for pattern in all() {
        assert!(!pattern.contains(['?', '{', '}', '\\', '!']) && pattern.is_ascii(), "{pattern}");
    }
}

#[test]
fn each_table_pattern_matches_like_globset() {
    for pattern in all() {
        let one = std::slice::from_ref(&pattern);
        let (set, ours) = (globs(one), Patterns::new([pattern.as_str()]));
        for path in paths(&pattern) {
            let expected = set.is_match(&path);
            // For a path that ends with a dot, globset finds no name.
            if path.ends_with('.') && !expected {
                continue;
            }
            assert_eq!(ours.is_match(&path), expected, "{pattern}: {path}");
            assert_eq!(matches(pattern.to_lowercase().as_bytes(), path.as_bytes()), expected, "{pattern}: {path}");
        }
    }
}

#[test]
fn all_table_patterns_together_match_like_globset() {
    let all = all().into_iter().filter(|pattern| pattern != "**/*").collect::<Vec<_>>();
    let (set, ours) = (globs(&all), Patterns::new(all.iter().map(String::as_str)));
    let mut compared = 0;
    for pattern in &all {
        for path in paths(pattern).into_iter().step_by(7) {
            compared += 1;
            let (is_meant, expected) = (ours.is_match(&path), set.is_match(&path));
            assert!(is_meant == expected || path.ends_with('.') && is_meant, "{path}: {is_meant}");
        }
    }
    assert!(compared > 100_000, "{compared}");
}

proptest! {
    #[test]
    fn generated_patterns_match_like_globset(
        pattern in "(\\*\\*/|/)?([ab.*]{1,4}|a[0-9]|\\[a-b0\\])(/([ab*]{1,3}|\\*\\*/b))?(/\\*\\*)?",
        path in "/?[ab.0]{0,4}(/[ab.]{0,3}){0,3}",
    ) {
        // Two `*` in a row have a meaning only between slashes.
        let plain = pattern.strip_prefix("**/").unwrap_or(&pattern);
        let plain = plain.strip_suffix("/**").unwrap_or(plain).replace("/**/", "/");
        prop_assume!(!plain.contains("**"));
        let expected = globs(std::slice::from_ref(&pattern)).is_match(&path);
        let ours = Patterns::new([pattern.as_str()]).is_match(&path);
        prop_assert!(ours == expected || path.ends_with('.') && ours, "{} {} {}", pattern, path, ours);
    }
}
