#include "base/mem.h"
#include "base/term.h"
#include "cli/internal.h"

#define LINE_COLUMNS 80
#define NAMES_COLUMNS 28

void options_usage(struct buf *buf, const struct command *command)
{
    buf_format(buf, "closedbook %s [OPTION]...", command->name);
    if (command->operands != NULL)
        buf_format(buf, " %s", command->operands);
}

/* Words of text between columns indent and LINE_COLUMNS; the cursor is at column. */
static void wrap(struct buf *buf, const char *text, size_t column, size_t indent)
{
    bool at_start = true;

    while (*text != '\0') {
        size_t length = strcspn(text, " ");

        if (!at_start && column + 1 + length > LINE_COLUMNS) {
            buf_format(buf, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!at_start) {
            buf_char(buf, ' ');
            column++;
        }
        buf_append(buf, text, length);
        column += length;
        text += length;
        text += strspn(text, " ");
        at_start = false;
    }
    buf_char(buf, '\n');
}

/* "  -j, --jobs=N" */
static void names_of(struct buf *buf, const struct cli_option *option)
{
    if (option->short_name != '\0')
        buf_format(buf, "  -%c, --%s", option->short_name, option->long_name);
    else
        buf_format(buf, "      --%s", option->long_name);
    if (option->kind == OPTION_OPTIONAL)
        buf_format(buf, "[=%s]", option->value);
    else if (option->value != NULL)
        buf_format(buf, "=%s", option->value);
}

static void help_option(struct buf *buf, const struct cli_option *option)
{
    scoped(buf_done) struct buf names = {0};
    scoped(buf_done) struct buf text = {0};

    names_of(&names, option);
    buf_text_append(&text, option->help);
    for (size_t i = 0; option->choices != NULL && option->choices[i] != NULL; i++)
        buf_format(&text, "%s%s", i == 0 ? ": " : ", ", option->choices[i]);
    if (names.size_bytes + 2 <= NAMES_COLUMNS)
        buf_format(buf, "%-*s", NAMES_COLUMNS, buf_text(&names));
    else
        buf_format(buf, "%s\n%*s", buf_text(&names), NAMES_COLUMNS, "");
    wrap(buf, buf_text(&text), NAMES_COLUMNS, NAMES_COLUMNS);
}

/* Paragraphs are separated by newlines in the table. */
static void help_paragraphs(struct buf *buf, const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        scoped(mem_freep) char *paragraph = str_ndup(text, length);

        buf_char(buf, '\n');
        wrap(buf, paragraph, 0, 0);
        text += length;
        text += strspn(text, "\n");
    }
}

void options_help(struct buf *buf, const struct command *command)
{
    const struct cli_option *option;

    buf_text_append(buf, "Usage: ");
    options_usage(buf, command);
    buf_text_append(buf, "\n");
    help_paragraphs(buf, command->summary);
    if (command->description != NULL)
        help_paragraphs(buf, command->description);
    buf_text_append(buf, "\nOptions:\n");
    for (size_t i = 0; (option = options_at(command, i)) != NULL; i++)
        help_option(buf, option);
}

void options_list(struct buf *buf, const struct command *command)
{
    const struct cli_option *option;

    for (size_t i = 0; (option = options_at(command, i)) != NULL; i++) {
        char short_name = (char)(option->short_name == '\0' ? '-' : option->short_name);

        buf_format(buf, "%s\t%c\t%s\t", option->long_name, short_name,
                   option->value == NULL ? "-" : option->value);
        for (size_t j = 0; option->choices != NULL && option->choices[j] != NULL; j++)
            buf_format(buf, "%s%s", j == 0 ? "" : "|", option->choices[j]);
        buf_text_append(buf, option->choices == NULL ? "-\n" : "\n");
    }
}
