//! Writes to the standard streams. A reader that closes the pipe, as in `arenad status | head -1`, ends the process
//! quietly: Rust ignores SIGPIPE, so the write fails instead, and `println!` would panic.

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

/// Writes to standard output, and ends the process if that fails.
pub fn write_out(text: Arguments<'_>) {
    match io::stdout().lock().write_fmt(text) {
        // Such an error is, for example, a full disk behind a redirected stream: the exit code must not indicate
        // success.
        Err(error) if !is_closed(&error) => std::process::exit(i32::from(exit_code::FAILED)),
        Err(_) => std::process::exit(i32::from(exit_code::OK)),
        Ok(()) => {}
    }
}

/// Writes to standard error. A failed write is ignored, because the command's result goes elsewhere.
pub fn write_err(text: Arguments<'_>) {
    if io::stderr().lock().write_fmt(text).is_err_and(|error| is_closed(&error)) {
        std::process::exit(i32::from(exit_code::OK));
    }
}

fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}
