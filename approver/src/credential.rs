//! Credentials in data that git stores: addresses and configurations.

/// Whether a text contains an address with a credential: a user other than git, a query, or a part that has the form of
/// a credential.
pub(crate) fn has_credential(text: &str) -> bool {
    text.match_indices("://").any(|(at, _)| {
        let rest = &text[at + 3..];
        let address =
            rest.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '>' | '<')).next().unwrap_or_default();
        let host = address.split(['/', '?', '#']).next().unwrap_or_default();
        let user = host.rsplit_once('@').is_some_and(|(user, _)| user != "git");
        let lower = address.to_ascii_lowercase();
        let tells = ["token", "secret", "password", "passwd", "apikey", "api_key", "access_key", "auth=", "signature="];
        // A later `@` belongs to a password that contains a `/`.
        user || address.contains('?')
            || address[host.len()..].contains('@')
            || tells.iter().any(|word| lower.contains(word))
    })
}

/// Whether a configuration contains an address with a credential, a header with a credential, or a value whose name
/// suggests a credential.
pub(crate) fn holds_credential(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let mut section = String::new();
    text.lines().any(|line| {
        let line = line.trim();
        if line.starts_with('[') {
            section = line.to_ascii_lowercase();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        let telling = ["token", "pass", "secret", "extraheader", "cookie", "apikey", "credential", "privatekey"];
        let tells = !line.starts_with('[') && telling.iter().any(|word| key.contains(word));
        // The name of a helper is harmless, but a program that prints a password is not.
        let helper = section.starts_with("[credential") && key == "helper" && value.contains([' ', '!', '=', ';']);
        let harmless = matches!(value, "" | "true" | "false") || key == "helper";
        has_credential(line) || helper || tells && !harmless || key.contains("extraheader")
    })
}
