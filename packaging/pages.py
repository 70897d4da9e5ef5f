#!/usr/bin/python3
"""Writes what a package has beside the program: man pages, trestle.conf, bash completion.

    pages.py TRESTLE DIRECTORY

All of it is made from what `TRESTLE help` and each command's --help say, which themselves come
from the tables of options: a new command or setting is in the pages without anything being done.
Flags outside of the tables ("  -f, --file FILE  …") are shown as help shows them.

The form of help that is relied on, see src/base/options_help.c: lines of usage; paragraphs;
commands as "  name  sentence"; after "Settings:" each as "  --name VALUE" and a line of eight
spaces and "Sentence. Default: VALUE (range)."
"""

import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

CONFIG_PATH = "/etc/trestle/trestle.conf"
DATA_PATH = "/var/lib/trestle"
NOT_IN_A_FILE = ("config",)


class Setting:
    """One row of a table of options."""

    def __init__(self, head, text):
        match = re.fullmatch(r"--([\w-]+)(?:\[=(.*)\]| (.*))", head)
        self.name = match[1]
        self.is_boolean = match[2] is not None
        self.value = match[2] or match[3]
        match = re.fullmatch(r"(.*?) Default: (.*?)(?: \(([^()]* to [^()]*)\))?\.", text)
        self.sentence, self.preset, self.range = match.groups()
        if self.preset == "none":
            self.preset = None

    @property
    def words(self):
        """The values there are, if they can be counted."""
        return self.value.split("|") if "|" in self.value else []

    def limits(self):
        """What the sentence leaves open: " Default: 512MB, from 8MB to 16TB."."""
        if self.preset is None:
            return ""
        between = f", from {self.range}" if self.range else ""
        return f" Default: {self.preset}{between}."


class Help:
    """What `trestle NAME --help` says."""

    def __init__(self, name, sentence, text):
        self.name = name  # "import dynamodb"; "" is the program itself
        self.sentence = sentence
        self.usage, self.commands, self.settings = [], [], []
        self.paragraphs, self.notes = [], []  # before the settings, and behind them
        for block in text.strip("\n").split("\n\n"):
            self.take(block.splitlines())

    def take(self, lines):
        if lines[0].startswith("usage: "):
            found = [line.removeprefix("usage:").strip() for line in lines]
            self.usage += [line for line in found if line not in self.usage]
        elif lines[0] == "Settings:":
            self.settings = [
                Setting(head.strip(), text.strip())
                for head, text in zip(lines[1::2], lines[2::2], strict=True)
            ]
        elif all(re.match(r"  [a-z][\w-]* +\S", line) for line in lines):
            self.commands = [line.split(maxsplit=1) for line in lines]
        else:
            (self.notes if self.settings else self.paragraphs).append("\n".join(lines))

    @property
    def flags(self):
        """All of them, with two dashes."""
        others = [line for line in "\n".join(self.notes).splitlines() if line.startswith("  ")]
        found = re.findall(r"(?<![\w-])--[a-z][\w-]*", "\n".join(self.usage + others))
        own = [f"--{setting.name}" for setting in self.settings]
        return list(dict.fromkeys([*own, *found, "--help"]))

    @property
    def page(self):
        return "-".join(["trestle", *self.name.split()])


def read_help(program, name="", sentence="database server that speaks Bigtable and Datastore"):
    """The help of a command, then that of those below it."""
    words = [program, *name.split(), "--help"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0 and " " in name:
        return []  # a word that the command above only talks about
    done.check_returncode()
    own = Help(name, sentence, done.stdout)
    helps = [own]
    for command, meaning in own.commands:
        if command not in ("help", "version"):
            helps += read_help(program, f"{name} {command}".strip(), meaning)
    return helps


# --- man pages ---


def roff(text):
    """Text as roff shows it unchanged; `code` becomes bold."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    text = text.replace("\N{HORIZONTAL ELLIPSIS}", "...")
    text = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", text)
    return re.sub(r"^\.", r"\\&.", text, flags=re.MULTILINE)


class Manual:
    """A man page, section by section."""

    def __init__(self, name, volume, version):
        day = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
        date = time.strftime("%Y-%m-%d", day)
        self.lines = [f'.TH {name.upper()} {volume} "{date}" "{version}"']
        self.file = f"{name}.{volume}"

    def section(self, title, *texts):
        self.lines.append(f".SH {title}")
        for i, text in enumerate(texts):
            is_laid_out = text.startswith("  ")
            self.lines += [".PP"] * (i > 0) + [".nf"] * is_laid_out
            self.lines += [roff(text)] + [".fi"] * is_laid_out

    def item(self, term, text):
        """`term` is roff already."""
        self.lines += [".TP", term, roff(text)]

    def settings(self, settings, before):
        for setting in settings:
            value = f"={setting.value}" if before and setting.is_boolean else setting.value
            gap = "" if before and setting.is_boolean else " " if before else " = "
            term = f"\\fB{roff(before + setting.name)}\\fR{gap}\\fI{roff(value)}\\fR"
            self.item(term, setting.sentence + setting.limits())

    def see_also(self, pages):
        self.section("SEE ALSO")
        self.lines.append(",\n".join(f".BR {roff(page)} ({volume})" for page, volume in pages))

    def write(self, directory):
        (directory / self.file).write_text("\n".join(self.lines) + "\n")


def command_page(help_, helps, version):
    page = Manual(help_.page, 1, version)
    page.section("NAME")
    page.lines.append(f"{roff(help_.page)} \\- {roff(help_.sentence)}")
    page.section("SYNOPSIS")
    page.lines.append("\n.br\n".join(f"\\fB{roff(line)}\\fR" for line in help_.usage))
    if help_.paragraphs:
        page.section("DESCRIPTION", *help_.paragraphs)
    if help_.commands:
        page.section("COMMANDS")
        for command, sentence in help_.commands:
            page.item(f"\\fB{roff(command)}\\fR", sentence)
    if help_.settings:
        page.section("OPTIONS")
        page.settings(help_.settings, "--")
    if help_.notes:
        page.section("NOTES", *help_.notes)
    others = [(other.page, 1) for other in helps if other is not help_]
    page.see_also([*others, ("trestle.conf", 5)])
    return page


def config_page(serve, version):
    page = Manual("trestle.conf", 5, version)
    page.section("NAME")
    page.lines.append("trestle.conf \\- settings of the server trestle")
    page.section("DESCRIPTION", *config_rules(serve))
    page.section("SETTINGS")
    page.settings(settings_of_files(serve), "")
    page.section("FILES")
    page.item(f"\\fI{CONFIG_PATH}\\fR", "What the service of the package reads.")
    page.see_also([("trestle-serve", 1)])
    return page


# --- the configuration file ---


def config_rules(serve):
    forms = serve.notes[0].splitlines()[0]  # of sizes and durations
    return (
        "Each line is \"key = value\". A # at the start of a line or after white space begins a "
        "comment. A setting that is not here has its default; flags of `trestle serve` and the "
        "environment outrank this file. " + forms,
        "What is unknown or impossible keeps the server from starting: `journalctl -u trestle` "
        "has the line and the reason. A change counts after `systemctl restart trestle`, but "
        "files of certificates, tokens and policies are read again when they change.",
    )


def settings_of_files(serve):
    return [setting for setting in serve.settings if setting.name not in NOT_IN_A_FILE]


def as_comment(text):
    return textwrap.fill(text, 96, initial_indent="# ", subsequent_indent="# ") + "\n"


def config_file(serve):
    """Every setting with its meaning, as a comment with its default; the data directory is set."""
    text = as_comment("Settings of the server trestle, see trestle.conf(5).") + "#\n"
    text += "#\n".join(as_comment(rule) for rule in config_rules(serve))
    for setting in settings_of_files(serve):
        text += "\n" + as_comment(setting.sentence + setting.limits())
        if setting.name == "data-dir":
            text += f"{setting.name} = {DATA_PATH}\n"
        else:
            text += f"#{setting.name} = {setting.preset or setting.value}\n"
    return text


# --- bash ---

COMPLETION = r"""# Completion in bash of trestle's commands, settings and values.

# What may stand behind the command $1; a failure if there is none such.
_trestle_words() {
    case "$1" in
@COMMANDS@
    *) return 1 ;;
    esac
}

# What may stand behind the command and setting $1.
_trestle_values() {
    case "$1" in
@VALUES@
    *) return 1 ;;
    esac
}

_trestle() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command="" i
    COMPREPLY=()
    [ "$word" != = ] || word=""
    [ "$before" != = ] || before=${COMP_WORDS[COMP_CWORD - 2]}
    for ((i = 1; i < COMP_CWORD; i++)); do
        _trestle_words "$command${command:+ }${COMP_WORDS[i]}" >/dev/null || break
        command=$command${command:+ }${COMP_WORDS[i]}
    done
    [ -n "$command" ] || ((i == COMP_CWORD)) || return # behind what is no command
    local values
    if values=$(_trestle_values "$command $before"); then
        case "$values" in
        FILE) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        DIR) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
        *) mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word") ;;
        esac
    else
        mapfile -t COMPREPLY < <(compgen -W "$(_trestle_words "$command")" -- "$word")
    fi
}

complete -o filenames -F _trestle trestle
"""


def completion(helps):
    commands, values = [], []
    for help_ in helps:
        words = [command for command, _ in help_.commands]
        commands.append(f'    "{help_.name}") echo "{" ".join(words + help_.flags)}" ;;')
        for setting in help_.settings:
            if not setting.is_boolean:
                known = " ".join(setting.words) or setting.value
                values.append(f'    "{help_.name} --{setting.name}") echo "{known}" ;;')
    text = COMPLETION.replace("@COMMANDS@", "\n".join(commands))
    return text.replace("@VALUES@", "\n".join(values))


def main():
    program, directory = os.path.abspath(sys.argv[1]), Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    words = [program, "version"]
    version = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    helps = read_help(program)
    serve = next(help_ for help_ in helps if help_.name == "serve")
    for help_ in helps:
        command_page(help_, helps, version).write(directory)
    config_page(serve, version).write(directory)
    (directory / "trestle.conf").write_text(config_file(serve))
    (directory / "completions").mkdir(exist_ok=True)
    (directory / "completions/trestle").write_text(completion(helps))


if __name__ == "__main__":
    main()
