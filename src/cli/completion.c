#include "cli/completion.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/internal.h"

/* The options of the program itself, before any command. */
#define TOP_OPTIONS "--help --version"

static bool takes_separate_value(const struct cli_option *option)
{
    return option->value != NULL && option->kind != OPTION_OPTIONAL;
}

/* In single quotes, as all three shells read it; more are escaped by a backslash. */
static void quote(struct buf *buf, const char *text, const char *more)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            buf_text_append(buf, "'\\'");
        else if (strchr(more, *text) != NULL)
            buf_char(buf, '\\');
        buf_char(buf, *text);
    }
}

static void choices_of(struct buf *buf, const struct cli_option *option)
{
    for (size_t i = 0; option->choices != NULL && option->choices[i] != NULL; i++)
        buf_format(buf, "%s%s", i == 0 ? "" : " ", option->choices[i]);
}

static void command_names(struct buf *buf)
{
    for (size_t i = 0; commands[i] != NULL; i++)
        buf_format(buf, "%s%s", i == 0 ? "" : " ", commands[i]->name);
}

/* --- bash ------------------------------------------------------------------------------------ */

static void bash_values(struct buf *buf, const struct command *command)
{
    const struct cli_option *option;

    for (size_t i = 0; (option = options_at(command, i)) != NULL; i++) {
        if (option->choices == NULL)
            continue;
        buf_format(buf, "    '%s --%s'", command->name, option->long_name);
        if (option->short_name != '\0')
            buf_format(buf, " | '%s -%c'", command->name, option->short_name);
        buf_text_append(buf, ") words='");
        choices_of(buf, option);
        buf_text_append(buf, "' ;;\n");
    }
}

/* What takes any value: file names are offered after it. */
static void bash_free_values(struct buf *buf, const struct command *command)
{
    const struct cli_option *option;

    for (size_t i = 0; (option = options_at(command, i)) != NULL; i++) {
        if (option->choices != NULL || !takes_separate_value(option))
            continue;
        buf_format(buf, "    '%s --%s'", command->name, option->long_name);
        if (option->short_name != '\0')
            buf_format(buf, " | '%s -%c'", command->name, option->short_name);
        buf_text_append(buf, ") return ;;\n");
    }
}

static void bash_options(struct buf *buf, const struct command *command)
{
    const struct cli_option *option;

    buf_format(buf, "        %s) words='", command->name);
    for (size_t i = 0; (option = options_at(command, i)) != NULL; i++)
        buf_format(buf, "%s--%s", i == 0 ? "" : " ", option->long_name);
    buf_text_append(buf, "' ;;\n");
}

static void write_bash(struct buf *buf)
{
    buf_text_append(buf, "# Completion of closedbook for bash: closedbook help --completion bash\n"
                         "_closedbook() {\n"
                         "  local current=${COMP_WORDS[COMP_CWORD]} last='' command='' words='' i\n"
                         "  [ \"$COMP_CWORD\" -lt 1 ] || last=${COMP_WORDS[COMP_CWORD - 1]}\n"
                         "  COMPREPLY=()\n"
                         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
                         "    case ${COMP_WORDS[i]} in\n"
                         "      --) return ;;\n"
                         "      -*) ;;\n"
                         "      *) [ -n \"$command\" ] || command=${COMP_WORDS[i]} ;;\n"
                         "    esac\n"
                         "  done\n"
                         "  # bash makes words of '--name=value' by splitting at '='.\n"
                         "  if [ \"$last\" = = ]; then\n"
                         "    last=${COMP_WORDS[COMP_CWORD - 2]}\n"
                         "  elif [ \"$current\" = = ]; then\n"
                         "    current=''\n"
                         "  fi\n"
                         "  case \"$command $last\" in\n");
    for (size_t i = 0; commands[i] != NULL; i++)
        bash_values(buf, commands[i]);
    for (size_t i = 0; commands[i] != NULL; i++)
        bash_free_values(buf, commands[i]);
    buf_text_append(buf, "  esac\n"
                         "  if [ -z \"$words\" ]; then\n"
                         "    case $command,$current in\n"
                         "      ,-*) words='" TOP_OPTIONS "' ;;\n"
                         "      ,* | help,[!-]* | help,) words='");
    command_names(buf);
    buf_text_append(buf, "' ;;\n"
                         "      *,-*) case $command in\n");
    for (size_t i = 0; commands[i] != NULL; i++)
        bash_options(buf, commands[i]);
    buf_text_append(buf, "      esac ;;\n"
                         "    esac\n"
                         "  fi\n"
                         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
                         "}\n"
                         "complete -o default -F _closedbook closedbook\n");
}

/* --- zsh ------------------------------------------------------------------------------------- */

static void zsh_value(struct buf *buf, const struct cli_option *option)
{
    buf_text_append(buf, option->kind == OPTION_OPTIONAL ? "::" : ":");
    quote(buf, option->value, ":[]\\");
    buf_char(buf, ':');
    if (option->choices != NULL) {
        buf_char(buf, '(');
        choices_of(buf, option);
        buf_char(buf, ')');
    } else {
        buf_text_append(buf, "_files");
    }
}

static void zsh_option(struct buf *buf, const struct cli_option *option)
{
    bool again = option->kind == OPTION_LIST || option->kind == OPTION_COUNTED;

    for (int is_short = 0; is_short <= (option->short_name != '\0'); is_short++) {
        buf_format(buf, " \\\n        '%s", again ? "*" : "");
        if (is_short != 0)
            buf_format(buf, "-%c%s", option->short_name, option->value != NULL ? "+" : "");
        else
            buf_format(buf, "--%s%s", option->long_name,
                       option->kind == OPTION_OPTIONAL ? "=-"
                       : option->value != NULL         ? "="
                                                       : "");
        buf_char(buf, '[');
        quote(buf, option->help, ":[]\\");
        buf_char(buf, ']');
        if (option->value != NULL)
            zsh_value(buf, option);
        buf_char(buf, '\'');
    }
}

static void write_zsh(struct buf *buf)
{
    buf_text_append(buf, "#compdef closedbook\n"
                         "# Completion of closedbook for zsh: closedbook help --completion zsh\n"
                         "_closedbook() {\n"
                         "  local -a names\n"
                         "  names=(\n");
    for (size_t i = 0; commands[i] != NULL; i++) {
        buf_format(buf, "    '%s:", commands[i]->name);
        quote(buf, commands[i]->summary, ":\\");
        buf_text_append(buf, "'\n");
    }
    buf_text_append(buf, "  )\n"
                         "  if ((CURRENT == 2)); then\n"
                         "    _describe command names\n"
                         "    return\n"
                         "  fi\n"
                         "  shift words\n"
                         "  ((CURRENT--))\n"
                         "  case $words[1] in\n");
    for (size_t i = 0; commands[i] != NULL; i++) {
        const struct cli_option *option;

        buf_format(buf, "    %s)\n      _arguments", commands[i]->name);
        for (size_t j = 0; (option = options_at(commands[i], j)) != NULL; j++)
            zsh_option(buf, option);
        if (str_equal(commands[i]->name, "help")) {
            buf_text_append(buf, " \\\n        '1:command:(");
            command_names(buf);
            buf_text_append(buf, ")'\n      ;;\n");
        } else {
            buf_text_append(buf, " \\\n        '*:operand:_files'\n      ;;\n");
        }
    }
    buf_text_append(buf, "  esac\n"
                         "}\n"
                         "_closedbook \"$@\"\n");
}

/* --- fish ------------------------------------------------------------------------------------ */

static void fish_option(struct buf *buf, const struct command *command,
                        const struct cli_option *option)
{
    buf_format(buf, "complete -c closedbook -n '__fish_seen_subcommand_from %s' -l %s",
               command->name, option->long_name);
    if (option->short_name != '\0')
        buf_format(buf, " -s %c", option->short_name);
    if (option->choices != NULL) {
        buf_text_append(buf, takes_separate_value(option) ? " -x -a '" : " -f -a '");
        choices_of(buf, option);
        buf_char(buf, '\'');
    } else if (takes_separate_value(option)) {
        buf_text_append(buf, " -r");
    }
    buf_text_append(buf, " -d '");
    quote(buf, option->help, "");
    buf_text_append(buf, "'\n");
}

static void write_fish(struct buf *buf)
{
    const struct cli_option *option;

    buf_text_append(buf, "# Completion of closedbook for fish: closedbook help --completion fish\n"
                         "complete -c closedbook -n '__fish_use_subcommand' -l version -f\n");
    for (size_t i = 0; commands[i] != NULL; i++) {
        buf_format(buf, "complete -c closedbook -n '__fish_use_subcommand' -f -a %s -d '",
                   commands[i]->name);
        quote(buf, commands[i]->summary, "");
        buf_text_append(buf, "'\n");
    }
    buf_text_append(buf, "complete -c closedbook -n '__fish_seen_subcommand_from help' -f -a '");
    command_names(buf);
    buf_text_append(buf, "'\n");
    for (size_t i = 0; commands[i] != NULL; i++) {
        for (size_t j = 0; (option = options_at(commands[i], j)) != NULL; j++)
            fish_option(buf, commands[i], option);
    }
}

/* --- all ------------------------------------------------------------------------------------- */

const char *const completion_shells[] = {"bash", "zsh", "fish", NULL};

void completion_write(struct buf *buf, const char *shell)
{
    if (str_equal(shell, "bash"))
        write_bash(buf);
    else if (str_equal(shell, "zsh"))
        write_zsh(buf);
    else
        write_fish(buf);
}
