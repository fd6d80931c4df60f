//! `capture drift`: the distance of edits from what the person named.

use serde_json::Value;
use tests::{
    claude_session::{ClaudeSession, run},
    program::Machine,
};

use super::PROGRAM;

#[test]
fn edits_far_from_the_named_file_are_shown_until_a_prompt_names_them() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let mut agent = ClaudeSession::new(&machine, 1);
    agent.prompt("hello");
    agent.says("Hello.");
    agent.prompt("fix src/parser.rs, please");
    agent.edits("src/parser.rs");
    agent.edits("src/parser.rs");
    agent.edits("tests/parser.rs");
    agent.runs("cargo test", "test result: ok. 1 passed; 0 failed; 0 ignored", false);
    agent.says("Done.");
    agent.read_by(&server);
    let (code, out, err) = run(&machine, &["drift"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for line in [
        "turn 1      hello",
        "turn 2      fix src/parser.rs, please",
        "named       src/parser.rs ×2",
        "near        tests/parser.rs",
        "commands    1",
        "every edit is close to what you named",
    ] {
        assert!(out.lines().any(|shown| shown == line), "{line}: {out}");
    }

    agent.prompt("go on");
    for n in 0..20 {
        agent.edits(&format!("web/d{n}/app.ts"));
    }
    agent.says("Done.");
    agent.read_by(&server);
    let (_, out, _) = run(&machine, &["drift", &agent.id]);
    assert!(out.contains("left the subject in turn 3 with web/d0/app.ts (event "), "{out}");
    assert!(out.contains("and 8 more"), "{out}");
    let json: Value = serde_json::from_str(&run(&machine, &["drift", "--json"]).1).unwrap();
    assert_eq!((&json["left"]["turn"], &json["asks"][2]["files"][0]["distance"]), (&3.into(), &"elsewhere".into()));
    // The hint prints the edit first.
    let after = (json["left"]["sequence"].as_u64().unwrap() - 1).to_string();
    let (_, events, _) = run(&machine, &["events", &agent.id, "--after", &after, "--limit", "1", "--json"]);
    assert!(events.contains("web/d0/app.ts") && events.contains(json["left"]["event"].as_str().unwrap()), "{events}");

    agent.prompt("the changes in the web directory are fine");
    agent.read_by(&server);
    let (_, out, _) = run(&machine, &["drift"]);
    assert!(!out.contains("left the subject in"), "{out}");
}
