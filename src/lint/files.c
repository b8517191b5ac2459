/* Files and folders that a task names, through its reader; what a folder holds is found once. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lint/internal.h"

#define HEAD_BYTES_MAX ((size_t)64 << 10) /* of a YAML file, where its task_id is looked for */

static int open_path(const struct target *target, const char *path, int flags)
{
    const struct task_reader *reader = target->lint->options->query.reader;

    return reader->open(reader->context, path, flags | O_CLOEXEC);
}

bool read_file(const struct target *target, const char *path, size_t max_bytes, struct buf *ret)
{
    scoped(fd_closep) int fd = open_path(target, path, O_RDONLY | O_NONBLOCK);
    struct stat status;
    char block[16384];

    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    while (ret->size_bytes < max_bytes) {
        ssize_t size = read(fd, block, size_min(sizeof(block), max_bytes - ret->size_bytes));

        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return false;
        if (size == 0)
            break;
        buf_append(ret, block, (size_t)size);
    }
    return true;
}

struct walk {
    const struct target *target;
    visit_file *visit;
    void *context;
    size_t count;
    bool stopped;
};

static bool is_version_control(const char *name)
{
    return strcmp(name, ".git") == 0 || strcmp(name, ".hg") == 0 || strcmp(name, ".svn") == 0 ||
           strcmp(name, "node_modules") == 0;
}

/* The names in a folder, folders with a '/' behind them. */
static bool list_names(const struct target *target, const char *dir, struct str_list *ret)
{
    int fd = open_path(target, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);

    if (stream == NULL) {
        fd_closep(&fd);
        return false;
    }
    for (const struct dirent *entry = readdir(stream); entry != NULL && ret->count < FILES_MAX;
         entry = readdir(stream)) {
        unsigned char type = entry->d_type;
        struct stat status;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (type == DT_UNKNOWN &&
            fstatat(dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
            type = S_ISDIR(status.st_mode) ? DT_DIR : S_ISREG(status.st_mode) ? DT_REG : DT_LNK;
        if (type == DT_DIR)
            str_list_add_take(ret, str_format("%s/", entry->d_name));
        else if (type == DT_REG)
            str_list_add(ret, entry->d_name);
    }
    (void)closedir(stream); /* only read from */
    str_list_sort(ret);
    return true;
}

bool list_folder(const struct target *target, const char *dir, struct str_list *ret)
{
    return list_names(target, dir, ret);
}

static void walk_folder(struct walk *walk, const char *dir, int depth)
{
    struct str_list names = {0};

    if (depth < FILES_DEPTH_MAX && list_names(walk->target, dir, &names)) {
        for (size_t i = 0; i < names.count && !walk->stopped; i++) {
            char *name = names.items[i];
            size_t length = strlen(name);
            bool is_folder = name[length - 1] == '/';

            if (is_folder)
                name[length - 1] = '\0';
            scoped(mem_freep) char *path = path_join(dir, name);

            if (++walk->count > FILES_MAX)
                walk->stopped = true;
            else if (is_folder && !is_version_control(name))
                walk_folder(walk, path, depth + 1);
            else if (!is_folder)
                walk->stopped = !walk->visit(walk->context, path);
        }
    }
    str_list_done(&names);
}

void each_file(const struct target *target, const char *dir, visit_file *visit, void *context)
{
    struct walk walk = {.target = target, .visit = visit, .context = context};

    walk_folder(&walk, dir, 0);
}

static const char *variable(const struct target *target, const char *name, size_t length)
{
    char *const *environment = target->lint->options->query.overrides->environment;

    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++)
        if (strncmp(environment[i], name, length) == 0 && environment[i][length] == '=')
            return environment[i] + length + 1;
    return NULL;
}

char *yaml_path(const struct target *target, const struct node *node)
{
    scoped(buf_done) struct buf text = {0};
    size_t position = 0, copied = 0, start, length;
    const char *home = variable(target, "HOME", 4);
    const struct origin *origin = node->mark.origin;

    if (node->text[0] == '~' && (node->text[1] == '/' || node->text[1] == '\0') && home != NULL) {
        buf_text_append(&text, home);
        copied = 1;
    }
    while (variable_next(node->text, &position, &start, &length)) {
        const char *value = variable(target, node->text + start, length);

        if (value == NULL)
            return NULL;
        buf_append(&text, node->text + copied,
                   start - (node->text[start - 1] == '{' ? 2 : 1) - copied);
        buf_text_append(&text, value);
        copied = position;
    }
    buf_text_append(&text, node->text + copied);

    const char *dir = origin != NULL && origin->dir != NULL ? origin->dir : target->origin->dir;
    scoped(mem_freep) char *whole = path_join(dir, buf_text(&text));

    return path_normal(whole);
}

bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

char *reference_path(const struct target *target, const struct node **ret_node)
{
    static const char *const places[] = {"reference.directory", "reference_dir", "reference.file"};

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        const struct node *node = node_find(target->file, places[i]);

        if (node == NULL || node->kind != NODE_TEXT)
            continue;
        *ret_node = node;
        return yaml_path(target, node);
    }
    return NULL;
}

bool next_staged(const struct target *target, size_t *position, struct staged *ret)
{
    const struct node *list = setting(target, "sandbox.template_sources");
    const struct node *input = setting(target, "input_dir");
    size_t count = list == NULL || list->kind != NODE_LIST ? 0 : list->count;

    while (*position <= count) {
        size_t i = (*position)++;
        const struct node *node = i < count ? node_get(list->items[i], "path") : input;

        if (node == NULL || node->kind != NODE_TEXT)
            continue;
        *ret = (struct staged){.node = node, .path = yaml_path(target, node)};
        if (ret->path == NULL)
            continue;
        if (i < count)
            (void)snprintf(ret->place, sizeof(ret->place), "sandbox.template_sources[%zu].path", i);
        else
            (void)snprintf(ret->place, sizeof(ret->place), "input_dir");
        return true;
    }
    return false;
}

struct folder_scan {
    const struct target *target;
    struct folder *folder;
};

static bool has_task_id(const char *text)
{
    return strncmp(text, "task_id:", 8) == 0 || strstr(text, "\ntask_id:") != NULL ||
           strstr(text, "\"task_id\":") != NULL;
}

/* What a plugin's projection takes without an include. */
static bool is_projected(const char *root, const char *path)
{
    static const char *const parts[] = {"/skills/", "/commands/", "/agents/", "/hooks/",
                                        "/.claude-plugin/"};

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (str_starts(path + strlen(root), parts[i]))
            return true;
    return false;
}

static bool take_task(void *context, const char *path)
{
    const struct folder_scan *scan = context;
    scoped(buf_done) struct buf text = {0};

    if (!str_ends(path, ".yaml") && !str_ends(path, ".yml"))
        return true;
    if (read_file(scan->target, path, HEAD_BYTES_MAX, &text) && has_task_id(buf_text(&text))) {
        str_list_add(&scan->folder->tasks, path);
        if (is_projected(scan->folder->path, path))
            str_list_add(&scan->folder->plugin_tasks, path);
    }
    return true;
}

const struct folder *folder_of(const struct target *target, const char *path)
{
    struct lint *lint = target->lint;

    for (size_t i = lint->folder_count; i-- > 0;)
        if (strcmp(lint->folders[i]->path, path) == 0)
            return lint->folders[i];
    struct folder *folder = mem_new(1, sizeof(*folder));
    struct folder_scan scan = {target, folder};

    folder->path = str_dup(path);
    if ((lint->folder_count & (lint->folder_count - 1)) == 0)
        lint->folders =
            mem_resize(lint->folders, lint->folder_count == 0 ? 1 : lint->folder_count * 2,
                       sizeof(struct folder *));
    lint->folders[lint->folder_count++] = folder;
    each_file(target, path, take_task, &scan);
    return folder;
}

void folder_free(struct folder *folder)
{
    free(folder->path);
    str_list_done(&folder->tasks);
    str_list_done(&folder->plugin_tasks);
    free(folder);
}
