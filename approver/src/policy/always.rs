//! Suggests a rule for "always allow": the narrowest rule that would allow the same request again. If the rule allows
//! more than the request, a comment in it says so.

use crate::{
    request::{PermissionRequest, RequestKind},
    shell,
};

/// The TOML of the rules that would allow only the same request again, in this directory and for this agent. `None` if
/// the request is not fully understood, if its directory is unknown, or if it is of a kind that must not be allowed
/// permanently.
#[must_use]
pub fn rule_for(request: &PermissionRequest) -> Option<String> {
    if !request.cwd_is_certain {
        return None;
    }
    let cwd = globset::escape(request.cwd.to_str()?);
    let bodies = match request.kind {
        RequestKind::Command => commands(request.command.as_deref()?)?,
        RequestKind::Read | RequestKind::Edit | RequestKind::Write => vec![files(request)?],
        RequestKind::Fetch => vec![address(request.url.as_deref()?)?],
        RequestKind::Mcp => {
            let tool = quoted(&globset::escape(request.tool.as_deref()?));
            vec![format!("kind = \"mcp\"\ntool = {tool} # with any arguments")]
        }
        RequestKind::Plan | RequestKind::Question | RequestKind::Trust => return None,
    };
    let mut text = String::new();
    for body in &bodies {
        let title = name(request, body);
        let agent = request.agent.as_str();
        text.push_str(&format!(
            "[[rule]]\nname = {}\ndecision = \"allow\"\nagent = \"{agent}\"\ncwd = {}\n{body}\n\n",
            quoted(&title),
            quoted(&cwd)
        ));
    }
    text.truncate(text.trim_end().len() + 1);
    Some(text)
}

/// A name for a rule, derived from its content: short, and different for different rules. A rule for files is named
/// after the first file, without its directories.
fn name(request: &PermissionRequest, body: &str) -> String {
    let file = match request.kind {
        RequestKind::Read | RequestKind::Edit | RequestKind::Write => {
            request.paths.first().and_then(|path| path.file_name()).and_then(|name| name.to_str())
        }
        RequestKind::Command
        | RequestKind::Mcp
        | RequestKind::Fetch
        | RequestKind::Plan
        | RequestKind::Question
        | RequestKind::Trust => None,
    };
    let kind = body.lines().next().unwrap_or_default();
    let said = file.map_or_else(|| body.to_owned(), |file| format!("{kind} {file}"));
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || file.is_some() && matches!(c, '.' | '-' | '_');
    let words: String = said.chars().map(|c| if is_of_word(c) { c } else { ' ' }).collect();
    let words: Vec<&str> = words.split_whitespace().skip(1).take(4).collect();
    // FNV-1a: used only to make names distinct.
    let hash = body.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    format!("always {} {:08x}", words.join(" "), hash >> 32)
}

fn commands(text: &str) -> Option<Vec<String>> {
    let line = shell::understand(text).ok()?;
    let mut all = Vec::new();
    for command in &line.commands {
        if !command.is_plain() || !command.takes_pipe_for_data() {
            return None;
        }
        let words = command.texts();
        // A word that a rule would interpret as a wildcard or a change of directory.
        if words.iter().any(|word| matches!(*word, "*" | "...")) || words.first() == Some(&"cd") {
            return None;
        }
        let words: Vec<_> = words.into_iter().map(quoted).collect();
        let body = format!("command = [{}]", words.join(", "));
        if !all.contains(&body) {
            all.push(body);
        }
    }
    Some(all)
}

fn files(request: &PermissionRequest) -> Option<String> {
    let mut paths = Vec::new();
    for path in &request.paths {
        paths.push(quoted(&globset::escape(request.cwd.join(path).to_str()?)));
    }
    let kind = match request.kind {
        RequestKind::Read => "read",
        RequestKind::Edit => "edit",
        RequestKind::Write => "write",
        RequestKind::Command
        | RequestKind::Mcp
        | RequestKind::Fetch
        | RequestKind::Plan
        | RequestKind::Question
        | RequestKind::Trust => return None,
    };
    (!paths.is_empty()).then(|| format!("kind = \"{kind}\"\npaths = [{}]", paths.join(", ")))
}

fn address(text: &str) -> Option<String> {
    let url = url::Url::parse(text).ok()?;
    let Some(url::Host::Domain(host)) = url.host() else { return None };
    let plain =
        url.scheme() == "https" && url.username().is_empty() && url.password().is_none() && url.port().is_none();
    (plain && host.contains('.')).then(|| format!("kind = \"fetch\"\ndomain = {} # any page of the site", quoted(host)))
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
