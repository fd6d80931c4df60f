//! `capture policy show` and `capture policy preset`: the policy in force, and the choice of its preset.

use std::path::PathBuf;

use approver::{Policy, Preset, RuleSource, RuleView};
use client::failure::Failed;
use policy_files::Refused;
use printing::{display::show as shown, style};
use serde::Serialize;
use toml_edit::{DocumentMut, Value};

use super::super::editor;
use super::{edit, here, not_in_force};
use crate::commands::context::{Context, print_line};

/// The policy in the JSON format.
#[derive(Serialize)]
struct PolicyView {
    file: PathBuf,
    exists: bool,
    preset: Option<&'static str>,
    /// Why the policy is not in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    rules: Vec<RuleView>,
}

/// Prints the policy's file, its preset, and the rules in the order they are tried.
pub(super) fn run(context: &Context) -> anyhow::Result<()> {
    let file = context.policy_file()?;
    let workspace = policy_files::workspace_of(&here()?);
    let found = policy_files::in_force(&file, &workspace);
    // Show the rules even if the directory keeps them from being in force.
    let (rules, refused) = match &found.refused {
        Some(refused @ Refused::InWorkspace(_)) => {
            (policy_files::load(&file, None).unwrap_or_else(|_| found.policy.clone()), Some(refused))
        }
        refused => (found.policy.clone(), refused.as_ref()),
    };
    let refused = refused.map(|refused| not_in_force(refused, &workspace));
    let preset = rules.chosen_preset();
    let view =
        PolicyView { exists: file.exists(), file, preset: preset.map(Preset::as_str), refused, rules: rules.rules() };
    if context.json {
        return context.print_json(&view);
    }
    let path = shown(&view.file.display().to_string()).text;
    print_line(&format!("file    {path}{}", if view.exists { "" } else { " (does not exist)" }))?;
    let none = "none: if none of your rules matches, capture's own agent reads without asking, and you decide every \
                other request";
    let about = preset.map_or(none, Preset::about);
    print_line(&prose(&match view.preset {
        Some(name) => format!("preset  {name} ({about})"),
        None => format!("preset  {about}"),
    }))?;
    if let Some(refused) = &view.refused {
        print_line(&prose(&format!("note    {}", shown(refused.strip_prefix("note: ").unwrap_or(refused)).text)))?;
    }
    let mut above: Option<RuleSource> = None;
    for rule in &view.rules {
        if above.replace(rule.from) != Some(rule.from) {
            let head = match rule.from {
                RuleSource::Repository => "rules of this repository, which can only make the policy stricter",
                RuleSource::User => "your rules: the first matching rule decides",
                RuleSource::Preset => "rules of the preset, tried after yours",
            };
            print_line(&format!("\n{head}"))?;
        }
        let reason = rule.reason.as_deref().map(|reason| format!("  {}", shown(reason).text)).unwrap_or_default();
        let (name, conditions) = (shown(&rule.name).text, shown(&rule.conditions).text);
        let conditions = if conditions.is_empty() { String::new() } else { format!("  {conditions}") };
        let line = format!("  {:<5}  {name}{conditions}{reason}", rule.decision);
        print_line(&printing::prose(&line, RULE_COLUMN))?;
    }
    print_line(&prose(
        "\nIf no rule matches, you are asked. `capture policy explain COMMAND` shows which rule \
                       decides.",
    ))
}

/// Column at which the value of a line begins.
const VALUE_COLUMN: usize = 8;
/// Column at which the name of a rule begins.
const RULE_COLUMN: usize = 9;

fn prose(line: &str) -> String {
    printing::prose(line, VALUE_COLUMN)
}

/// A preset in the JSON format.
#[derive(Serialize)]
struct PresetView {
    name: &'static str,
    about: &'static str,
    chosen: bool,
}

/// Lists the presets, and marks the one the policy names.
pub(super) fn presets(context: &Context) -> anyhow::Result<()> {
    let chosen = policy_files::load(&context.policy_file()?, None).ok().and_then(|policy| policy.chosen_preset());
    let view =
        |preset: &Preset| PresetView { name: preset.as_str(), about: preset.about(), chosen: Some(*preset) == chosen };
    let all: Vec<PresetView> = Preset::ALL.iter().map(view).collect();
    if context.json {
        return context.print_json(&serde_json::json!({ "presets": all, "next_cursor": null }));
    }
    for preset in &all {
        let mark = if preset.chosen { style::painted("✓", style::GREEN) } else { " ".to_owned() };
        print_line(&printing::prose(&format!("{mark} {:<16} {}", preset.name, preset.about), PRESET_COLUMN))?;
    }
    Ok(())
}

/// Column at which the description of a preset begins.
const PRESET_COLUMN: usize = 19;

/// Sets a preset in the user's policy after showing the change and asking.
pub(super) fn choose(context: &Context, preset: Preset, yes: bool) -> anyhow::Result<()> {
    let (file, before) = editor::in_force(&context.policy_file()?, edit::CHANGE)?;
    let after = with_preset(before.as_deref().unwrap_or(policy_files::STARTER), preset)?;
    if before.as_deref() == Some(after.as_str()) {
        return print_line(&format!("the preset is already {preset}"));
    }
    Policy::parse(&after, &file)?;
    edit::put_in_force(&file, before.as_deref(), &after, yes)
}

/// The policy with another preset and everything else unchanged.
fn with_preset(text: &str, preset: Preset) -> anyhow::Result<String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        Failed::Refused(format!("the policy is not valid TOML: {error}; `capture policy edit` opens it"))
    })?;
    match document.get_mut("preset").and_then(toml_edit::Item::as_value_mut) {
        Some(value) => {
            let decor = value.decor().clone();
            *value = Value::from(preset.as_str());
            *value.decor_mut() = decor;
        }
        None => {
            document.insert("preset", toml_edit::value(preset.as_str()));
        }
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changing_the_preset_keeps_the_rest_of_the_file() {
        let text = "# Mine.\nversion = 1\npreset = \"denials\" # strict\n\n[[rule]] # first\nname = \"a\"\ndecision = \"deny\"\n";
        let changed = with_preset(text, Preset::ReadOnly).unwrap();
        assert_eq!(changed, text.replace("denials", "read-only"));
        let without = "version = 1\n\n[[rule]]\nname = \"a\"\ndecision = \"deny\"\n";
        let added = with_preset(without, Preset::Develop).unwrap();
        assert_eq!(added, without.replace("version = 1\n", "version = 1\npreset = \"develop\"\n"));
        assert!(with_preset("version = ", Preset::Develop).unwrap_err().to_string().contains("not valid TOML"));
        let new = with_preset(policy_files::STARTER, Preset::ReadOnly).unwrap();
        assert!(new.contains("\npreset = \"read-only\"\n") && new.contains("# The preset applies"), "{new}");
    }
}
