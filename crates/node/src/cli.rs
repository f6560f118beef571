//! The flags, and the man page and completions that are made from them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

/// Turns annotations of Kubernetes' pods into rules of the onbeat service.
///
/// A plugin of containerd and CRI-O (NRI). For each container whose pod has the annotation
/// `onbeat.dev/keep: "true"` it writes a rule before the container starts, and removes it when the
/// container has ended. It runs until SIGTERM, and then removes all of its rules. It needs root's
/// user number for the socket, and no capability.
#[derive(Debug, Parser)]
#[command(name = "onbeat-node", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// Socket of the container runtime
    #[arg(long, value_name = "PATH", default_value = "/var/run/nri/nri.sock")]
    pub(crate) socket: PathBuf,
    /// Folder of the rules, which the service reads
    #[arg(long, value_name = "FOLDER", default_value = "/run/onbeat/rules.d")]
    pub(crate) rules: PathBuf,
    /// Place among the runtime's plugins, two digits; those with higher ones are called later
    #[arg(long, value_name = "INDEX", default_value = "90", value_parser = index)]
    pub(crate) index: String,
    /// A command instead of that.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

fn index(text: &str) -> Result<String, String> {
    let is_index = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_index
        .then(|| text.to_owned())
        .ok_or_else(|| "write two digits, as in 90".to_owned())
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate the man page, or shell completions, from the flags
    Generate {
        /// The kind of files
        #[arg(value_enum)]
        what: NodeFiles,
        /// Folder to write to; it is made if it is not there
        directory: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum NodeFiles {
    /// onbeat-node.8
    Man,
    /// One file for each shell
    Completions,
}

pub(crate) fn generate(what: NodeFiles, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    match what {
        NodeFiles::Man => man_page(&mut File::create(directory.join("onbeat-node.8"))?),
        NodeFiles::Completions => Shell::value_variants().iter().try_for_each(|&shell| {
            let command = &mut Cli::command();
            clap_complete::generate_to(shell, command, "onbeat-node", directory).map(|_| ())
        }),
    }
}

type ManSection = (&'static str, &'static [(&'static str, &'static str)]);

const SECTIONS: [ManSection; 4] = [
    (
        "ANNOTATIONS",
        &[
            (
                "onbeat.dev/keep",
                "\"true\": the pod's containers are served.",
            ),
            (
                "onbeat.dev/cap",
                "Limit of all reservations of a container together, in CPUs (\"250m\", \"0.5\") or per cent of one CPU \
                 (\"25%\"). The container's CPU request is the highest limit, and the default.",
            ),
            (
                ".container.NAME",
                "At the end of one of these names: for this container of the pod alone.",
            ),
        ],
    ),
    (
        "EXIT STATUS",
        &[
            ("0", "A signal has ended it, and its rules are removed."),
            ("1", "It cannot run; the message says why."),
            ("2", "The command line is wrong."),
        ],
    ),
    (
        "FILES",
        &[
            ("/var/run/nri/nri.sock", "The runtime's socket."),
            (
                "/run/onbeat/rules.d/container-ID.toml",
                "The rule of the container of this id.",
            ),
        ],
    ),
    (
        "EXAMPLES",
        &[(
            "kubectl annotate pod film onbeat.dev/keep=true",
            "Takes effect when the pod's containers restart.",
        )],
    ),
];

fn man_page(file: &mut impl Write) -> io::Result<()> {
    let man = Man::new(Cli::command().disable_help_subcommand(true)).section("8");
    man.render_title(file)?;
    man.render_name_section(file)?;
    man.render_synopsis_section(file)?;
    man.render_description_section(file)?;
    man.render_options_section(file)?;
    for (title, entries) in SECTIONS {
        let mut roff = Roff::new();
        roff.control("SH", [title]);
        for (term, text) in entries {
            roff.control("TP", []);
            roff.text([bold(*term)]);
            roff.text([roman(*text)]);
        }
        roff.to_writer(file)?;
    }
    Ok(())
}
