//! The terminal model: redraws, restored modes, replies and signals.

use events::Provider;

use super::*;

fn stage() -> Stage {
    Stage::new(Provider::Unknown, ScreenRules::default())
}

#[test]
fn a_repaint_reproduces_the_picture_and_modes() {
    let mut stage = stage();
    stage.write("\x1b[?1049h\x1b[?1002h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b]0;a; title\x07\x1b[?25l");
    stage.write("\x1b[3;5H\x1b[31mred \x1b[1mbold\x1b[0m wide 漢字 \u{1f600}\x1b[10;70H0123456789wrapped");
    let repaint = stage.observer.repaint();
    let mut other = self::stage();
    other.observer.output(b"noise\r\nnoise", other.at());
    other.observer.output(&repaint, other.at());
    assert_eq!(stage.observer.picture(), other.observer.picture());
    assert_eq!(stage.observer.restore(), other.observer.restore());
}

#[test]
fn restore_undoes_the_terminal_modes_left_on() {
    let mut stage = stage();
    stage.write("plain \x1b[31mred\x1b[0m text\r\n");
    assert_eq!(stage.observer.restore(), b"");
    stage.write("\x1b[?1049h\x1b[?1003h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b[?2031h\x1b[?25l\x1b[?1h\x1b=");
    stage.write("\x1b[>1u\x1b[>4;2m\x1b[2;10r\x1b(0\x1b[4 q\x1b[1m\x1b[?2026h");
    let restore = String::from_utf8(stage.observer.restore()).unwrap();
    for undo in [
        "\x1b[?1049l",
        "\x1b[?1003l",
        "\x1b[?1006l",
        "\x1b[?2004l",
        "\x1b[?1004l",
        "\x1b[?2031l",
        "\x1b[?25h",
        "\x1b[?1l",
        "\x1b>",
        "\x1b[<1u",
        "\x1b[>4m",
        "\x1b[r",
        "\x1b(B",
        "\x1b[0 q",
        "\x1b[m",
        "\x1b[?2026l",
    ] {
        assert!(restore.contains(undo), "{undo:?} in {restore:?}");
    }
    stage.observer.output(restore.as_bytes(), stage.at());
    assert_eq!(String::from_utf8(stage.observer.restore()).unwrap(), "");
}

#[test]
fn terminal_queries_are_answered_within_a_bound() {
    let mut stage = stage();
    stage.write("\x1b[5;7H\x1b[6n\x1b[5n\x1b[c\x1b[>c\x1b[>q\x1b]11;?\x07\x1b[?u");
    let replies = String::from_utf8(stage.observer.take_replies()).unwrap();
    assert_eq!(
        replies,
        "\x1b[5;7R\x1b[0n\x1b[?62;22c\x1b[>0;10;1c\x1bP>|capture\x1b\\\x1b]11;rgb:0000/0000/0000\x1b\\"
    );
    assert!(stage.observer.take_replies().is_empty());
    for _ in 0..100_000 {
        stage.write("\x1b[6n");
    }
    assert!(stage.observer.take_replies().len() < 10_000);
}

#[test]
fn notifications_and_bells_are_reported() {
    let mut stage = stage();
    for part in ["\x1b]9;needs your per", "mission\x07", "\x1b]9;4;1;50\x07", "\x1b]777;notify;Title;a; body\x1b\\"] {
        stage.write(part);
    }
    stage.write("\x1b]99;i=1:d=0;Kitty\x1b\\\x1b]99;i=1:p=body;says\x1b\\");
    assert_eq!(
        stage.claims(100),
        ["notification needs your permission", "notification Title: a; body", "notification Kitty: says"]
    );
    stage.write("\x07\x07").write("\x07");
    stage.now += 500;
    stage.write("\x07");
    assert_eq!(stage.claims(100), ["bell"]);
    stage.now += 1000;
    stage.write("\x07");
    assert_eq!(stage.claims(100), ["bell"]);
}

#[test]
fn a_title_split_across_reads_is_joined() {
    let mut stage = stage();
    stage.write("\x1b]0;half ").write("a; title\x1b").write("\\");
    assert_eq!(stage.observer.picture().title.as_deref(), Some("half a; title"));
}

#[test]
fn extreme_terminal_sizes_are_tolerated() {
    for (rows, columns) in [(0, 0), (1, 1), (u16::MAX, u16::MAX)] {
        let mut stage = Stage::sized(Size { rows, columns }, Provider::Unknown, Arc::default());
        stage.write("wide 漢字 text\r\n");
        let now = stage.at();
        for (rows, columns) in [(1, 1), (3, 2), (u16::MAX, 1), (24, 80)] {
            stage.observer.resize(Size { rows, columns }, now);
            stage.write("漢字");
        }
        assert_eq!(stage.observer.picture().size, Size { rows: 24, columns: 80 });
    }
}

#[test]
fn skipped_bytes_are_reported_until_the_screen_is_cleared() {
    let mut stage = stage();
    stage.write("half a sequence \x1b[3");
    let now = stage.at();
    stage.observer.skipped(1000, now);
    stage.write("1mtext");
    assert_eq!(stage.observer.picture().skipped_bytes, 1000);
    assert!(stage.observer.picture().lines[0].contains("1mtext"));
    stage.write("\x1b[2J");
    assert_eq!(stage.observer.picture().skipped_bytes, 0);
}
