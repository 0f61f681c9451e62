//! Writing to the standard streams. A reader that has gone away, as in `arenad status | head -1`, ends the process quietly:
//! Rust ignores SIGPIPE, so the write fails instead, and `println!` would panic.

use std::fmt::Arguments;
use std::io::{self, Write};

use super::exit_code;

/// Prints a text on standard output.
macro_rules! out {
    ($($text:tt)*) => { $crate::cli::streams::write_out(format_args!($($text)*)) };
}

/// Prints a line on standard output.
macro_rules! outln {
    ($($text:tt)*) => { $crate::cli::streams::write_out(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints a text on standard error.
macro_rules! err {
    ($($text:tt)*) => { $crate::cli::streams::write_err(format_args!($($text)*)) };
}

/// Prints a line on standard error.
macro_rules! errln {
    ($($text:tt)*) => { $crate::cli::streams::write_err(format_args!("{}\n", format_args!($($text)*))) };
}

/// Writes to standard output.
pub fn write_out(text: Arguments<'_>) {
    match io::stdout().lock().write_fmt(text) {
        // A full disk below a redirected stream, for instance: the exit code must not say that all went well.
        Err(error) if !is_closed(&error) => std::process::exit(i32::from(exit_code::FAILED)),
        Err(_) => std::process::exit(i32::from(exit_code::OK)),
        Ok(()) => {}
    }
}

/// Writes to standard error. Where that takes nothing, the command goes on: its result is elsewhere.
pub fn write_err(text: Arguments<'_>) {
    if io::stderr().lock().write_fmt(text).is_err_and(|error| is_closed(&error)) {
        std::process::exit(i32::from(exit_code::OK));
    }
}

fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}
