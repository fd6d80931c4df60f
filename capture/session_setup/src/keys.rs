//! Keys of providers: from a variable, a file that only its owner can read, or a program that prints it.
//!
//! A key never appears in an error or an argument, and the environment of commands excludes the variables that contain
//! keys.

use std::{
    ffi::OsString,
    fs::File,
    io::Read,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc::channel,
    time::Duration,
};

use models::Secret;
use rustix::fs::OFlags;
use settings::ProviderSettings;

use crate::RunError;

/// Time limit of a program that prints a key: the user may have to unlock it.
const COMMAND: Duration = Duration::from_secs(120);
/// Maximum size of a key, in bytes.
const MOST: u64 = 64 * 1024;

/// The key of a provider, if it needs one. A provider defined by the user without any of the three settings has none.
pub(crate) fn key_of(
    name: &str,
    provider: &ProviderSettings,
    environment: &[(OsString, OsString)],
) -> Result<Option<Secret>, RunError> {
    let text = if let Some(file) = &provider.key_file {
        from_file(file)?
    } else if let Some((program, arguments)) = provider.key_command.split_first() {
        from_command(program, arguments, COMMAND)?
    } else if let Some(variable) = &provider.key_env {
        let value = environment.iter().find(|(name, _)| name == variable.as_str()).map(|(_, value)| value);
        let value = value.and_then(|value| value.to_str()).filter(|value| !value.trim().is_empty());
        let missing = || {
            let settings = format!("agent.providers.{name}");
            RunError::Usage(format!(
                "no key for `{name}`: set {variable}, or {settings}.key_file or {settings}.key_command in the configuration"
            ))
        };
        value.ok_or_else(missing)?.to_owned()
    } else {
        return Ok(None);
    };
    let key = Secret::new(text);
    if key.expose().is_empty() {
        return Err(RunError::Usage(format!("the key for `{name}` is empty")));
    }
    Ok(Some(key))
}

/// The source of a provider's key, as text.
pub(crate) fn source_in_words(name: &str, provider: &ProviderSettings) -> String {
    let setting = |key: &str| format!("agent.providers.{name}.{key}");
    if let Some(file) = &provider.key_file {
        format!("the key is from {}, {}", file.display(), setting("key_file"))
    } else if let Some(program) = provider.key_command.first() {
        format!("the key is from the program `{program}`, {}", setting("key_command"))
    } else if let Some(variable) = &provider.key_env {
        format!("the key is from the variable {variable}")
    } else {
        format!("without a key: {}, key_file and key_command are not set", setting("key_env"))
    }
}

fn from_file(path: &Path) -> Result<String, RunError> {
    let wrong = |why: &str| RunError::Usage(format!("cannot use the key file {}: {why}", path.display()));
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(|error| wrong(&error.to_string()))?;
    let told = file.metadata().map_err(|error| wrong(&error.to_string()))?;
    if !told.is_file() {
        return Err(wrong("it is not a regular file"));
    }
    if told.uid() != rustix::process::geteuid().as_raw() {
        return Err(wrong("it belongs to another user"));
    }
    if told.mode() & 0o077 != 0 {
        return Err(wrong(&format!("others can read it; run `chmod 600 {}`", path.display())));
    }
    read_key(file).map_err(|error| wrong(&error.to_string()))
}

/// The output of the program. Its errors go to the user's terminal.
fn from_command(program: &str, arguments: &[String], limit: Duration) -> Result<String, RunError> {
    let wrong = |why: &str| RunError::Usage(format!("cannot use the key command `{program}`: {why}"));
    let child = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| wrong(&error.to_string()))?;
    let (send, printed) = channel();
    if let Some(output) = child.stdout.take() {
        // The thread ends when all programs with the output open have ended.
        std::thread::spawn(move || drop(send.send(read_key(output))));
    }
    let Ok(text) = printed.recv_timeout(limit) else {
        // The program may have ended in the meantime.
        let _ = child.kill().and_then(|()| child.wait());
        return Err(wrong(&format!("it did not end within {} s", limit.as_secs())));
    };
    let ended = child.wait().map_err(|error| wrong(&error.to_string()))?;
    if !ended.success() {
        return Err(wrong(&format!("it ended with {ended}")));
    }
    text.map_err(|error| wrong(&error.to_string()))
}

fn read_key(from: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    from.take(MOST).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn key(provider: &ProviderSettings) -> Result<Option<String>, String> {
        let environment = [("MY_KEY".into(), "from-env".into()), ("NOTHING".into(), " ".into())];
        let key = key_of("mine", provider, &environment).map_err(|error| error.to_string())?;
        Ok(key.map(|key| key.expose().to_owned()))
    }

    #[test]
    fn a_key_is_read_from_a_variable_a_file_or_a_program() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        fs::write(&file, "from-file\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let of_env = |name: &str| ProviderSettings { key_env: Some(name.to_owned()), ..ProviderSettings::default() };
        let of_file = ProviderSettings { key_file: Some(file.clone()), ..ProviderSettings::default() };
        let of_command = |words: &[&str]| ProviderSettings {
            key_command: words.iter().map(|word| (*word).to_owned()).collect(),
            ..ProviderSettings::default()
        };
        assert_eq!(key(&of_env("MY_KEY")).unwrap().as_deref(), Some("from-env"));
        assert_eq!(key(&of_file).unwrap().as_deref(), Some("from-file"));
        assert_eq!(key(&of_command(&["echo", "from-command"])).unwrap().as_deref(), Some("from-command"));
        assert_eq!(key(&ProviderSettings::default()).unwrap(), None);
        for absent in ["OTHER", "NOTHING"] {
            let error = key(&of_env(absent)).unwrap_err();
            assert!(error.contains(absent) && error.contains("agent.providers.mine.key_file"), "{error}");
        }
        assert!(key(&of_command(&["false"])).unwrap_err().contains("exit status: 1"));
        assert!(key(&of_command(&["true"])).unwrap_err().contains("is empty"));
        let words = ["-c".to_owned(), "echo from-command; exec sleep 60".to_owned()];
        let error = from_command("sh", &words, Duration::from_millis(1)).unwrap_err().to_string();
        assert!(error.contains("did not end within 0 s") && !error.contains("from-command"), "{error}");
        // Other users could read the key.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let error = key(&of_file).unwrap_err();
        assert!(error.contains("chmod 600") && !error.contains("from-file"), "{error}");
    }
}
