#include "record/testing.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "base/mem.h"

struct criterion_record *testing_criterion(struct trial_record *record, const char *type,
                                           const char *description, double score)
{
    record->criteria =
        mem_resize(record->criteria, record->criterion_count + 1, sizeof(*record->criteria));

    struct criterion_record *criterion = &record->criteria[record->criterion_count++];

    *criterion = (struct criterion_record){
        .type = str_dup(type),
        .description = str_dup(description),
        .score = score,
        .has_score = true,
        .weight = 1.0,
        .threshold = 0.9,
        .passed = score >= 0.9,
        .gating = true,
        .duration_ms = 12,
    };
    return criterion;
}

static json_t *refused_list(void)
{
    json_t *list = json_array();
    json_t *refused = json_object();

    json_put_text(refused, "path", "out/pipe");
    json_put_text(refused, "reason", "fifo");
    json_push(list, refused);
    return list;
}

struct trial_record testing_trial(void)
{
    struct trial_record record;

    trial_record_init(&record);
    record.run_id = str_dup("20261130-abc");
    record.trial_id = str_dup("default/hello/00");
    record.task_id = str_dup("hello");
    record.variant_id = str_dup("default");
    record.status = STATUS_SUCCESS;
    record.has_verdict = record.passed = record.has_score = true;
    record.score = 1.0;
    record.agent.type = str_dup("script");
    record.agent.stopped_by = str_dup("exit");
    record.agent.exit_code = 0;
    record.agent.turns = 1;
    record.agent.tool_calls = 2;
    record.agent.duration_ms = 40;
    record.agent.output_bytes = 17;
    record.cell.driver = str_dup("native");
    record.cell.tier = str_dup("A");
    record.cell.uid = 0x70000000;
    record.cell.seccomp = true;
    record.cell.landlock_abi = 6;
    record.cell.kill_processes = 3;
    record.cell.kill_ms = 1.25;
    str_list_add(&record.cell.namespaces, "mount");
    str_list_add(&record.cell.namespaces, "pid");
    str_list_add(&record.cell.protections, "seccomp");
    json_put_int(record.cell.limits, "pids", 1024);
    record.events = str_dup("self-reported");
    record.staging = str_dup("copied");
    record.view.root = str_format("sha256:%064d", 1);
    record.view.files = 4;
    record.view.bytes = 120;
    record.view.layers = json_array();
    record.artifacts.files = 1;
    record.artifacts.bytes = 6;
    record.artifacts.digest = str_format("sha256:%064d", 2);
    json_decref(record.artifacts.refused);
    record.artifacts.refused = refused_list();
    record.timing_ms.stage = 0.5;
    record.timing_ms.total = 52.75;
    record.started_unix_ms = 1764519000123;
    record.ended_unix_ms = 1764519000176;
    (void)testing_criterion(&record, "run_command", "greets", 1.0); /* nothing to add to it */
    return record;
}

char *testing_directory(void)
{
    const char *base = getenv("TMPDIR");
    char *path = str_format("%s/closedbook-test-XXXXXX", base == NULL ? "/tmp" : base);

    ASSERT(mkdtemp(path) != NULL);
    return path;
}

void testing_remove(const char *path)
{
    scoped(mem_freep) char *parent = path_dir(path);
    scoped(error_freep) struct error *err = NULL;
    scoped(fd_closep) int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ASSERT(fd >= 0 && fs_remove_tree(fd, path_base(path), &err) == 0);
}

static bool write_own(const char *path, const char *text)
{
    scoped(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* A user namespace without ids of its own cannot own a file of a tmpfs. */
static bool unshare_mounts(void)
{
    scoped(mem_freep) char *users = str_format("%u %u 1\n", geteuid(), geteuid());
    scoped(mem_freep) char *groups = str_format("%u %u 1\n", getegid(), getegid());

    if (geteuid() == 0)
        return unshare(CLONE_NEWNS) == 0;
    return unshare(CLONE_NEWNS | CLONE_NEWUSER) == 0 && write_own("/proc/self/uid_map", users) &&
           write_own("/proc/self/setgroups", "deny") && write_own("/proc/self/gid_map", groups);
}

static int mount_small_disk(const char *path)
{
    if (!unshare_mounts() || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", path, "tmpfs", 0, "size=64k,mode=0700") < 0)
        return TESTING_NO_MOUNTS;
    return 0;
}

static int drop_writing(const char *path)
{
    if (geteuid() == 0 && (chmod(path, 0555) < 0 || setresgid(65534, 65534, 65534) < 0 ||
                           setresuid(65534, 65534, 65534) < 0))
        return TESTING_NO_MOUNTS;
    if (access(path, W_OK) == 0 && chmod(path, 0555) < 0)
        return TESTING_NO_MOUNTS;
    return 0;
}

static int in_child(testing_check *prepare, testing_check *check)
{
    scoped(mem_freep) char *path = testing_directory();
    pid_t pid = fork();
    int status = 0;

    ASSERT(pid >= 0);
    if (pid == 0) {
        int r = prepare(path);

        _exit(r == 0 ? check(path) : r);
    }
    ASSERT(waitpid(pid, &status, 0) == pid);
    ASSERT(chmod(path, 0700) == 0);
    testing_remove(path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int testing_on_small_disk(testing_check *check)
{
    return in_child(mount_small_disk, check);
}

int testing_on_read_only(testing_check *check)
{
    return in_child(drop_writing, check);
}
