/*
 * Names and JSON of images, and what layers make of a folder.
 */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "image/image.h"
#include "image/layout.h"
#include "image/rootfs.h"

static void tells_paths_from_marks(void **state)
{
    static const struct {
        const char *name, *parent, *base;
        int kind; /* -1: refused */
    } cases[] = {
        {"a", "", "a", ENTRY_PLAIN},
        {"./a//b/", "a", "b", ENTRY_PLAIN},
        {"/etc/passwd", "etc", "passwd", ENTRY_PLAIN},
        {"", "", "", ENTRY_ROOT},
        {"./", "", "", ENTRY_ROOT},
        {"a/.wh.b", "a", "b", ENTRY_WHITEOUT},
        {"a/.wh..wh..opq", "a", "", ENTRY_OPAQUE},
        {".wh..wh.plnk", "", "", ENTRY_IGNORED},
        {"a/..b", "a", "..b", ENTRY_PLAIN},
        {"..", "", "", -1},
        {"a/../b", "", "", -1},
        {"a/b/..", "", "", -1},
        {".wh.", "", "", -1},
        {".wh..", "", "", -1},
        {".wh...", "", "", -1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(entry_name_done) struct entry_name name = {.kind = ENTRY_PLAIN};
        int r = entry_name_parse(cases[i].name, &name, NULL);

        if ((r < 0) != (cases[i].kind < 0))
            fail_msg("'%s' gave %d", cases[i].name, r);
        if (r < 0)
            continue;
        assert_int_equal(name.kind, cases[i].kind);
        assert_string_equal(name.parent, cases[i].parent);
        assert_string_equal(name.base, cases[i].base);
    }
}

static void takes_references_apart(void **state)
{
    static const struct {
        const char *text, *path, *tag;
    } cases[] = {
        {"oci:/a/b", "/a/b", NULL},
        {"oci:/a/b:1.2", "/a/b", "1.2"},
        {"oci:/a:b/c", "/a:b/c", NULL},
        {"docker-archive:/a.tar:x", "/a.tar", "x"},
        {"docker-archive:/a.tar.zst:h:5000/x/y:1", "/a.tar.zst", "h:5000/x/y:1"},
        {"docker-archive:/a:b/c.tar", "/a:b/c.tar", NULL},
        {"docker-archive:/a:b", "/a:b", NULL},
        {"docker-archive:/a.tar:", "/a.tar", NULL},
        {"docker-daemon:a:1", "docker-daemon:a:1", NULL},
        {"docker://a/b:1", "docker://a/b:1", NULL},
        {"oci:", NULL, NULL},
        {"a/b", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(image_reference_done) struct image_reference reference = {.path = NULL};

        assert_int_equal(image_reference_parse(cases[i].text, &reference, NULL) < 0,
                         cases[i].path == NULL);
        assert_true(str_equal(reference.path, cases[i].path));
        assert_true(str_equal(reference.tag, cases[i].tag));
    }
}

static void chooses_of_an_archive_what_was_asked_for(void **state)
{
    static const char text[] =
        "[{\"Config\": \"a.json\", \"RepoTags\": [\"one:1\", \"h:5000/two:latest\"], \"Layers\": "
        "[]},"
        " {\"Config\": \"b.json\", \"RepoTags\": [\"three:latest\"], \"Layers\": []},"
        " {\"Config\": \"c.json\", \"RepoTags\": null, \"Layers\": []}]";
    static const struct {
        const char *tag, *config;
    } cases[] = {
        {"one:1", "a.json"}, {"h:5000/two", "a.json"}, {"three", "b.json"},
        {"one", NULL},       {"four:1", NULL},         {NULL, NULL},
    };
    scoped(buf_done) struct buf buf = {0};

    (void)state;
    buf_text_append(&buf, text);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(layout_archive_done) struct layout_archive archive = {.config = NULL};
        scoped(error_freep) struct error *err = NULL;
        const struct layout_want want = {.tag = cases[i].tag};

        if (layout_archive_parse("m", &buf, &want, &archive, &err) < 0)
            assert_string_equal(error_message(err),
                                cases[i].tag == NULL
                                    ? "m: 3 images are in the archive; name one: "
                                      "docker-archive:FILE:REF, with 'one:1', 'h:5000/two:latest', "
                                      "'three:latest'"
                                : strcmp(cases[i].tag, "one") == 0
                                    ? "m: no image is called 'one'; there are 'one:1', "
                                      "'h:5000/two:latest', 'three:latest'"
                                    : "m: no image is called 'four:1'; there are 'one:1', "
                                      "'h:5000/two:latest', 'three:latest'");
        assert_true(str_equal(archive.config, cases[i].config));
    }
}

/* Of the specification: one layer is its own chain, two are the digest of both. */
static void makes_the_chain_id_of_the_specification(void **state)
{
    struct sha256 ids[2] = {sha256_of("a", 1), sha256_of("b", 1)};
    struct sha256 one = layout_chain_id(ids, 1), two = layout_chain_id(ids, 2);
    char hex[SHA256_HEX_CHARS + 1];

    (void)state;
    assert_true(sha256_equal(&one, &ids[0]));
    sha256_format(&two, hex);
    /* printf 'sha256:%s sha256:%s' $(printf a | sha256sum) $(printf b | sha256sum) | sha256sum */
    assert_string_equal(hex, "51c0c8ace48498d6f5fee6b0592cc06f2da0f3cbe09c5a34a97dce85c3889676");
}

/* --- layers */

static int lay(struct rootfs *rootfs, const char *path, const char *what)
{
    const struct rootfs_status status = {.mode = 06777};
    scoped(entry_name_done) struct entry_name name = {.kind = ENTRY_PLAIN};
    scoped(entry_name_done) struct entry_name other = {.kind = ENTRY_PLAIN};
    int fd = -1;

    assert_int_equal(entry_name_parse(path, &name, NULL), 0);
    if (name.kind == ENTRY_WHITEOUT || name.kind == ENTRY_OPAQUE)
        return rootfs_hide(rootfs, &name, NULL);
    if (what == NULL)
        return rootfs_add_dir(rootfs, &name, &status, NULL);
    if (what[0] == '>')
        return rootfs_add_link(rootfs, &name, what + 1, &status, NULL);
    if (what[0] == '=') {
        assert_int_equal(entry_name_parse(what + 1, &other, NULL), 0);
        return rootfs_add_hard_link(rootfs, &name, &other, NULL);
    }
    int r = rootfs_begin_file(rootfs, &name, &fd, NULL);

    if (r < 0)
        return r;
    assert_int_equal(write(fd, what, strlen(what)), (ssize_t)strlen(what));
    return rootfs_end_file(rootfs, fd, &status, NULL);
}

static const struct rootfs_limits limits = {.bytes = 1000, .entries = 1000};

/* An outer folder with "in", which is the root, and "out", which nothing may reach. */
struct place {
    char path[32];
    int fd, root_fd;
};

static void place_make(struct place *place)
{
    *place = (struct place){.path = "/tmp/image-XXXXXX"};
    assert_non_null(mkdtemp(place->path));
    place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(place->fd, "in", 0755), 0);
    assert_int_equal(mkdirat(place->fd, "out", 0755), 0);
    place->root_fd = openat(place->fd, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(place->root_fd >= 0);
}

static void place_remove(struct place *place)
{
    fd_closep(&place->root_fd);
    fd_closep(&place->fd);
    assert_int_equal(fs_remove_tree(AT_FDCWD, place->path, NULL), 0);
}

static bool is_there(const struct place *place, const char *path)
{
    return faccessat(place->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void hides_what_lower_layers_have_and_no_more(void **state)
{
    struct place place;

    (void)state;
    place_make(&place);
    scoped(rootfs_freep) struct rootfs *rootfs = rootfs_new(place.root_fd, &limits);

    assert_int_equal(lay(rootfs, "d/gone", "1"), 0);
    assert_int_equal(lay(rootfs, "d/kept", "1"), 0);
    assert_int_equal(lay(rootfs, "o/old/deep", "1"), 0);
    assert_int_equal(lay(rootfs, "o/both/old", "1"), 0);
    assert_int_equal(lay(rootfs, "w/x", "1"), 0);
    rootfs_next_layer(rootfs);
    /* What the layer itself brings stays, whichever comes first. */
    assert_int_equal(lay(rootfs, "d/.wh.gone", NULL), 0);
    assert_int_equal(lay(rootfs, "d/.wh.absent", NULL), 0);
    assert_int_equal(lay(rootfs, "o/both/new", "2"), 0);
    assert_int_equal(lay(rootfs, "w/new", "2"), 0);
    assert_int_equal(lay(rootfs, "o/.wh..wh..opq", NULL), 0);
    assert_int_equal(lay(rootfs, ".wh.w", NULL), 0);
    assert_false(is_there(&place, "in/d/gone"));
    assert_true(is_there(&place, "in/d/kept"));
    assert_false(is_there(&place, "in/o/old"));
    assert_false(is_there(&place, "in/o/both/old"));
    assert_true(is_there(&place, "in/o/both/new"));
    assert_false(is_there(&place, "in/w/x"));
    assert_true(is_there(&place, "in/w/new"));
    place_remove(&place);
}

static void replaces_one_kind_by_another(void **state)
{
    struct place place;
    struct stat status;

    (void)state;
    place_make(&place);
    scoped(rootfs_freep) struct rootfs *rootfs = rootfs_new(place.root_fd, &limits);

    assert_int_equal(lay(rootfs, "d/x", "1"), 0);
    assert_int_equal(lay(rootfs, "f", "1"), 0);
    assert_int_equal(lay(rootfs, "g", "=f"), 0);
    assert_int_equal(lay(rootfs, "l", ">d"), 0);
    rootfs_next_layer(rootfs);
    assert_int_equal(lay(rootfs, "d", "file"), 0);
    assert_int_equal(lay(rootfs, "f", "other"), 0);
    assert_int_equal(lay(rootfs, "l", NULL), 0);
    assert_int_equal(lay(rootfs, "l/y", "2"), 0);
    assert_int_equal(fstatat(place.fd, "in/d", &status, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISREG(status.st_mode));
    assert_int_equal(status.st_mode & 07777, 0777); /* no set-id bits */
    /* The other name of what was replaced keeps the old bytes. */
    assert_int_equal(fstatat(place.fd, "in/g", &status, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(status.st_size, 1);
    assert_int_equal(fstatat(place.fd, "in/l", &status, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISDIR(status.st_mode));
    place_remove(&place);
}

/* What each of these would do to a folder that trusted them: see the control below. */
static const struct {
    const char *link, *through;
} escapes[] = {
    {">../out", "e/x"},
    {">../../../../../../../../../../tmp", "e/x"},
    {">/tmp", "e/x"},
};

static void stays_in_the_root_whatever_links_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(escapes); i++) {
        struct place place;

        place_make(&place);
        scoped(rootfs_freep) struct rootfs *rootfs = rootfs_new(place.root_fd, &limits);

        assert_int_equal(lay(rootfs, "out/own", "1"), 0);
        assert_int_equal(lay(rootfs, "tmp/own", "1"), 0);
        assert_int_equal(lay(rootfs, "e", escapes[i].link), 0);
        assert_int_equal(lay(rootfs, escapes[i].through, "2"), 0);
        assert_false(is_there(&place, "out/x"));
        assert_int_equal(access("/tmp/x", F_OK), -1);
        assert_true(is_there(&place, "in/out/x") || is_there(&place, "in/tmp/x"));
        place_remove(&place);
    }
}

/* The control: the same by plain calls does leave the root. */
static void would_notice_an_escape(void **state)
{
    struct place place;

    (void)state;
    place_make(&place);
    assert_int_equal(symlinkat("../out", place.root_fd, "e"), 0);
    int fd = openat(place.root_fd, "e/x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    fd_closep(&fd);
    assert_true(is_there(&place, "out/x"));
    place_remove(&place);
}

static void refuses_links_to_what_is_not_in_the_image(void **state)
{
    struct place place;

    (void)state;
    place_make(&place);
    scoped(rootfs_freep) struct rootfs *rootfs = rootfs_new(place.root_fd, &limits);

    assert_int_equal(lay(rootfs, "e", ">/etc"), 0);
    assert_int_equal(lay(rootfs, "h", "=e/passwd"), -ERROR_TASK);
    assert_int_equal(lay(rootfs, "h", "=/etc/passwd"), -ERROR_TASK);
    assert_int_equal(lay(rootfs, "d", NULL), 0);
    assert_int_equal(lay(rootfs, "h", "=d"), -ERROR_TASK);
    assert_int_equal(lay(rootfs, "e/x", "1"), -ERROR_TASK); /* the link leads nowhere */
    place_remove(&place);
}

static void stops_at_its_limits(void **state)
{
    const struct rootfs_limits few = {.bytes = 10, .entries = 3};
    struct place place;

    (void)state;
    place_make(&place);
    scoped(rootfs_freep) struct rootfs *rootfs = rootfs_new(place.root_fd, &few);

    assert_int_equal(rootfs_count_bytes(rootfs, 10, NULL), 0);
    assert_int_equal(rootfs_count_bytes(rootfs, 1, NULL), -ERROR_LIMIT);
    assert_int_equal(rootfs_count_bytes(rootfs, UINT64_MAX, NULL), -ERROR_LIMIT);
    assert_int_equal(lay(rootfs, "a", "1"), 0);
    assert_int_equal(lay(rootfs, "b", "1"), 0);
    assert_int_equal(lay(rootfs, ".wh.b", NULL), 0);
    assert_int_equal(lay(rootfs, "c", "1"), -ERROR_LIMIT);
    place_remove(&place);
}

/* A mark costs what it looks at; many of them over the same folder may not cost without end. */
static void limits_what_marks_look_at(void **state)
{
    struct place place;
    int r = 0;

    (void)state;
    place_make(&place);
    {
        scoped(rootfs_freep) struct rootfs *rootfs = rootfs_new(place.root_fd, &limits);

        for (int i = 0; i < 100; i++) {
            scoped(mem_freep) char *path = str_format("o/%d", i);

            assert_int_equal(lay(rootfs, path, "1"), 0);
        }
        for (int i = 0; i < 10; i++)
            assert_int_equal(lay(rootfs, "o/.wh..wh..opq", NULL), 0);
        for (int i = 0; i < 10 && r == 0; i++)
            r = lay(rootfs, "o/.wh..wh..opq", NULL);
    }
    assert_int_equal(r, -ERROR_LIMIT);
    place_remove(&place);
}

/* The same folder named again and again: its time is kept each time. */
static void limits_what_it_keeps_of_folders(void **state)
{
    static const struct rootfs_limits many = {.bytes = 1000, .entries = 1000000};
    const struct rootfs_status status = {.mode = 0755};
    scoped(buf_done) struct buf path = {0};
    scoped(entry_name_done) struct entry_name name = {.kind = ENTRY_PLAIN};
    struct place place;
    int r = 0;

    (void)state;
    place_make(&place);
    while (path.size_bytes < 3500)
        buf_format(&path, "%0200d/", 0);
    buf_text_append(&path, "last");
    assert_int_equal(entry_name_parse(buf_text(&path), &name, NULL), 0);
    {
        scoped(rootfs_freep) struct rootfs *rootfs = rootfs_new(place.root_fd, &many);

        for (int i = 0; i < 30000 && r == 0; i++)
            r = rootfs_add_dir(rootfs, &name, &status, NULL);
    }
    assert_int_equal(r, -ERROR_LIMIT);
    place_remove(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_paths_from_marks),
        cmocka_unit_test(takes_references_apart),
        cmocka_unit_test(chooses_of_an_archive_what_was_asked_for),
        cmocka_unit_test(makes_the_chain_id_of_the_specification),
        cmocka_unit_test(hides_what_lower_layers_have_and_no_more),
        cmocka_unit_test(replaces_one_kind_by_another),
        cmocka_unit_test(stays_in_the_root_whatever_links_say),
        cmocka_unit_test(would_notice_an_escape),
        cmocka_unit_test(refuses_links_to_what_is_not_in_the_image),
        cmocka_unit_test(stops_at_its_limits),
        cmocka_unit_test(limits_what_marks_look_at),
        cmocka_unit_test(limits_what_it_keeps_of_folders),
    };

    return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
