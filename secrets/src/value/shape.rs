//! The shape of a value: random, made of words, a path, a number.

/// The entropy of the bytes, in bits per byte.
pub(crate) fn entropy(value: &[u8]) -> f32 {
    let mut counts = [0_u32; 256];
    for &byte in value {
        counts[usize::from(byte)] += 1;
    }
    let all = value.len() as f32;
    counts
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| {
            let share = count as f32 / all;
            -share * share.log2()
        })
        .sum()
}

/// Whether a value looks random, unlike words, paths, versions and names.
pub(crate) fn looks_random(value: &[u8]) -> bool {
    let classes = CharCounts::of(value);
    let letters = classes.lower + classes.upper;
    if value.len() < 8 || value.contains(&b' ') {
        return false;
    }
    if classes.digits == 0 {
        // Only letters: long, and with capitals in places where words have none.
        return classes.lower > 3 && classes.upper > 3 && value.len() >= 16 && has_stray_capitals(value);
    }
    if letters == 0 {
        return false;
    }
    // Words with a number at the end, or numbers between separators: `us-east-1`, `v1.2.3`, `my-app-2024`.
    let longest = longest_mixed(value);
    let enough = if value.len() >= 20 { 3.0 } else { 2.5 };
    entropy(value) >= enough && longest >= 6.min(value.len())
}

/// Whether capitals occur together in more than one place, or there are very long runs of consonants, which names in
/// mixed case do not have.
pub(crate) fn has_stray_capitals(value: &[u8]) -> bool {
    let runs = value.split(|b| !b.is_ascii_uppercase()).filter(|run| run.len() > 1).count();
    runs >= 2 || scrambled(value) && runs >= 1
}

/// Number of changes of case or kind from one byte to the next, not counting a single capital before lower-case
/// letters.
fn bumps(value: &[u8]) -> usize {
    let kind = |b: u8| match b {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    value.windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count()
}

/// The longest part between separators that mixes letters and digits.
fn longest_mixed(value: &[u8]) -> usize {
    value
        .split(|b| matches!(b, b'-' | b'_' | b'.' | b'/' | b':' | b' '))
        .filter(|part| {
            let classes = CharCounts::of(part);
            classes.digits > 0 && classes.lower + classes.upper > 0 && bumps(part) >= 2
        })
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0)
}

/// Whether a value consists of words with separators: `my-app-secret`, `config.password`, `userPassword`, `TOKEN_NAME`.
pub(crate) fn is_words(value: &[u8]) -> bool {
    value.iter().all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.' | b'-' | b'/' | b'$' | b':' | b'@'))
        && !scrambled(value)
        || value.split(|b| matches!(b, b'_' | b'.' | b'-' | b'/')).all(worded)
}

/// A word, or one with a small number at its end: `token2`, `v1`, `us-east-1`, `2024`.
fn worded(part: &[u8]) -> bool {
    let letters = part.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let digits = part.len() - letters;
    part[letters..].iter().all(u8::is_ascii_digit)
        && digits <= if letters == 0 { 4 } else { 1 }
        && !scrambled(&part[..letters])
}

/// Letters in an arrangement that words do not have: capitals everywhere, or very long runs of consonants.
fn scrambled(value: &[u8]) -> bool {
    let classes = CharCounts::of(value);
    let capitals = classes.upper > 3 && classes.lower > 3 && value.len() >= 16 && bumps(value) * 5 >= value.len() * 2;
    let mut run = 0;
    let mut longest = 0;
    for byte in value {
        let is_vowel = matches!(byte.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u' | b'y');
        run = if byte.is_ascii_alphabetic() && !is_vowel { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let mixed = classes.upper > 0 && classes.lower > 0;
    capitals || value.len() >= 8 && longest >= if mixed { 6 } else { 7 }
}

/// Whether a value is a path or an address.
pub(crate) fn is_path(value: &[u8]) -> bool {
    let starts = [
        &b"./"[..],
        b"../",
        b"~/",
        b"http://",
        b"https://",
        b"file:",
        b"s3://",
        b"arn:",
        b"gs://",
        b"vault:",
        b"op://",
        b"projects/",
        b"secretsmanager:",
        b"ssm:",
        b"/run/",
        b"/etc/",
        b"/var/",
        b"/home/",
        b"/usr/",
        b"/tmp/",
        b"/Users/",
        b"/opt/",
        b"/workspace",
        b"/app/",
        b"/root/",
        b"/dev/",
        b"/mnt/",
    ];
    if starts.iter().any(|start| value.starts_with(start)) {
        return true;
    }
    let is_drive = value.len() > 3
        && value[0].is_ascii_alphabetic()
        && (value[1..].starts_with(b":\\") || value[1..].starts_with(b":/"));
    let ends = [
        &b".pem"[..],
        b".key",
        b".txt",
        b".json",
        b".yaml",
        b".yml",
        b".toml",
        b".env",
        b".py",
        b".rs",
        b".ts",
        b".tsx",
        b".js",
        b".go",
        b".crt",
        b".md",
        b".rb",
        b".java",
        b".lock",
        b".sh",
    ];
    is_drive || ends.iter().any(|end| value.ends_with(end))
}

/// Whether a value is a number, a date or a version, also as programs write them: `0x1f`, `983040i32`, `30s`.
pub(crate) fn is_number(value: &[u8]) -> bool {
    let hex = value.strip_prefix(b"0x").or_else(|| value.strip_prefix(b"0X"));
    let is_hex_literal =
        value.len() <= 12 && hex.is_some_and(|hex| hex.iter().all(|b| b.is_ascii_hexdigit() || *b == b'_'));
    let digits = value.iter().take_while(|b| b.is_ascii_digit()).count();
    let unit = &value[digits..];
    let units = [
        &b"i8"[..],
        b"u8",
        b"i16",
        b"u16",
        b"i32",
        b"u32",
        b"i64",
        b"u64",
        b"usize",
        b"isize",
        b"f32",
        b"f64",
        b"ms",
        b"s",
        b"px",
        b"KB",
        b"MB",
        b"GB",
        b"L",
        b"UL",
        b"ul",
        b"n",
    ];
    let has_unit = digits > 0 && units.contains(&unit);
    let is_plain =
        value.iter().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b':' | b'_' | b'+' | b',' | b'%'));
    value.iter().any(u8::is_ascii_digit) && (is_plain || has_unit || is_hex_literal)
}

pub(crate) fn trim(value: &[u8]) -> &[u8] {
    value.trim_ascii()
}

/// Number of characters of each class in a value.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct CharCounts {
    pub(crate) lower: usize,
    pub(crate) upper: usize,
    pub(crate) digits: usize,
    pub(crate) others: usize,
}

impl CharCounts {
    pub(crate) fn of(value: &[u8]) -> Self {
        let mut all = Self::default();
        for byte in value {
            match byte {
                b'a'..=b'z' => all.lower += 1,
                b'A'..=b'Z' => all.upper += 1,
                b'0'..=b'9' => all.digits += 1,
                _ => all.others += 1,
            }
        }
        all
    }
}
