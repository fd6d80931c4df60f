//! The speed at which text is searched: `cargo bench -p secrets --bench secrets [FILE…]`.
//!
//! Without files, the benchmark generates text like that of transcripts. The goal is 50 MB/s of text without secrets.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a measuring program, not a service"
)]

use std::time::Instant;

use secrets::Redactor;

const SIZE: usize = 16 << 20;

fn transcript() -> String {
    let lines = [
        r#"{"type":"assistant","message":{"model":"claude-sonnet-4-5","id":"msg_01","role":"assistant","content":[{"type":"text","text":"I'll look at the parser first, then run the tests."}],"usage":{"input_tokens":4,"cache_creation_input_tokens":5120,"output_tokens":187}},"uuid":"5b1f0e0c-3d0b-4f5e-9a53-0c1d7f2c9b11","timestamp":"2026-11-20T15:16:14.000Z"}"#,
        r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_01","type":"tool_result","content":"     1\u2192fn next_token(&mut self) -> Option<Token> {\n     2\u2192    let start = self.at;\n     3\u2192    while self.peek().is_some_and(|c| c.is_alphanumeric()) {\n     4\u2192        self.bump();\n     5\u2192    }\n     6\u2192    Some(Token::Word(start..self.at))\n     7\u2192}\n"}]}}"#,
        "   Compiling regex-automata v0.4.18\n    Finished `test` profile [unoptimized + debuginfo] target(s) in 12.42s\n     Running unittests src/lib.rs",
        "test parser::tests::a_key_without_a_value_is_an_error ... ok",
        "diff --git a/src/lexer.rs b/src/lexer.rs\nindex 3f1c2d4..9b8a7c6 100644\n--- a/src/lexer.rs\n+++ b/src/lexer.rs\n@@ -10,7 +10,9 @@ impl Lexer {\n-        let kind = self.kind();\n+        let kind = self.kind_of(self.at);\n",
        "The author of the module keeps the cache in a map whose key is the path, and every entry passes through one place.",
    ];
    let mut text = String::with_capacity(SIZE + 4096);
    while text.len() < SIZE {
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn measure(name: &str, redactor: &Redactor, text: &[u8]) {
    let mut best = f64::MAX;
    let mut found = 0;
    for _ in 0..5 {
        let begun = Instant::now();
        found = redactor.redact_bytes(text).found.len();
        best = best.min(begun.elapsed().as_secs_f64());
    }
    println!("{name}: {:.1} MB/s, {found} found in {} bytes", text.len() as f64 / 1e6 / best, text.len());
}

fn main() {
    let begun = Instant::now();
    let redactor = Redactor::new().unwrap();
    println!("made in {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    let files: Vec<_> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for file in &files {
        measure(file, &redactor, &std::fs::read(file).unwrap());
    }
    if files.is_empty() {
        let text = transcript();
        measure("clean transcript", &redactor, text.as_bytes());
        measure("the same in one line", &redactor, text.replace('\n', " ").as_bytes());
        let lines = text.lines().enumerate();
        let dirty: String = lines
            .map(|(i, line)| if i % 50 == 0 { format!("PASSWORD=tiger{i}Lq!\n{line}\n") } else { format!("{line}\n") })
            .collect();
        measure("a secret in every 50th line", &redactor, dirty.as_bytes());
    }
}
