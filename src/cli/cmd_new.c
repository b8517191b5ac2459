#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/term.h"
#include "cli/commands.h"
#include "cli/print.h"

struct values {
    bool unused;
};

static const char task_yaml[] =
    "# A task for closedbook. docs/formats/task.md has every field; `closedbook check FOLDER` "
    "tells\n"
    "# whether the task is sound, `closedbook lint FOLDER` what is doubtful in it.\n"
    "task_id: @ID@\n"
    "description: The words of a file, sorted, each once\n"
    "tags: [starter]\n"
    "\n"
    "# What the agent reads. $INPUT_DIR is the folder below, as the agent's cell has it.\n"
    "initial_prompt: |\n"
    "  $INPUT_DIR/words.txt has one word a line. Write them into sorted.txt in the working "
    "directory:\n"
    "  sorted by their bytes, each word once, one a line.\n"
    "\n"
    "# Its content is copied into the agent's workspace. Nothing else of this folder is.\n"
    "input_dir: input\n"
    "\n"
    "# Only graders and the oracle (`-T oracle`) see it: what a good agent leaves, or a solve.sh "
    "that\n"
    "# makes it.\n"
    "reference_dir: reference\n"
    "\n"
    "run_limits:\n"
    "  task_timeout: 300 # seconds\n"
    "\n"
    "# All of them but those of weight 0 must reach their pass_threshold (0.9 unless set).\n"
    "success_criteria:\n"
    "  - type: file_exists\n"
    "    description: sorted.txt was written\n"
    "    path: sorted.txt\n"
    "    weight: 0 # only informs\n"
    "  - type: run_command\n"
    "    description: sorted.txt has the words as they should be\n"
    "    # In a cell of its own, with what the agent left as working directory. A grader that "
    "runs\n"
    "    # the agent's program does so by `as-candidate PROGRAM`, which sees neither reference "
    "nor\n"
    "    # grader (docs/grading.md).\n"
    "    command: sh \"$TASK_DIR/grade.sh\"\n";

static const struct {
    const char *path, *content;
} files[] = {
    {"task.yaml", task_yaml},
    {"grade.sh", "# Graders are not staged for the agent. The exit status is the verdict.\n"
                 "cmp sorted.txt \"$REFERENCE_DIR/sorted.txt\"\n"},
    {"input/words.txt", "pear\nfig\nquince\nfig\napple\npear\n"},
    {"reference/sorted.txt", "apple\nfig\npear\nquince\n"},
};

static int write_one(int dir_fd, size_t i, const char *id, struct error **err)
{
    const char *mark = strstr(files[i].content, "@ID@");
    scoped(buf_done) struct buf text = {0};
    scoped(mem_freep) char *folder = path_dir(files[i].path);
    int r = fs_mkdirs(dir_fd, folder, 0755, err);

    if (mark != NULL) {
        buf_append(&text, files[i].content, (size_t)(mark - files[i].content));
        buf_text_append(&text, id);
        buf_text_append(&text, mark + 4);
    } else {
        buf_text_append(&text, files[i].content);
    }
    return r < 0
               ? r
               : fs_write_atomic(dir_fd, files[i].path,
                                 &(struct fs_content){text.data, text.size_bytes, 0644, FS_NO_SYNC},
                                 err);
}

static bool is_id(const char *name)
{
    if (strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") !=
        strlen(name))
        return false;
    return name[0] != '\0' && name[0] != '.' && name[0] != '-' && strlen(name) <= 128;
}

static int make(const char *path, const char *id, struct error **err)
{
    scoped(fd_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? error_errno_as(err, ERROR_USER, errno, "cannot open '%s'", path) : 0;

    for (size_t i = 0; i < ARRAY_SIZE(files) && r == 0; i++)
        r = write_one(fd, i, id, err);
    return r;
}

static int run(const struct arguments *arguments, struct error **err)
{
    scoped(mem_freep) char *path = path_normal(arguments->operands[0]);
    scoped(mem_freep) char *parent = path_dir(path);
    const char *id = path_base(path);
    scoped(buf_done) struct buf text = {0};

    if (!is_id(id))
        return error_set(err, ERROR_USER,
                         "'%s': the folder's name becomes the task_id: 1 to 128 letters, digits, "
                         "'_', '.' or '-' expected, the first no '.' or '-'",
                         id);
    int r = fs_mkdirs(AT_FDCWD, parent, 0755, err);

    if (r < 0)
        return r;
    if (mkdir(path, 0755) != 0)
        return error_errno_as(err, ERROR_USER, errno, "cannot make '%s', nothing was written",
                              path);
    r = make(path, id, err);
    if (r < 0) {
        scoped(error_freep) struct error *error = NULL;

        if (fs_remove_tree(AT_FDCWD, path, &error) < 0)
            print_error(error);
        return r;
    }
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        scoped(mem_freep) char *file = path_join(path, files[i].path);

        term_quote(&text, file, strlen(file), TERM_ONE_LINE);
        buf_char(&text, '\n');
    }
    buf_text_append(&text,
                    "next: closedbook check FOLDER; closedbook run FOLDER -T script:AGENT\n");
    return arguments->is_quiet ? 0 : print_out(&text, err);
}

const struct command command_new = {
    .name = "new",
    .summary = "make a commented starter task in a new folder",
    .operands = "FOLDER",
    .values_size = sizeof(struct values),
    .operands_min = 1,
    .operands_max = 1,
    .run = run,
};
