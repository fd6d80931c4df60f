//! Answers to commands, one line of JSON each, without the newline.

use session_tree::{Json, json::write_string};

/// The answer to a successful command. `data` is JSON.
#[must_use]
pub fn success(id: Option<&Json>, command: &str, data: Option<&str>) -> String {
    let mut line = head(id, command);
    line.push_str(r#","success":true"#);
    if let Some(data) = data {
        line.push_str(r#","data":"#);
        line.push_str(data);
    }
    line.push('}');
    line
}

/// The answer to a failed command.
#[must_use]
pub fn failure(id: Option<&Json>, command: &str, error: &str) -> String {
    let mut line = head(id, command);
    line.push_str(r#","success":false,"error":"#);
    write_string(error, &mut line);
    line.push('}');
    line
}

fn head(id: Option<&Json>, command: &str) -> String {
    let mut line = String::from("{");
    if let Some(id) = id {
        line.push_str(r#""id":"#);
        line.push_str(&id.to_text());
        line.push(',');
    }
    line.push_str(r#""type":"response","command":"#);
    write_string(command, &mut line);
    line
}
