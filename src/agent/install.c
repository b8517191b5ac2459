#include "agent/install.h"

#include <limits.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/fs.h"
#include "base/mem.h"

#define NODE_MODULES "/node_modules/"
#define HEAD_BYTES 128

/* A program that was found: as PATH has it, and the file that it really is. */
struct found {
    char *path, *real;
    char head[HEAD_BYTES + 1]; /* the first bytes */
};

static void found_done(struct found *found)
{
    free(found->path);
    free(found->real);
    *found = (struct found){0};
}

/* What a descriptor is open on; owned; NULL when it cannot be told. */
static char *real_path(int fd)
{
    char link[64];
    char path[PATH_MAX];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd); /* always fits */

    ssize_t length = readlink(link, path, sizeof(path));

    return length <= 0 || (size_t)length >= sizeof(path) || path[0] != '/'
               ? NULL
               : str_ndup(path, (size_t)length);
}

static bool look(const struct task_reader *reader, char *path, struct found *ret)
{
    scoped(fd_closep) int fd = reader->open(reader->context, path, 0);
    struct found found = {.path = path};

    if (fd < 0 || (found.real = real_path(fd)) == NULL ||
        pread(fd, found.head, HEAD_BYTES, 0) <= 0) {
        found_done(&found);
        return false;
    }
    *ret = found;
    return true;
}

static bool find(const struct task_reader *reader, const char *search, const char *name,
                 struct found *ret)
{
    while (*search != '\0') {
        size_t length = strcspn(search, ":");

        /* A relative folder would be one of the task's, or of whoever wrote it. */
        if (search[0] == '/' &&
            look(reader, str_format("%.*s/%s", (int)size_min(length, PATH_MAX), search, name), ret))
            return true;
        search += length + (search[length] == ':' ? 1 : 0);
    }
    return false;
}

/* Whether every cell shows it: /usr without what the host alone has there. */
static bool is_in_every_cell(const char *path)
{
    return str_starts(path, "/usr/") && !str_starts(path, "/usr/local/") &&
           !str_starts(path, "/usr/src/");
}

/* A file that lies in no package is shown alone: its folder may be a home with all that is in it.
 */
static void expose(struct agent_install *install, const char *file)
{
    const char *modules = strstr(file, NODE_MODULES);
    size_t length =
        modules != NULL ? (size_t)(modules - file) + strlen(NODE_MODULES) - 1 : strlen(file);
    scoped(mem_freep) char *path = str_ndup(file, length);

    if (!is_in_every_cell(file) && !str_list_has(&install->expose, path))
        str_list_add(&install->expose, path);
}

/* The package's own word, where the file lies in that package. */
static void find_version(const struct agent_program *program, const struct task_reader *reader,
                         const char *file, struct agent_install *install)
{
    scoped(mem_freep) char *part = str_format(NODE_MODULES "%s/", program->package);
    const char *at = strstr(file, part);

    if (at == NULL)
        return;

    scoped(mem_freep) char *path =
        str_format("%.*s/package.json", (int)((size_t)(at - file) + strlen(part) - 1), file);
    scoped(fd_closep) int fd = reader->open(reader->context, path, 0);
    scoped(buf_done) struct buf text = {.max_bytes = INSTALL_PACKAGE_BYTES_MAX};
    scoped(json_freep) json_t *package = NULL;

    /* A package that cannot be read leaves the version unknown, as one that says none does. */
    if (fd < 0 || fs_read_fd(fd, path, INSTALL_PACKAGE_BYTES_MAX, &text, NULL) < 0 ||
        json_parse(path, buf_text(&text), text.size_bytes, &package, NULL) < 0 ||
        json_get_text(package, "version") == NULL)
        return;
    install->version = str_dup(json_get_text(package, "version"));
}

static bool starts_node(const char *head)
{
    scoped(mem_freep) char *line = str_ndup(head, strcspn(head, "\n"));

    return str_starts(line, "#!") && (str_ends(line, "node") || strstr(line, "/node ") != NULL ||
                                      strstr(line, " node ") != NULL);
}

static int add_words(const struct task_reader *reader, const char *search, const struct found *file,
                     struct agent_install *install, struct error **err)
{
    scoped(found_done) struct found node = {0};

    if (memcmp(file->head, "\177ELF", 4) == 0) {
        str_list_add(&install->argv, file->real);
        return 0;
    }
    if (!starts_node(file->head))
        return error_set(err, ERROR_USER,
                         "'%s' is neither an ELF file nor a program for node: a wrapper cannot be "
                         "shown to a cell",
                         file->path);
    if (!find(reader, search, "node", &node) || memcmp(node.head, "\177ELF", 4) != 0)
        return error_set(err, ERROR_USER, "'%s' needs 'node', which is not on PATH", file->path);
    str_list_add(&install->argv, node.real);
    str_list_add(&install->argv, file->real);
    expose(install, node.real);
    return 0;
}

static int check_exposed(const struct str_list *paths, struct error **err)
{
    for (size_t i = 0; i < paths->count; i++) {
        const char *path = paths->items[i];
        const char *taken = task_expose_taken(path);

        if (taken != NULL)
            return error_set(err, ERROR_USER,
                             "'%s' cannot be shown to a cell: it would lie over the cell's own "
                             "%s; install the program elsewhere",
                             path, taken);
        if (strlen(path) > TASK_EXPOSE_PATH_MAX)
            return error_set(err, ERROR_USER,
                             "'%s' cannot be shown to a cell: a path of at most %d bytes expected",
                             path, TASK_EXPOSE_PATH_MAX);
    }
    return 0;
}

int agent_install_find(const struct agent_program *program, const char *search,
                       const struct task_reader *reader, struct agent_install *ret,
                       struct error **err)
{
    scoped(found_done) struct found file = {0};
    scoped(agent_install_done) struct agent_install install = {0};

    if (!find(reader, search, program->bin, &file))
        return error_set(err, ERROR_USER, "'%s' is not on PATH (npm package '%s')", program->bin,
                         program->package);

    int r = add_words(reader, search, &file, &install, err);

    if (r < 0)
        return r;
    install.path = str_dup(file.path);
    find_version(program, reader, file.real, &install);
    expose(&install, file.real);
    r = check_exposed(&install.expose, err);
    if (r < 0)
        return r;
    *ret = install;
    install = (struct agent_install){0};
    return 0;
}

void agent_install_done(struct agent_install *install)
{
    free(install->path);
    free(install->version);
    str_list_done(&install->argv);
    str_list_done(&install->expose);
    *install = (struct agent_install){0};
}
