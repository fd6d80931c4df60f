use super::*;

fn id(number: u32) -> EventId {
    events::Identity::record(events::Provider::Claude, "session", number).event_id()
}

const AT: Timestamp = Timestamp::from_millisecond(1_795_149_432_000);

/// The boundaries that are open after these prompts of a person.
fn after(prompts: &[&str]) -> Boundaries {
    let mut boundaries = Boundaries::default();
    for (number, prompt) in prompts.iter().enumerate() {
        boundaries.prompted(prompt, id(number as u32), AT);
    }
    boundaries
}

fn words(boundaries: &Boundaries) -> Vec<String> {
    boundaries.open.iter().map(|boundary| boundary.words().trim_start_matches("do not ").to_owned()).collect()
}

/// Prompts, and what they forbid.
const FORBIDS: &[(&str, &[&str])] = &[
    ("Don't push.", &["push"]),
    ("do not push", &["push"]),
    ("dont push", &["push"]),
    ("Don’t push yet!", &["push"]),
    ("Please don't push yet.", &["push"]),
    ("Never push", &["push"]),
    ("never push to main", &["push to main"]),
    ("Fix the parser, but don't push.", &["push"]),
    ("Fix the parser but do not commit anything", &["commit"]),
    ("Run the tests and don't commit.", &["commit"]),
    ("Don't commit or push.", &["commit", "push"]),
    ("Do not commit, push or merge.", &["commit", "push", "merge"]),
    ("don't commit, push, or open a PR yet", &["commit", "push", "open a pull request"]),
    ("Don't commit and push yet.", &["commit", "push"]),
    ("**Do not push** to origin.", &["push"]),
    ("Never push to main or master.", &["push to main", "push to master"]),
    ("Don't push to `release/1.2`.", &["push to release/1.2"]),
    ("don't push directly to the main branch", &["push to main"]),
    ("Don't push until I say so.", &["push"]),
    ("Don't push before I've reviewed the diff", &["push"]),
    ("don't push without asking me first", &["push"]),
    ("do not push unless I tell you to", &["push"]),
    ("don't force-push", &["force-push"]),
    ("never force push to this branch again", &[]),
    ("Never force push.", &["force-push"]),
    ("no force-pushing please", &["force-push"]),
    ("Don't rebase.", &["rebase"]),
    ("don't amend the commit", &["amend commits"]),
    ("Don't merge this branch yet", &["merge"]),
    ("don't merge the PR", &["merge the pull request"]),
    ("Please do not open a pull request.", &["open a pull request"]),
    ("don't create a PR for this", &["open a pull request"]),
    ("no PRs please", &["open a pull request"]),
    ("No commits, no pushes.", &["commit", "push"]),
    ("no pushing", &["push"]),
    ("Just fix it; no commits please", &["commit"]),
    ("Fix the bug without touching src/api.rs.", &["change src/api.rs"]),
    ("Implement it without adding new dependencies", &["add dependencies"]),
    ("refactor this without committing anything", &["commit"]),
    ("Don't touch src/generated/.", &["change src/generated/"]),
    ("don't touch anything in vendor/", &["change vendor/"]),
    ("Do not edit `Cargo.lock`", &["change Cargo.lock"]),
    ("don't modify the migrations directory", &["change migrations"]),
    ("don't change config.toml or schema.sql", &["change config.toml", "change schema.sql"]),
    ("don't touch a.rs and b.rs", &["change a.rs", "change b.rs"]),
    ("Never edit *.snap files", &["change *.snap"]),
    ("Don't make any changes to docs/api.md.", &["change docs/api.md"]),
    ("no changes to package.json please", &["change package.json"]),
    ("Leave README.md alone.", &["change README.md"]),
    ("leave the `legacy/` folder untouched", &["change legacy/"]),
    ("Keep your hands off infra/prod.tf", &["change infra/prod.tf"]),
    ("hands off the Makefile!", &["change Makefile"]),
    ("Read-only: no changes.", &["change files"]),
    ("This is a read-only review.", &["change files"]),
    ("Explain how it works. Don't change anything.", &["change files"]),
    ("don't edit any files yet", &["change files"]),
    ("make no code changes", &["change files"]),
    ("Don't delete tests/fixtures/old.json", &["delete tests/fixtures/old.json"]),
    ("do not remove the `examples` directory", &["delete examples"]),
    ("Don't delete any files.", &["delete files"]),
    ("don't install anything", &["install packages"]),
    ("Don't install", &["install packages"]),
    ("Do not install new packages.", &["add dependencies"]),
    ("never install `left-pad`", &["install left-pad"]),
    ("don't add any dependencies", &["add dependencies"]),
    ("No new dependencies.", &["add dependencies"]),
    ("Don't deploy.", &["deploy"]),
    ("don't deploy to production yet", &["deploy to production"]),
    ("do not publish the crate", &["publish"]),
    ("don't release it", &["publish"]),
    ("Don't run migrations.", &["run migrations"]),
    ("do not run the database migrations yet", &["run migrations"]),
    ("Don't run `make clean`.", &["run make clean"]),
    ("never use `git push --force`", &["force-push"]),
    ("don't `git commit`", &["commit"]),
    ("Ask me before you push.", &["push"]),
    ("ask before committing or pushing", &["commit", "push"]),
    ("Always ask first before deploying.", &["deploy"]),
    ("Check with me before merging", &["merge"]),
    ("Wait for my review before you open a PR.", &["open a pull request"]),
    ("wait for my ok before pushing", &["push"]),
    ("Let me review the diff before you commit", &["commit"]),
    ("Before pushing, ask me.", &["push"]),
    ("Only push after I say so.", &["push"]),
    ("push only when I tell you", &["push"]),
    ("Hold off on pushing for now", &["push"]),
    ("stop committing", &["commit"]),
    ("You must not push.", &["push"]),
    ("Make sure you don't commit anything.", &["commit"]),
    ("make sure not to touch `src/lib.rs`", &["change src/lib.rs"]),
    ("I don't want you to push", &["push"]),
    (
        "Rules:\n- don't push\n- never touch vendor/\n- no new dependencies",
        &["push", "change vendor/", "add dependencies"],
    ),
    ("When you're done, don't commit.", &["commit"]),
    ("don't push, I'll do it myself", &["push"]),
    ("We have a freeze, so don't deploy.", &["deploy"]),
    ("Don't commit because the hook is broken", &["commit"]),
];

/// Prompts that look similar, and forbid nothing.
const FORBIDS_NOTHING: &[&str] = &[
    "Don't forget to push.",
    "don't hesitate to commit",
    "Why don't you push?",
    "why don't you push it",
    "You don't need to push.",
    "you don't have to commit",
    "I don't want to push you",
    "If the tests fail, don't push.",
    "don't push if CI is red",
    "Don't push unless the tests pass.",
    "don't push until the tests are green",
    "Don't commit before running the tests.",
    "never commit without running cargo fmt",
    "Don't push. Unless CI is green.",
    "don't push, but if the tests pass you can",
    "wait for CI before merging",
    "Ask the database before you commit the transaction",
    "only push when the tests pass",
    "Do you not push?",
    "Can you do it without pushing?",
    "Did you commit without pushing?",
    "The README says: never push to main.",
    "the docs say don't push to main",
    "He told me \"do not push\".",
    "She wrote “don't commit” in the review",
    "Add a line to CONTRIBUTING.md: don't push to main",
    "Print 'do not push' when the flag is set",
    "Rename the message to `don't push`",
    "> don't push\nwhat does that mean for us",
    "```\ndon't push\n```\nFix this script.",
    "Here is the log:\ndo not push to main\ndo not commit",
    "    don't push\n\nWhat does this line do?",
    "error: do not push to a protected branch",
    "<system-reminder>\ndon't commit\n</system-reminder>\nfix the test",
    "we don't push on Fridays",
    "They read the docs and don't push",
    "I never push without review",
    "CI doesn't push images",
    "users don't install packages by hand",
    "it won't commit",
    "Don't push back on the reviewer's comments.",
    "Don't push yourself too hard",
    "don't commit to an approach yet",
    "Don't merge the two functions.",
    "don't just push, explain what you did",
    "don't only commit, also push",
    "Don't delete the comment above the function",
    "don't remove the feature",
    "Don't change the behaviour",
    "don't change the public API",
    "Don't touch the parser logic",
    "don't edit it",
    "don't touch anything but src/api.rs",
    "Don't change anything outside src/",
    "don't change anything else",
    "no changes needed",
    "No commits yet",
    "no commits were lost",
    "No pull requests are open.",
    "There is no push.",
    "Nothing to commit",
    "Don't run the server in the foreground",
    "don't use unwrap",
    "Don't update the user",
    "Don't add tests for this",
    "never mind, push it",
    "Don't you think we should push?",
    "no, push it",
    "The file system is read-only",
    "make the field read-only",
    "don't release the lock",
    "Don't publish the event twice to the bus",
    "don't deploy the mock",
    "don't open the file twice",
    "don't create a new thread per request",
    "don't rebase on top of that idea yet, think",
    "Bitte nicht pushen.",
    "Nicht committen, kein Push!",
    "ne pousse pas sur main",
    "no hagas push",
    "プッシュしないでください",
    "The user said don't push…",
    "leave me alone",
    "leave it as is",
    "keep it simple",
    "Don't touch https://example.com/a",
];

#[test]
fn prohibitions_are_found_and_look_alikes_are_not() {
    let mut wrong = Vec::new();
    for (prompt, expected) in FORBIDS {
        let found = words(&after(&[prompt]));
        if found != *expected {
            wrong.push(format!("{prompt:?}: {found:?} instead of {expected:?}"));
        }
    }
    for prompt in FORBIDS_NOTHING {
        let found = words(&after(&[prompt]));
        if !found.is_empty() {
            wrong.push(format!("{prompt:?}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(FORBIDS.len() + FORBIDS_NOTHING.len() >= 120);
}

#[test]
fn a_boundary_stays_until_the_person_allows_it() {
    let kept = [
        ("don't push", "looks good, now fix the docs"),
        ("don't push", "why did you push?"),
        ("don't push", "did the push work?"),
        ("don't push", "don't forget the changelog"),
        ("don't push", "I'll push it later"),
        ("don't push", "I will review and push tomorrow"),
        ("don't push", "commit it"),
        ("don't push", "still don't push"),
        ("don't push to main", "push to staging"),
        ("don't commit", "what would you commit?"),
        ("don't touch src/api.rs", "fix the test in tests/other.rs"),
        ("don't touch src/api.rs", "explain src/api.rs"),
        ("don't deploy", "build it"),
        ("don't push", "the docs say: push"),
        ("don't push", "```\ngit push\n```\nwhat is this"),
    ];
    for (first, then) in kept {
        assert_eq!(after(&[first, then]).open.len(), 1, "{first:?}, then {then:?}");
    }
    let lifted = [
        ("don't push", "now push"),
        ("don't push", "ok, push it"),
        ("don't push", "go ahead and push"),
        ("don't push", "push to main now"),
        ("don't push", "commit and push"),
        ("don't push", "you can push"),
        ("don't push", "Looks good. You can push now."),
        ("don't push", "can you push it?"),
        ("don't push", "I want you to push"),
        ("don't push", "please push"),
        ("don't push", "when the tests pass, push"),
        ("don't push", "don't forget to push"),
        ("don't push", "yes"),
        ("don't push", "looks good, go ahead"),
        ("don't push", "open a PR"),
        ("don't push", "ship it"),
        ("don't push", "never mind, push"),
        ("don't push", "scratch that"),
        ("don't push to main", "ok push to main"),
        ("don't push to main", "push it"),
        ("don't commit", "you can commit"),
        ("don't commit", "please commit this as one commit"),
        ("don't commit", "make a commit"),
        ("don't commit", "amend the commit"),
        ("don't force-push", "ok, force push"),
        ("don't merge", "merge it"),
        ("don't touch src/api.rs", "now fix src/api.rs"),
        ("don't touch src/api.rs", "update the api.rs file"),
        ("don't touch src/", "change the handler in src/api.rs"),
        ("don't touch src/", "you can edit anything now"),
        ("read-only: no changes", "now implement it"),
        ("don't delete old.json", "ok, delete it"),
        ("don't install anything", "install serde"),
        ("don't run migrations", "run the migrations"),
        ("don't run `make clean`", "run it"),
        ("ask me before pushing", "go ahead"),
        ("ask me before pushing", "you don't need to ask before pushing"),
        ("ask me before pushing", "you no longer have to ask me before you push"),
        ("don't deploy to production", "deploy to production"),
    ];
    for (first, then) in lifted {
        assert_eq!(words(&after(&[first, then])), Vec::<String>::new(), "{first:?}, then {then:?}");
    }
}

#[test]
fn a_session_has_at_most_32_boundaries() {
    let prompts: Vec<String> = (0..100).map(|number| format!("don't touch src/file{number}.rs")).collect();
    let prompts: Vec<&str> = prompts.iter().map(String::as_str).collect();
    let open = after(&prompts);
    assert_eq!(open.open.len(), OPEN);
    assert!(words(&open).contains(&"change src/file99.rs".to_owned()), "the newest stays");
    let many: String = (0..100).map(|number| format!("Don't touch src/file{number}.rs. ")).collect();
    assert_eq!(after(&[&many]).open.len(), OPEN);
}

fn breaks(prompt: &str, command: &str) -> bool {
    let boundaries = after(&[prompt]);
    assert!(!boundaries.open.is_empty(), "{prompt}");
    let request = BoundaryRequest {
        command: Some(command),
        cwd: Some("/home/u/project"),
        began_in: Some("/home/u/project"),
        ..BoundaryRequest::default()
    };
    boundaries.broken_by(&request).is_some()
}

#[test]
fn commands_are_held_against_boundaries_by_their_words() {
    for (prompt, command) in [
        ("don't push", "git push"),
        ("don't push", "git push --force origin main"),
        ("don't push", "cargo test && git push -u origin HEAD"),
        ("don't push", "bash -c 'git push'"),
        ("don't push", "git -C sub push"),
        ("don't push", "cd sub && git push"),
        ("don't push", "sudo git push"),
        ("don't force-push", "git push -uf origin x"),
        ("don't force-push", "git push --force-with-lease=x"),
        ("don't force-push", "git push origin +main"),
        ("don't push to main", "git push origin HEAD:main"),
        ("don't push to main", "git push origin main"),
        ("don't push to main", "git push origin HEAD:refs/heads/main"),
        ("don't commit", "git add -A && git commit -m 'a b'"),
        ("don't amend commits", "git commit --amend --no-edit"),
        ("don't rebase", "git rebase main"),
        ("don't rebase", "git pull --rebase"),
        ("don't merge", "git merge feature"),
        ("don't merge the PR", "gh pr merge 12 --squash"),
        ("don't open a PR", "gh pr create --fill"),
        ("don't deploy", "kubectl apply -f k8s/"),
        ("don't deploy to prod", "npm run deploy:production"),
        ("don't publish", "npm publish"),
        ("don't release it", "gh release create v1"),
        ("don't install anything", "npm install"),
        ("no new dependencies", "cargo add serde"),
        ("no new dependencies", "npm install -D left-pad"),
        ("never install `left-pad`", "npm i left-pad@1.0"),
        ("don't run migrations", "python manage.py migrate"),
        ("don't run `make clean`", "make clean"),
        ("don't touch src/api.rs", "sed -i s/a/b/ src/api.rs"),
        ("don't touch src/api.rs", "echo x > src/api.rs"),
        ("don't touch src/api.rs", "cat > ./src/api.rs <<'EOF'\nx\nEOF"),
        ("don't touch src/api.rs", "rm -rf src"),
        ("don't touch src/", "mv a.rs src/a.rs"),
        ("don't touch src/", "git checkout -- src/a.rs"),
        ("don't touch api.rs", "sed -i s/a/b/ src/api.rs"),
        ("don't touch *.snap", "rm tests/a.snap"),
        ("don't touch /home/u/project/a.rs", "rm a.rs"),
        ("don't delete src/a.rs", "git rm src/a.rs"),
        ("don't delete any files", "rm a"),
        ("don't edit any files", "tee a.txt"),
    ] {
        assert!(breaks(prompt, command), "{prompt:?}: {command}");
    }
    for (prompt, command) in [
        ("don't push", "git push --dry-run"),
        ("don't push", "git push -n"),
        ("don't push", "git pull"),
        ("don't push", "git stash push"),
        ("don't push", "echo git push"),
        ("don't push", "git log --grep 'git push'"),
        ("don't push", "git commit -m 'git push'"),
        ("don't push", "git -C /tmp/other push"),
        ("don't push", "cd /tmp/other && git push"),
        ("don't push", "cd \"$DIR\" && git push"),
        ("don't push", "git --git-dir=/x/.git push"),
        ("don't push", "git push --help"),
        ("don't push", "# git push"),
        ("don't push", "cat <<EOF\ngit push\nEOF"),
        ("don't push", "git push \"unclosed"),
        ("don't force-push", "git push"),
        ("don't force-push", "git push -o fast"),
        ("don't push to main", "git push origin feature"),
        ("don't push to main", "git push origin main:feature"),
        ("don't push to main", "git push"),
        ("don't commit", "git commit --dry-run"),
        ("don't commit", "git commit-graph write"),
        ("don't commit", "git log --grep commit"),
        ("don't amend commits", "git commit -m x"),
        ("don't rebase", "git rebase --abort"),
        ("don't merge", "git merge --abort"),
        ("don't merge", "git merge-base a b"),
        ("don't merge the PR", "git merge main"),
        ("don't open a PR", "gh pr list"),
        ("don't deploy", "kubectl get pods"),
        ("don't deploy", "npm publish"),
        ("don't deploy to prod", "npm run deploy:staging"),
        ("don't publish", "npm publish --dry-run"),
        ("don't install anything", "npm run build"),
        ("no new dependencies", "npm ci"),
        ("no new dependencies", "npm install"),
        ("no new dependencies", "pip install -r requirements.txt"),
        ("never install `left-pad`", "npm i right-pad"),
        ("don't run migrations", "python manage.py migrate --plan"),
        ("don't run `make clean`", "make cleanup"),
        ("don't touch src/api.rs", "cat src/api.rs"),
        ("don't touch src/api.rs", "sed -n 1,9p src/api.rs"),
        ("don't touch src/api.rs", "sed -i s/src/api.rs/ other.rs"),
        ("don't touch src/api.rs", "cp src/api.rs /tmp/api.rs"),
        ("don't touch src/api.rs", "grep x src/api.rs > out.txt"),
        ("don't touch src/", "rm /tmp/src/a"),
        ("don't touch src/", "git add src/"),
        ("don't touch *.snap", "rm tests/a.snapshot"),
        ("don't delete src/a.rs", "rm src/b.rs"),
        ("don't delete any files", "rm /tmp/a"),
        ("don't edit any files", "ls > /tmp/list"),
        ("don't edit any files", "cargo test 2>/dev/null"),
    ] {
        assert!(!breaks(prompt, command), "{prompt:?}: {command}");
    }
}

#[test]
fn only_a_prompt_that_the_agent_attributes_to_a_person_counts() {
    let event = |prompt: UserPrompt| Event {
        position: 1,
        id: id(1),
        session_id: events::SessionId::from_bits(7),
        sequence: 1,
        provider: events::Provider::Claude,
        provider_session_id: "s".into(),
        source: events::Source::Transcript,
        created_at: AT,
        observed_at: AT,
        turn_id: None,
        parent_id: None,
        agent_id: None,
        confidence: events::Confidence::High,
        severity: None,
        text: Some("don't push".into()),
        text_ref: None,
        payload: prompt.into(),
        origin: events::Origin::Derived,
        derived: false,
        history: false,
    };
    let mut opened = Vec::new();
    for origin in PromptOrigin::ALL {
        for stated in [true, false] {
            let mut boundaries = Boundaries::default();
            let event = event(UserPrompt { origin: *origin, stated, ..UserPrompt::default() });
            boundaries.apply(&event);
            opened.extend((!boundaries.open.is_empty()).then_some((*origin, stated)));
        }
    }
    assert_eq!(opened, [(PromptOrigin::Human, true), (PromptOrigin::Steering, true)]);
}
