//! The documentation is correct: its commands run as written, its links resolve, its command lines exist, its settings
//! are valid, and the code names in it and in comments exist.
//!
//! The commands of a page run in the order of the page, on a machine with a few sessions and simulated agents. Ids that
//! the program generates at run time ([`APPROVAL`], [`FINDING`]) are replaced by real ones. A block that cannot run in
//! a test is marked in the source by `<!-- not run: reason -->` above it; there may be at most [`NOT_RUN`] such blocks.
//! A command is expected to succeed, or to end with the code stated in a comment after it: `# exit code 4`. The output
//! in a `console` block is the output of its commands.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use agents::Agent;
use events::{FindingKind, Provider, Reason, State};
use home::config::Config;
use regex::Regex;
use serde_json::Value;
use tests::{
    eventually,
    models::{
        Api, Model,
        script::{Script, say},
    },
    program::Machine,
    recording::fixtures,
    terminal_user::end_all,
    transcript::{answer, append, prompt, uuid},
    within,
};

use super::{
    PROGRAM,
    approvals::{Hook, call, request, serve},
};

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Placeholder for a pending approval.
const APPROVAL: &str = "3FFCR6W3";
/// Placeholder for an open finding.
const FINDING: &str = "fd2fba31d46fd80d6";
/// Maximum number of blocks that are not run.
const NOT_RUN: usize = 10;
/// How long a request may take to show its effect.
const A_REQUEST: Duration = Duration::from_secs(10);
/// Number of pages whose commands run at the same time.
const AT_ONCE: usize = 2;
/// A page: its path from the root, and its text.
struct Page {
    path: PathBuf,
    text: String,
}

/// A fenced block.
struct Block {
    /// The line of its fence, from 1.
    line: usize,
    language: String,
    lines: Vec<String>,
    /// The reason the block is not run.
    not_run: Option<String>,
}

impl Page {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn blocks(&self) -> Vec<Block> {
        let (mut blocks, mut open, mut before) = (Vec::new(), None::<Block>, "");
        for (index, line) in self.text.lines().enumerate() {
            if let Some(fence) = line.trim_start().strip_prefix("```") {
                match open.take() {
                    Some(block) => blocks.push(block),
                    None => {
                        let reason = before.strip_prefix("<!-- not run: ").and_then(|rest| rest.strip_suffix(" -->"));
                        let (language, not_run) = (fence.to_owned(), reason.map(str::to_owned));
                        open = Some(Block { line: index + 1, language, lines: Vec::new(), not_run });
                    }
                }
            } else if let Some(block) = &mut open {
                block.lines.push(line.to_owned());
            }
            if !line.trim().is_empty() {
                before = line.trim();
            }
        }
        assert!(open.is_none(), "{}: a block is not closed", self.name());
        blocks
    }

    /// The text outside blocks.
    fn prose(&self) -> String {
        let mut inside = false;
        let outside = self.text.lines().filter(|line| {
            let fence = line.trim_start().starts_with("```");
            inside ^= fence;
            !inside && !fence
        });
        outside.collect::<Vec<_>>().join("\n")
    }

    fn anchors(&self) -> BTreeSet<String> {
        let headings = self.text.lines().filter(|line| line.starts_with('#'));
        headings.map(|line| slug(line.trim_start_matches('#').trim())).collect()
    }
}

/// The anchor of a heading in links.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Every page of the repository, except the descriptions of fixtures.
fn pages() -> Vec<Page> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                if !name.starts_with('.') && !name.starts_with("target") && name != "fixtures" && name != "node_modules"
                {
                    walk(&path, found);
                }
            } else if name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    let mut found = vec![PathBuf::from(ROOT).join("fixtures/recordings/FORMAT.md")];
    walk(Path::new(ROOT), &mut found);
    found.sort();
    let page = |path: PathBuf| Page {
        text: fs::read_to_string(&path).unwrap(),
        path: path.strip_prefix(ROOT).unwrap().to_owned(),
    };
    found.into_iter().map(page).collect()
}

/// The README and the pages of `docs/`.
fn manual() -> Vec<Page> {
    pages().into_iter().filter(|p| p.path == Path::new("README.md") || p.path.starts_with("docs")).collect()
}

/// A machine on which the commands of a page run.
struct Sandbox {
    machine: Machine,
    hooks: Vec<Hook>,
    /// The model of our own agent, on the page about it.
    _model: Option<Model>,
}

impl Sandbox {
    fn new(page: &Page) -> Self {
        let machine = Machine::new(PROGRAM);
        std::os::unix::fs::symlink(PROGRAM, machine.agents().join("capture")).unwrap();
        for agent in [Provider::Claude, Provider::Codex, Provider::Gemini] {
            let printed = Agent::of(agent).unwrap().version.printed.as_ref().unwrap();
            let version =
                format!("{}{}{}", printed.before[0], hooks::facts(agent).unwrap().versions.newest, printed.behind);
            // Without a terminal the agent exits at once; at a terminal it shows Claude Code's prompt box and works for
            // a moment on each prompt.
            let script = format!(
                r#"[ "$*" = --version ] && echo '{version}' && exit
[ -t 0 ] || exit 0
while printf '\033]0;✳ demo\007\033[2J\033[H────────────\n❯ \n────────────\n'; do
read -r line; printf '\033]0;◐ demo\007'; sleep 1; done"#
            );
            machine.agent_script(agent, &script);
        }
        let cwd = machine.project().to_str().unwrap().to_owned();
        let titles =
            ["Add rate limiting to the upload endpoint", "Find out why the login test is flaky", "Write the guide"];
        for (n, title) in (1..).zip(titles) {
            let id = format!("{}-0000-4000-8000-{n:012}", n.to_string().repeat(8));
            append(&machine.claude(&id), &prompt(&id, &uuid(n, 1), &cwd, title));
            append(&machine.claude(&id), &answer(&id, &uuid(n, 2), &cwd, "Done."));
        }
        let tree = fixtures().join("session-tree/recorded/009-v1-two-compactions/session.jsonl");
        fs::create_dir(machine.home().join("work")).unwrap();
        fs::copy(&tree, machine.home().join("work/session.jsonl")).unwrap();
        let server = serve(&machine);
        for id in ["A7B3TRXA", "NMA12KQR", "VKMHTKCJ"] {
            assert!(server.session(id)["id"].is_string());
        }
        assert!(tests::program::ended_well(server.stop()));
        let model = (page.path == Path::new("docs/agent.md")).then(|| model(&machine));
        let sandbox = Self { machine, hooks: Vec::new(), _model: model };
        let mut before = String::from("capture ps");
        if !page.text.contains("--name api") {
            before.push_str("\ncapture run --name api --detach -- claude");
        }
        let output = sandbox.shell(&before);
        assert!(output.status.success(), "{output:?}");
        sandbox.registered(&before);
        sandbox
    }

    fn shell(&self, script: &str) -> Output {
        let mut shell = Command::new("timeout");
        shell.args(["60", "sh", "-c", script]).env_clear().current_dir(self.work()).stdin(Stdio::null());
        shell.envs(self.machine.command(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.output().unwrap()
    }

    /// The directory in which commands run. It differs from the directory of the agent that makes the requests, so that
    /// a run here is not attributed to that agent.
    fn work(&self) -> PathBuf {
        self.machine.home().join("work")
    }

    /// Waits until the server lists a run that was started: its host connects asynchronously.
    fn registered(&self, script: &str) {
        if script.contains("--name api --detach") {
            eventually("the run has a session", || self.machine.any_client()?.json("/api/v1/sessions/api"));
        }
    }

    fn list(&self, what: &str, query: &str) -> Option<Vec<Value>> {
        let page = self.machine.any_client()?.json(&format!("/api/v1/{what}?{query}"))?;
        page[what].as_array().cloned()
    }

    /// Waits for the effect of an agent's request for permission. The request is repeated because a busy server may
    /// miss one: the hook gives up soon, and a request that is read late counts as history.
    fn requested(&mut self, what: impl Fn(&Self) -> Option<Value>) -> String {
        let found = what(self).or_else(|| {
            (0..6).find_map(|n| {
                let command = format!("npm install left-pad@1.3.{n}");
                self.hooks.push(call(&self.machine, "claude", "60", &request(&self.machine, &command)));
                within(A_REQUEST, || what(self))
            })
        });
        found.unwrap_or_else(|| panic!("a request leads to nothing"))["id"].as_str().unwrap().to_owned()
    }

    /// An approval whose hook is waiting.
    fn approval(&mut self) -> String {
        self.requested(|sandbox| {
            let pending = sandbox.list("approvals", "state=pending")?;
            pending.into_iter().find(|approval| approval["answer"] == "hook")
        })
    }

    fn finding(&mut self) -> String {
        self.requested(|sandbox| sandbox.list("findings", "kind=approval")?.into_iter().next())
    }

    /// The command with placeholders replaced by real ids.
    fn filled(&mut self, command: &str) -> String {
        let mut command = command.to_owned();
        if command.contains(APPROVAL) {
            command = command.replace(APPROVAL, &self.approval());
        }
        if command.contains(FINDING) {
            command = command.replace(FINDING, &self.finding());
        }
        command
    }

    /// Runs a block; the error describes what failed.
    fn run(&mut self, block: &Block) -> Result<(), String> {
        let expected = Regex::new(r"# exit code (\d+)").unwrap();
        let (commands, mut script) = (commands(block), String::new());
        for command in commands {
            let code = expected.captures(&command).map_or("0".to_owned(), |found| found[1].to_owned());
            let command = self.filled(&command);
            script.push_str(&format!("{command}\n__code=$?; [ $__code = {code} ] || exit 99\n"));
        }
        let output = self.shell(&script);
        self.registered(&script);
        let shown: Vec<&str> = block.lines.iter().map(String::as_str).filter(|line| !line.starts_with("$ ")).collect();
        let is_as_shown =
            block.language != "console" || output.stdout.trim_ascii() == shown.join("\n").trim().as_bytes();
        if output.status.success() && is_as_shown {
            return Ok(());
        }
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Err(format!("line {}: {}\n{script}\n{out}\n{err}", block.line, output.status))
    }
}

/// A model that replaces Anthropic's.
fn model(machine: &Machine) -> Model {
    let model = Model::exact(Api::Anthropic, Script::default().lane("", [say("Yes.")])).unwrap();
    machine.configure(&format!("[agent.providers.anthropic]\nbase_url = \"{}\"\n", model.url()));
    model
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        end_all(&self.machine.data());
        self.machine.command(&["serve", "--stop"]).output().ok();
        for hook in self.hooks.drain(..) {
            hook.end();
        }
    }
}

/// The commands of a block, each with all its lines.
fn commands(block: &Block) -> Vec<String> {
    if block.language == "console" {
        return block.lines.iter().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect();
    }
    let (mut commands, mut open) = (Vec::new(), String::new());
    for line in block.lines.iter().filter(|line| !line.trim().is_empty()) {
        if !open.is_empty() {
            open.push('\n');
        }
        open.push_str(line);
        let parses = || Command::new("sh").args(["-n", "-c", &open]).stderr(Stdio::null()).status().unwrap().success();
        if !line.ends_with('\\') && parses() {
            commands.push(std::mem::take(&mut open));
        }
    }
    assert_eq!(open, "", "line {}: the last command is not complete", block.line);
    commands
}

fn is_shell(block: &Block) -> bool {
    matches!(block.language.as_str(), "sh" | "console")
}

#[test]
fn every_command_runs_as_written() {
    let mut skipped = Vec::new();
    let mut pages = Vec::new();
    for page in manual() {
        let blocks = page.blocks();
        let not_run = blocks.iter().filter_map(|block| Some((block, block.not_run.as_ref()?)));
        skipped.extend(not_run.map(|(block, why)| format!("{}:{}: {why}", page.name(), block.line)));
        if blocks.iter().any(|block| is_shell(block) && block.not_run.is_none()) {
            pages.push(page);
        }
    }
    println!("not run:\n{}", skipped.join("\n"));
    assert!(skipped.len() <= NOT_RUN, "{} blocks are not run:\n{}", skipped.len(), skipped.join("\n"));
    assert!(pages.len() >= 12, "{} pages have commands", pages.len());
    let run = |page: &Page| -> Vec<String> {
        let mut sandbox = Sandbox::new(page);
        let blocks = page.blocks();
        let blocks = blocks.iter().filter(|block| is_shell(block) && block.not_run.is_none());
        blocks.filter_map(|block| Some(format!("{} {}", page.name(), sandbox.run(block).err()?))).collect()
    };
    let run_all = |pages: &[Page]| -> Vec<String> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = pages.iter().map(|page| scope.spawn(|| run(page))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        })
    };
    let failed: Vec<String> = pages.chunks(AT_ONCE).flat_map(run_all).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn every_command_and_option_named_in_the_docs_exists() {
    let machine = Machine::new(PROGRAM);
    let (code, option) = (Regex::new(r"`capture ([a-z][^`]*)`").unwrap(), Regex::new(r"(?:^| )(--[a-z-]+)").unwrap());
    let (mut helps, mut wrong) = (BTreeMap::<Vec<String>, Option<String>>::new(), Vec::new());
    for page in pages() {
        for found in code.captures_iter(&page.prose()) {
            let words: Vec<String> = found[1].split_whitespace().map(str::to_owned).collect();
            let is_verb = |word: &&String| {
                !word.starts_with('-') && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            };
            let verbs: Vec<String> = words.iter().take_while(is_verb).cloned().collect();
            if words[0] == "hook" {
                // Agents call it; it parses no command line.
                continue;
            }
            let help = helps.entry(verbs.clone()).or_insert_with(|| {
                let all: Vec<&str> = verbs.iter().map(String::as_str).chain(["--help"]).collect();
                let output = machine.command(&all).output().unwrap();
                output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
            });
            let before = found[1].split(" -- ").next().unwrap_or_default();
            match help {
                None => wrong.push(format!("{}: `capture {}`", page.name(), &found[1])),
                Some(help) => {
                    let missing = option.captures_iter(before).filter(|option| !help.contains(&option[1]));
                    wrong.extend(
                        missing.map(|option| format!("{}: {} of `capture {}`", page.name(), &option[1], &found[1])),
                    );
                }
            }
        }
    }
    assert!(helps.len() > 40, "{} command lines are looked at", helps.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_link_in_the_docs_resolves() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let pages: BTreeMap<PathBuf, Page> = pages().into_iter().map(|page| (page.path.clone(), page)).collect();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in pages.values() {
        for target in link.captures_iter(&page.prose()).map(|found| found.get(1).unwrap().as_str().to_owned()) {
            if target.contains("://") {
                continue;
            }
            count += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let there = if path.is_empty() { page.path.clone() } else { page.path.parent().unwrap().join(path) };
            let Ok(full) = Path::new(ROOT).join(&there).canonicalize() else {
                wrong.push(format!("{}: {target}", page.name()));
                continue;
            };
            let top = Path::new(ROOT).canonicalize().unwrap();
            let known = full.strip_prefix(&top).ok().and_then(|path| pages.get(path));
            if !anchor.is_empty() && !known.is_some_and(|page| page.anchors().contains(anchor)) {
                wrong.push(format!("{}: {target}: no such heading", page.name()));
            }
        }
    }
    assert!(count > 80, "{count} links");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_setting_shown_is_valid() {
    let machine = Machine::new(PROGRAM);
    let (dir, mut wrong, mut count) = (machine.project(), Vec::new(), 0);
    for page in manual() {
        for block in page.blocks().iter().filter(|block| block.language == "toml") {
            count += 1;
            let (file, text) = (dir.join("shown.toml"), block.lines.join("\n"));
            fs::write(&file, &text).unwrap();
            let failed = if text.contains("version = 1") {
                let output = machine.command(&["policy", "check", file.to_str().unwrap()]).output().unwrap();
                (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
            } else if text.contains("[[model]]") {
                prices::Prices::default().with(&text).err().map(|error| error.to_string())
            } else {
                Config::load(&file).err().map(|error| format!("{error:#}"))
            };
            wrong.extend(failed.map(|why| format!("{}:{}: {why}", page.name(), block.line)));
        }
    }
    assert!(count >= 8, "{count} blocks");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_configuration_page_shows_the_default_values() {
    let page = fs::read_to_string(format!("{ROOT}/docs/configuration.md")).unwrap();
    let page = Page { path: "docs/configuration.md".into(), text: page };
    let shown: Vec<String> =
        page.blocks().iter().filter(|b| b.language == "toml").map(|b| b.lines.join("\n")).collect();
    let file = tempfile::tempdir().unwrap();
    let file = file.path().join("shown.toml");
    for text in shown.iter().filter(|text| !text.contains("/home/")) {
        // An empty list of homes is equal to no list.
        let text: Vec<&str> = text.lines().filter(|line| !line.ends_with(" = []")).collect();
        fs::write(&file, text.join("\n")).unwrap();
        assert_eq!(Config::load(&file).unwrap(), Config::default(), "{text:?}");
    }
    let limits = serde_json::to_value(monitor::DetectorLimits::default()).unwrap();
    for name in limits.as_object().unwrap().keys() {
        assert!(shown.iter().any(|text| text.contains(name.as_str())), "`{name}` is not in {}", page.name());
    }
}

#[test]
fn every_route_is_on_the_http_api_page() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let page = fs::read_to_string(format!("{ROOT}/docs/http-api.md")).unwrap();
    let api = server.client.json("/openapi.json").unwrap();
    let mut missing = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys().filter(|key| ["get", "post", "put"].contains(&key.as_str())) {
            let route = format!("`{} {path}`", method.to_uppercase());
            if !page.contains(&route) {
                missing.push(route);
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Collects the sources of a crate: their text, and the names of files and directories, which are module names.
fn sources(dir: &Path, text: &mut String) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            if !["node_modules", "target", "web"].contains(&name.as_str()) {
                text.push_str(&format!("mod {name}\n"));
                sources(&path, text);
            }
        } else if let Some(module) = name.strip_suffix(".rs") {
            text.push_str(&format!("mod {module}\n"));
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn paths_of_items_in_docs_and_comments_exist() {
    let crates: HashMap<&str, String> = super::arrows::ARROWS
        .iter()
        .map(|(name, dir, _)| {
            let mut text = String::new();
            sources(&Path::new(ROOT).join(dir), &mut text);
            (*name, text)
        })
        .collect();
    let items: HashMap<&str, (HashSet<&str>, HashSet<&str>)> = crates
        .iter()
        .map(|(name, text)| {
            let item = Regex::new(
                r"\b(?:fn|struct|enum|trait|mod|const|static|type|macro_rules!|as)\s+(\w+)|(?m:^\s*(\w+) \{$)",
            )
            .unwrap();
            let word = Regex::new(r"\w+").unwrap();
            let defined = item.captures_iter(text).filter_map(|found| found.get(1).or(found.get(2)));
            (*name, (defined.map(|name| name.as_str()).collect(), word.find_iter(text).map(|w| w.as_str()).collect()))
        })
        .collect();
    let path = Regex::new(r"`([a-z_]+)((?:::\w+)+)(?:\(\))?`").unwrap();
    let mut wrong = Vec::new();
    let mut check = |place: &str, text: &str| {
        for found in path.captures_iter(text) {
            let Some((defined, words)) = items.get(&found[1]) else { continue };
            let segments: Vec<&str> = found[2].split("::").skip(1).collect();
            let exists = segments.iter().enumerate().all(|(at, segment)| {
                // A name after a type is one of its variants, fields or methods.
                let of_type = at > 0 && segments[at - 1].starts_with(char::is_uppercase);
                defined.contains(segment) || (of_type || at + 1 == segments.len()) && words.contains(segment)
            });
            if !exists {
                wrong.push(format!("{place}: {}", &found[0]));
            }
        }
    };
    for page in pages() {
        check(&page.name(), &page.prose());
    }
    for (name, text) in &crates {
        for line in text.lines() {
            if let Some((_, comment)) = line.split_once("//") {
                check(name, comment);
            }
        }
    }
    assert!(wrong.is_empty(), "these paths lead to nothing:\n{}", wrong.join("\n"));
}

/// `UPDATE_DOCS=1` writes the table.
#[test]
fn the_status_page_lists_every_reason_as_the_code_describes_it() {
    let rows = State::ALL.iter().flat_map(|state| {
        let of_state = Reason::ALL.iter().flat_map(move |reason| {
            reason.facts().uses.iter().filter(move |of| of.state == *state).map(move |of| (*reason, *of))
        });
        of_state.enumerate().map(move |(at, (reason, of))| {
            let state = if at == 0 { format!("`{state}` ") } else { String::new() };
            let evidence = if of.evidence.is_empty() { String::new() } else { format!("{} ", of.evidence) };
            format!("| {state}| `{reason}` | {} | {evidence}|\n", of.meaning)
        })
    });
    let head = "| state | reason | meaning | comes from |\n|---|---|---|---|\n";
    table_in("docs/status.md", "| state | reason |", &format!("{head}{}", rows.collect::<String>()));
}

/// `UPDATE_DOCS=1` writes the table.
#[test]
fn the_findings_page_lists_every_kind_as_the_code_describes_it() {
    let rows = FindingKind::ALL.iter().map(|kind| {
        let facts = kind.facts();
        format!("| `{kind}` | {} | {} | {} | {} |\n", facts.severity, facts.raised, facts.resolved, facts.advice)
    });
    let head = "| kind | severity | raised when | resolved when | what to do |\n|---|---|---|---|---|\n";
    table_in("docs/findings.md", "| kind | severity |", &format!("{head}{}", rows.collect::<String>()));
}

/// Compares the table that begins with `head` in a page of the documentation.
#[expect(clippy::disallowed_methods, reason = "how the tests are called")]
fn table_in(page: &str, head: &str, table: &str) {
    let path = format!("{ROOT}/{page}");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(head).unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let right = format!("{before}{table}\n{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, right).unwrap();
    } else {
        assert!(page == right, "the table of {path} is not what the program says: UPDATE_DOCS=1 writes it");
    }
}
