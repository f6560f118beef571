//! Which process acts for `run`, `attach` and `reserve`: this one, or the system service.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches};

use super::{Cli, Command};

#[derive(Debug, Default, Args)]
pub(crate) struct ServiceOption {
    /// Act through the system service, within your quota and by the service's settings
    ///
    /// This is the default without CAP_SYS_NICE. A flag that is for the service to decide is
    /// refused then.
    #[arg(long, help_heading = "Targets")]
    pub(crate) service: bool,
    /// The flags on the command line, this one included.
    #[arg(skip)]
    pub(crate) given: Vec<String>,
}

impl Cli {
    /// The command line. Ends the process where that cannot be understood, and after help.
    pub(crate) fn of_command_line() -> Self {
        let matches = Self::command().try_get_matches();
        let parsed = matches.and_then(|matches| Self::of_matches(&matches));
        parsed.unwrap_or_else(|error| {
            let argument = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::String(text)) if error.kind() == ErrorKind::UnknownArgument => {
                    text
                }
                _ => error.exit(),
            };
            let _ = error.print();
            if !argument.starts_with('-') && error.to_string().contains("-- <CMD>") {
                eprintln!("\nonbeat: the program goes behind two dashes: -- {argument}");
            }
            std::process::exit(error.exit_code())
        })
    }

    fn of_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut cli = Self::from_arg_matches(matches)?;
        let service = match &mut cli.command {
            Command::Run(args) => &mut args.service,
            Command::Attach(args) => &mut args.service,
            Command::Reserve(args) => &mut args.service,
            _ => return Ok(cli),
        };
        service.given = given(matches);
        Ok(cli)
    }
}

fn given(matches: &ArgMatches) -> Vec<String> {
    let Some((name, matches)) = matches.subcommand() else {
        return Vec::new();
    };
    let cli = Cli::command();
    let command = cli.find_subcommand(name);
    let flags = command.into_iter().flat_map(clap::Command::get_arguments);
    let is_given = |flag: &&clap::Arg| {
        matches.value_source(flag.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let names = flags.filter(is_given).filter_map(clap::Arg::get_long);
    names.map(|name| format!("--{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_that_were_typed_are_known_and_defaults_are_none() {
        let words = "onbeat run --cap 50% --children --also 7 -q -- sleep 1";
        let matches = Cli::command().get_matches_from(words.split(' '));
        let Command::Run(args) = Cli::of_matches(&matches).unwrap().command else {
            panic!("it is run");
        };
        let mut given = args.service.given;
        given.sort();
        assert_eq!(given, ["--also", "--cap", "--children", "--quiet"]);
    }
}
