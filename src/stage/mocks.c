#include "stage/mocks.h"

#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "stage/internal.h"

#define MAGIC_BYTES 4

void mocks_staged_init(struct mocks_staged *mocks)
{
    *mocks = (struct mocks_staged){.sealed = {.tree_fd = -1}, .tools = {.tree_fd = -1}};
}

void mocks_staged_done(struct mocks_staged *mocks)
{
    layer_done(&mocks->sealed);
    layer_done(&mocks->tools);
    mocks_staged_init(mocks);
}

/* --- what is sealed --------------------------------------------------------------------------- */

bool mocks_in_source(const struct task_public *task, const char *mount_point, struct str_list *ret)
{
    const char *mount = mount_point == NULL ? "." : mount_point;
    size_t length = strcmp(mount, ".") == 0 ? 0 : strlen(mount) + 1;

    for (size_t i = 0; i < task->mock_dirs.count; i++) {
        const char *dir = task->mock_dirs.items[i];

        if (length > 0 && manifest_path_below(mount, dir))
            return true;
        if (length == 0 || manifest_path_below(dir, mount))
            str_list_add(ret, dir + length);
    }
    return false;
}

/* The layers of sealed folders, one a source. */
struct parts {
    struct layer *items;
    size_t count;
};

static void parts_done(struct parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        layer_done(&parts->items[i]);
    free(parts->items);
}

static int seal_files(const struct view_source *from, const struct task_source *source,
                      struct layer *ret, struct error **err)
{
    const char *mount = source->mount_point == NULL ? "." : source->mount_point;
    scoped(mem_freep) struct store_file *items = mem_new(source->file_count + 1, sizeof(*items));
    struct store_files files = {
        .items = items, .executable = &from->task->mock_dirs, .mount_point = mount};
    scoped(str_list_done) struct str_list inside = {0};
    bool whole = mocks_in_source(from->task, mount, &inside);

    for (size_t i = 0; i < source->file_count; i++) {
        if (whole || mocks_hold(&inside, source->files[i].path))
            items[files.count++] = (struct store_file){.path = source->files[i].path,
                                                       .content = source->files[i].content};
    }
    return files.count == 0 ? 0 : store_add_files(from->store, STORE_PRIVATE, &files, ret, err);
}

static int seal_folder(const struct view_source *from, const struct task_source *source,
                       struct layer *ret, struct error **err)
{
    scoped(str_list_done) struct str_list inside = {0};
    bool whole = mocks_in_source(from->task, source->mount_point, &inside);
    scoped(fd_closep) int fd = -1;

    if (!whole && inside.count == 0)
        return 0;
    fd =
        from->reader->open(from->reader->context, source->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, -fd, "cannot stage '%s'", source->path);
    const struct store_source stored = {
        .fd = fd,
        .label = source->path,
        .mount_point = source->mount_point != NULL ? source->mount_point : ".",
        .ignore = &from->task->ignore_patterns,
        .only = whole ? NULL : &inside,
        .executable = &from->task->mock_dirs,
    };

    return store_add(from->store, STORE_PRIVATE, from->monitor, &stored, ret, err);
}

static int seal_sources(const struct view_source *from, struct parts *parts, struct error **err)
{
    const struct task_public *task = from->task;
    int r = 0;

    parts->items = mem_new(task->source_count + 1, sizeof(*parts->items));
    for (size_t i = 0; r == 0 && i < task->source_count; i++) {
        const struct task_source *source = &task->sources[i];
        struct layer layer = {.tree_fd = -1};

        if (source->kind == SOURCE_STARTER_FILES)
            r = seal_files(from, source, &layer, err);
        else if (source->kind != SOURCE_REPO)
            r = seal_folder(from, source, &layer, err);
        if (r == 0 && layer.tree_fd >= 0)
            parts->items[parts->count++] = layer;
    }
    return r;
}

bool mocks_hold(const struct str_list *dirs, const char *path)
{
    for (size_t i = 0; i < dirs->count; i++) {
        if (manifest_path_below(path, dirs->items[i]))
            return true;
    }
    return false;
}

/* What is left of them in the workspace came by a way from which it cannot be taken. */
static int check_absent(const struct task_public *task, const struct manifest *visible,
                        struct error **err)
{
    for (size_t i = 0; i < visible->count; i++) {
        const char *path = visible->entries[i].path;

        if (mocks_hold(&task->mock_dirs, path))
            return error_set(err, ERROR_TASK,
                             "mocks: sealed: '%s' is of a repo source, from which it cannot be "
                             "taken; put mock_path_dirs in a template_dir or starter_files",
                             path);
    }
    return 0;
}

static int seal(const struct view_source *from, const struct manifest *visible, struct layer *ret,
                struct error **err)
{
    scoped(parts_done) struct parts parts = {0};
    int r = check_absent(from->task, visible, err);

    if (r == 0)
        r = seal_sources(from, &parts, err);
    if (r < 0)
        return r;
    if (parts.count == 0)
        return error_set(err, ERROR_TASK,
                         "mocks: sealed: no source has a folder of mock_path_dirs");
    if (parts.count > 1)
        return store_merge(from->store, STORE_PRIVATE, parts.items, parts.count, ret, err);
    *ret = parts.items[0];
    parts.count = 0;
    return 0;
}

/* --- what stands in --------------------------------------------------------------------------- */

static bool is_program(const struct layer *sealed, const struct manifest_entry *entry)
{
    scoped(fd_closep) int fd = -1;
    char magic[MAGIC_BYTES] = {0};

    if (entry->type != MANIFEST_FILE)
        return false;
    fd = openat(sealed->tree_fd, entry->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || read(fd, magic, sizeof(magic)) < 2)
        return false;
    return memcmp(magic, "#!", 2) == 0 || memcmp(magic, "\177ELF", sizeof(magic)) == 0;
}

/* Names of the programs right in the folders. */
static int find_programs(const struct task_public *task, const struct layer *sealed,
                         struct str_list *ret, struct error **err)
{
    for (size_t i = 0; i < sealed->manifest.count; i++) {
        const struct manifest_entry *entry = &sealed->manifest.entries[i];
        scoped(mem_freep) char *folder = path_dir(entry->path);
        const char *slash = strrchr(entry->path, '/');
        const char *name = slash == NULL ? entry->path : slash + 1;

        if (!str_list_has(&task->mock_dirs, folder) || !is_program(sealed, entry))
            continue;
        if (str_list_has(&task->mock_tools, name))
            return error_set(err, ERROR_TASK,
                             "record_cli: '%s' is recorded, and mock_path_dirs has '%s'", name,
                             entry->path);
        if (!str_list_has(ret, name))
            str_list_add(ret, name);
    }
    if (ret->count == 0)
        return error_set(err, ERROR_TASK,
                         "mocks: sealed: no file right in mock_path_dirs begins with '#!' or is an "
                         "ELF program");
    return 0;
}

static int make_tools(const struct view_source *from, const struct str_list *sealed,
                      struct layer *ret, struct error **err)
{
    const struct str_list *recorded = &from->task->mock_tools;
    size_t count = recorded->count + sealed->count;
    scoped(mem_freep) struct store_file *items = mem_new(count + 1, sizeof(*items));
    scoped(str_list_done) struct str_list executable = {0};
    const struct store_files files = {
        .items = items, .count = count, .mount_point = ".", .executable = &executable};

    str_list_add(&executable, ".");
    for (size_t i = 0; i < recorded->count; i++)
        items[i] = (struct store_file){.path = recorded->items[i], .content = from->recorded_line};
    for (size_t i = 0; i < sealed->count; i++)
        items[recorded->count + i] =
            (struct store_file){.path = sealed->items[i], .content = from->sealed_line};
    return count == 0 ? 0 : store_add_files(from->store, STORE_PUBLIC, &files, ret, err);
}

/* Two programs of one name: which one the agent would get is nobody's guess. */
static int check_collisions(const struct task_public *task, const struct manifest *visible,
                            struct error **err)
{
    for (size_t i = 0; i < visible->count; i++) {
        const char *path = visible->entries[i].path;
        scoped(mem_freep) char *folder = path_dir(path);
        const char *slash = strrchr(path, '/');
        const char *name = slash == NULL ? path : slash + 1;

        if (str_list_has(&task->mock_dirs, folder) && str_list_has(&task->mock_tools, name))
            return error_set(err, ERROR_TASK,
                             "record_cli: '%s' is recorded, and mock_path_dirs has '%s'", name,
                             path);
    }
    return 0;
}

int mocks_stage(const struct view_source *source, const struct manifest *visible,
                struct mocks_staged *ret, struct error **err)
{
    const struct task_public *task = source->task;
    scoped(str_list_done) struct str_list programs = {0};
    int r = 0;

    if (task->mocks_sealed) {
        r = seal(source, visible, &ret->sealed, err);
        if (r == 0)
            r = find_programs(task, &ret->sealed, &programs, err);
    } else {
        r = check_collisions(task, visible, err);
    }
    return r < 0 ? r : make_tools(source, &programs, &ret->tools, err);
}
