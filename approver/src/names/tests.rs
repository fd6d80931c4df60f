use std::path::Path;

use super::*;

#[test]
fn secret_paths_are_recognized_in_any_spelling() {
    for path in [
        ".env",
        "a/.env.local",
        "./.ENV",
        "/home/dev/.ssh/id_ed25519",
        "id_rsa",
        "server.pem",
        "x/../.aws/config",
        "/proc/self/environ",
        "prod.tfstate",
        ".netrc",
        "a/credentials.json",
        ".bash_history",
        "config/secrets.yml",
    ] {
        assert!(is_secret(Path::new(path)), "{path}");
    }
    for path in ["src/main.rs", "README.md", "environment.md", "docs/keys.md", "src/secret_list.rs", "identity.rs"] {
        assert!(!is_secret(Path::new(path)), "{path}");
    }
}

#[test]
fn files_that_decide_what_runs_later_are_protected() {
    for path in [".git/config", "sub/.git/hooks/x", ".claude/settings.json", "AGENTS.md", ".github/workflows/a.yml"] {
        assert!(is_protected(Path::new(path)), "{path}");
    }
    for path in [
        ".github/ISSUE_TEMPLATE.md",
        "QWEN.md",
        ".qwen/settings.json",
        ".junie/guidelines.md",
        ".factory/x",
        ".trae/rules/x",
        ".amazonq/x",
        "AGENT.md",
        "WARP.md",
        ".goosehints",
        ".rules",
        ".travis.yml",
        "Jenkinsfile",
        "azure-pipelines.yml",
        ".buildkite/x.yml",
        ".forgejo/workflows/a.yml",
        ".gitea/workflows/a.yml",
        ".woodpecker.yml",
        ".gdbinit",
        ".lldbinit",
        ".config/mise/config.toml",
        ".prototools",
        ".pnpmfile.cjs",
        "sitecustomize.py",
        ".lfsconfig",
        ".helix/config.toml",
        ".emacs.d/init.el",
        "node_modules/.bin/tsc",
        ".venv/bin/python",
        "a/venv/lib/x.py",
        "env/bin/activate.fish",
        ".omp/extensions/x.ts",
        "rust-analyzer.toml",
        ".bsp/sbt.json",
        ".grok/settings.json",
        ".taskcluster.yml",
        ".ghci",
        ".vs/tasks.vs.json",
        "HEAD",
        "sub/bare/HEAD",
        "sub/bare/head",
    ] {
        assert!(is_protected(Path::new(path)), "{path}");
    }
    for path in ["Cargo.toml", "src/main.rs", "docs/rules.md", "src/environment.rs", "src/head.rs", "HEAD/x"] {
        assert!(!is_protected(Path::new(path)), "{path}");
    }
}
