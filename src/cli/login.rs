//! `arenad login`: opens a session of a site's account.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use comfy_table::Cell;
use reqwest::Method;

use super::args::{Global, LoginArgs, SessionFormat};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::output::{self, milliseconds};
use super::{exit_code, find, session};
use arenad_api::{AccountSession, Accounts, ListedAccount, SiteStatus, Status};

/// Signs in and prints the session, or reports for every account whether it can sign in.
pub async fn run(global: &Global, args: &LoginArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let status = client.status().await?;
    if args.check {
        return check(&client, global, args, &status).await;
    }
    let name = args.site.as_deref().unwrap_or_default();
    let site = find::site(&status, args.environment.as_deref(), name)?;
    let account = match &args.account {
        Some(account) => account.clone(),
        None => the_only_one(&client, site).await?,
    };
    let session = log_in(&client, site, &account).await?;
    let format = args.format.unwrap_or(SessionFormat::Playwright);
    let text = match format {
        _ if global.json => serde_json::to_string_pretty(&session)? + "\n",
        SessionFormat::Playwright => session::playwright(&session),
        SessionFormat::Netscape => session::netscape(&session),
        SessionFormat::Header => session::header(&session),
    };
    if !global.json && format != SessionFormat::Header && !session.headers.is_empty() {
        let names: Vec<&str> = session.headers.keys().map(String::as_str).collect();
        errln!("{account} signs in by headers ({}), which this format cannot contain", names.join(", "));
        errln!("hint: `--format header` prints them");
    }
    match &args.output {
        Some(path) => write(path, &text)?,
        None => std::io::stdout().lock().write_all(text.as_bytes())?,
    }
    Ok(exit_code::OK)
}

async fn log_in(client: &ApiClient, site: &SiteStatus, account: &str) -> Result<AccountSession, CommandFailure> {
    let path = format!("/v1/environments/{}/sites/{}/accounts/{account}/login", site.environment, site.name);
    client.send(Method::POST, &path, &serde_json::json!({})).await
}

async fn accounts(client: &ApiClient, site: &SiteStatus) -> Result<Vec<ListedAccount>, CommandFailure> {
    let path = format!("/v1/environments/{}/sites/{}/accounts", site.environment, site.name);
    let found: Accounts = client.json(Method::GET, &path).await?;
    Ok(found.accounts.into_iter().filter(|account| account.login.is_some()).collect())
}

async fn the_only_one(client: &ApiClient, site: &SiteStatus) -> Result<String, CommandFailure> {
    let accounts = accounts(client, site).await?;
    match accounts.as_slice() {
        [only] => Ok(only.name.clone()),
        [] => Err(CommandFailure::usage(format!("no account of {} can sign in", site.name))
            .hint("declare a `login` for an account in the environment file")),
        several => {
            let names: Vec<&str> = several.iter().map(|account| account.name.as_str()).collect();
            Err(CommandFailure::usage(format!("{} has several accounts: {}", site.name, names.join(", ")))
                .hint("choose one with --account"))
        }
    }
}

/// Writes a session to a file that only this user may read, because a session grants the account's rights.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let doing = || format!("write the session to {}", path.display());
    let mut file =
        File::options().create(true).write(true).truncate(true).mode(0o600).open(path).with_context(doing)?;
    file.write_all(text.as_bytes()).with_context(doing)
}

/// Signs in with every account that declares how. Exits with 1 if one of them fails.
async fn check(client: &ApiClient, global: &Global, args: &LoginArgs, status: &Status) -> Result<u8, CommandFailure> {
    let sites: Vec<&SiteStatus> = match &args.site {
        Some(name) => vec![find::site(status, args.environment.as_deref(), name)?],
        None => match args.environment.as_deref() {
            Some(environment) => find::environment(status, Some(environment))?.sites.iter().collect(),
            None => status.environments.iter().flat_map(|known| &known.sites).collect(),
        },
    };
    let mut table = output::table(&["SITE", "ACCOUNT", "USERNAME", "LOG-IN", "OUTCOME", "TOOK"]);
    let mut rows = Vec::new();
    let mut reasons = Vec::new();
    for site in sites {
        for account in accounts(client, site).await? {
            if args.account.as_ref().is_some_and(|wanted| *wanted != account.name) {
                continue;
            }
            let result = log_in(client, site, &account.name).await;
            let took = result.as_ref().ok().map(|session| session.duration_ms);
            let reason = result.as_ref().err().map(|failure| failure.error.to_string());
            rows.push(serde_json::json!({
                "environment": site.environment, "site": site.name, "account": account.name, "login": account.login,
                "ok": result.is_ok(), "duration_ms": took, "reason": reason,
            }));
            table.add_row([
                site.name.as_str().into(),
                account.name.as_str().into(),
                account.username.as_str().into(),
                account.login.as_deref().unwrap_or("-").into(),
                output::outcome_cell(result.is_ok()),
                Cell::new(took.map_or_else(|| "-".to_owned(), milliseconds)),
            ]);
            reasons.extend(reason);
        }
    }
    if global.json {
        output::print_json(&rows)?;
    } else if rows.is_empty() {
        outln!("no account can sign in: none has a `login` in its definition");
    } else {
        output::print_table(&table);
        reasons.iter().for_each(|reason| outln!("\n{reason}"));
    }
    Ok(if reasons.is_empty() { exit_code::OK } else { exit_code::FAILED })
}
