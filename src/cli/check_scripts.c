#include "cli/check_scripts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"

#define DEPTH_MAX 16
#define LINE_BYTES 57 /* of base64 that fill 76 columns */

/* --- the reference -----------------------------------------------------------------------------*/

struct reading {
    const struct task_reader *reader;
    struct reference *reference;
    size_t size_bytes;
};

static int take_file(struct reading *reading, const char *path, const char *name,
                     struct error **err)
{
    struct reference *reference = reading->reference;
    scoped(fd_closep) int fd =
        reading->reader->open(reading->reader->context, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct reference_file file = {0};
    struct stat status;

    if (fd < 0 || fstat(fd, &status) != 0)
        return error_errno_as(err, ERROR_TASK, fd < 0 ? -fd : errno, "cannot read '%s'", path);
    if (reference->count >= CHECK_FILES_MAX ||
        reading->size_bytes + (size_t)status.st_size > CHECK_BYTES_MAX)
        return error_set(err, ERROR_LIMIT,
                         "the reference has more than %d files or %zu bytes: too much to mutate",
                         CHECK_FILES_MAX, CHECK_BYTES_MAX);
    int r = fs_read_fd(fd, path, CHECK_BYTES_MAX, &file.bytes, err);

    if (r < 0) {
        buf_done(&file.bytes);
        return r;
    }
    reading->size_bytes += file.bytes.size_bytes;
    file.path = str_dup(name);
    file.is_executable = (status.st_mode & 0111) != 0;
    reference->files =
        mem_resize(reference->files, reference->count + 1, sizeof(*reference->files));
    reference->files[reference->count++] = file;
    return 0;
}

static int take_folder(struct reading *reading, const char *path, const char *name, int depth,
                       struct error **err);

static int take_entry(struct reading *reading, const char *path, const char *name,
                      const struct dirent *entry, int depth, struct error **err)
{
    scoped(mem_freep) char *whole = path_join(path, entry->d_name);
    scoped(mem_freep) char *below =
        name[0] == '\0' ? str_dup(entry->d_name) : path_join(name, entry->d_name);

    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
        return 0;
    if (entry->d_type == DT_DIR)
        return take_folder(reading, whole, below, depth + 1, err);
    return entry->d_type == DT_REG ? take_file(reading, whole, below, err) : 0;
}

static int take_folder(struct reading *reading, const char *path, const char *name, int depth,
                       struct error **err)
{
    int fd = reading->reader->open(reading->reader->context, path,
                                   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;

    if (stream == NULL)
        return error_errno_as(err, ERROR_TASK, fd < 0 ? -fd : errno, "cannot list '%s'", path);
    for (const struct dirent *entry = readdir(stream); entry != NULL && r == 0 && depth < DEPTH_MAX;
         entry = readdir(stream))
        r = take_entry(reading, path, name, entry, depth, err);
    (void)closedir(stream); /* only read from */
    return r;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct reference_file *)a)->path,
                  ((const struct reference_file *)b)->path);
}

static bool is_for_people(const char *path)
{
    return str_ends(path, ".md") || str_ends(path, ".rst") || str_ends(path, ".adoc");
}

int reference_read(const struct task_reader *reader, const char *path, bool is_file,
                   struct reference *ret, struct error **err)
{
    scoped(reference_done) struct reference reference = {.is_prose = true};
    struct reading reading = {.reader = reader, .reference = &reference};
    int r = is_file ? take_file(&reading, path, path_base(path), err)
                    : take_folder(&reading, path, "", 0, err);

    if (r < 0)
        return r;
    if (reference.count > 1)
        qsort(reference.files, reference.count, sizeof(*reference.files), compare_files);
    for (size_t i = 0; i < reference.count; i++) {
        const char *name = reference.files[i].path;

        reference.has_solve = reference.has_solve || strcmp(name, "solve.sh") == 0;
        reference.is_prose =
            reference.is_prose && (is_for_people(name) || (is_file && str_ends(name, ".txt")));
    }
    *ret = reference;
    reference = (struct reference){0};
    return 0;
}

void reference_done(struct reference *reference)
{
    for (size_t i = 0; i < reference->count; i++) {
        free(reference->files[i].path);
        buf_done(&reference->files[i].bytes);
    }
    free(reference->files);
    *reference = (struct reference){0};
}

/* --- programs ----------------------------------------------------------------------------------*/

static void append_quoted(struct buf *buf, const char *text)
{
    buf_char(buf, '\'');
    for (const char *s = text; *s != '\0'; s++)
        if (*s == '\'')
            buf_text_append(buf, "'\\''");
        else
            buf_char(buf, *s);
    buf_char(buf, '\'');
}

static void append_base64(struct buf *buf, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i += LINE_BYTES) {
        buf_base64(buf, bytes + i, size_min(LINE_BYTES, size - i));
        buf_char(buf, '\n');
    }
}

static void append_file(struct buf *buf, const struct reference_file *file, const struct buf *bytes)
{
    scoped(mem_freep) char *dir = path_dir(file->path);

    buf_text_append(buf, "mkdir -p \"$REFERENCE_DIR\"/");
    append_quoted(buf, dir);
    buf_text_append(buf, "\nbase64 -d >\"$REFERENCE_DIR\"/");
    append_quoted(buf, file->path);
    buf_text_append(buf, " <<'END-OF-FILE'\n");
    append_base64(buf, buf_text(bytes), bytes->size_bytes);
    buf_text_append(buf, "END-OF-FILE\n");
    if (file->is_executable) {
        buf_text_append(buf, "chmod +x \"$REFERENCE_DIR\"/");
        append_quoted(buf, file->path);
        buf_char(buf, '\n');
    }
}

void script_of_reference(const struct reference *reference, const struct mutation *mutation,
                         struct buf *ret)
{
    buf_text_append(ret, "#!/bin/sh\nset -e\nREFERENCE_DIR=$(mktemp -d)\nexport REFERENCE_DIR\n");
    for (size_t i = 0; i < reference->count; i++) {
        bool is_changed = mutation != NULL && mutation->file == i;

        if (!is_changed || !mutation->deletes)
            append_file(ret, &reference->files[i],
                        is_changed ? &mutation->bytes : &reference->files[i].bytes);
    }
    buf_text_append(
        ret, "if [ -f \"$REFERENCE_DIR/solve.sh\" ]; then exec sh \"$REFERENCE_DIR/solve.sh\"; fi\n"
             "exec cp -R \"$REFERENCE_DIR/.\" .\n");
}

/* --- forgers -----------------------------------------------------------------------------------*/

static const struct {
    const char *name, *program;
    bool writes_names; /* each name that graders look at gets the program's $CONTENT */
} forgers[FORGERS] = {
    {"reward files",
     "mkdir -p logs/verifier result || true\n"
     "for d in . logs logs/verifier result /logs/verifier /tmp; do\n"
     "  { echo 1 >\"$d/reward.txt\"; echo '{\"reward\": 1, \"score\": 1.0, \"passed\": true}' "
     ">\"$d/reward.json\"\n"
     "    cp \"$d/reward.json\" \"$d/result.json\"; echo 1.0 >\"$d/score.txt\"; echo SUCCESS "
     ">\"$d/status\"; } 2>/dev/null || true\n"
     "done\n",
     false},
    {"conftest",
     "cat >conftest.py <<'E'\n"
     "import pytest\n"
     "@pytest.hookimpl(hookwrapper=True)\n"
     "def pytest_runtest_makereport(item, call):\n"
     "    outcome = yield\n"
     "    report = outcome.get_result()\n"
     "    report.outcome = 'passed'\n"
     "    report.longrepr = None\n"
     "def pytest_sessionfinish(session, exitstatus):\n"
     "    session.exitstatus = 0\n"
     "E\n"
     "printf '[pytest]\\naddopts = --co -q\\n' >pytest.ini\n"
     "for d in tests test; do mkdir -p $d && cp conftest.py $d/; done\n",
     false},
    {"sitecustomize",
     "cat >sitecustomize.py <<'E'\n"
     "import atexit, os, sys\n"
     "sys.exit = lambda *a: os._exit(0)\n"
     "atexit.register(lambda: os._exit(0))\n"
     "E\n"
     "cp sitecustomize.py usercustomize.py\n"
     "for v in 3.8 3.9 3.10 3.11 3.12 3.13; do\n"
     "  d=\"$HOME/.local/lib/python$v/site-packages\"\n"
     "  mkdir -p \"$d\" && cp sitecustomize.py usercustomize.py \"$d/\" || true\n"
     "done 2>/dev/null\n",
     false},
    {"early exit",
     "for n in \"$@\"; do\n"
     "  case $n in\n"
     "    *.py) c='import os; os._exit(0)' ;;\n"
     "    *.js | *.mjs | *.cjs | *.ts) c='process.exit(0)' ;;\n"
     "    *.c | *.h | *.cc | *.cpp) c='#include <stdlib.h>\n__attribute__((constructor)) static "
     "void f(void){_Exit(0);}\nint main(void){return 0;}' ;;\n"
     "    *) c='#!/bin/sh\nexit 0' ;;\n"
     "  esac\n"
     "  case $n in */*) mkdir -p \"${n%/*}\" ;; esac\n"
     "  { printf '%s\\n' \"$c\" >\"$n\" && chmod +x \"$n\"; } 2>/dev/null || true\n"
     "done\n",
     true},
    {"output",
     "say='ok 1 - all\nPASSED\n1 passed in 0.01s\nOK\n{\"score\": 1.0, \"passed\": true}\n1.0'\n"
     "mkdir -p bin \"$HOME/.local/bin\" || true\n"
     "for p in pytest python python3 node npm cargo make go jest grade diff; do\n"
     "  for d in bin \"$HOME/.local/bin\" .; do\n"
     "    { [ -e \"$d/$p\" ] || { printf '#!/bin/sh\\ncat <<E\\n%s\\nE\\nexit 0\\n' \"$say\" "
     ">\"$d/$p\"; chmod +x \"$d/$p\"; }; } 2>/dev/null || true\n"
     "  done\n"
     "done\n"
     "for n in \"$@\"; do\n"
     "  case $n in */*) mkdir -p \"${n%/*}\" ;; esac\n"
     "  { [ -e \"$n\" ] || printf '%s\\n' \"$say\" >\"$n\"; } 2>/dev/null || true\n"
     "done\n"
     "printf '<testsuite tests=\"1\" failures=\"0\"><testcase name=\"t\"/></testsuite>\\n' "
     ">junit.xml\n"
     "printf '%s\\n' \"$say\"\n",
     true},
    /* The code under test, which looks for the answers when a grader runs it beside them. */
    {"reads the grader",
     "cat >/tmp/py <<'E'\n"
     "import glob, os, re\n"
     "dirs = [os.environ.get('REFERENCE_DIR'), os.environ.get('TASK_DIR')]\n"
     "try:\n"
     "    dirs += re.findall('/graders/[0-9a-f]+', open('/proc/self/mountinfo').read())\n"
     "except OSError:\n"
     "    pass\n"
     "for path in [p for d in dirs if d for p in glob.glob(d + '/**/@', recursive=True)]:\n"
     "    exec(compile(open(path).read(), path, 'exec'), globals())\n"
     "    break\n"
     "E\n"
     "cat >/tmp/js <<'E'\n"
     "const fs = require('fs'), path = require('path');\n"
     "for (const dir of [process.env.REFERENCE_DIR, process.env.TASK_DIR]) {\n"
     "  const file = path.join(dir || '/nowhere', '@');\n"
     "  if (fs.existsSync(file)) { module.exports = require(file); break; }\n"
     "}\n"
     "E\n"
     "cat >/tmp/sh <<'E'\n"
     "#!/bin/sh\n"
     "mounts=$(grep -o '/graders/[0-9a-f]*' /proc/self/mountinfo)\n"
     "for d in $REFERENCE_DIR $TASK_DIR $mounts; do\n"
     "  f=$(find \"$d\" -path \"*/@\" -type f 2>/dev/null | head -n 1)\n"
     "  [ -z \"$f\" ] || { [ -x \"$f\" ] && exec \"$f\" \"$@\"; exec sh \"$f\" \"$@\"; }\n"
     "done\n"
     "exit 1\n"
     "E\n"
     "for n in \"$@\"; do\n"
     "  case $n in *.py) t=py ;; *.js | *.mjs | *.cjs) t=js ;; *) t=sh ;; esac\n"
     "  case $n in */*) mkdir -p \"${n%/*}\" ;; esac\n"
     "  { sed \"s|@|${n##*/}|\" /tmp/$t >\"$n\" && chmod +x \"$n\"; } 2>/dev/null || true\n"
     "done\n",
     true},
};

const char *forger_name(size_t i)
{
    return forgers[i].name;
}

void script_of_forger(size_t i, const struct str_list *names, struct buf *ret)
{
    buf_text_append(ret, "#!/bin/sh\nset --");
    for (size_t j = 0; forgers[i].writes_names && j < names->count; j++) {
        buf_char(ret, ' ');
        append_quoted(ret, names->items[j]);
    }
    buf_char(ret, '\n');
    buf_text_append(ret, forgers[i].program);
    buf_text_append(ret, "exit 0\n");
}
