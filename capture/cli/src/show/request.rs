//! The content of a permission request, formatted for users: an edit as a diff, a plan as written, a question with
//! numbered options, a command line by line. Nothing is cut or hidden, folded parts are counted, and unknown fields are
//! shown as received.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use events::{ApprovalKind, ApprovalState, DecidedBy, Excerpt, Provider};
use projections::Approval;
use serde::Deserialize;
use serde_json::{Map, Value};
use similar::TextDiff;

use printing::{
    asked::{self, block, extra_fields, fields},
    display::show,
    markdown, safe, style,
};

/// A question of an agent, as in Claude Code's `AskUserQuestion` and Gemini CLI's `ask_user`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Question {
    /// The text of the question, which identifies it in answers.
    pub(crate) question: String,
    /// The topic, in a word.
    #[serde(default)]
    pub(crate) header: String,
    /// The options to choose from; empty for a free answer.
    #[serde(default)]
    pub(crate) options: Vec<QuestionOption>,
    /// Whether several options can be chosen.
    #[serde(default, rename = "multiSelect")]
    pub(crate) is_multiple: bool,
    /// The remaining fields.
    #[serde(flatten)]
    pub(crate) more: Map<String, Value>,
}

/// One of the answers to choose from.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct QuestionOption {
    /// The label of the option.
    pub(crate) label: String,
    /// The explanation of the option; empty if the agent gives none.
    #[serde(default)]
    pub(crate) description: String,
    /// The remaining fields.
    #[serde(flatten)]
    pub(crate) more: Map<String, Value>,
}

/// The questions of a request; empty when it asks for something else.
pub(crate) fn questions(approval: &Approval) -> Vec<Question> {
    #[derive(Deserialize)]
    struct QuestionsInput {
        questions: Vec<Question>,
    }
    // Other tools may use the same field name.
    let input = approval.input.as_deref().filter(|_| approval.kind == Some(ApprovalKind::Question));
    let input = input.and_then(|input| serde_json::from_str::<QuestionsInput>(input).ok());
    input.map(|input| input.questions).unwrap_or_default()
}

/// How a request was decided, and who or what decided it: `allowed by you on phone`, `denied by rule no-push`.
pub(crate) fn decided(state: ApprovalState, by: Option<DecidedBy>, device: Option<&str>, rule: Option<&str>) -> String {
    let ended = match state {
        ApprovalState::Pending => "waiting for you",
        ApprovalState::Allowed => "allowed",
        ApprovalState::Denied => "denied",
        ApprovalState::AnsweredElsewhere => "answered in the agent",
        ApprovalState::Expired => "expired",
        ApprovalState::Withdrawn => "withdrawn",
    };
    let by = match (by, rule) {
        (Some(DecidedBy::Policy), Some(rule)) => format!(" by rule {}", safe(rule)),
        (Some(DecidedBy::Policy), None) => " by a rule".to_owned(),
        (Some(DecidedBy::Person), _) => " by you".to_owned(),
        (Some(DecidedBy::Grant), _) => " by your earlier decision for this session".to_owned(),
        (None, _) => String::new(),
    };
    let device = device.map(|device| format!(" on {}", safe(device))).unwrap_or_default();
    format!("{ended}{by}{device}")
}

/// The kind of request and its subject, safe for the terminal.
pub(crate) fn headline(approval: &Approval) -> String {
    let kind = approval.kind.map_or("request", ApprovalKind::as_str);
    let subject = approval.subject.as_deref().or(approval.question.as_deref()).or(approval.tool.as_deref());
    let whole = approval.command.as_deref().map_or(0, |command| command.chars().count());
    let shown = subject.map_or(0, |subject| subject.chars().count());
    // The model chose the arguments.
    let tool = approval.tool.as_deref().filter(|_| approval.kind == Some(ApprovalKind::Mcp));
    let tool = tool.map(|tool| format!("{} ", safe(tool))).unwrap_or_default();
    let more = match &approval.excerpt {
        Some(excerpt) => format!(" … ({} bytes in all)", excerpt.bytes),
        None if whole > shown => format!(" … ({} more characters)", whole - shown),
        None => String::new(),
    };
    format!("{kind}: {tool}{}{more}{}", safe(subject.unwrap_or("?")), extras(approval))
}

fn extras(approval: &Approval) -> String {
    let names = extra_fields(approval);
    if names.is_empty() { String::new() } else { format!(" · with {}", names.join(", ")) }
}

/// Where and how a request would be carried out, one line each: the tool, the directory, the address, the files, the
/// sandbox.
pub(crate) fn surroundings(approval: &Approval) -> String {
    let fields =
        [("tool", &approval.tool), ("in", &approval.cwd), ("url", &approval.url), ("sandbox", &approval.sandbox)];
    let paths = approval.paths.iter().map(|path| ("file", path.as_str()));
    let fields = fields.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
    fields.chain(paths).map(|(name, value)| format!("{name:>9}  {}\n", safe(value))).collect()
}

/// The exact request, or the known part, and the consequences the agent states.
pub(crate) fn exact(approval: &Approval) -> String {
    let said = approval.question.as_deref().filter(|_| approval.provider == Provider::Capture);
    requested(approval) + &said.map(|said| block("the agent says", said)).unwrap_or_default()
}

fn requested(approval: &Approval) -> String {
    let name = if approval.exact { "exactly as requested" } else { "as the agent reported it" };
    let input = approval.input.as_deref();
    let fields = fields(approval);
    if let Some(command) = approval.command.as_deref() {
        return block(&format!("command, {name}"), command) + &others(&fields, &["command"]) + &risks(command);
    }
    let questions = questions(approval);
    if !questions.is_empty() {
        let asked: String = questions.iter().map(question).collect();
        return asked + &others(&fields, &["questions"]);
    }
    if let Some(plan) = text(&fields, &["plan"]).filter(|_| approval.kind == Some(ApprovalKind::Plan)) {
        return markdown::painted(&block(&format!("plan, {name}"), plan)) + &others(&fields, &["plan"]);
    }
    if approval.kind.is_some_and(ApprovalKind::changes_files)
        && let Some(edit) = edit(&fields, name, approval.cwd.as_deref())
    {
        return edit;
    }
    match (input, approval.excerpt.as_deref()) {
        (Some(input), _) => block(name, input),
        (None, Some(excerpt)) => not_whole(excerpt),
        (None, None) => {
            let seen = approval.subject.as_deref().unwrap_or("unknown: the agent only shows a dialog");
            block("as seen on the screen", seen)
        }
    }
}

/// The excerpt of a request that is too long, with how much of it is missing.
fn not_whole(excerpt: &Excerpt) -> String {
    let missing = excerpt.bytes.saturating_sub(excerpt.kept());
    let warning = format!(
        "\nINCOMPLETE: capture kept {} of the {} bytes of this request, so you cannot allow it here. Read the whole \
         request in the agent and answer there, or deny it.\n",
        excerpt.kept(),
        excerpt.bytes
    );
    warning.clone()
        + &block("its beginning", &excerpt.beginning)
        + &format!("\n    … {missing} bytes are not shown …\n")
        + &block("its end", &excerpt.end)
        + &warning
}

/// How to answer the questions of a request.
pub(crate) fn options_hint(approval: &Approval) -> String {
    match questions(approval).as_slice() {
        [] => String::new(),
        [_] => "\nanswer it with: capture approve ID --answer NUMBER\n".to_owned(),
        [first, ..] => {
            format!("\nanswer each with: capture approve ID --answer \"{}=NUMBER\" …\n", safe(&first.question))
        }
    }
}

/// A question with its options.
fn question(question: &Question) -> String {
    let several = if question.is_multiple { " (several can be chosen)" } else { "" };
    let header = if question.header.is_empty() { String::new() } else { format!(" about {}", safe(&question.header)) };
    let mut text = format!("\nquestion{header}{several}:\n{}", markdown::painted(&indented(&question.question)));
    for (index, option) in question.options.iter().enumerate() {
        let label = style::painted(&safe(&option.label), style::CYAN);
        let description =
            if option.description.is_empty() { String::new() } else { format!("  {}", safe(&option.description)) };
        text += &format!("    {:>2}  {label}{description}\n", index + 1);
        text += &others(&option.more, &[]);
    }
    text + &others(&question.more, &[])
}

/// An edit of a file as a diff. The names of the fields are those of Claude Code's `Edit`, `MultiEdit` and `Write`, of
/// Gemini CLI's `replace` and `write_file`, and of our own agent's `edit` and `write`.
fn edit(fields: &Map<String, Value>, name: &str, cwd: Option<&str>) -> Option<String> {
    const PATH: &[&str] = &["file_path", "path", "absolute_path"];
    const OLD: &[&str] = &["old_string", "old"];
    const NEW: &[&str] = &["new_string", "new"];
    // Fields that the diff does not show are listed below it, whatever other fields the tool has.
    let (path_field, path) = PATH.iter().find_map(|name| Some((*name, fields.get(*name)?.as_str()?)))?;
    let (diff, shown): (String, &[&str]) = if let Some(Value::Array(edits)) = fields.get("edits")
        && !edits.is_empty()
    {
        let one = |edit: &Value| {
            let edit = edit.as_object()?;
            let diff = diff_of_piece(path, text(edit, OLD)?, text(edit, NEW)?);
            // For example, whether it replaces every match.
            Some(diff + &others(edit, &[OLD, NEW].concat()))
        };
        (edits.iter().map(one).collect::<Option<String>>()?, &["edits"])
    } else if let (Some(old), Some(new)) = (text(fields, &["old_string"]), text(fields, &["new_string"])) {
        (diff_of_piece(path, old, new), &["old_string", "new_string"])
    } else {
        // The path may be relative to the agent's working directory.
        let file = cwd.map_or_else(|| PathBuf::from(path), |cwd| Path::new(cwd).join(path));
        (diff(path, &present(&file), text(fields, &["content"])?), &["content"])
    };
    Some(painted_diff(&format!("edit, {name}"), &diff) + &others(fields, &[&[path_field], shown].concat()))
}

/// Maximum size of a file read for a diff, bytes.
const LARGEST: u64 = 1 << 20;
/// Time after which the diff is no longer minimized.
const DIFF_WITHIN: Duration = Duration::from_millis(500);

/// The current text of a file; empty if it is new, large or not text. The agent chooses the path, and reading something
/// other than a regular file could block or never end.
fn present(path: &Path) -> String {
    let is_read = std::fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= LARGEST);
    if is_read { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() }
}

/// The diff of a piece of a file. The line at which the piece begins is unknown.
fn diff_of_piece(path: &str, old: &str, new: &str) -> String {
    let diff = diff(path, old, new);
    let lines = diff.split_inclusive('\n').enumerate();
    // After the diff's header, only hunk headers begin like this; other lines start with a mark.
    lines.map(|(at, line)| if at > 1 && line.starts_with("@@ ") { "@@\n" } else { line }).collect()
}

fn diff(path: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(DIFF_WITHIN).diff_lines(old, new);
    // A newline in the path would start a new line of the diff.
    let path = safe(path);
    // A piece may end anywhere in the file; only adding or removing the line ending is a change.
    let changes_end = old.ends_with('\n') != new.ends_with('\n') && !old.is_empty() && !new.is_empty();
    let mut unified = diff.unified_diff();
    unified.context_radius(3).header(&path, &path).missing_newline_hint(changes_end).to_string()
}

/// A file diff in colours, escaped like all agent text.
fn painted_diff(name: &str, diff: &str) -> String {
    let plain = block(name, diff);
    if style::colours() { painted_block(&plain) } else { plain }
}

/// Colours a diff in an indented block: removed lines red, added lines green, positions cyan.
pub(crate) fn painted_block(plain: &str) -> String {
    let lines = plain.lines().map(|line| {
        let Some(text) = line.strip_prefix("    ") else { return format!("{line}\n") };
        let colour = match text.as_bytes().first() {
            Some(b'-') => style::RED,
            Some(b'+') => style::GREEN,
            Some(b'@') => style::CYAN,
            Some(_) | None => return format!("{line}\n"),
        };
        format!("    {}\n", style::coloured(text, colour))
    });
    lines.collect()
}

/// The remaining fields of the tool call, such as leaving the sandbox, replacing every match, or running in the
/// background.
fn others(fields: &Map<String, Value>, shown: &[&str]) -> String {
    let more = fields.iter().filter(|(name, _)| !shown.contains(&name.as_str()));
    let more = more.map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        block(&format!("and {}", safe(name)), &value)
    });
    more.collect()
}

fn text<'a>(fields: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| fields.get(*name)?.as_str())
}

fn indented(text: &str) -> String {
    show(text).text.lines().map(|line| format!("    {line}\n")).collect()
}

/// The parts of a command that deserve a second look, to be printed below everything else about it.
fn risks(command: &str) -> String {
    let risks = asked::risks(command);
    if risks.is_empty() { risks } else { format!("\n{}", style::painted(&risks, style::ALARM)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn an_edit_is_shown_as_a_diff_with_its_other_fields() {
        let edit = edit(
            &fields(
                json!({"file_path": "/srv/calc.py", "old_string": "a = 1\nb = 2\n", "new_string": "a = 1\nb = 3\n",
                "replace_all": true}),
            ),
            "exactly as requested",
            None,
        );
        let edit = edit.unwrap();
        assert!(edit.contains("--- /srv/calc.py") && edit.contains("\n    -b = 2\n    +b = 3\n"), "{edit}");
        assert!(edit.contains("and replace_all") && edit.contains("true"), "{edit}");
    }

    #[test]
    fn a_diff_mentions_the_final_newline_only_when_it_changes() {
        let note = "\\ No newline at end of file";
        for (old, new, noted) in [
            ("a = 1", "a = 2", false),
            ("a = 1\n", "a = 2\n", false),
            ("", "one\ntwo", false),
            ("one", "", false),
            ("a = 1\n", "a = 1", true),
            ("a = 1", "a = 1\n", true),
        ] {
            let shown = diff("/srv/a.py", old, new);
            assert_eq!(shown.contains(note), noted, "{old:?} {new:?}: {shown}");
            let removed: String = shown.lines().skip(3).filter_map(|line| line.strip_prefix('-')).collect();
            let added: String = shown.lines().skip(3).filter_map(|line| line.strip_prefix('+')).collect();
            assert_eq!((removed, added), (old.replace('\n', ""), new.replace('\n', "")), "{shown}");
        }
    }

    #[test]
    fn a_partial_edit_shows_no_line_numbers() {
        let of = |input: Value| edit(&fields(input), "exactly as requested", None).unwrap();
        for input in [
            json!({"file_path": "a", "old_string": "x\n", "new_string": "@@ -1 +1 @@\n"}),
            json!({"path": "a", "edits": [{"old": "x\n", "new": "@@ -1 +1 @@\n"}]}),
        ] {
            let shown = of(input);
            assert!(shown.contains("\n    @@\n") && !shown.contains("\n    @@ "), "{shown}");
            assert!(shown.contains("\n    +@@ -1 +1 @@\n"), "what the agent wrote stays: {shown}");
        }
        let whole = of(json!({"file_path": "/nonexistent/a", "content": "y\n"}));
        assert!(whole.contains("\n    @@ -0,0 +1 @@\n"), "{whole}");
    }

    #[test]
    fn a_decision_names_who_made_it() {
        let of = |state, by, device, rule| decided(state, by, device, rule);
        assert_eq!(of(ApprovalState::Allowed, Some(DecidedBy::Person), Some("phone"), None), "allowed by you on phone");
        assert_eq!(of(ApprovalState::Denied, Some(DecidedBy::Policy), None, Some("no push")), "denied by rule no push");
        assert_eq!(of(ApprovalState::Withdrawn, None, None, None), "withdrawn");
    }

    #[test]
    fn a_request_that_looks_like_an_edit_shows_all_its_fields() {
        let of = |input: Value| edit(&fields(input), "exactly as requested", None).unwrap();
        let evil = "rm -rf /srv/prod";
        let base = json!({"file_path": "a", "old_string": "teh\n", "new_string": "the\n"});
        for (name, value) in [
            ("content", json!(evil)),
            ("path", json!(evil)),
            ("absolute_path", json!(evil)),
            ("edits", json!([{"old_string": evil, "new_string": ""}])),
        ] {
            let mut input = base.clone();
            input[name] = value;
            assert!(of(input).contains(evil), "{name} is hidden");
        }
        let listed = json!({"path": "a", "edits": [{"old": "x\n", "new": "y\n"}], "old_string": evil, "content": evil});
        assert_eq!(of(listed).matches(evil).count(), 2);
    }

    fn asks(kind: ApprovalKind, tool: &str, input: &Value) -> Approval {
        let asked = events::ApprovalRequested {
            about: Some(kind),
            tool: Some(tool.into()),
            cwd: Some("/srv/prod".into()),
            input: Some(input.to_string()),
            ..events::ApprovalRequested::default()
        };
        let of = (events::SessionId::from_bits(1), Provider::Claude);
        Approval::of(&asked, of, None, (events::Source::Hook, events::Confidence::High), events::Timestamp::MIN)
    }

    #[test]
    fn an_mcp_call_with_fields_of_another_tool_is_shown_verbatim() {
        for input in [
            json!({"questions": [{"question": "Show the time?", "options": [{"label": "Yes"}]}], "script": "rm -rf /srv"}),
            json!({"plan": "read the README", "amount": 9_007_199_254_740_993_u64, "script": "rm -rf /srv"}),
            json!({"file_path": "README.md", "old_string": "teh", "new_string": "the", "script": "rm -rf /srv"}),
            json!({"path": ".env", "content": "rm -rf /srv"}),
        ] {
            let asked = asks(ApprovalKind::Mcp, "mcp__ops__exec", &input);
            let shown = exact(&asked);
            assert!(shown.contains("exactly as requested") && shown.contains(&input.to_string()), "{shown}");
            assert!(questions(&asked).is_empty() && headline(&asked).starts_with("mcp: mcp__ops__exec"), "{shown}");
            assert!(
                surroundings(&asked).contains("tool  mcp__ops__exec\n")
                    && surroundings(&asked).contains("in  /srv/prod\n")
            );
        }
    }

    #[test]
    fn every_field_of_a_question_is_shown() {
        let input = json!({"questions": [{"question": "Sure?", "header": "Wipe prod", "why": "no reason",
            "options": [{"label": "Yes", "preview": "rm -rf /srv"}, {"label": "No"}]}]});
        let shown = exact(&asks(ApprovalKind::Question, "AskUserQuestion", &input));
        for said in ["Wipe prod", "no reason", "rm -rf /srv"] {
            assert!(shown.contains(said), "{said} is not shown: {shown}");
        }
    }

    #[test]
    fn relative_paths_are_diffed_against_the_agents_directory() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("Cargo.toml"), "before\n").unwrap();
        let input = fields(json!({"path": "Cargo.toml", "content": "after\n"}));
        let shown = edit(&input, "exactly as requested", home.path().to_str()).unwrap();
        assert!(shown.contains("-before") && shown.contains("+after"), "{shown}");
    }

    #[test]
    fn newlines_in_a_path_are_escaped_in_the_diff() {
        let of = |input: Value| edit(&fields(input), "exactly as requested", None).unwrap();
        let shown = of(json!({"file_path": "a\n+harmless", "old_string": "x\n", "new_string": "y\n"}));
        assert!(shown.contains(r"--- a\n+harmless") && !shown.contains("\n    +harmless"), "{shown}");
    }

    #[test]
    fn a_command_headline_lists_its_additional_options() {
        let asked = |input: Value| {
            let input = serde_json::to_string(&input).unwrap();
            let asked = events::ApprovalRequested {
                about: Some(ApprovalKind::Command),
                command: Some("ls".into()),
                input: Some(input),
                ..events::ApprovalRequested::default()
            };
            let of = (events::SessionId::from_bits(1), Provider::Claude);
            let how = (events::Source::Hook, events::Confidence::High);
            headline(&Approval::of(&asked, of, None, how, events::Timestamp::MIN))
        };
        let told = json!({"command": "ls", "description": "List", "timeout": 5, "run_in_background": false});
        assert_eq!(asked(told), "command: ls");
        let more = json!({"command": "ls", "dangerouslyDisableSandbox": true, "run_in_background": true});
        assert_eq!(asked(more), "command: ls · with dangerouslyDisableSandbox, run_in_background");
    }

    #[test]
    fn removed_lines_of_a_diff_are_red_and_added_ones_green() {
        let plain = block("edit", &diff("/srv/a.rs", "let a = 1;\nfn b() {}\n", "let a = 2; // two\nfn b() {}\n"));
        let shown = painted_block(&plain);
        let paint = style::coloured;
        assert!(shown.contains(&format!("    {}\n", paint("-let a = 1;", style::RED))), "{shown:?}");
        assert!(shown.contains(&format!("    {}\n", paint("+let a = 2; // two", style::GREEN))), "{shown:?}");
        assert!(shown.contains("     fn b() {}\n"), "{shown:?}");
    }

    #[test]
    fn a_truncated_request_states_how_many_bytes_are_shown() {
        let excerpt = Excerpt { beginning: "echo first\n".into(), end: "rm -rf ~".into(), bytes: 900_000 };
        let shown = not_whole(&excerpt);
        assert!(
            shown.contains("kept 19 of the 900000 bytes") && shown.contains("899981 bytes are not shown"),
            "{shown}"
        );
        assert!(shown.contains("    echo first\n") && shown.contains("    rm -rf ~\n"), "{shown}");
        assert!(shown.starts_with("\nINCOMPLETE") && shown.ends_with("or deny it.\n"), "{shown}");
    }

    #[test]
    fn a_new_file_is_shown_as_added_lines() {
        let edit =
            edit(&fields(json!({"file_path": "/nonexistent/new.txt", "content": "one\ntwo\n"})), "exactly", None)
                .unwrap();
        assert!(edit.contains("    +one\n    +two\n"), "{edit}");
    }

    #[test]
    fn hidden_characters_in_an_edit_are_shown_as_escapes() {
        let edit = edit(
            &fields(json!({"file_path": "/srv/a.py", "old_string": "x\n", "new_string": "x\u{202e}y\n"})),
            "exactly",
            None,
        );
        assert!(edit.unwrap().contains("hidden and shown as escapes"));
    }

    #[test]
    fn input_without_a_complete_edit_is_not_shown_as_an_edit() {
        assert_eq!(edit(&fields(json!({"file_path": "/srv/a.py"})), "exactly", None), None);
        assert_eq!(
            edit(&fields(json!({"file_path": "/srv/a.py", "edits": [{"old_string": "x"}]})), "exactly", None),
            None
        );
    }
}
