/* The files: what a reference's file is mentioned by, and where it goes. */
#include "lint/migrate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

#define MENTION_BYTES_MAX ((size_t)1 << 20) /* of a file: larger ones are hardly graders */
#define DEPTH_MAX 16
#define MENTIONS_SHOWN 10

struct mentions {
    const char *name;       /* of the reference's file, without folders */
    const char *task, *own; /* files that may: the task file and the reference's file */
    struct str_list files;
    size_t looked_at;
};

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_-", c) != NULL;
}

static bool has_name(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *s = strstr(text, name); s != NULL; s = strstr(s + 1, name))
        if ((s == text || !is_name_char(s[-1])) && (s[length] == '\0' || !is_name_char(s[length])))
            return true;
    return false;
}

static void look_for_mention(struct mentions *mentions, const char *path)
{
    scoped(buf_done) struct buf text = {0};

    if (strcmp(path, mentions->task) == 0 || strcmp(path, mentions->own) == 0)
        return;
    /* One that cannot be read is taken for one that mentions it: nothing moves by guess. */
    scoped(error_freep) struct error *error = NULL;
    int r = fs_read_file(AT_FDCWD, path, MENTION_BYTES_MAX, &text, &error);

    if (r < 0 ? error_code_of(error) != ERROR_LIMIT : has_name(buf_text(&text), mentions->name))
        str_list_add(&mentions->files, path);
}

static void look_below(struct mentions *mentions, const char *dir, int depth)
{
    DIR *stream = opendir(dir);

    for (const struct dirent *entry = stream == NULL ? NULL : readdir(stream); entry != NULL;
         entry = readdir(stream)) {
        scoped(mem_freep) char *path = path_join(dir, entry->d_name);
        struct stat status;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            strcmp(entry->d_name, ".git") == 0 || strcmp(entry->d_name, "node_modules") == 0 ||
            ++mentions->looked_at > MIGRATE_FILES_MAX || lstat(path, &status) != 0)
            continue;
        if (S_ISDIR(status.st_mode) && depth < DEPTH_MAX)
            look_below(mentions, path, depth + 1);
        else if (S_ISREG(status.st_mode))
            look_for_mention(mentions, path);
    }
    if (stream != NULL)
        (void)closedir(stream); /* only read from */
}

/* A name that is free below the task's folder; owned, NULL: none. */
static char *free_folder(const char *dir, const char *path)
{
    scoped(mem_freep) char *plain = path_join(dir, "reference");
    scoped(mem_freep) char *stem = str_ndup(path_base(path), strcspn(path_base(path), "."));
    scoped(mem_freep) char *name = str_format("reference-%s", stem);
    scoped(mem_freep) char *own = path_join(dir, name);

    if (access(plain, F_OK) != 0)
        return str_dup("reference");
    for (const char *s = stem; *s != '\0'; s++)
        if (!is_name_char(*s))
            return NULL;
    return access(own, F_OK) != 0 ? take(name) : NULL;
}

/* Else it is not the task's to move: a link in a cloned suite may lead anywhere. */
static bool is_reached_without_links(const char *dir, const char *path)
{
    scoped(fd_closep) int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    scoped(fd_closep) int fd =
        dir_fd < 0 ? -1 : fs_open_beneath(dir_fd, path, O_PATH, 0, FS_NO_LINKS);

    return fd >= 0;
}

static void check_file(const char *path, const char *dir, struct migration *migration)
{
    scoped(mem_freep) char *own = path_join(dir, migration->reference_file);
    struct mentions mentions = {
        .name = path_base(migration->reference_file), .task = path, .own = own};
    struct stat status;

    if (lstat(own, &status) != 0 || !S_ISREG(status.st_mode) ||
        !is_reached_without_links(dir, migration->reference_file))
        str_list_add_take(&migration->refused,
                          str_format("the reference's file '%s' is no regular file, or lies "
                                     "behind a link",
                                     own));
    else
        look_below(&mentions, dir, 0);
    if (mentions.looked_at > MIGRATE_FILES_MAX)
        str_list_add_take(&migration->refused,
                          str_format("more than %d files to look through for mentions of '%s'",
                                     MIGRATE_FILES_MAX, mentions.name));
    str_list_sort(&mentions.files);
    for (size_t i = 0; i < mentions.files.count && i < MENTIONS_SHOWN; i++)
        str_list_add_take(&migration->refused,
                          str_format("'%s' mentions '%s', which would move; change it first",
                                     mentions.files.items[i], mentions.name));
    if (mentions.files.count > MENTIONS_SHOWN)
        str_list_add_take(&migration->refused,
                          str_format("and %zu more", mentions.files.count - MENTIONS_SHOWN));
    str_list_done(&mentions.files);
}

int migrate_plan(const char *path, const struct buf *text, struct migration *ret,
                 struct error **err)
{
    scoped(mem_freep) char *dir = path_dir(path);
    scoped(mem_freep) char *folder = free_folder(dir, path);
    scoped(mem_freep) char *whole = path_join(dir, path_base(path));
    struct task_text source = {path, buf_text(text), text->size_bytes};
    int r = migrate_text(&source, folder == NULL ? "reference" : folder, ret, err);

    if (r < 0 || ret->reference_file == NULL || ret->refused.count > 0)
        return r;
    if (folder == NULL)
        str_list_add(&ret->refused,
                     "no free name for the reference's folder: 'reference' is there");
    else
        check_file(whole, dir, ret);
    return 0;
}

/* Takes back what was made before the task file was replaced. */
static void undo(const char *folder, const char *moved)
{
    (void)unlink(moved); /* best effort: the task file is as it was */
    (void)rmdir(folder);
}

int migrate_apply(const char *path, const struct migration *migration, struct error **err)
{
    if (migration->reference_file == NULL)
        return edit_write(path, &migration->text, err);

    scoped(mem_freep) char *dir = path_dir(path);
    scoped(mem_freep) char *old = path_join(dir, migration->reference_file);
    scoped(mem_freep) char *folder = path_join(dir, migration->reference_folder);
    scoped(mem_freep) char *moved = path_join(folder, path_base(old));
    /* The folder that it is in, by descriptor: no link that takes its place later is followed. */
    scoped(mem_freep) char *inside = path_dir(migration->reference_file);
    scoped(fd_closep) int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    scoped(fd_closep) int from_fd =
        dir_fd < 0 ? -1 : fs_open_beneath(dir_fd, inside, O_PATH | O_DIRECTORY, 0, FS_NO_LINKS);

    if (from_fd < 0)
        return error_set(err, ERROR_USER, "the folder of '%s' cannot be opened without a link",
                         old);
    if (mkdir(folder, 0777) != 0)
        return error_errno_as(err, ERROR_USER, errno, "cannot make '%s'", folder);
    if (linkat(from_fd, path_base(old), AT_FDCWD, moved, 0) != 0) {
        int saved = errno;

        (void)rmdir(folder); /* it was made a moment ago */
        return error_errno_as(err, ERROR_USER, saved, "cannot move '%s' to '%s'", old, moved);
    }
    int r = edit_write(path, &migration->text, err);

    if (r < 0) {
        undo(folder, moved);
        return r;
    }
    if (unlinkat(from_fd, path_base(old), 0) != 0)
        return error_errno_as(err, ERROR_USER, errno, "cannot remove '%s', which is '%s' now", old,
                              moved);
    return 0;
}
