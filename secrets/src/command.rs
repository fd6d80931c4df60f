//! Credentials in commands and small files, by position: `curl -u user:…`, `mysql -p…`, `.pgpass`, `chpasswd`.

use crate::{
    found::{SecretKind, Span},
    text::{begins_word, behind_escape, line_end, line_start, skip_blanks, until},
    value,
};

const LONGEST: usize = 2048;

/// How a command's flag and its secret are written.
#[derive(Clone, Copy)]
enum FlagForm {
    /// `-u user:SECRET`
    AfterColon,
    /// `-U domain\user%SECRET`
    AfterPercent,
    /// `-p SECRET`
    Next,
    /// `-pSECRET`
    Tight,
    /// `user/SECRET@host`, as a separate argument.
    AfterSlash,
    /// The last argument.
    Last,
}

/// A command and its flags that have secret values.
struct CommandFlags {
    name: &'static [u8],
    flags: &'static [(&'static [u8], FlagForm)],
}

const COMMANDS: &[CommandFlags] = &[
    CommandFlags {
        name: b"curl",
        flags: &[
            (b"-u", FlagForm::AfterColon),
            (b"--user", FlagForm::AfterColon),
            (b"-U", FlagForm::AfterColon),
            (b"--proxy-user", FlagForm::AfterColon),
            (b"-su", FlagForm::AfterColon),
            (b"-sSu", FlagForm::AfterColon),
            (b"--oauth2-bearer", FlagForm::Next),
        ],
    },
    CommandFlags { name: b"http", flags: &[(b"-a", FlagForm::AfterColon), (b"--auth", FlagForm::AfterColon)] },
    CommandFlags { name: b"docker", flags: &[(b"-p", FlagForm::Next), (b"-p=", FlagForm::Tight)] },
    CommandFlags { name: b"podman", flags: &[(b"-p", FlagForm::Next)] },
    CommandFlags { name: b"helm", flags: &[(b"-p", FlagForm::Next)] },
    CommandFlags { name: b"oc", flags: &[(b"-p", FlagForm::Next)] },
    CommandFlags { name: b"az", flags: &[(b"-p", FlagForm::Next)] },
    CommandFlags { name: b"sshpass", flags: &[(b"-p", FlagForm::Next), (b"-p", FlagForm::Tight)] },
    CommandFlags { name: b"mysql", flags: &[(b"-p", FlagForm::Tight)] },
    CommandFlags { name: b"mysqldump", flags: &[(b"-p", FlagForm::Tight)] },
    CommandFlags { name: b"mysqladmin", flags: &[(b"-p", FlagForm::Tight)] },
    CommandFlags { name: b"mariadb", flags: &[(b"-p", FlagForm::Tight)] },
    CommandFlags { name: b"mongo", flags: &[(b"-p", FlagForm::Next)] },
    CommandFlags { name: b"mongosh", flags: &[(b"-p", FlagForm::Next)] },
    CommandFlags { name: b"mongodump", flags: &[(b"-p", FlagForm::Next)] },
    CommandFlags { name: b"redis-cli", flags: &[(b"-a", FlagForm::Next)] },
    CommandFlags { name: b"sqlcmd", flags: &[(b"-P", FlagForm::Next), (b"-P", FlagForm::Tight)] },
    CommandFlags { name: b"ldapsearch", flags: &[(b"-w", FlagForm::Next)] },
    CommandFlags { name: b"ldapadd", flags: &[(b"-w", FlagForm::Next)] },
    CommandFlags { name: b"ldapmodify", flags: &[(b"-w", FlagForm::Next)] },
    CommandFlags { name: b"ldapwhoami", flags: &[(b"-w", FlagForm::Next)] },
    CommandFlags { name: b"smbclient", flags: &[(b"-U", FlagForm::AfterPercent)] },
    CommandFlags { name: b"rpcclient", flags: &[(b"-U", FlagForm::AfterPercent)] },
    CommandFlags { name: b"zip", flags: &[(b"-P", FlagForm::Next)] },
    CommandFlags { name: b"unzip", flags: &[(b"-P", FlagForm::Next)] },
    CommandFlags { name: b"7z", flags: &[(b"-p", FlagForm::Tight)] },
    CommandFlags { name: b"ipmitool", flags: &[(b"-P", FlagForm::Next)] },
    CommandFlags { name: b"xfreerdp", flags: &[(b"/p:", FlagForm::Tight)] },
    CommandFlags { name: b"mosquitto_pub", flags: &[(b"-P", FlagForm::Next)] },
    CommandFlags { name: b"mosquitto_sub", flags: &[(b"-P", FlagForm::Next)] },
    CommandFlags { name: b"rabbitmqadmin", flags: &[(b"-p", FlagForm::Next)] },
    CommandFlags { name: b"ssh-keygen", flags: &[(b"-N", FlagForm::Next), (b"-P", FlagForm::Next)] },
    CommandFlags { name: b"vault", flags: &[(b"login", FlagForm::Next)] },
    CommandFlags { name: b"snyk", flags: &[(b"auth", FlagForm::Next)] },
    CommandFlags { name: b"wandb", flags: &[(b"login", FlagForm::Next)] },
    CommandFlags { name: b"bw", flags: &[(b"unlock", FlagForm::Next)] },
    CommandFlags { name: b"nmcli", flags: &[(b"password", FlagForm::Next)] },
    CommandFlags { name: b"oathtool", flags: &[(b"-", FlagForm::Last)] },
    CommandFlags { name: b"sqlplus", flags: &[(b"", FlagForm::AfterSlash)] },
    CommandFlags {
        name: b"gh",
        flags: &[(b"--body", FlagForm::Next), (b"-b", FlagForm::Next), (b"-b", FlagForm::Tight)],
    },
    CommandFlags { name: b"aws", flags: &[(b"--value", FlagForm::Next), (b"--secret-string", FlagForm::Next)] },
    CommandFlags { name: b"htpasswd", flags: &[(b"-", FlagForm::Last)] },
    CommandFlags { name: b"net", flags: &[(b"/user:", FlagForm::Last)] },
    CommandFlags {
        name: b"rabbitmqctl",
        flags: &[(b"add_user", FlagForm::Last), (b"change_password", FlagForm::Last)],
    },
    CommandFlags { name: b"keytool", flags: &[(b"-storepass", FlagForm::Next), (b"-keypass", FlagForm::Next)] },
    CommandFlags { name: b"openssl", flags: &[(b"-k", FlagForm::Next), (b"pass:", FlagForm::Tight)] },
];

/// Trigger words of this detector.
pub(crate) const WORDS: &[&str] = &[
    "vault login ",
    "snyk auth ",
    "wandb login ",
    "bw unlock ",
    "nmcli ",
    "oathtool ",
    "sqlplus ",
    "gh secret set ",
    "aws ssm put-parameter ",
    "aws secretsmanager ",
    "htpasswd ",
    "net use ",
    "rabbitmqctl ",
    "curl ",
    "http ",
    "docker login",
    "podman login",
    "helm registry login",
    "oc login",
    "az login",
    "az acr login",
    "sshpass ",
    "mysql ",
    "mysqldump ",
    "mysqladmin ",
    "mariadb ",
    "mongo ",
    "mongosh ",
    "mongodump ",
    "redis-cli ",
    "sqlcmd ",
    "ldapsearch ",
    "ldapadd ",
    "ldapmodify ",
    "ldapwhoami ",
    "smbclient ",
    "rpcclient ",
    "zip ",
    "unzip ",
    "7z ",
    "ipmitool ",
    "xfreerdp ",
    "mosquitto_pub ",
    "mosquitto_sub ",
    "rabbitmqadmin ",
    "ssh-keygen ",
    "keytool ",
    "openssl ",
];

fn span(start: usize, end: usize) -> Span {
    Span { start, end, kind: SecretKind::from("command-password") }
}

/// The values of secret flags of the command that begins at `at`. Returns the position up to which it read.
pub(crate) fn find(bytes: &[u8], at: usize, out: &mut Vec<Span>) -> usize {
    if !begins_word(bytes, at) || at > 0 && matches!(bytes[at - 1], b'-' | b'_' | b'.') {
        return at;
    }
    let word = until(bytes, at, 32, |b| b == b' ');
    let Some(command) = COMMANDS.iter().find(|c| c.name.eq_ignore_ascii_case(&bytes[at..word])) else { return at };
    // A command may continue over lines that end with a backslash.
    let mut end = line_end(bytes, at, LONGEST);
    while end < bytes.len() && end < at + LONGEST && bytes[..end].ends_with(b"\\") {
        end = line_end(bytes, end + 1, LONGEST);
    }
    let mut here = word;
    while here < end {
        here = until(&bytes[..end], here, LONGEST, |b| !b.is_ascii_whitespace());
        let arg_end = argument_end(&bytes[..end], here);
        for &(flag, place) in command.flags {
            if let Some(found) = behind_flag(&bytes[..end], here, arg_end, flag, place) {
                out.push(found);
                break;
            }
        }
        if matches!(bytes[here..arg_end], [b'|' | b';']) || &bytes[here..arg_end] == b"&&" || arg_end <= here {
            return here;
        }
        here = arg_end;
    }
    end
}

/// The end of an argument: a blank outside quotes.
fn argument_end(bytes: &[u8], at: usize) -> usize {
    let mut quote = 0;
    let mut end = at;
    while end < bytes.len() {
        let byte = bytes[end];
        if quote != 0 {
            if byte == quote {
                quote = 0;
            }
        } else if matches!(byte, b'"' | b'\'') && (end == 0 || bytes[end - 1] != b'\\') {
            quote = byte;
        } else if byte.is_ascii_whitespace() {
            break;
        }
        end += 1;
    }
    end
}

fn behind_flag(bytes: &[u8], at: usize, arg_end: usize, flag: &[u8], place: FlagForm) -> Option<Span> {
    let arg = &bytes[at..arg_end];
    if !arg.starts_with(flag) {
        return None;
    }
    let (from, to) = match place {
        FlagForm::AfterSlash => {
            let slash = memchr::memchr(b'/', arg)?;
            let user = &arg[..slash];
            if user.is_empty() || !user.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_') {
                return None;
            }
            let end = memchr::memchr(b'@', &arg[slash..])?;
            (at + slash + 1, at + slash + end)
        }
        FlagForm::Tight if arg.len() > flag.len() => (at + flag.len(), arg_end),
        FlagForm::Tight => return None,
        FlagForm::Last => {
            let end = until(bytes, arg_end, LONGEST, |b| matches!(b, b'|' | b';' | b'&' | b'>' | b'\n')).max(arg_end);
            let args = bytes[arg_end..end].trim_ascii_end();
            let from = args.iter().rposition(u8::is_ascii_whitespace)? + 1;
            let last = &args[from..];
            // A file or a user, if the command prompts for the password.
            if !last.iter().any(u8::is_ascii_digit) || value::is_words(last) {
                return None;
            }
            (arg_end + from, arg_end + args.len())
        }
        FlagForm::Next | FlagForm::AfterColon | FlagForm::AfterPercent if arg.len() == flag.len() => {
            let from = until(bytes, arg_end, 64, |b| !b.is_ascii_whitespace() && b != b'\\');
            (from, argument_end(bytes, from))
        }
        FlagForm::Next | FlagForm::AfterColon | FlagForm::AfterPercent if arg.get(flag.len()) == Some(&b'=') => {
            (at + flag.len() + 1, arg_end)
        }
        FlagForm::AfterColon if flag.len() == 2 && !flag.ends_with(b"-") => (at + flag.len(), arg_end),
        FlagForm::Next | FlagForm::AfterColon | FlagForm::AfterPercent => return None,
    };
    let (from, to) = bare(bytes, from, to);
    let from = match place {
        FlagForm::AfterColon => from + memchr::memchr(b':', &bytes[from..to])? + 1,
        FlagForm::AfterPercent => from + memchr::memchr(b'%', &bytes[from..to])? + 1,
        FlagForm::Next | FlagForm::Tight | FlagForm::Last | FlagForm::AfterSlash => from,
    };
    let secret = &bytes[from..to];
    let is_secret = secret.len() >= 3
        && !value::is_placeholder(secret)
        && !matches!(secret[0], b'-' | b'{')
        && !value::is_path(secret)
        && !secret.contains(&b'(');
    is_secret.then(|| span(from, to))
}

/// The bounds without surrounding quotes, escaped or not, and without the end of a string in code.
fn bare(bytes: &[u8], from: usize, to: usize) -> (usize, usize) {
    let edge = |b: u8| matches!(b, b'"' | b'\'' | b'\\' | b'`');
    let from = until(&bytes[..to], from, 4, |b| !edge(b));
    let mut end = from.max(to);
    let closes = |i: &usize| match bytes[*i] {
        b'"' | b'\'' | b'`' => true,
        b'\\' => matches!(bytes.get(i + 1), Some(b'"' | b'\'' | b'n' | b'r')),
        _ => false,
    };
    if let Some(i) = (from..end).find(closes) {
        end = i;
    }
    (from, end)
}

/// The last field of a line of `.pgpass`: `host:port:database:user:SECRET`, with `:5432:` or `:*:` at `at`.
pub(crate) fn pgpass(bytes: &[u8], at: usize) -> Option<Span> {
    let start = line_start(bytes, at, 256);
    let end = until(bytes, at, 512, |b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'\\' | b'`'));
    let start = (start..at)
        .rev()
        .find(|&i| {
            bytes[i].is_ascii_whitespace() || matches!(bytes[i], b'"' | b'\'' | b'`' | b'\\') || bytes[i] >= 0x80
        })
        .map_or(start, |i| if bytes[i] == b'\\' { behind_escape(bytes, i).max(i + 1) } else { i + 1 });
    let mut fields = bytes[start..end].splitn(5, |b| *b == b':');
    let (host, port, base, user, secret) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let is_port = port == b"*" || port.len() >= 2 && port.iter().all(u8::is_ascii_digit);
    let is_secret = is_port
        && !host.is_empty()
        && !base.is_empty()
        && !user.is_empty()
        && secret.len() >= 4
        && !value::is_placeholder(secret)
        && !secret.iter().any(|b| matches!(b, b'/' | b'[' | b'('))
        && host != b"arn"
        && !value::is_number(secret)
        && !user.contains(&b'/');
    is_secret.then(|| span(end - secret.len(), end))
}

/// Text that is echoed into a program that reads a password: `echo … | sudo -S`, `echo user:… | chpasswd`. `at` is the
/// position of that program.
pub(crate) fn piped(bytes: &[u8], at: usize) -> Option<Span> {
    let start = line_start(bytes, at, 512);
    let line = &bytes[start..at];
    let pipe = memchr::memrchr(b'|', line)?;
    let echo = [&b"echo "[..], b"printf ", b"echo -n "]
        .iter()
        .filter_map(|word| memchr::memmem::rfind(&line[..pipe], word).map(|i| i + word.len()))
        .max()?;
    let from = skip_blanks(bytes, start + echo);
    let (from, to) = bare(bytes, from, argument_end(&bytes[..start + pipe], from));
    let reads_pairs = bytes[at..].starts_with(b"chpasswd");
    let from = if reads_pairs { from + memchr::memchr(b':', &bytes[from..to])? + 1 } else { from };
    let secret = &bytes[from..to];
    (secret.len() >= 4 && !value::is_placeholder(secret) && !secret.starts_with(b"$")).then(|| span(from, to))
}

/// The quoted text after `IDENTIFIED BY` and similar words, which end at `at`.
pub(crate) fn quoted(bytes: &[u8], at: usize) -> Option<Span> {
    let from = skip_blanks(bytes, at);
    let slashes = until(bytes, from, 4, |b| b != b'\\');
    let &quote = bytes.get(slashes).filter(|b| matches!(b, b'"' | b'\''))?;
    let from = slashes + 1;
    let to = until(bytes, from, 256, |b| b == quote || b == b'\n' || b == b'\\');
    let secret = &bytes[from..to];
    (secret.len() >= 3 && bytes.get(to) != Some(&b'\n') && !value::is_placeholder(secret) && !value::is_words(secret))
        .then(|| span(from, to))
}

/// `admin / SECRET` or `admin:SECRET` after the words that end at `at`.
pub(crate) fn pair(bytes: &[u8], at: usize) -> Option<Span> {
    let edge = |b: u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'*' | b'(' | b')' | b',' | b'\\');
    let user = until(bytes, at, 4, |b| !edge(b) || b == b'\n');
    let user_end = until(bytes, user, 64, |b| edge(b) || b == b':' || b == b'/');
    let sign = until(bytes, user_end, 4, |b| !edge(b) || b == b'\n');
    if user_end == user || !matches!(bytes.get(sign), Some(b':' | b'/')) || bytes[sign..].starts_with(b"://") {
        return None;
    }
    let from = until(bytes, sign + 1, 4, |b| !edge(b) || b == b'\n');
    let to = until(bytes, from, 128, edge);
    let to = from + bytes[from..to].trim_ascii_end().len();
    let secret = bytes[from..to].strip_suffix(b".").unwrap_or(&bytes[from..to]);
    let is_secret = secret.len() >= 6
        && secret.iter().any(u8::is_ascii_digit)
        && !value::is_words(secret)
        && !value::is_number(secret)
        && !value::is_placeholder(secret)
        && !value::is_path(secret)
        && !secret.contains(&b'/');
    is_secret.then(|| span(from, from + secret.len()))
}
