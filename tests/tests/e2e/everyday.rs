//! Everyday commands from outside: the overview without a command, counts for a shell prompt, the configuration, runs
//! by name, templates.

use std::{fs, process::Stdio};

use serde_json::Value;
use tests::{
    eventually,
    program::{Machine, Server},
    terminal_user::User,
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

/// Exit code, standard output and standard error of a command.
fn run(machine: &Machine, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = machine.command(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A session whose turn is complete and that waits for its next prompt.
fn waiting_session(machine: &Machine, server: &Server) -> String {
    let (id, cwd) = (session(1), machine.project());
    let (path, cwd) = (machine.claude(&id), cwd.to_str().unwrap().to_owned());
    append(&path, &prompt(&id, &uuid(1, 1), &cwd, "Add a title"));
    is_known(server, &id);
    append(&path, &prompt(&id, &uuid(1, 2), &cwd, "And a subtitle"));
    reaches(server, &id, "running");
    append(&path, &answer(&id, &uuid(1, 3), &cwd, "done"));
    reaches(server, &id, "waiting");
    id
}

/// Waits until the server lists a session: records appended after that are live, while earlier ones may have been read
/// as history.
fn is_known(server: &Server, id: &str) {
    eventually("the session is known", || server.client.json(&format!("/api/v1/sessions/{id}")));
}

fn reaches(server: &Server, id: &str, state: &str) {
    eventually(&format!("it is {state}"), || {
        let now = server.client.json(&format!("/api/v1/sessions/{id}"))?["status"]["state"].clone();
        (now == state).then_some(())
    });
}

#[test]
fn capture_without_a_command_lists_waiting_sessions_and_missing_setup() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    waiting_session(&machine, &server);
    let (code, out, err) = run(&machine, &[]);
    assert_eq!(code, Some(0), "{err}");
    // The same as in `next` and the status line.
    assert!(out.contains("Add a title") && out.contains("`capture ps --all` lists all sessions"), "{out}");
    assert!(run(&machine, &["next"]).1.contains("prompt") && run(&machine, &["statusline"]).1 == "◆1\n");
    assert!(out.contains("capture hooks install"), "{out}");
    // Without a desktop session and without a channel no notification can be delivered.
    assert!(run(&machine, &["setup"]).1.contains("· capture notify --help"));
    assert_eq!(run(&machine, &["setup", "--dismiss"]).0, Some(0));
    let (_, out, _) = run(&machine, &[]);
    assert!(!out.contains("capture hooks install"), "{out}");
    assert!(run(&machine, &["setup"]).1.contains("capture hooks install"), "it is still listed");
    assert_eq!(run(&machine, &["setup", "--restore"]).0, Some(0));
    assert!(run(&machine, &[]).1.contains("capture hooks install"));
}

#[test]
fn showing_a_session_on_a_terminal_acknowledges_its_completion() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let id = waiting_session(&machine, &server);
    let completions = |state: &str| {
        let page = server.client.json(&format!("/api/v1/findings?kind=completion&state={state}"))?;
        page["findings"].as_array().map(Vec::len)
    };
    eventually("the end of the turn is told", || completions("open").filter(|open| *open == 1));
    // Lists, dry runs and output for programs do not count as viewing a session.
    for command in [&["show", &id][..], &["ps"], &["show", &id, "--json"], &["jump", &id, "--dry-run"]] {
        run(&machine, command);
    }
    let mut user = User::start(&machine, &format!("$PROGRAM ps; $PROGRAM show {id} --json"));
    assert_eq!(user.end().1, 0);
    assert_eq!(completions("open"), Some(1));
    let mut user = User::start(&machine, &format!("$PROGRAM show {id}"));
    assert_eq!(user.end().1, 0);
    assert_eq!((completions("open"), completions("acknowledged")), (Some(0), Some(1)));
}

#[test]
fn statusline_prints_counts_and_starts_no_server() {
    let machine = Machine::new(PROGRAM);
    assert_eq!(run(&machine, &["statusline"]), (Some(0), String::new(), String::new()));
    assert!(machine.endpoint().is_none(), "no server was started");
    let server = machine.serve();
    waiting_session(&machine, &server);
    assert_eq!(run(&machine, &["statusline"]).1, "◆1\n");
    assert_eq!(run(&machine, &["statusline", "--for", "tmux"]).1, "#[fg=yellow]◆1#[default]\n");
    assert_eq!(run(&machine, &["statusline", "--format", "{{ waiting }}/{{ need_you }}"]).1, "1/0\n");
}

#[test]
fn format_and_quiet_print_rows_by_template_or_as_ids() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let id = waiting_session(&machine, &server);
    let ours = server.client.json(&format!("/api/v1/sessions/{id}")).unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(run(&machine, &["ps", "-q"]).1, format!("{ours}\n"));
    let template = "{{ provider }} {{ status.state }} {{ title }}";
    assert_eq!(run(&machine, &["ps", "--format", template]).1, "claude waiting Add a title\n");
    let kinds = run(&machine, &["events", &id, "--kind", "user.prompt", "--format", "{{ kind }}"]).1;
    assert_eq!(kinds, "user.prompt\nuser.prompt\n");
    let (code, out, err) = run(&machine, &["ps", "--format", "{{ nope }}"]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    assert!(err.contains("--json shows the fields"), "{err}");
}

#[test]
fn config_set_validates_and_config_show_marks_defaults() {
    let machine = Machine::new(PROGRAM);
    assert_eq!(run(&machine, &["config", "get", "status.idle_after_s"]).1, "120 (default)\n");
    let (code, out, err) = run(&machine, &["config", "set", "status.idle_after_s", "60"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!(run(&machine, &["config", "get", "status.idle_after_s"]).1, "60\n");
    let shown = run(&machine, &["config", "show"]).1;
    let line = |key: &str| shown.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
    assert!(!line("status.idle_after_s").contains("(default)"), "{shown}");
    assert!(line("status.lost_after_s").contains("600  (default)"), "{shown}");
    // An invalid value changes nothing.
    for (key, value, why) in [
        ("status.idle_after_s", "1", "`: 1 is out of range: expected 5 to 86400"),
        ("status.idle_after_s", "abc", "expected a whole number, 0 or more, got \"abc\""),
        ("no.such", "1", "unknown setting `no`"),
    ] {
        let (code, _, err) = run(&machine, &["config", "set", key, value]);
        assert!(code == Some(1) && err.starts_with(&format!("capture: cannot set `{key}`: ")), "{err}");
        assert!(err.contains(why) && !err.contains(".toml"), "{err}");
    }
    assert_eq!(run(&machine, &["config", "get", "status.idle_after_s"]).1, "60\n");
    assert_eq!(run(&machine, &["config", "unset", "status.idle_after_s"]).0, Some(0));
    assert_eq!(run(&machine, &["config", "get", "status.idle_after_s"]).1, "120 (default)\n");
    assert_eq!(run(&machine, &["config", "get", "no.such"]).0, Some(4));
    assert_eq!(run(&machine, &["config", "get", "agent.retries"]).1, "12 (default)\n");
    let (code, _, err) = run(&machine, &["config", "get", "agent.model"]);
    assert!(code == Some(4) && err.contains("`agent.model` is not set"), "{err}");
    assert_eq!(run(&machine, &["config", "check"]).0, Some(0));
}

#[test]
fn an_agent_cannot_change_the_configuration() {
    let machine = Machine::new(PROGRAM);
    let output = machine.command(&["config", "set", "autostart", "false"]).env("CLAUDECODE", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(run(&machine, &["config", "get", "autostart"]).1, "true (default)\n");
}

#[test]
fn all_events_of_a_long_session_are_printed_in_order() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (id, cwd) = (session(1), machine.project());
    let (path, cwd) = (machine.claude(&id), cwd.to_str().unwrap().to_owned());
    // More sessions than one request returns.
    for n in 1..=700 {
        append(
            &path,
            &prompt(&id, &uuid(1, n), &cwd, &format!("Prompt {n}: ändere den Titel {}", "weiter ".repeat(20))),
        );
    }
    let prompts = || {
        let out = run(&machine, &["events", &id, "--kind", "user.prompt", "--json"]).1;
        let texts =
            out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().to_owned());
        texts.map(|text| text.split(':').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    eventually("all are read", || {
        (server.client.json(&format!("/api/v1/sessions/{id}")).is_some() && prompts().len() == 700).then_some(())
    });
    assert_eq!(prompts(), (1..=700).map(|n| format!("Prompt {n}")).collect::<Vec<_>>());
    let listed = |arguments: &[&str]| -> Vec<u64> {
        let (code, out, err) = run(&machine, &[&["events", &id], arguments].concat());
        assert_eq!(code, Some(0), "{err}");
        out.lines().map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
    };
    let all = listed(&[]);
    assert!(all.len() > 1_300 && all.iter().zip(1..).all(|(found, n)| *found == n), "{} events", all.len());
    assert_eq!(listed(&["--limit", "130"]), (1..=130).collect::<Vec<_>>());
    assert_eq!(listed(&["--after", "95", "--limit", "7"]), (96..=102).collect::<Vec<_>>());
    let output = machine.command(&["events", &id]).env("COLUMNS", "90").output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(
        out.lines().all(|line| line.chars().count() <= 90)
            && out.contains("ändere den Titel weiter")
            && out.contains('…'),
        "{out}"
    );
}

#[test]
fn ps_output_is_truncated_only_to_the_columns_variable() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (id, cwd) = (session(1), machine.project());
    let (path, cwd) = (machine.claude(&id), cwd.to_str().unwrap().to_owned());
    let words = "Rename every function of the parser so that its name begins with a verb and says what it gives";
    append(&path, &prompt(&id, &uuid(1, 1), &cwd, "hello"));
    is_known(&server, &id);
    append(&path, &prompt(&id, &uuid(1, 2), &cwd, words));
    let whole = "working on: Rename every function of the parser so that its name";
    eventually("it is listed whole", || run(&machine, &["ps"]).1.contains(whole).then_some(()));
    let output = machine.command(&["ps"]).env("COLUMNS", "60").output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.lines().all(|line| line.chars().count() <= 60) && out.contains('…'), "{out}");
}

#[test]
fn shell_completion_offers_live_sessions_commands_and_runs() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let id = waiting_session(&machine, &server);
    let ours = server.client.json(&format!("/api/v1/sessions/{id}")).unwrap()["id"].as_str().unwrap().to_owned();
    let mut command = machine.command(&["--", "capture", "show", ""]);
    let output =
        command.env("CAPTURE_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "2").env("_CLAP_IFS", "\n").output();
    let out = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(out.lines().any(|line| line == &ours[ours.len() - 8..]), "{out}");
    let mut command = machine.command(&["--", "capture", ""]);
    let output =
        command.env("CAPTURE_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "1").env("_CLAP_IFS", "\n").output();
    let out = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(out.lines().any(|line| line == "ps") && !out.contains("run-host"), "{out}");
    assert_eq!(run(&machine, &["run", "--name", "ab cd;x", "--detach", "--", "sleep", "600"]).0, Some(0));
    // bash inserts the completion as it is, so it is escaped; zsh quotes it itself.
    for (shell, type_of_bash, expected) in [("bash", Some("9"), r"ab\ cd\;x"), ("zsh", None, "ab cd;x")] {
        let mut command = machine.command(&["--", "capture", "attach", "ab"]);
        command.env("CAPTURE_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "2").env("_CLAP_IFS", "\n");
        command.envs(type_of_bash.map(|value| ("_CLAP_COMPLETE_COMP_TYPE", value)));
        let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(out.lines().any(|line| line.starts_with(expected)), "{shell}: {out}");
    }
}

#[test]
fn runs_are_listed_and_found_by_name() {
    let machine = Machine::new(PROGRAM);
    let _server = machine.serve();
    assert_eq!(run(&machine, &["run", "--name", "cl", "--detach", "--", "sleep", "600"]).0, Some(0));
    let runs: Value = eventually("the run is listed", || {
        let runs: Value = serde_json::from_str(&run(&machine, &["runs", "--json"]).1).ok()?;
        (runs["runs"][0]["name"] == "cl" && runs["runs"][0]["session_id"].is_string()).then_some(runs)
    });
    let pid = runs["runs"][0]["pid"].as_i64().unwrap();
    assert!(run(&machine, &["runs"]).1.contains("sleep 600"));
    for command in [&["show", "cl"][..], &["explain", "cl"], &["queue", "cl"], &["events", "cl"]] {
        let (code, _, err) = run(&machine, command);
        assert_eq!(code, Some(0), "{command:?}: {err}");
    }
    tests::terminal_user::signal(i32::try_from(pid).unwrap(), rustix::process::Signal::TERM);
    eventually("the run is over", || run(&machine, &["runs"]).1.contains("no active runs").then_some(()));
}

#[test]
fn hooks_are_uninstalled_even_if_stdout_is_closed() {
    let machine = Machine::new(PROGRAM);
    machine.newest_agents();
    let settings = machine.home().join(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let (code, _, err) = run(&machine, &["hooks", "install", "--agent", "claude", "--yes"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(settings.exists());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut uninstall = machine.command(&["hooks", "uninstall", "--yes"]);
    uninstall.stdout(writer).status().unwrap();
    let left = std::fs::read_to_string(&settings).unwrap_or_default();
    assert!(!left.contains("capture"), "{left}");
}

#[test]
fn uninstall_deletes_data_only_with_the_flag() {
    let machine = Machine::new(PROGRAM);
    machine.newest_agents();
    let settings = machine.home().join(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    assert_eq!(run(&machine, &["hooks", "install", "--agent", "claude", "--yes"]).0, Some(0));
    assert_eq!(run(&machine, &["ps"]).0, Some(0));
    let (code, _, err) = run(&machine, &["uninstall"]);
    assert_eq!((code, err.contains("pass --yes")), (Some(5), true), "{err}");
    let servers = r#"{"mcpServers":{"watcher":{"command":"/usr/bin/capture","args":["mcp"]},"other":{"command":"capture","args":["x"]}}}"#;
    std::fs::write(machine.home().join(".claude.json"), servers).unwrap();
    std::fs::create_dir_all(machine.home().join(".codex")).unwrap();
    let servers = "[mcp_servers.capture]\ncommand = \"capture\"\nargs = [\"mcp\"]\n";
    std::fs::write(machine.home().join(".codex/config.toml"), servers).unwrap();
    let (code, out, err) = run(&machine, &["uninstall", "--yes"]);
    assert_eq!(code, Some(0), "{out}{err}");
    for (name, file, remove) in [
        ("watcher", ".claude.json", "claude mcp remove watcher"),
        ("capture", ".codex/config.toml", "codex mcp remove capture"),
    ] {
        let line = out.lines().find(|line| line.contains(&format!("`{remove}` removes it"))).expect(&out);
        assert!(line.starts_with(&format!("kept the MCP server {name} in ")) && line.contains(file), "{line}");
    }
    assert!(!out.contains("other"), "{out}");
    assert!(!std::fs::read_to_string(&settings).unwrap_or_default().contains("capture"));
    assert!(out.contains("stopped the server") && out.contains("kept the recorded data"), "{out}");
    assert!(machine.data().join("capture.db").exists());
    let (code, out, _) = run(&machine, &["uninstall", "--yes", "--delete-data"]);
    assert!(code == Some(0) && !machine.data().exists(), "{out}");
    // A directory that capture did not create is left alone.
    std::fs::create_dir_all(machine.data()).unwrap();
    std::fs::write(machine.data().join("thesis.txt"), "x").unwrap();
    assert_ne!(run(&machine, &["uninstall", "--yes", "--delete-data"]).0, Some(0));
    assert!(machine.data().join("thesis.txt").exists());
}

/// Changes `endpoint.json` so that the server appears to have another version or another way of starting.
fn pretend(machine: &Machine, version: &str, is_background: bool) -> i64 {
    let file = machine.data().join("endpoint.json");
    let mut endpoint = machine.endpoint().unwrap();
    endpoint["version"] = version.into();
    endpoint["background"] = is_background.into();
    std::fs::write(&file, endpoint.to_string()).unwrap();
    endpoint["pid"].as_i64().unwrap()
}

#[test]
fn a_newer_client_restarts_an_older_autostarted_server() {
    let machine = Machine::new(PROGRAM);
    assert_eq!(run(&machine, &["ps"]).0, Some(0));
    let endpoint = machine.endpoint().unwrap();
    assert_eq!(endpoint["version"], env!("CARGO_PKG_VERSION"));
    let old = pretend(&machine, "0.0.1", false);
    run(&machine, &["ps"]);
    assert_eq!(machine.endpoint().unwrap()["pid"], old, "somebody started it on purpose");
    pretend(&machine, "99.0.0", true);
    run(&machine, &["ps"]);
    assert_eq!(machine.endpoint().unwrap()["pid"], old, "it is newer");
    pretend(&machine, "0.0.1", true);
    let output = machine.command(&["ps"]).env("CLAUDECODE", "1").output().unwrap();
    assert!(output.status.success());
    assert_eq!(machine.endpoint().unwrap()["pid"], old, "an agent's command stops nothing");
    let (code, _, err) = run(&machine, &["ps"]);
    assert_eq!((code, err.contains("restarted the server, which was version 0.0.1")), (Some(0), true), "{err}");
    assert_ne!(machine.endpoint().unwrap()["pid"], old);
    assert_eq!(run(&machine, &["serve", "--stop"]).0, Some(0));
}

#[test]
fn a_directory_with_foreign_files_is_refused_as_data_directory() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new(PROGRAM);
    let other = machine.home().join("precious");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(other.join("thesis.txt"), "x").unwrap();
    for arguments in [&["ps"][..], &["serve"], &["doctor"], &["run", "--", "true"]] {
        let output = machine.command(arguments).env("CAPTURE_DATA_DIR", &other).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && err.contains("contains no data of capture"), "{arguments:?}: {err}");
    }
    assert_eq!(other.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1);
}

#[test]
fn attach_and_export_find_a_run_by_its_session() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let script = "echo hello; exec sleep 600";
    let started = run(&machine, &["run", "--record", "--name", "cl", "--detach", "--", "sh", "-c", script]);
    assert_eq!(started.0, Some(0), "{}", started.2);
    let session = eventually("the run has a session", || {
        let runs: Value = server.client.json("/api/v1/runs")?;
        runs["runs"][0]["session_id"].as_str().map(str::to_owned)
    });
    eventually("the recording has what was shown", || {
        let (code, out, _) = run(&machine, &["export", &session]);
        (code == Some(0) && out.contains("hello")).then_some(())
    });
    let (code, _, err) = run(&machine, &["attach", &session]);
    assert_eq!((code, err.contains("needs a terminal")), (Some(1), true), "the run was found: {err}");
    assert_eq!(run(&machine, &["export", "nope"]).0, Some(4));
    tests::terminal_user::end_all(&machine.data());
}

#[test]
fn usage_errors_exit_with_2_and_missing_items_with_4() {
    let machine = Machine::new(PROGRAM);
    let _server = machine.serve();
    for list in ["ps", "approvals", "findings"] {
        let (code, _, err) = run(&machine, &[list, "--limit", "0"]);
        assert_eq!((code, err.contains("above 0")), (Some(2), true), "{list}: {err}");
    }
    assert_eq!(run(&machine, &["audit", "show", "--limit", "0"]).0, Some(2));
    assert_eq!(run(&machine, &["send", "cl", "--keys", "foo"]).0, Some(4), "there is no run");
    for missing in [
        &["show", "nope"][..],
        &["approvals", "nope"],
        &["findings", "nope"],
        &["audit", "show", "nope"],
        &["notify", "test", "nope"],
        &["queue", "--cancel", "nope"],
        &["man", "nope"],
    ] {
        let (code, out, err) = run(&machine, missing);
        assert_eq!((code, out.as_str(), err.contains(" no ")), (Some(4), "", true), "{missing:?}: {err}");
    }
    let (code, out, _) = run(&machine, &["ps", "--all", "--cwd", "/nowhere"]);
    assert_eq!((code, out.as_str()), (Some(0), "no sessions in /nowhere\n"));
    let (code, _, err) = run(&machine, &["standup", "--since", "5y"]);
    assert_eq!((code, err.contains("5m, 2h or 3d, got `5y`")), (Some(2), true), "{err}");
    assert_eq!(run(&machine, &["notify", "channels"]).1, "desktop (not in use: no desktop session)\n");
}

#[test]
fn config_set_reports_whether_the_running_server_applies_the_setting() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let set = |key: &str, value: &str| {
        let (code, out, err) = run(&machine, &["config", "set", key, value]);
        assert_eq!(code, Some(0), "{out}{err}");
        err
    };
    assert!(
        set("status.idle_after_s", "60").contains("still uses the old status.idle_after_s; `capture serve --restart`")
    );
    assert!(set("monitor.stuck_ms", "700000").contains("the running server applies monitor.stuck_ms within 2 s"));
    assert_eq!(set("pager", "false"), "", "commands read it themselves");
    eventually("they are in force", || server.log().contains("findings and actions have changed").then_some(()));
    let file = machine.home().join("told");
    let argv = format!("[\"/bin/sh\", \"-c\", \"cat > {}\"]", file.display());
    let channel = format!("[[notify.channels]]\ntype = \"command\"\nname = \"note\"\nargv = {argv}\n");
    machine.configure(&channel);
    eventually("the new channel takes messages", || {
        let (code, _, _) = run(&machine, &["notify", "test", "note"]);
        (code == Some(0) && file.exists()).then_some(())
    });
    // An invalid configuration changes nothing.
    machine.configure("nonsense = 1\n");
    eventually("it is reported", || server.log().contains("the configuration is not valid").then_some(()));
    machine.configure(&channel);
    assert_eq!(run(&machine, &["notify", "test", "note"]).0, Some(0));
    assert!(server.stop().success());
}

#[test]
fn long_output_is_paged_only_on_a_terminal() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let id = waiting_session(&machine, &server);
    // A pager that shows its input and reports that it was used.
    let pager = "sed 's/^/paged: /'; echo left the pager";
    let shown = |arguments: &str, more: &[(&str, &str)]| {
        let script = format!("\"$PROGRAM\" {arguments}");
        let (shown, code) = tests::terminal_user::User::start_with(&machine, &script, more).end();
        (String::from_utf8(shown).unwrap(), code)
    };
    let of_ours = [("CAPTURE_PAGER", pager), ("PAGER", "false")];
    let (text, code) = shown(&format!("show {id}"), &of_ours);
    assert!(code == 0 && text.contains("paged: title       Add a title") && text.contains("left the pager"), "{text}");
    let (text, _) = shown(&format!("events {id}"), &[("PAGER", pager)]);
    assert!(text.contains("paged: ") && text.contains("user.prompt"), "{text}");
    for unpaged in
        [format!("show {id} --no-pager"), format!("show {id} --json"), "ps".into(), format!("show {id} | cat")]
    {
        let (text, code) = shown(&unpaged, &of_ours);
        assert!(code == 0 && !text.contains("paged: ") && !text.is_empty(), "{unpaged}: {text}");
    }
    let (text, code) = shown("show nope", &of_ours);
    assert!(code == 4 && text.contains("no session `nope`"), "{text}");
    assert_eq!(run(&machine, &["config", "set", "pager", "false"]).0, Some(0));
    assert!(!shown(&format!("show {id}"), &of_ours).0.contains("paged: "));
}

#[test]
fn a_server_that_dies_while_a_command_connects_is_replaced() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let pid = i32::try_from(server.pid()).unwrap();
    tests::terminal_user::signal(pid, rustix::process::Signal::STOP);
    let mut command = machine.command(&["ps"]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("it has connected and waits", || {
        let open = fs::read_dir(format!("/proc/{}/fd", command.id())).ok()?;
        let mut open = open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        open.any(|file| file.to_string_lossy().starts_with("socket:")).then_some(())
    });
    server.kill();
    let output = command.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(run(&machine, &["serve", "--stop"]).0, Some(0), "it has started another");
}

#[test]
fn standup_on_a_terminal_wraps_at_words_and_does_not_escape() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (id, cwd) = (session(1), machine.project());
    let cwd = cwd.to_str().unwrap();
    append(&machine.claude(&id), &prompt(&id, &uuid(1, 1), cwd, "Why does `rm -rf` fail on *some* machines of ours?"));
    is_known(&server, &id);
    let (_, piped, _) = run(&machine, &["standup", "--since", "10000d"]);
    assert!(piped.contains("  - asked: Why does \\`rm -rf\\` fail on \\*some\\* machines of ours?\n"), "{piped}");
    let mut user = User::start_with(
        &machine,
        "$PROGRAM standup --since 10000d --no-pager",
        &[("COLUMNS", "40"), ("NO_COLOR", "1")],
    );
    user.expect("  - asked: Why does `rm -rf` fail on\r\n    *some* machines of ours?\r\n");
    user.end();
}

/// A mistyped option of `run` is not run as a program, and a reversed period and an unusable name are refused.
#[test]
fn mistyped_options_periods_and_names_are_refused() {
    let machine = Machine::new(PROGRAM);
    machine.configure("autostart = false\n");
    for (words, said) in [
        (&["run", "--detatch", "--", "true"][..], "`capture run` has no option `--detatch`"),
        (&["run", "--name", " ", "--", "true"], "a name must contain"),
        (&["usage", "--since", "1d", "--until", "2d"], "before it begins"),
        (&["log", "--since", "2h", "--until", "3h"], "before it begins"),
        (&["search", "x", "--since", "2026-11-20", "--until", "2026-11-10"], "before it begins"),
        (&["prune", "--larger-than", "1"], "expected a size such as 500MB"),
    ] {
        let (code, _, err) = run(&machine, words);
        assert!(code == Some(2) && err.contains(said), "{words:?}: {code:?} {err}");
    }
}

/// The policy is shown and tested even where it is not in force, and its preset can be chosen.
#[test]
fn a_policy_can_be_shown_tested_and_given_a_preset() {
    let machine = Machine::new(PROGRAM);
    machine.configure("autostart = false\n");
    let config = machine.home().parent().unwrap().join("config");
    let in_config = |words: &[&str]| {
        let output = machine.command(words).current_dir(&config).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    // Without a policy file; listing presets and refusing one changes nothing.
    let (code, shown, _) = in_config(&["policy", "show"]);
    assert!(
        code == Some(0)
            && shown.contains("(does not exist)")
            && shown.contains("preset  none: if none of your rules matches"),
        "{shown}"
    );
    let presets = in_config(&["policy", "preset"]).1;
    assert!(presets.contains("ask-everything") && !presets.contains('✓'), "{presets}");
    let file = config.join("capture/policy.toml");
    let (code, _, err) = in_config(&["policy", "preset", "read-only"]);
    assert!(code == Some(5) && err.contains("nothing was changed") && !file.exists(), "nobody agreed: {err}");
    assert_eq!(in_config(&["policy", "preset", "nothing"]).0, Some(2));
    machine.policy(
        "version = 1\npreset = \"denials\" # for now\n[[rule]]\nname = \"no push\"\ndecision = \"deny\"\n\
         command = [\"git\", \"push\"]\nreason = \"I push myself.\"\n",
    );
    let (code, diff, _) = in_config(&["policy", "preset", "read-only", "--yes"]);
    assert!(
        code == Some(0) && diff.contains("-preset = \"denials\" # for now\n+preset = \"read-only\" # for now"),
        "{diff}"
    );
    assert!(std::fs::read_to_string(&file).unwrap().contains("name = \"no push\""));
    assert!(in_config(&["policy", "preset", "read-only", "--yes"]).1.contains("is already read-only"));
    let (_, shown, _) = in_config(&["policy", "show"]);
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text}: {shown}"));
    assert!(
        at("deny   no push  `git push`  I push myself.") < at("denials/wipe")
            && at("denials/wipe") < at("read-only/tools")
    );
    assert!(shown.contains("note    you decide every request of agents"), "{shown}");
    // The policy is not in force here, which a note says; the decision is printed all the same.
    let (_, said, note) = in_config(&["policy", "test", "git push"]);
    assert_eq!(said, "deny: I push myself. (no push)\n");
    assert!(note.contains("contains the policy"), "{note}");
    let (_, json, _) = in_config(&["policy", "test", "--json", "git push"]);
    let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&answer["decision"], &answer["in_force"]), (&"deny".into(), &false.into()));
    let project =
        machine.command(&["policy", "test", "--json", "git push"]).current_dir(machine.project()).output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&project.stdout).unwrap();
    assert_eq!((&answer["decision"], &answer["in_force"]), (&"deny".into(), &true.into()));
    let (_, json, _) = in_config(&["policy", "show", "--json"]);
    let view: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&view["preset"], &view["rules"][0]["name"]), (&"read-only".into(), &"no push".into()));
    let (code, _, err) = {
        let output = machine.agents_shell("claude", "capture policy preset develop --yes").output().unwrap();
        (output.status.code(), (), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(code == Some(5) && err.contains("is not allowed from this process"), "{err}");
}
