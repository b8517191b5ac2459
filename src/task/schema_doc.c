/* The field reference in Markdown, made from the tables. */
#include "task/schema.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#define DOC_BLOCKS_MAX 64

/* Blocks still to be written, each once. */
struct writer {
    struct buf *buf;
    struct arena arena;
    struct {
        const struct block *block;
        char *name;
    } queue[DOC_BLOCKS_MAX];
    size_t count;
};

/* A cell of a table: '|' would end it. */
static void write_cell(struct buf *buf, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '|')
            buf_char(buf, '\\');
        buf_char(buf, *s);
    }
}

static void enqueue(struct writer *writer, const struct block *block, const char *parent,
                    const struct field *field)
{
    for (size_t i = 0; i < writer->count; i++) {
        if (writer->queue[i].block == block)
            return;
    }
    ASSERT(writer->count < DOC_BLOCKS_MAX);
    writer->queue[writer->count].block = block;
    writer->queue[writer->count++].name =
        arena_format(&writer->arena, "%s%s%s%s", parent, parent[0] == '\0' ? "" : ".", field->name,
                     (field->types & TYPE_LIST) != 0 ? "[]" : "");
}

static const char *state_word(enum field_state state)
{
    switch (state) {
    case FIELD_LATER:
        return "not in this version: ";
    case FIELD_CLI:
        return "for agent programs: ";
    case FIELD_LEGACY:
        return "accepted with a warning: ";
    case FIELD_UNUSED:
        return "no effect in this version: ";
    case FIELD_HERE:
    case FIELD_REMOVED:
        break;
    }
    return "";
}

static void write_row(struct writer *writer, const struct field *field, const char *parent)
{
    struct buf *buf = writer->buf;

    buf_format(buf, "| `%s`%s | ", field->name,
               (field->flags & FIELD_REQUIRED) != 0 ? " (required)" : "");
    write_cell(buf, schema_expected(&writer->arena, field));
    if (field->standard != NULL)
        buf_format(buf, "; default `%s`", field->standard);
    buf_format(buf, " | %s", state_word(field->state));
    write_cell(buf, field->doc);
    if ((field->flags & FIELD_APPEND) != 0)
        buf_text_append(buf, " (lists of several layers are joined, the task's items first)");
    buf_text_append(buf, " |\n");
    if (field->block != NULL)
        enqueue(writer, field->block, parent, field);
}

static void write_fields(struct writer *writer, const struct field *fields, const char *parent)
{
    buf_text_append(writer->buf, "| field | value | meaning |\n|---|---|---|\n");
    for (const struct field *field = fields; field->name != NULL; field++)
        write_row(writer, field, parent);
}

static void write_kinds(struct writer *writer, const struct kinds *kinds, const char *name)
{
    buf_format(writer->buf, "\n## %s\n\nEvery item:\n\n", name);
    write_fields(writer, kinds->common, name);
    for (const struct kind *kind = kinds->kinds; kind->name != NULL; kind++) {
        buf_format(writer->buf, "\n### %s: %s%s\n\n", name, kind->name,
                   kind->is_prefix ? "PATH" : "");
        if (kind->state == FIELD_REMOVED) {
            buf_format(writer->buf, "Removed: %s.\n", kind->hint);
            continue;
        }
        buf_format(writer->buf, "%s%s.\n\n", state_word(kind->state), kind->doc);
        write_fields(writer, kind->block->fields, name);
    }
}

/* Blocks that were met and not yet written, from the given one on; those met meanwhile, too. */
static size_t write_blocks(struct writer *writer, size_t from)
{
    for (; from < writer->count; from++) {
        buf_format(writer->buf, "\n## %s\n\n", writer->queue[from].name);
        write_fields(writer, writer->queue[from].block->fields, writer->queue[from].name);
    }
    return from;
}

static const char variables[] =
    "\n# Variables\n\n"
    "A token is a whole `$NAME` or `${NAME}`. The agent has none of these in its environment: in "
    "its texts closedbook itself puts the path in place of `$INPUT_DIR`.\n\n"
    "| name | what it is | where it exists |\n|---|---|---|\n"
    "| `$INPUT_DIR` | the workspace's folder into which input_dir was laid | a token in the "
    "prompt, `agent.command` and `agent.env`; an environment variable of graders' commands, host "
    "steps of pre_run, post_run and as-candidate. Without input_dir its use is an error |\n"
    "| `$TASK_DIR` | the task's folder in the read-only copy of the suite | an environment "
    "variable of run_command (not with `as: candidate`), exec:PATH, host steps of pre_run and "
    "post_run. For the agent, also in its steps, it is an error |\n"
    "| `$REFERENCE_DIR` | the read-only copy of the reference | as $TASK_DIR, when the task has "
    "a reference |\n"
    "| `$CLOSEDBOOK_TRIAL` | a folder with events.jsonl, final.txt and dialog.json | graders' "
    "commands and exec:PATH |\n"
    "| a variable of yours that leads into the suite, as SKILLS_REPO_PATH | its value, moved to "
    "where the copy of the suite is mounted | graders' commands, pre_run and post_run that name "
    "it. For the agent it is not set, and a prompt that names it is an error |\n"
    "| `${row.x}` | a field of the dataset's row | replaced in initial_prompt and in the texts of "
    "success_criteria |\n";

void task_schema_markdown(struct buf *buf)
{
    struct writer writer = {.buf = buf};
    size_t written;

    buf_text_append(buf, "# The task file, field by field\n\n"
                         "Made from the tables of `src/task/schema_*.c` by `closedbook plan "
                         "--schema=markdown`; a test compares.\n"
                         "A field that is null counts as absent. A field or type marked \"not in "
                         "this version\" is an error in a task that uses it.\n\n"
                         "## Top level\n\n");
    write_fields(&writer, task_block.fields, "");
    written = write_blocks(&writer, 0);
    write_kinds(&writer, &source_kinds, "sandbox.template_sources[]");
    write_kinds(&writer, &criterion_kinds, "success_criteria[]");
    buf_text_append(buf, variables);
    buf_text_append(buf, "\n# The experiment file\n\n"
                         "`-e NAME|FILE` runs each task once for each variant. Later layers win: "
                         "built-in, config.yaml, closedbook.yaml, the experiment's defaults, the "
                         "task, the variant, flags and -D; only a driver of closedbook.yaml wins "
                         "over one of an experiment.\n\n");
    write_fields(&writer, experiment_block.fields, "");
    (void)write_blocks(&writer, written);
    write_kinds(&writer, &mutation_kinds, "prompt_mutations[]");
    arena_done(&writer.arena);
}
