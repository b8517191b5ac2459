/* A source of type repo: one commit of a git repository of this machine. */
#include "task/internal.h"

#define FILE_SCHEME "file://"

/* NULL: a path of this machine. Else how the address is of another one. */
static const char *remote_kind(const char *url)
{
    const char *colon = strchr(url, ':'), *slash = strchr(url, '/');

    if (strstr(url, "://") != NULL)
        return str_starts(url, FILE_SCHEME) ? NULL : "a URL of the network";
    /* host:path, as ssh takes it */
    return colon != NULL && (slash == NULL || colon < slash) ? "an address of another machine"
                                                             : NULL;
}

/* The folder that a url names; owned. NULL: complained. */
static char *read_url(const struct build *build, const struct node *url, const char *name)
{
    const char *remote = remote_kind(url->text);
    struct node path = *url;
    bool empty = false;

    if (remote != NULL) {
        build_later(build, url->mark, name,
                    "'%s' is %s, which is not in this version: the broker will fetch it; name a "
                    "clone of it on this machine",
                    url->text, remote);
        return NULL;
    }
    if (str_starts(url->text, FILE_SCHEME))
        path.text += strlen(FILE_SCHEME);
    if (path.text != url->text && path.text[0] != '/') {
        build_error(build, url->mark, name, "file:///PATH expected, found '%s'", url->text);
        return NULL;
    }
    scoped(mem_freep) char *dir = build_path(build, &path, name, true);

    if (dir == NULL)
        return NULL;
    scoped(mem_freep) char *wrong = source_check_dir(build->loader->reader, dir, &empty);

    if (wrong == NULL)
        return take(dir);
    build_error(build, url->mark, name, "'%s' %s", dir, wrong);
    return NULL;
}

static enum task_history read_history(const struct node *source)
{
    const char *text = node_get_text(source, "history");

    if (text != NULL && strcmp(text, "ancestors") == 0)
        return HISTORY_ANCESTORS;
    return text != NULL && strcmp(text, "none") == 0 ? HISTORY_NONE : HISTORY_BASE;
}

void build_repo(const struct build *build, const struct node *source, size_t index)
{
    scoped(mem_freep) char *path = str_format("sandbox.template_sources[%zu]", index);
    scoped(mem_freep) char *name = str_format("%s.url", path);
    const struct node *driver = node_find(build->root, "sandbox.driver");
    const struct node *url = node_get(source, "url");
    const char *commit = node_get_text(source, "commit");

    if (index > 0)
        build_error(build, source->mark, path,
                    "a repo is the first source, and there is at most one: here it is number %zu",
                    index + 1);
    if (driver != NULL && str_equal(driver->text, "tempdir"))
        build_error(build, source->mark, path,
                    "the driver tempdir has no cell to run git in: use the driver native, or a "
                    "template_dir");
    if (url == NULL || url->text == NULL || commit == NULL)
        return; /* complained of already */
    scoped(mem_freep) char *dir = read_url(build, url, name);

    if (dir == NULL)
        return;
    struct task_source *added = build_add_source(build->task->public_half, SOURCE_REPO);

    added->path = take(dir);
    added->mount_point = str_dup(".");
    added->commit = str_dup(commit);
    added->history = read_history(source);
}
