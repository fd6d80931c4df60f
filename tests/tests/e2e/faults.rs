//! Faults of files, and users who opted out of being captured.

use std::{fs, path::Path};

use tests::{
    eventually, number_from_env,
    program::Machine,
    transcript::{answer, append, prompt, session, uuid},
    within,
};

use super::PROGRAM;

#[test]
fn a_transcript_deleted_upstream_stays_readable() {
    let machine = Machine::new(PROGRAM);
    let (name, cwd) = (session(1), machine.project().to_str().unwrap().to_owned());
    let path = machine.claude(&name);
    let long = "long words ".repeat(2_000);
    append(&path, &prompt(&name, &uuid(1, 1), &cwd, "keep this"));
    append(&path, &answer(&name, &uuid(1, 2), &cwd, &long));
    let server = machine.serve();
    server.caught_up(&name, &path);
    let before = server.events(&name);
    fs::remove_file(&path).unwrap();
    server.stop();
    let server = machine.serve();
    // The removal has been noticed once a file created after it is read.
    let other = session(2);
    append(&machine.claude(&other), &prompt(&other, &uuid(2, 1), &cwd, "later"));
    server.caught_up(&other, &machine.claude(&other));
    let after = server.events(&name);
    assert_eq!(after[..before.len()], before[..]);
    assert!(after.iter().any(|e| e["text"] == "keep this"));
    let kept = after.iter().find(|e| e["kind"] == "assistant.message").unwrap();
    let hash = kept["text_ref"]["hash"].as_str().expect("a long text is referred to");
    assert_eq!(server.client.get(&format!("/api/v1/texts/{hash}")).unwrap().text(), long);
    assert_eq!(server.session(&name)["turns"], 1);
}

/// T7, with a line shorter than the original figure but above the limit for parsed lines (16 MiB).
#[test]
fn a_line_of_40_mb_becomes_a_stub_and_the_next_is_fine() {
    let machine = Machine::new(PROGRAM);
    let (name, cwd) = (session(1), machine.project().to_str().unwrap().to_owned());
    let path = machine.claude(&name);
    append(&path, &prompt(&name, &uuid(1, 1), &cwd, "before"));
    let server = machine.serve();
    server.caught_up(&name, &path);
    let idle = server.peak_kib();
    let long = prompt(&name, &uuid(1, 2), &cwd, &"x".repeat(40 << 20));
    append(&path, &long);
    append(&path, &prompt(&name, &uuid(1, 3), &cwd, "behind"));
    server.caught_up(&name, &path);
    let events = server.events(&name);
    let texts: Vec<&str> =
        events.iter().filter(|e| e["kind"] == "user.prompt").filter_map(|e| e["text"].as_str()).collect();
    assert_eq!(texts, ["before", "behind"]);
    let stub = events.iter().find(|e| e["kind"] == "unrecognized").expect("a stub stands for it");
    assert_eq!(stub["data"]["raw_kind"], "oversized");
    assert_eq!(stub["data"]["length"], long.len() - 1);
    assert_eq!(stub["origin"]["file"]["length"], long.len() - 1);
    assert_eq!(server.session(&name)["health"], "issues");
    let grown = server.peak_kib().saturating_sub(idle) / 1024;
    println!("peak RSS {} MiB, {grown} MiB above idle", server.peak_kib() / 1024);
    assert!(grown <= 64, "{grown} MiB above idle");
}

#[test]
fn events_are_not_stored_while_capture_of_a_session_is_off() {
    let machine = Machine::new(PROGRAM);
    let (name, other, cwd) = (session(1), session(2), machine.project().to_str().unwrap().to_owned());
    let path = machine.claude(&name);
    let say = |n: u64, text: &str| append(&path, &prompt(&name, &uuid(1, n), &cwd, text));
    say(1, "seen");
    let server = machine.serve();
    server.caught_up(&name, &path);
    let set = |on: bool| {
        let answer = server
            .client
            .send(
                "PUT",
                &format!("/api/v1/sessions/{name}/capture"),
                Some(&format!("{{\"enabled\":{on}}}")),
                tests::PATIENCE,
            )
            .unwrap();
        assert_eq!((answer.status, answer.json()["enabled"].as_bool()), (200, Some(on)), "{}", answer.text());
    };
    set(false);
    say(2, "not to be seen");
    server.caught_up(&name, &path);
    append(&machine.claude(&other), &prompt(&other, &uuid(2, 1), &cwd, "others go on"));
    server.caught_up(&other, &machine.claude(&other));
    let server = {
        server.stop();
        machine.serve()
    };
    say(3, "nor after a restart");
    server.caught_up(&name, &path);
    let set_on = server
        .client
        .send("PUT", &format!("/api/v1/sessions/{name}/capture"), Some("{\"enabled\":true}"), tests::PATIENCE)
        .unwrap();
    assert_eq!(set_on.status, 200);
    say(4, "seen again");
    let texts = eventually("the session is captured again", || {
        let events = server.events(&name);
        let texts: Vec<String> = events
            .iter()
            .filter(|e| e["kind"] == "user.prompt")
            .filter_map(|e| e["text"].as_str().map(str::to_owned))
            .collect();
        texts.contains(&"seen again".to_owned()).then_some(texts)
    });
    assert_eq!(texts, ["seen", "seen again"]);
}

/// T3, T4: a truncated record followed by the next one on the same line, NULs before a record, and an empty line.
#[test]
fn a_damaged_line_does_not_affect_other_lines() {
    let machine = Machine::new(PROGRAM);
    let (name, cwd) = (session(1), machine.project().to_str().unwrap().to_owned());
    let path = machine.claude(&name);
    let line = |n: u64| prompt(&name, &uuid(1, n), &cwd, &format!("prompt {n}"));
    let cut = &line(2)[..150];
    append(&path, &line(1));
    append(&path, &format!("{cut}{}", line(3)));
    append(&path, &format!("\n{}{}", "\0".repeat(8_192), line(4)));
    append(&path, "{\"type\":\"user\",\"nonsense\"\n");
    append(&path, &line(5));
    let server = machine.serve();
    server.caught_up(&name, &path);
    let events = server.events(&name);
    let texts: Vec<&str> =
        events.iter().filter(|e| e["kind"] == "user.prompt").filter_map(|e| e["text"].as_str()).collect();
    assert_eq!(texts, ["prompt 1", "prompt 3", "prompt 4", "prompt 5"]);
    let damaged = events.iter().filter(|e| e["kind"] == "unrecognized" && e["data"]["raw_kind"] == "damaged").count();
    assert_eq!(damaged, 2, "the cut record and the nonsense are kept");
    assert_eq!(server.session(&name)["health"], "issues");
}

/// T14: the same file under two names, and a copy elsewhere.
#[test]
fn records_found_under_several_paths_are_stored_once() {
    let machine = Machine::new(PROGRAM);
    let (name, cwd) = (session(1), machine.project().to_str().unwrap().to_owned());
    let path = machine.claude(&name);
    append(&path, &prompt(&name, &uuid(1, 1), &cwd, "once"));
    append(&path, &answer(&name, &uuid(1, 2), &cwd, "and only once"));
    let (linked, copied) =
        (machine.home().join(".claude/projects/-linked"), machine.home().join(".claude/projects/-copied"));
    fs::create_dir_all(&linked).unwrap();
    fs::create_dir_all(&copied).unwrap();
    fs::hard_link(&path, linked.join(format!("{name}.jsonl"))).unwrap();
    fs::copy(&path, copied.join(format!("{name}.jsonl"))).unwrap();
    let server = machine.serve();
    for path in [&path, &linked.join(format!("{name}.jsonl")), &copied.join(format!("{name}.jsonl"))] {
        server.caught_up(&name, path);
    }
    let events = server.events(&name);
    let said = |kind: &str| events.iter().filter(|e| e["kind"] == kind).count();
    assert_eq!((said("user.prompt"), said("assistant.message")), (1, 1));
    assert_eq!(server.session(&name)["transcripts"].as_array().unwrap().len(), 3, "all paths are listed");
}

/// T15: files outside the roots are not read, and neither are files that block.
#[test]
fn a_symlink_or_fifo_in_place_of_a_transcript_is_not_read() {
    let machine = Machine::new(PROGRAM);
    let cwd = machine.project().to_str().unwrap().to_owned();
    let (secret, piped, linked_dir, plain) = (session(1), session(2), session(3), session(4));
    let outside = machine.project().join("outside");
    fs::create_dir_all(&outside).unwrap();
    for name in [&secret, &linked_dir] {
        append(&outside.join(format!("{name}.jsonl")), &prompt(name, &uuid(1, 1), &cwd, "outside"));
    }
    std::os::unix::fs::symlink(outside.join(format!("{secret}.jsonl")), machine.claude(&secret)).unwrap();
    std::os::unix::fs::symlink(&outside, machine.home().join(".claude/projects/-outside")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(machine.claude(&piped)).status().unwrap();
    assert!(made.success());
    let server = machine.serve();
    append(&machine.claude(&plain), &prompt(&plain, &uuid(4, 1), &cwd, "inside"));
    server.caught_up(&plain, &machine.claude(&plain));
    for name in [&secret, &piped, &linked_dir] {
        assert_eq!(server.client.get(&format!("/api/v1/sessions/{name}")).unwrap().status, 404, "{name}");
    }
    let sources = server.client.json("/api/v1/health/sources").unwrap();
    assert!(sources["sources"][0]["errors"].as_u64() >= Some(1), "it says that something is not read: {sources}");
}

/// T17: without inotify watches files are polled, and the server reports it.
#[test]
fn transcripts_are_polled_with_a_report_if_inotify_watches_run_out() {
    let limited = "exec unshare --user --map-root-user sh -c \
                   'echo 4 >/proc/sys/user/max_inotify_watches && exec \"$0\" \"$@\"' \"$0\" \"$@\"";
    let possible = std::process::Command::new("sh").args(["-c", limited, "true"]).output();
    if !possible.as_ref().is_ok_and(|output| output.status.success()) {
        println!("skipped: user namespaces cannot be made here: {possible:?}");
        return;
    }
    let machine = Machine::new(PROGRAM);
    let (name, cwd) = (session(1), machine.project().to_str().unwrap().to_owned());
    for n in 0..10 {
        fs::create_dir_all(machine.home().join(format!(".claude/projects/-p{n}"))).unwrap();
    }
    append(&machine.claude(&name), &prompt(&name, &uuid(1, 1), &cwd, "before"));
    let server = machine.serve_with(limited);
    server.caught_up(&name, &machine.claude(&name));
    let said = eventually("it is said", || {
        let sources = server.client.json("/api/v1/health/sources")?;
        let detail = sources["sources"][0]["detail"].as_str()?.to_owned();
        detail.contains("no inotify watches left").then_some(detail)
    });
    assert!(said.contains("polling"), "{said}");
    append(&machine.claude(&name), &prompt(&name, &uuid(1, 2), &cwd, "after"));
    server.caught_up(&name, &machine.claude(&name));
    assert_eq!(server.session(&name)["turns"], 2);
}

/// T19: the number of open descriptors does not grow with the number of files. `FILES=20000` for the published figure.
#[test]
fn many_files_are_read_with_few_descriptors() {
    let files = number_from_env("FILES", 3_000);
    let machine = Machine::new(PROGRAM);
    let cwd = machine.project().to_str().unwrap().to_owned();
    for n in 0..files as u64 {
        let dir = machine.home().join(format!(".claude/projects/-p{}", n % 200));
        fs::create_dir_all(&dir).unwrap();
        append(&dir.join(format!("{}.jsonl", session(n))), &prompt(&session(n), &uuid(n, 1), &cwd, "one of many"));
    }
    let server = machine.serve();
    let began = std::time::Instant::now();
    let mut most = 0;
    let done = within(std::time::Duration::from_secs(300), || {
        most = most.max(fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count());
        let metrics = server.client.get("/metrics").ok()?.text();
        let seen = metrics.lines().find_map(|l| l.strip_prefix("capture_ingest_events_total ")?.parse::<f64>().ok())?;
        (seen >= files as f64).then_some(())
    });
    done.expect("all of them are read");
    println!("{files} files: {most} descriptors, read in {:.1} s", began.elapsed().as_secs_f64());
    assert!(most <= 256, "{most} descriptors");
}

/// H1: without a server, and without space on the disk.
#[test]
fn a_hook_without_a_server_or_disk_space_exits_silently() {
    let machine = Machine::new(PROGRAM);
    let call = |session: &str, before: &str| {
        let template = machine.command(&[]);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("{before} exec \"$0\" hook claude"), PROGRAM]).env_clear();
        shell.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let payload = format!(
            "{{\"session_id\":\"{session}\",\"cwd\":\"/p\",\"hook_event_name\":\"SessionStart\",\"source\":\"startup\"}}"
        );
        let file = machine.project().join("payload.json");
        fs::write(&file, payload).unwrap();
        let output = shell.stdin(fs::File::open(file).unwrap()).output().unwrap();
        assert_eq!((output.status.code(), &output.stdout[..], &output.stderr[..]), (Some(0), &b""[..], &b""[..]));
    };
    let deliveries = || {
        let files = fs::read_dir(machine.data().join("spool")).into_iter().flatten();
        files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|e| e == "json")).count()
    };
    let (lost, kept) = (session(1), session(2));
    call(&lost, "trap '' XFSZ; ulimit -f 0;");
    assert_eq!(deliveries(), 0, "half a delivery is none");
    call(&kept, "");
    assert_eq!(deliveries(), 1);
    let server = machine.serve();
    assert_eq!(server.session(&kept)["provider"], "claude");
    assert_eq!(server.client.get(&format!("/api/v1/sessions/{lost}")).unwrap().status, 404);
    eventually("the spool is empty", || (deliveries() == 0).then_some(()));
    // With a running server, lost hook calls are reported.
    call(&lost, "trap '' XFSZ; ulimit -f 0;");
    let sources = server.client.json("/api/v1/health/sources").unwrap();
    let hooks = sources["sources"].as_array().unwrap().iter().find(|source| source["name"] == "hooks").unwrap();
    assert!(hooks["trouble"].as_str().unwrap_or_default().starts_with("hook calls lost: 1 ("), "{hooks}");
    assert_eq!(hooks["dropped"], 1);
}

/// T10: a file is copied and truncated in place while its writer continues. Records cut before they could be read are
/// lost; the others are stored once, as written.
#[test]
fn copytruncate_of_a_growing_transcript_duplicates_and_alters_no_record() {
    let machine = Machine::new(PROGRAM);
    let (name, cwd) = (session(1), machine.project().to_str().unwrap().to_owned());
    let path = machine.claude(&name);
    let text = |n: u64| format!("record {n} {}", "z".repeat((n % 50) as usize));
    append(&path, &prompt(&name, &uuid(1, 0), &cwd, &text(0)));
    let server = machine.serve();
    server.caught_up(&name, &path);
    let writer = {
        let (path, name, cwd) = (path.clone(), name.clone(), cwd.clone());
        std::thread::spawn(move || (1..1_000).for_each(|n| append(&path, &prompt(&name, &uuid(1, n), &cwd, &text(n)))))
    };
    while !writer.is_finished() {
        fs::copy(&path, path.with_extension("jsonl.1")).unwrap();
        fs::File::options().write(true).truncate(true).open(&path).unwrap();
        tests::program::a_moment(5);
    }
    writer.join().unwrap();
    append(&path, &prompt(&name, &uuid(1, 1_000), &cwd, &text(1_000)));
    let texts = eventually("the last record", || {
        let events = server.events(&name);
        let prompts = events.iter().filter(|e| e["kind"] == "user.prompt");
        let texts: Vec<String> = prompts.filter_map(|e| e["text"].as_str().map(str::to_owned)).collect();
        texts.contains(&text(1_000)).then_some(texts)
    });
    let written: std::collections::BTreeSet<String> = (0..=1_000).map(text).collect();
    let read: std::collections::BTreeSet<String> = texts.iter().cloned().collect();
    println!("{} of {} records were read", read.len(), written.len());
    assert_eq!(read.len(), texts.len(), "none twice");
    assert!(read.is_subset(&written), "{:?}", read.difference(&written));
}

/// A settings file is replaced by an endless file or by a pipe without a writer: no command waits for it, each error
/// names the file, and the server continues to run.
#[test]
fn settings_that_are_not_regular_files_are_refused_without_blocking() {
    let config = |machine: &Machine| machine.home().with_file_name("config").join("capture");
    let files: [(&str, &[&[&str]]); 4] = [
        ("config.toml", &[&["doctor"], &["ps"], &["config", "show"], &["serve"]]),
        ("policy.toml", &[&["doctor"], &["policy", "check"], &["policy", "test", "ls"]]),
        ("prices.toml", &[&["usage"], &["doctor"]]),
        ("screen-rules/a.toml", &[&["doctor"]]),
    ];
    for (file, commands) in files {
        for kind in ["pipe", "endless"] {
            let machine = Machine::new(PROGRAM);
            // Replaced only after the server has started, because the server itself needs the file at its start.
            let server = machine.serve();
            let path = config(&machine).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if kind == "pipe" {
                assert!(std::process::Command::new("mkfifo").arg("-m600").arg(&path).status().unwrap().success());
            } else {
                std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            }
            for command in commands {
                let beside = machine.home().join("beside");
                let mut command_line = machine.command(command);
                if *command == ["serve"] {
                    command_line.env("CAPTURE_DATA_DIR", &beside);
                }
                let (out, log) = (machine.home().join("out"), machine.home().join("err"));
                let mut child = command_line
                    .stdout(fs::File::create(&out).unwrap())
                    .stderr(fs::File::create(&log).unwrap())
                    .spawn()
                    .unwrap();
                eventually(&format!("the end of {command:?} with {kind} {file}"), || child.try_wait().unwrap());
                let text = fs::read_to_string(out).unwrap() + &fs::read_to_string(log).unwrap();
                let name = Path::new(file).file_name().unwrap().to_str().unwrap();
                let is_of_doctor = *command == ["doctor"] && (file.starts_with("prices") || file.starts_with("screen"));
                assert!(is_of_doctor || text.contains(name), "{command:?} with {kind} {file}: {text}");
                assert!(is_of_doctor || text.contains("regular file"), "{command:?} with {kind} {file}: {text}");
            }
            let answer = server.client.get("/api/v1/health/sources").unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text());
            server.stop();
        }
    }
}

/// Likewise for the file in the data directory by which commands find the server.
#[test]
fn an_endpoint_that_is_not_a_regular_file_is_refused_without_blocking() {
    for kind in ["pipe", "endless"] {
        let machine = Machine::new(PROGRAM);
        let path = machine.data().join("endpoint.json");
        fs::create_dir_all(machine.data()).unwrap();
        if kind == "pipe" {
            assert!(std::process::Command::new("mkfifo").arg("-m600").arg(&path).status().unwrap().success());
        } else {
            std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        }
        for command in [&["doctor"][..], &["ps"], &["serve", "--stop"]] {
            let log = machine.home().join("err");
            let mut command_line = machine.command(command);
            let mut child = command_line
                .stdout(std::process::Stdio::null())
                .stderr(fs::File::create(&log).unwrap())
                .spawn()
                .unwrap();
            let ended = eventually(&format!("the end of {command:?} with {kind}"), || child.try_wait().unwrap());
            let text = fs::read_to_string(&log).unwrap();
            assert!(!ended.success(), "{command:?} with {kind}");
            assert!(text.contains("endpoint.json") && text.contains("regular file"), "{command:?} with {kind}: {text}");
        }
    }
}
