#include "cli/criterion_cases.h"

#include "base/fs.h"
#include "base/mem.h"
#include "grade/exec.h"

#define PATHS_MAX 20
#define DEPTH_MAX 8

const struct criterion_case criterion_cases[] = {
    {.name = "scores an empty workspace"},
    {.name = "scores a folder where a file may be", .place = "mkdir -p \"$1\""},
    {.name = "scores a FIFO", .place = "mkfifo \"$1\""},
    {.name = "scores a link to itself", .place = "ln -s \"${1##*/}\" \"$1\""},
    {.name = "scores a link out of the workspace", .place = "ln -s /etc/hostname \"$1\""},
    {.name = "scores bytes that are no text", .place = "printf '\\377\\376\\000x\\n' >\"$1\""},
    {.name = "scores a file that cannot be read", .place = "echo x >\"$1\"; chmod 0 \"$1\""},
    {.name = "scores a large file", .place = "head -c 33554432 /dev/zero >\"$1\""},
    {.name = "scores a long message", .message = "line\n", .is_long = true},
    {.name = "scores a hostile message", .message = "\033]0;x\a \"}]\n$(id) `id` \xc3\xa9\xff"},
    {.name = "scores the same twice", .place = "echo a b c >\"$1\"", .twice = true},
    {.name = "ignores members that it does not know", .unknown_member = true},
    {.name = "refuses another protocol", .place = "echo a b c >\"$1\"", .other_protocol = true},
};
const size_t criterion_case_count = ARRAY_SIZE(criterion_cases);

/* Texts of the parameters that may be paths in the workspace. */
static void each_path(const json_t *value, unsigned depth, const struct criterion_case *one,
                      struct buf *ret)
{
    const char *text = json_string_value(value), *key;
    const json_t *member;

    if (depth > DEPTH_MAX)
        return;
    for (size_t i = 0; i < json_array_size(value) && i < PATHS_MAX; i++)
        each_path(json_array_get(value, i), depth + 1, one, ret);
    if (json_is_object(value)) {
        json_object_foreach ((json_t *)(uintptr_t)value, key, member)
            each_path(member, depth + 1, one, ret);
    }
    if (text == NULL || strlen(text) > 200 || !path_is_inside(text))
        return;
    scoped(mem_freep) char *folder = path_dir(text);

    buf_text_append(ret, "mkdir -p ");
    exec_quote(ret, folder);
    buf_text_append(ret, " && place ");
    exec_quote(ret, text);
    buf_text_append(ret, "\n");
}

void criterion_case_setup(const struct criterion_case *one, const json_t *params, struct buf *ret)
{
    if (one->place == NULL)
        return;
    buf_format(ret, "place() { %s; }\n", one->place);
    each_path(params, 0, one, ret);
    buf_text_append(ret, ":\n");
}
