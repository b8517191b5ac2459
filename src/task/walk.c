/* The task files below files and folders, found through the reader; links are not followed. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "task/internal.h"

#define WALK_DEPTH_MAX 32
#define WALK_ENTRIES_MAX 1000000

struct walker {
    const struct task_reader *reader;
    struct problems *problems;
    struct str_list files; /* found */
    size_t entry_count;
};

static void complain(struct walker *walker, enum problem_level level, const char *path,
                     const char *message)
{
    struct origin origin = {.source = "path", .file = path};

    problems_say(walker->problems, level, (struct mark){.origin = &origin}, NULL, message);
}

static bool is_yaml(const char *name)
{
    return str_ends(name, ".yaml") || str_ends(name, ".yml");
}

static bool is_passed_over(const char *name)
{
    return name[0] == '.' || strcmp(name, "node_modules") == 0;
}

static void walk_dir(struct walker *walker, int fd, const char *path, int depth);

static void walk_below(struct walker *walker, const char *path, int depth)
{
    int fd = walker->reader->open(walker->reader->context, path,
                                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0) {
        walk_dir(walker, fd, path, depth);
        return;
    }
    scoped(mem_freep) char *message = str_format("cannot be opened: %s", strerror(-fd));

    complain(walker, PROBLEM_ERROR, path, message);
}

static void take_entry(struct walker *walker, const char *path, const char *name,
                       unsigned char type, int depth)
{
    scoped(mem_freep) char *whole = strcmp(path, ".") == 0 ? str_dup(name) : path_join(path, name);

    if (is_passed_over(name))
        return;
    if (type == DT_DIR)
        walk_below(walker, whole, depth + 1);
    else if (is_yaml(name) && type == DT_LNK)
        complain(walker, PROBLEM_NOTE, whole, "a symbolic link, not followed");
    else if (is_yaml(name) && type == DT_REG)
        str_list_add(&walker->files, whole);
}

struct entry {
    char *name;
    unsigned char type;
};

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* Some filesystems do not tell the type with the name. */
static unsigned char type_of(DIR *dir, const struct dirent *entry)
{
    struct stat status;

    if (entry->d_type != DT_UNKNOWN ||
        fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return entry->d_type;
    return S_ISDIR(status.st_mode)   ? DT_DIR
           : S_ISREG(status.st_mode) ? DT_REG
           : S_ISLNK(status.st_mode) ? DT_LNK
                                     : DT_UNKNOWN;
}

/* All names of a folder, sorted; fd is consumed. */
static struct entry *list_dir(struct walker *walker, int fd, const char *path, size_t *ret_count)
{
    struct entry *entries = NULL;
    DIR *dir = fdopendir(fd);

    *ret_count = 0;
    if (dir == NULL) {
        fd_closep(&fd);
        complain(walker, PROBLEM_ERROR, path, "cannot be listed");
        return NULL;
    }
    errno = 0;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (walker->entry_count++ >= WALK_ENTRIES_MAX)
            break;
        if ((*ret_count & (*ret_count - 1)) == 0)
            entries =
                mem_resize(entries, *ret_count == 0 ? 1 : *ret_count * 2, sizeof(struct entry));
        entries[(*ret_count)++] = (struct entry){str_dup(entry->d_name), type_of(dir, entry)};
        errno = 0;
    }
    if (errno != 0)
        complain(walker, PROBLEM_ERROR, path, "cannot be listed to its end");
    (void)closedir(dir); /* only read from */
    if (*ret_count > 1)
        qsort(entries, *ret_count, sizeof(struct entry), compare_entries);
    return entries;
}

static void walk_dir(struct walker *walker, int fd, const char *path, int depth)
{
    size_t count;
    struct entry *entries = list_dir(walker, fd, path, &count);

    if (depth >= WALK_DEPTH_MAX)
        complain(walker, PROBLEM_ERROR, path, "folders nested too deeply");
    for (size_t i = 0; i < count; i++) {
        if (depth < WALK_DEPTH_MAX)
            take_entry(walker, path, entries[i].name, entries[i].type, depth);
        free(entries[i].name);
    }
    free(entries);
}

static void add_file(struct file_list *list, const char *path, bool named)
{
    for (size_t i = 0; i < list->count && named; i++) {
        if (strcmp(list->paths[i], path) == 0) {
            list->named[i] = true;
            return;
        }
    }
    if ((list->count & (list->count - 1)) == 0) {
        size_t capacity = list->count == 0 ? 1 : list->count * 2;

        list->paths = mem_resize(list->paths, capacity, sizeof(char *));
        list->named = mem_resize(list->named, capacity, sizeof(bool));
    }
    list->paths[list->count] = str_dup(path);
    list->named[list->count++] = named;
}

/* A path of the command line: a folder is walked, anything else is a file. */
static void walk_named(struct walker *walker, const char *given, struct file_list *named)
{
    scoped(mem_freep) char *path = path_normal(given);
    int fd =
        walker->reader->open(walker->reader->context, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0)
        walk_dir(walker, fd, path, 0);
    else if (fd == -ENOTDIR)
        add_file(named, path, true);
    else {
        scoped(mem_freep) char *message = str_format("cannot be opened: %s", strerror(-fd));

        complain(walker, PROBLEM_ERROR, path, message);
    }
}

void walk_paths(const struct task_reader *reader, const struct str_list *paths,
                struct file_list *ret, struct problems *problems)
{
    struct walker walker = {.reader = reader, .problems = problems};

    for (size_t i = 0; i < paths->count; i++)
        walk_named(&walker, paths->items[i], ret);
    if (walker.entry_count > WALK_ENTRIES_MAX)
        complain(&walker, PROBLEM_ERROR, "", "more files than can be looked through");
    str_list_sort(&walker.files);
    size_t named_count = ret->count;

    for (size_t i = 0; i < walker.files.count; i++) {
        bool known = i > 0 && strcmp(walker.files.items[i], walker.files.items[i - 1]) == 0;

        for (size_t j = 0; j < named_count && !known; j++)
            known = strcmp(ret->paths[j], walker.files.items[i]) == 0;
        if (!known)
            add_file(ret, walker.files.items[i], false);
    }
    str_list_done(&walker.files);
}

void file_list_done(struct file_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
    free(list->named);
    *list = (struct file_list){0};
}
