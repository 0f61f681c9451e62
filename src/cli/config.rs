//! `arenad config`, `arenad validate` and `arenad schema`: print, check and describe definitions.

use super::args::{ConfigArgs, DefinitionArgs, Global, SchemaArgs, SchemaFile};
use super::failure::CommandFailure;
use super::{definition, exit_code, output};
use arenad_definition::VariableOrigin;

/// Prints a definition after interpolation, with defaults filled in.
pub fn config(global: &Global, args: &ConfigArgs) -> Result<u8, CommandFailure> {
    let found = load(&args.definition)?;
    if args.variables {
        let mut table = output::table(&["VARIABLE", "VALUE", "FROM"]);
        for used in &found.loaded.variables {
            let origin = match used.origin {
                VariableOrigin::Shell => "shell",
                VariableOrigin::DotEnv => "compose/.env",
                VariableOrigin::Choice => "choice",
                VariableOrigin::Default => "default",
            };
            table.add_row([used.name.as_str(), used.value.expose(), origin]);
        }
        output::print_table(&table);
    } else if global.json {
        output::print_json(&found.loaded.resolved)?;
    } else {
        out!("{}", serde_yaml::to_string(&found.loaded.resolved)?);
    }
    Ok(exit_code::OK)
}

/// Validates a definition and prints its problems.
pub fn validate(global: &Global, args: &DefinitionArgs) -> Result<u8, CommandFailure> {
    let located = definition::locate(args.name(), args.file.as_deref(), args.root.as_deref())?;
    let found = match definition::read(&located)? {
        Ok(found) => found,
        Err(problems) if global.json => {
            let problems: Vec<_> = problems.iter().collect();
            let name = located.name.as_str();
            output::print_json(&serde_json::json!({ "name": name, "valid": false, "problems": problems }))?;
            return Ok(exit_code::USAGE);
        }
        Err(problems) => return Err(definition::invalid(&problems)),
    };
    let environment = &found.loaded.environment;
    let sites: Vec<&str> = environment.sites.iter().map(|site| site.name.as_str()).collect();
    if global.json {
        output::print_json(&serde_json::json!({ "name": environment.name.as_str(), "valid": true, "sites": sites }))?;
    } else {
        outln!("{} is valid: {}", environment.name, sites.join(", "));
    }
    Ok(exit_code::OK)
}

fn load(args: &DefinitionArgs) -> Result<definition::FoundDefinition, CommandFailure> {
    let located = definition::locate(args.name(), args.file.as_deref(), args.root.as_deref())?;
    definition::load(&located)
}

/// Prints the JSON schema of a file format.
pub fn schema(args: &SchemaArgs) -> Result<u8, CommandFailure> {
    output::print_json(&match args.file {
        SchemaFile::Environment => arenad_definition::environment_schema(),
        SchemaFile::Compose => arenad_definition::compose_schema(),
        SchemaFile::Tasks => arenad_definition::tasks_schema(),
        SchemaFile::Openapi => arenad_daemon::api::openapi().clone(),
    })?;
    Ok(exit_code::OK)
}
