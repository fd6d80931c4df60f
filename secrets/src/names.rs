//! Interprets the name of a setting: `DB_PASSWORD`, `apiKey`, `token_type`, `max_tokens`.

/// How strongly a name suggests a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameWeight {
    /// The value is a secret if it looks random: `auth`, `signature`, a bare `key`.
    Little,
    /// The value is a secret unless it is a word or a number: `token`, `api_key`, `client_secret`.
    Much,
    /// The value is a secret unless it is plainly a placeholder: `password`.
    All,
}

/// What a name suggests: how strongly, and which kind of secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NameMeaning {
    pub(crate) weight: NameWeight,
    pub(crate) kind: &'static str,
}

const PASSWORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "passwort",
    "psw",
    "pgpassword",
    "userpassword",
    "requirepass",
    "masterauth",
    "mypwd",
    "dbpass",
    "dbpassword",
    "sshpass",
    "storepass",
    "keypass",
    "keystorepass",
    "pass",
    "pw",
    "contraseña",
    "motdepasse",
    "passcode",
    "psk",
    "wpapsk",
    "pin",
    "mnemonic",
];
const SECRETS: &[&str] = &[
    "secret",
    "secrets",
    "clientsecret",
    "appsecret",
    "sharedsecret",
    "cookiesecret",
    "pepper",
    "otpsecret",
    "totp",
    "otp",
    "credential",
    "credentials",
    "creds",
    "connectionstring",
    "webhook",
];
const TOKENS: &[&str] = &[
    "token",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "bearer",
    "jwt",
    "pat",
    "csrftoken",
    "xsrftoken",
    "sessiontoken",
    "usertoken",
    "apitoken",
    "bottoken",
    "oauthtoken",
];
const KEYS: &[&str] = &[
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "authkey",
    "accountkey",
    "sharedaccesskey",
    "masterkey",
    "apppassword",
    "appkey",
    "servicekey",
    "licensekey",
    "deploykey",
    "storagekey",
    "sharedkey",
    "hmackey",
    "rootkey",
    "adminkey",
    "encryptkey",
    "sessionkey",
    "accesskeyid",
    "subscriptionkey",
    "functionkey",
    "integrationkey",
    "primarykeyvalue",
    "cipherkey",
    "aeskey",
    "apisecret",
    "sendgridkey",
    "keymaterial",
    "readkey",
    "privkey",
    "writekey",
];
const WEAK: &[&str] = &[
    "auth",
    "authorization",
    "signature",
    "sig",
    "salt",
    "nonce",
    "hmac",
    "seed",
    "dsn",
    "cookie",
    "sid",
    "sessionid",
    "phpsessid",
    "jsessionid",
    "key",
    "code",
    "cred",
    "assertion",
    "xsrf",
    "csrf",
    "verifier",
    "session",
];

/// Words before `key` that indicate a secret key.
const SECRET_KEYS: &[&str] = &[
    "api",
    "access",
    "secret",
    "private",
    "signing",
    "encryption",
    "auth",
    "account",
    "shared",
    "master",
    "app",
    "service",
    "license",
    "storage",
    "hmac",
    "root",
    "admin",
    "encrypt",
    "subscription",
    "function",
    "integration",
    "cipher",
    "aes",
    "jwt",
    "session",
    "openai",
    "anthropic",
    "stripe",
    "cookie",
    "application",
    "consumer",
    "security",
    "data",
    "kms",
    "vault",
    "fernet",
    "django",
    "flask",
    "rails",
    "base",
    "server",
    "dev",
    "prod",
    "live",
    "google",
    "azure",
    "webhook",
    "gpg",
    "unseal",
    "recovery",
    "activation",
    "product",
    "host",
    "instrumentation",
    "sentry",
    "mailgun",
    "algolia",
    "write",
    "read",
    "ingest",
    "ingestion",
    "personal",
    "user",
    "project",
    "team",
    "org",
    "deploy",
];

/// Words at the end of a name which show that the value describes a secret but is not one.
const ABOUT: &[&str] = &[
    "id",
    "ids",
    "name",
    "names",
    "type",
    "types",
    "url",
    "uri",
    "path",
    "file",
    "files",
    "filename",
    "count",
    "counts",
    "limit",
    "limits",
    "length",
    "len",
    "size",
    "expiry",
    "expires",
    "expiration",
    "ttl",
    "timeout",
    "policy",
    "ref",
    "label",
    "hash",
    "hashed",
    "digest",
    "version",
    "field",
    "input",
    "prompt",
    "hint",
    "reset",
    "env",
    "var",
    "format",
    "strength",
    "min",
    "max",
    "usage",
    "budget",
    "index",
    "rule",
    "rules",
    "regex",
    "pattern",
    "method",
    "mode",
    "status",
    "provider",
    "manager",
    "service",
    "store",
    "storage",
    "dir",
    "directory",
    "class",
    "error",
    "enabled",
    "required",
    "valid",
    "age",
    "at",
    "in",
    "by",
    "ms",
    "seconds",
    "days",
    "description",
    "title",
    "arn",
    "endpoint",
    "header",
    "prefix",
    "suffix",
    "scope",
    "scopes",
    "algorithm",
    "alg",
    "location",
    "source",
    "stdin",
    "column",
    "table",
    "keyring",
    "helper",
    "placeholder",
    "public",
    "pub",
    "fingerprint",
    "thumbprint",
    "issuer",
    "audience",
    "kind",
    "namespace",
    "list",
    "set",
    "map",
    "rotation",
    "length",
    "group",
    "mount",
    "volume",
    "template",
    "address",
    "email",
    "cost",
    "price",
    "rate",
    "total",
    "used",
    "ratio",
    "bits",
    "encoding",
    "checksum",
    "sum",
    "etag",
    "cmd",
    "command",
    "change",
    "changed",
    "date",
];

/// The meaning of a complete name, with its dots and dashes, if it has one.
pub(crate) fn meaning(name: &[u8]) -> Option<NameMeaning> {
    let mut words = words(name);
    // `User-Key-File-3` ends with a number, which has no meaning.
    while words.last().is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit())) {
        words.pop();
    }
    let last = words.last()?;
    let last = last.trim_end_matches(|c: char| c.is_ascii_digit());
    if ABOUT.contains(&last)
        || words.iter().any(|word| matches!(word.as_str(), "public" | "pub" | "publishable" | "websocket"))
    {
        return None;
    }
    let flat: String = words.concat();
    // The handshake of a web socket generates a random key that is not a secret.
    if flat.contains("websocketkey") {
        return None;
    }
    // From the end: `token_password_prod` is a password, `password_reset_token` a token.
    let mut best: Option<NameMeaning> = None;
    for (i, word) in words.iter().enumerate().rev() {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        if let Some(found) = of_word(word, i.checked_sub(1).map(|i| words[i].as_str())) {
            if best.is_none_or(|best| found.weight > best.weight) {
                best = Some(found);
            }
            if best.is_some_and(|best| best.weight >= NameWeight::Much) {
                break;
            }
        }
    }
    // Without separators, such as `MYSQLPASSWORD` and `authtoken`.
    let ends = |list: &[&str]| list.iter().any(|word| word.len() >= 5 && flat.ends_with(word));
    if best.is_none_or(|best| best.weight < NameWeight::Much) {
        if ends(PASSWORDS) {
            return Some(NameMeaning { weight: NameWeight::All, kind: "password" });
        }
        if ends(KEYS) {
            return Some(NameMeaning { weight: NameWeight::Much, kind: "api-key" });
        }
        if ends(TOKENS) {
            return Some(NameMeaning { weight: NameWeight::Much, kind: "token" });
        }
        if ends(SECRETS) {
            return Some(NameMeaning { weight: NameWeight::Much, kind: "secret" });
        }
    }
    best
}

/// Whether the last word of a name suggests a secret: true for `withPassword`, false for `passwordField`.
pub(crate) fn ends_telling(name: &[u8]) -> bool {
    let words = words(name);
    words.last().is_some_and(|last| {
        of_word(last, None).is_some_and(|m| m.weight > NameWeight::Little)
            || PASSWORDS.iter().any(|p| p.len() > 4 && last.ends_with(p))
    })
}

fn of_word(word: &str, before: Option<&str>) -> Option<NameMeaning> {
    let much = |kind| Some(NameMeaning { weight: NameWeight::Much, kind });
    if word == "pin" {
        return Some(NameMeaning { weight: NameWeight::Little, kind: "password" });
    }
    if PASSWORDS.contains(&word) {
        return Some(NameMeaning { weight: NameWeight::All, kind: "password" });
    }
    if SECRETS.contains(&word) {
        return much("secret");
    }
    if TOKENS.contains(&word) {
        return much("token");
    }
    if KEYS.contains(&word) || word == "key" && before.is_some_and(|before| SECRET_KEYS.contains(&before)) {
        return much("api-key");
    }
    if word == "signature" {
        return Some(NameMeaning { weight: NameWeight::Little, kind: "signature" });
    }
    WEAK.contains(&word).then_some(NameMeaning { weight: NameWeight::Little, kind: "secret" })
}

/// The words of a name, in lower case: split at dashes, dots and underscores, and where a capital begins a word.
fn words(name: &[u8]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before = 0_u8;
    for (i, &byte) in name.iter().enumerate() {
        if !byte.is_ascii_alphanumeric() && byte < 0x80 {
            all.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty()));
        } else {
            let next_is_small = name.get(i + 1).is_some_and(u8::is_ascii_lowercase);
            let begins = byte.is_ascii_uppercase()
                && (before.is_ascii_lowercase() || before.is_ascii_uppercase() && next_is_small);
            if begins {
                all.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty()));
            }
            word.push(char::from(byte.to_ascii_lowercase()));
        }
        before = byte;
    }
    all.extend(Some(word).filter(|w| !w.is_empty()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_names_are_weighted_by_how_likely_they_hold_a_secret() {
        let weight = |name: &str| meaning(name.as_bytes()).map(|m| m.weight);
        for name in [
            "password",
            "DB_PASSWORD",
            "dbPassword",
            "spring.datasource.password",
            "MYSQLPASSWORD",
            "PGPASSWORD",
            "pwd",
            "MYSQL_PWD",
        ] {
            assert_eq!(weight(name), Some(NameWeight::All), "{name}");
        }
        for name in [
            "token",
            "API_KEY",
            "apiKey",
            "x-api-key",
            "clientSecret",
            "aws_secret_access_key",
            "SECRET_KEY",
            "AccountKey",
            "authtoken",
            "_authToken",
        ] {
            assert_eq!(weight(name), Some(NameWeight::Much), "{name}");
        }
        for name in [
            "token_type",
            "max_tokens",
            "tokenizer",
            "key_id",
            "public_key",
            "primary_key",
            "passwordHash",
            "secretName",
            "monkey",
            "compass",
            "api_key_id",
        ] {
            assert!(weight(name).is_none_or(|w| w == NameWeight::Little), "{name}");
        }
    }
}
