//! Measures how often receipts, claims, boundaries and causes are right: see `tests::advisorbench`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use tests::{
    advisorbench::{Figures, boundaries, causes, claims::Claims, fixture, receipts, silent},
    program::Machine,
};

/// Plays labelled sessions through capture and prints how often it is right.
#[derive(Debug, Parser)]
#[command(name = "advisorbench")]
struct Options {
    /// The program that is measured, such as `target/release/capture`.
    #[arg(long, value_name = "PROGRAM")]
    bin: PathBuf,
    /// Do not list the wrong answers.
    #[arg(long)]
    brief: bool,
    #[command(subcommand)]
    set: Set,
}

#[derive(Debug, Subcommand)]
enum Set {
    /// Receipts of turns that were labelled by hand.
    Receipts {
        /// The labels.
        #[arg(long, value_name = "FILE")]
        set: Option<PathBuf>,
        /// A directory with the transcripts that are not part of the repository.
        #[arg(long, value_name = "DIR")]
        files: Option<PathBuf>,
    },
    /// Statements of agents about their checks.
    Claims {
        /// The labelled turns.
        #[arg(long, value_name = "FILE")]
        set: Option<PathBuf>,
    },
    /// What a person forbade.
    Boundaries {
        /// The labelled sessions.
        #[arg(long, value_name = "FILE")]
        set: Option<PathBuf>,
    },
    /// Causes of commands that do not end. They are named by the detector itself, not by the program.
    Causes {
        /// The recorded runs.
        #[arg(long, value_name = "FILE")]
        set: Option<PathBuf>,
    },
    /// Sessions in which nothing may be raised.
    Silent {
        /// A directory that is laid out like a home, with the files of agents.
        home: PathBuf,
    },
}

fn main() -> ExitCode {
    let options = Options::parse();
    let program = match options.bin.canonicalize() {
        Ok(program) => program.to_string_lossy().into_owned(),
        Err(error) => {
            eprintln!("cannot find {}: {error}", options.bin.display());
            return ExitCode::FAILURE;
        }
    };
    let machine = || Machine::new(&program);
    let or = |set: &Option<PathBuf>, name: &str| set.clone().unwrap_or_else(|| fixture(name));
    let Figures { lines, wrong } = match &options.set {
        Set::Receipts { set, files } => receipts::compared(&machine(), &or(set, "turns.jsonl"), files.as_deref()),
        Set::Claims { set } => Claims::played(&machine(), &or(set, "claims.jsonl")).figures(),
        Set::Boundaries { set } => boundaries::played(&machine(), &or(set, "boundaries.jsonl")),
        Set::Causes { set } => causes::named(&or(set, "causes.jsonl")),
        Set::Silent { home } => silent::read(&machine(), home),
    };
    if !options.brief {
        wrong.iter().for_each(|line| println!("{line}"));
    }
    lines.iter().for_each(|line| println!("{line}"));
    ExitCode::SUCCESS
}
