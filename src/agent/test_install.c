#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "base/fs.h"
#include "base/mem.h"

/*
 * A host in a table: what a path is open on is another path, as links make it. Real files stand for
 * the contents, under a folder whose name the tests' paths begin with.
 */
static char folder[] = "/var/tmp/closedbook-install.XXXXXX";

static int open_below(void *context, const char *path, int flags)
{
    (void)context;
    int fd = open(path, O_RDONLY | O_CLOEXEC | (flags & O_DIRECTORY));

    return fd < 0 ? -errno : fd;
}

static const struct task_reader reader = {.open = open_below};

static char *below(const char *path)
{
    return str_format("%s/%s", folder, path);
}

static void make(const char *path, const char *bytes, size_t size)
{
    scoped(mem_freep) char *whole = below(path);

    for (char *at = strchr(whole + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(whole, 0755); /* most are there */
        *at = '/';
    }
    assert_int_equal(
        fs_write_atomic(AT_FDCWD, whole, &(struct fs_content){bytes, size, 0755, FS_NO_SYNC}, NULL),
        0);
}

static void make_text(const char *path, const char *text)
{
    make(path, text, strlen(text));
}

static void link_to(const char *target, const char *path)
{
    scoped(mem_freep) char *whole = below(path);

    assert_int_equal(symlink(target, whole), 0);
}

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    make_text("a/node_modules/@openai/codex/bin/codex.js", "#!/usr/bin/env node\n1\n");
    make_text("a/node_modules/@openai/codex/package.json", "{\"version\": \"0.171.0\"}");
    make_text("a/node_modules/.bin/x", "");
    link_to("../@openai/codex/bin/codex.js", "a/node_modules/.bin/codex");
    make("node-22/bin/node", "\177ELF", 4);
    make("alone/claude", "\177ELF", 4);
    make_text("wrapped/pi", "#!/bin/sh\nexec pi\n");
    make_text("scripted/node", "#!/bin/sh\nexec node\n");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return fs_remove_tree(AT_FDCWD, folder, NULL);
}

/* What is found along folders of the test's, given as "a:b"; the error's text instead. */
static char *look(const struct agent_program *program, const char *folders)
{
    scoped(buf_done) struct buf search = {0};
    scoped(buf_done) struct buf text = {0};
    scoped(agent_install_done) struct agent_install install = {0};
    scoped(error_freep) struct error *err = NULL;

    while (*folders != '\0') {
        size_t length = strcspn(folders, ":");

        buf_format(&search, "%s%s/%.*s", search.size_bytes == 0 ? "" : ":", folder, (int)length,
                   folders);
        folders += length + (folders[length] == ':' ? 1 : 0);
    }
    if (agent_install_find(program, buf_text(&search), &reader, &install, &err) < 0) {
        assert_int_equal(error_code_of(err), ERROR_USER);
        return str_dup(error_message(err));
    }
    buf_format(&text, "%s", install.version == NULL ? "?" : install.version);
    for (size_t i = 0; i < install.argv.count; i++)
        buf_format(&text, " %s", install.argv.items[i] + strlen(folder));
    for (size_t i = 0; i < install.expose.count; i++)
        buf_format(&text, " +%s", install.expose.items[i] + strlen(folder));
    return buf_take(&text);
}

static const struct agent_program *program_of(enum task_agent_type type)
{
    return agent_adapter_of(type)->program;
}

static void finds_a_program_its_version_and_what_its_cell_must_show(void **state)
{
    (void)state;
    static const struct {
        enum task_agent_type type;
        const char *folders, *found;
    } cases[] = {
        {AGENT_CODEX, "a/node_modules/.bin:node-22/bin",
         "0.171.0 /node-22/bin/node /a/node_modules/@openai/codex/bin/codex.js "
         "+/node-22/bin/node +/a/node_modules"},
        /* Alone: what lies beside it may be a home. */
        {AGENT_CLAUDE_CODE, "nowhere:alone", "? /alone/claude +/alone/claude"},
        {AGENT_GEMINI, "alone", "'gemini' is not on PATH (npm package '@google/gemini-cli')"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *found = look(program_of(cases[i].type), cases[i].folders);

        assert_string_equal(found, cases[i].found);
    }
}

static void says_why_a_program_cannot_be_used(void **state)
{
    (void)state;
    scoped(mem_freep) char *wrapped = look(program_of(AGENT_PI), "wrapped");
    scoped(mem_freep) char *without = look(program_of(AGENT_CODEX), "a/node_modules/.bin");

    scoped(mem_freep) char *script = look(program_of(AGENT_CODEX), "a/node_modules/.bin:scripted");

    assert_non_null(strstr(wrapped, "is neither an ELF file nor a program for node"));
    assert_non_null(strstr(without, "needs 'node', which is not on PATH"));
    assert_non_null(strstr(script, "needs 'node', which is not on PATH"));
}

/* The same program is found below /var/tmp: where it lies is what is wrong with it. */
static void takes_no_program_that_would_lie_over_what_is_the_cells(void **state)
{
    (void)state;
    char temporary[] = "/tmp/closedbook-install.XXXXXX";
    scoped(agent_install_done) struct agent_install install = {0};
    scoped(error_freep) struct error *err = NULL;

    assert_non_null(mkdtemp(temporary));
    scoped(mem_freep) char *path = str_format("%s/claude", temporary);

    assert_int_equal(
        fs_write_atomic(AT_FDCWD, path, &(struct fs_content){"\177ELF", 4, 0755, FS_NO_SYNC}, NULL),
        0);
    int r = agent_install_find(program_of(AGENT_CLAUDE_CODE), temporary, &reader, &install, &err);

    assert_int_equal(fs_remove_tree(AT_FDCWD, temporary, NULL), 0);
    assert_int_equal(r, -ERROR_USER);
    assert_non_null(strstr(error_message(err), "it would lie over the cell's own /tmp"));
}

static void takes_no_path_that_is_too_long_to_be_shown(void **state)
{
    (void)state;
    scoped(buf_done) struct buf name = {0};

    while (name.size_bytes < TASK_EXPOSE_PATH_MAX)
        buf_text_append(&name, name.size_bytes == 0 ? "long" : "/a-folder");
    scoped(mem_freep) char *path = str_format("%s/claude", buf_text(&name));

    make(path, "\177ELF", 4);
    scoped(mem_freep) char *found = look(program_of(AGENT_CLAUDE_CODE), buf_text(&name));

    assert_non_null(strstr(found, "a path of at most"));
}

static void takes_no_program_of_a_relative_folder(void **state)
{
    (void)state;
    scoped(agent_install_done) struct agent_install install = {0};
    scoped(error_freep) struct error *err = NULL;

    assert_int_equal(chdir(folder), 0);
    assert_true(
        agent_install_find(program_of(AGENT_CLAUDE_CODE), "alone::.", &reader, &install, &err) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_a_program_its_version_and_what_its_cell_must_show),
        cmocka_unit_test(says_why_a_program_cannot_be_used),
        cmocka_unit_test(takes_no_program_of_a_relative_folder),
        cmocka_unit_test(takes_no_program_that_would_lie_over_what_is_the_cells),
        cmocka_unit_test(takes_no_path_that_is_too_long_to_be_shown),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
