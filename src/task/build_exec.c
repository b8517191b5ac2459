/* A criterion that is a program of the suite. */
#include "task/internal.h"

#define PROGRAM_BYTES_MAX ((size_t)64 << 20)

/* path from the folder, both absolute and normal: "graders/x", "../x"; owned. */
static char *path_from(const char *folder, const char *path)
{
    scoped(buf_done) struct buf relative = {0};
    scoped(mem_freep) char *base = path_normal(folder);

    while (strcmp(base, "/") != 0 && !path_is_below(path, base)) {
        char *up = path_dir(base);

        free(base);
        base = up;
        buf_text_append(&relative, "../");
    }
    path += strlen(base);
    buf_text_append(&relative, path + strspn(path, "/"));
    return buf_take(&relative);
}

/* Its digest in hex, owned; NULL: complained. */
static char *read_program(const struct build *build, const struct node *type, const char *program,
                          const char *at)
{
    const struct task_reader *reader = build->loader->reader;
    scoped(mem_freep) char *wrong = source_check_program(reader, program);
    scoped(buf_done) struct buf text = {0};

    if (wrong == NULL && source_read(reader, program, PROGRAM_BYTES_MAX, &text, &wrong) < 0 &&
        wrong == NULL)
        wrong = str_dup("is gone");
    if (wrong == NULL)
        return digest_text(buf_text(&text), text.size_bytes);
    build_error(build, type->mark, at, "'%s' %s", program, wrong);
    return NULL;
}

void build_exec(const struct build *build, struct criterion *criterion, const struct node *type,
                size_t index)
{
    struct task_private *half = build->task->private_half;
    const char *path = type->text + strlen("exec:");
    scoped(mem_freep) char *at = str_format("success_criteria[%zu].type", index);
    scoped(mem_freep) char *joined = path_join(half->task_dir, path);
    scoped(mem_freep) char *program = path_normal(joined);
    scoped(mem_freep) char *relative = path_from(half->task_dir, program);

    json_put_text(criterion->params, "type", type->text);
    json_put_text(criterion->params, "program", relative);
    criterion->type_name = json_get_text(criterion->params, "type");
    if (path[0] == '/') {
        build_error(build, type->mark, at, "a path relative to the task file expected, found '%s'",
                    path);
        return;
    }
    if (!path_is_below(program, half->suite_root)) {
        build_error(build, type->mark, at,
                    "'%s' is not in the suite '%s', of which graders get a copy", program,
                    half->suite_root);
        return;
    }
    scoped(mem_freep) char *digest = read_program(build, type, program, at);

    if (digest == NULL)
        return;
    json_put_text(criterion->params, "digest", digest);
    str_list_add(&half->private_files, program);
    str_list_add(&half->private_digests, digest);
}
