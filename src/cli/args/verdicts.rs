//! Arguments of the commands for certificates of verdicts.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum VerdictCommand {
    /// Verify the signature of a certificate, and judge again by its evidence
    Verify(VerdictVerifyArgs),
    /// Print the public key that verifies this installation's certificates
    Key,
}

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct VerdictVerifyArgs {
    /// File that contains a certificate, or an evaluation with one; `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Public key to trust, or file that contains it [default: the key of the daemon's installation]
    #[arg(long, value_name = "FILE|HEX")]
    pub key: Option<String>,
}

const AFTER: &str = "Exit codes: 0 verified; 2 the file does not contain a certificate; 7 the signature is not that of the trusted key; 8 the evidence \
                     leads to another verdict.";
