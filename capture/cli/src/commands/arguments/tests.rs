use super::*;

#[test]
fn the_command_line_passes_claps_debug_assertions() {
    command_line().debug_assert();
}

#[test]
fn every_help_example_parses_as_a_command_line() {
    let mut examples = 0;
    for command in Arguments::command().get_subcommands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in help.lines().filter_map(|line| line.strip_prefix("  ")) {
            let words = shlex::split(line).unwrap();
            let words = words.iter().take_while(|word| *word != ">" && *word != "<");
            command_line().try_get_matches_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
            examples += 1;
        }
    }
    assert!(examples > 40, "{examples}");
}

#[test]
fn help_shows_tcp_only_for_commands_that_connect_to_a_server() {
    let mut command = command_line();
    command.build();
    let help = |command: &mut clap::Command| command.render_long_help().to_string();
    for name in WITHOUT_TCP {
        let is_own = command.find_subcommand(name).is_some();
        let above = if is_own { &mut command } else { command.find_subcommand_mut("agent").unwrap() };
        let below = above.find_subcommand_mut(name).unwrap();
        assert!(!help(below).contains("--tcp"), "{name}");
        for below in below.get_subcommands_mut() {
            assert!(!help(below).contains("--tcp"), "{name} {}", below.get_name());
        }
    }
    for name in ["ps", "send", "approve", "doctor"] {
        assert!(help(command.find_subcommand_mut(name).unwrap()).contains("--tcp"), "{name}");
    }
}

#[test]
fn every_option_that_takes_an_agent_is_named_agent() {
    fn check(command: &clap::Command) {
        for argument in command.get_arguments().filter(|argument| !argument.is_positional()) {
            let (name, long) = (command.get_name(), argument.get_long().unwrap_or_default());
            assert_ne!(long, "provider", "{name}");
            let takes_agents = argument.get_value_names().is_some_and(|names| names.iter().any(|name| name == "AGENT"));
            assert_eq!(takes_agents, long == "agent", "{name} --{long}");
        }
        command.get_subcommands().for_each(check);
    }
    check(&Arguments::command());
}

#[test]
fn every_command_is_listed_in_one_help_group() {
    let command = Arguments::command();
    let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let mut known: Vec<&str> =
        command.get_subcommands().filter(|c| !c.is_hide_set()).map(clap::Command::get_name).collect();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known);
}
